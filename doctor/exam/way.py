"""The way from a request to its hosts, as recorded: options to type again, without secrets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from doctor.exam.request import Request
from doctor.model import Host
from doctor.text.hostprogram import table
from doctor.text.option import KEY, LIVE, Option, given_in
from doctor.text.redact import redact
from doctor.transport.way import EXAMINES, Typed, Way

if TYPE_CHECKING:
    from doctor.recording import Recording
    from doctor.targets.inventory import Targets

NAMED, REACHED, ASKED = table(__file__, "way.txt")
"""The options that name hosts, that reach them, and that say what is examined."""
CHOICE = ("--only", "--skip")
STRICTNESS = ("--strict", "--need-hosts")


def way_of(
    request: Request, targets: Targets, transport: str, environ: Mapping[str, str] = os.environ
) -> Way:
    """The way to record."""
    from doctor.targets.inventory import LOCAL

    if targets.source == LOCAL:  # this machine, whether it was named or not
        request = replace(request, who=replace(request.who, local=True))
    return way_to(request, targets.hosts, transport, environ)


def way_to(
    request: Request, hosts: Sequence[Host] = (), transport: str = "", environ: Mapping[str, str] = os.environ
) -> Way:
    """It names files by absolute paths, so that its commands work in every folder."""
    if transport in ("openssh", "srun"):  # the others follow from the hosts
        request = replace(request, way=replace(request.way, transport=transport))
    given = {known.name: tuple(_words(known, value)) for known, value in given_in(request)}

    def typed(names: Iterable[str]) -> tuple[Typed, ...]:
        return tuple(each for name in names for each in given.get(name, ()))

    of_accept = [("--path", path) for path in request.paths]
    of_accept += [("--hosts-at-once", str(request.hosts_at_once))] if request.hosts_at_once else []
    users = {host.name: host.user for host in (() if request.who.inventory else hosts) if host.user}
    logins = {host.name: own for host in hosts if (own := tuple(_login(host)))}
    return Way(
        typed(NAMED),
        typed(REACHED),
        (*typed(ASKED), *of_accept),
        users,
        logins if request.who.inventory or request.who.nodes else {},
        environ.get("SLURM_JOB_ID", "") if transport == "srun" else "",
        request.defaults,
    )


def retyped(request: Request, given: Iterable[Typed]) -> Request:
    """The request with the options that another run was given, unless they were typed for this one."""
    values: dict[str, list[str]] = {}
    for name, *value in given:
        if name not in request.typed:
            values.setdefault(name, []).extend(value)
    found: Request = _filled(request, values)
    return found


def as_recorded(request: Request, recorded: Recording) -> Request:
    """The request of a replay, with the recorded options that its verdict depends on, unless they are typed
    anew; checks or an exam that are named stay.
    """
    if not {request.command, recorded.command} <= {*EXAMINES} or recorded.way is None:
        return request
    wanted = STRICTNESS if request.typed & {"--exam", *CHOICE} else (*CHOICE, *STRICTNESS)
    given = [option for option in recorded.way.asked if option[0] in wanted]
    return replace(retyped(request, given), typed=request.typed | {option[0] for option in given})


def _filled(group: Any, values: Mapping[str, list[str]]) -> Any:
    kinds, changed = get_type_hints(type(group)), {}
    for each in fields(group):
        known: Option | None = each.metadata.get(KEY)
        if known is None:
            if is_dataclass(inner := getattr(group, each.name)):
                changed[each.name] = _filled(inner, values)
        elif known.name in values:
            changed[each.name] = _value(known, kinds[each.name], values[known.name])
    return replace(group, **changed)


def _value(known: Option, kind: Any, words: Sequence[str]) -> Any:
    """The value of an option; a switch has no words."""
    kinds = (kind, *get_args(kind))
    read = next((each for each in (int, float, Path) if each in kinds), str)
    if bool in kinds:
        return True
    if get_origin(kind) is not tuple:
        return read(words[-1])
    return tuple(
        map(read, (part for word in words for part in (word.split(",") if known.commas else [word])))
    )


def _login(host: Host) -> Iterator[Typed]:
    """How an inventory says to log in to a host."""
    address = host.address if host.address != host.name else None
    said = {"address": address, "--user": host.user, "--port": host.port, "--jump": host.jump}
    said["--enter"] = redact(host.enter) if host.enter and not host.contained else None
    yield from ((name, str(value)) for name, value in said.items() if value)


def _words(known: Option, value: Any) -> Iterator[Typed]:
    if value is True:
        yield (known.name,)
    elif isinstance(value, tuple):
        for each in (",".join(value),) if known.commas else value:
            yield (known.name, _word(known, each))
    else:
        yield (known.name, _word(known, value))


def _word(known: Option, value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    text = redact(str(value))
    is_file = isinstance(value, Path) or known.name in ("--ssh-config", "--identity")
    is_file = is_file or (known.name == "--via" and "/" in text)
    is_file = is_file or (known.name == "--exam" and ("/" in text or "." in text))
    is_file = is_file or (known.name == "--launch" and text != LIVE)
    return os.path.abspath(os.path.expanduser(text)) if is_file else text
