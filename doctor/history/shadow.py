"""The files of --shadow, a gate each: whom it would have drained, how often the next run was clean."""

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Literal

import msgspec

from doctor.errors import EXIT_FAULT, EXIT_OK, UsageError
from doctor.history.envelope import ShadowedHost
from doctor.history.kept import TIME, CheckId, Kept, opened, shown, words
from doctor.text.nodeset import unfold

LONGEST_LINE = 1_000_000
UNHEARD = "host-unreachable"
"""A gate runs on its host: that it did not answer drains nobody."""


class KeptFault(msgspec.Struct, frozen=True):
    check: CheckId
    hosts: str


class KeptLine(msgspec.Struct, frozen=True):
    """What is used of a line."""

    shadow: Literal[1]
    time: Annotated[str, msgspec.Meta(pattern=rf"\A{TIME}\Z")]
    hosts: str
    exit_code: int
    failed: tuple[KeptFault, ...]


def shadowed(kept: Kept) -> Mapping[str, ShadowedHost]:
    """By name. What is no line of such a file is passed over, and the first one named."""
    made: dict[str, ShadowedHost] = {}
    for path in sorted(kept.shadows):
        faulty: dict[str, int] = {}
        broken = ""
        try:
            with opened(path) as file:
                for number, line in enumerate(iter(partial(file.readline, LONGEST_LINE), b""), 1):
                    endless = len(line) == LONGEST_LINE  # a hole in a file takes no room on its disk
                    why = "is too long; nothing behind it was read" if endless else _note(made, faulty, line)
                    if why and not broken:
                        broken = kept.passed_over[f"{shown(path)}:{number}"] = why
                    if endless:
                        break
        except OSError as error:
            kept.passed_over[shown(path)] = words(error)
    return made


def _note(made: dict[str, ShadowedHost], faulty: dict[str, int], written: bytes) -> str:
    """Why it is no such line. `faulty`: the faulty runs in a row of each host; the first one drains it."""
    found: dict[str, list[str]] = defaultdict(list)
    try:
        line = msgspec.json.decode(written, type=KeptLine)
        for fault in line.failed:
            for name in unfold(fault.hosts) if fault.hosts else ():
                found[name].append(fault.check)
        names = unfold(line.hosts)
    except (ValueError, RecursionError, UsageError) as error:
        return words(error)
    for name in names:
        own = made.setdefault(name, ShadowedHost(name=name))
        own.runs += 1
        own.first, own.last = min(own.first or line.time, line.time), max(own.last, line.time)
        if name in found and UNHEARD not in found[name]:
            faulty[name] = faulty.get(name, 0) + 1
            own.drained += faulty[name] == 1
            for check in found[name] if faulty[name] == 1 else ():
                own.checks[check] = own.checks.get(check, 0) + 1
        elif name not in found and line.exit_code in (EXIT_OK, EXIT_FAULT):
            own.wrong += faulty.pop(name, 0) == 1
    return ""
