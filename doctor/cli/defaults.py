"""A user's own defaults: ~/.config/cluster-doctor/config.yaml. The first lines of a report name them.

    user: root
    ssh-config: ~/.ssh/lab
    sudo: true

Options that are typed override them. They are not read inside a job or for a replay. They never make a run
use SSH; they only decide how it logs in.
"""

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from doctor.cli.whichlanguage import config_path
from doctor.errors import Mistake, UsageError, suggest
from doctor.exam.request import Request
from doctor.text.announce import announce
from doctor.text.language import Language
from doctor.text.nodeset import check_jump, check_user
from doctor.text.option import identifier, options
from doctor.text.redact import redact
from doctor.text.textfile import refuse, said, shown, text_of
from doctor.text.yamlfile import Listing, Node, Scalar, YamlTable, parse_yaml

LONGEST = 100_000
NEVER = {"accept-new": "whether to trust a key is decided each time: type --accept-new"}
"""Options that are not allowed in the file, and why."""


def with_defaults(
    request: Request, environ: Mapping[str, str] = os.environ, *, in_report: bool = True
) -> Request:
    """The request with the user's defaults for options that were not typed. Raises InputErrors.

    `in_report`: whether the first lines of a report say that they were used.
    """
    if request.in_job or request.replay or (path := config_path(environ)) is None:
        return request
    text = _read(path)
    if text is None:
        return request
    found = {
        f"--{key}": value
        for key, value in _parsed(text, str(path)).items()
        if f"--{key}" not in request.typed and key != "lang"  # it has had its effect
    }
    if not found:
        return request
    other = {"--identity": "identities"}
    way = {other.get(name, identifier(name)): value for name, value in found.items() if name != "--python"}
    smoke = {"python": found["--python"]} if "--python" in found else {}
    words = ", ".join(_words(name, value) for name, value in found.items())
    used = redact(f"{_called(path, environ)}: {words}")
    if request.outputs.quiet or not in_report:
        announce(f"defaults from {used}")
    return replace(
        request,
        way=replace(request.way, **way, by_default=frozenset(way)),
        smoke=replace(request.smoke, **smoke),
        defaults=used,
    )


def _called(path: Path, environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "")
    inside = home.startswith("/") and path.is_relative_to(home)
    return f"~/{path.relative_to(home)}" if inside else str(path)


def _read(path: Path) -> str | None:
    """None if there is no readable file. Raises UsageError if anybody but the user and root can write it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:  # for instance sudo kept the HOME of another user
        announce(f"{path}: cannot be read, so no defaults are used.")
        return None
    except OSError as error:
        raise UsageError(f"{path}: your defaults cannot be read: {error.strerror}.") from None
    try:
        about = os.fstat(descriptor)
        mode = stat.S_IMODE(about.st_mode)
        if not stat.S_ISREG(about.st_mode):
            raise UsageError(f"{path}: your defaults are not a regular file.")
        if about.st_uid not in (0, os.geteuid()) or mode & 0o022:
            raise UsageError(
                f"{path}: others can write your defaults (owner uid {about.st_uid}, mode {mode:04o}).",
                f"chmod go-w {path}" if about.st_uid == os.geteuid() else "Own it, or remove it.",
            )
        data = b""
        while len(data) <= LONGEST and (piece := os.read(descriptor, LONGEST)):
            data += piece
    finally:
        os.close(descriptor)
    if len(data) > LONGEST:
        raise UsageError(f"{path}: your defaults are longer than {LONGEST:,} bytes.")
    return text_of(data, str(path))


def _parsed(text: str, file: str) -> dict[str, Any]:
    """The options in the file. Raises InputErrors with all its mistakes."""
    document = parse_yaml(text, file)
    root, mistakes = document.root, list(document.mistakes)
    found: dict[str, Any] = {}
    if root is not None and not isinstance(root, YamlTable):
        mistakes.append(Mistake(file, root.line, "is not a list of options: write `user: root`"))
    for key, node in root.rows if isinstance(root, YamlTable) else ():
        name = key.text.replace("_", "-")
        try:
            found[name] = _value(name, node)
        except UsageError as error:
            mistakes.append(Mistake(file, key.line, said(error)))
    refuse(mistakes)
    return found


def _value(name: str, node: Node) -> Any:
    if name in NEVER:
        raise UsageError(f"{name} has no place here: {NEVER[name]}")
    if name not in _KINDS:
        hint = suggest(name, _KINDS) or f"there are {', '.join(_KINDS)}"
        raise UsageError(f"there is no default for {shown(name)}", hint)
    several = isinstance(node, Listing) and name == "identity"
    nodes = node.items if several and isinstance(node, Listing) else (node,)
    values = [_KINDS[name](name, each) for each in nodes]
    return tuple(values) if name == "identity" else values[0]


def _text(name: str, node: Node) -> str:
    if not isinstance(node, Scalar) or not node.text.strip() or node.value is None:
        raise UsageError(f"{name} needs a text")
    return node.text


def _file(name: str, node: Node) -> str:
    """An absolute path: a relative one would mean another file in each folder."""
    path = os.path.expanduser(_text(name, node))
    if not path.startswith("/"):
        raise UsageError(f"{name}: give the whole path of {shown(path)}")
    return path


def _python(name: str, node: Node) -> str:
    """A path on the hosts, where ~ is a different folder than on this machine."""
    path = _text(name, node)
    if "/" in path and not path.startswith("/"):
        raise UsageError(f"{name}: give the whole path, as it is on the hosts, of {shown(path)}")
    return path


def _switch(name: str, node: Node) -> bool:
    value = node.value if isinstance(node, Scalar) else None
    if not isinstance(value, bool):
        raise UsageError(f"{name} is true or false")
    return value


def _number(name: str, node: Node) -> int | float:
    known = next(option for option, _ in options(Request) if option.name == f"--{name}")
    value = node.value if isinstance(node, Scalar) else None
    whole = name == "fanout"
    fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not fits or not known.allows(value):  # type: ignore[arg-type]
        kind = "a whole number" if whole else "a number of seconds"
        raise UsageError(f"{name} is {kind} from {known.min:g} to {known.max:g}")
    return value if whole else float(value)  # type: ignore[arg-type, return-value]


def _lang(name: str, node: Node) -> str:
    found = _text(name, node)
    if found not in tuple(Language):
        raise UsageError(f"{name} is en or zh")
    return found


_KINDS: Mapping[str, Callable[[str, Node], Any]] = {
    "user": lambda name, node: check_user(_text(name, node)),
    "identity": _file,
    "jump": lambda name, node: check_jump(_text(name, node)),
    "ssh-config": _file,
    "python": _python,
    "sudo": _switch,
    "fanout": _number,
    "connect-timeout": _number,
    "timeout": _number,
    "lang": _lang,
}
"""The options that can have a default, and the reader of its value."""


def _words(name: str, value: Any) -> str:
    key = name.lstrip("-")
    if isinstance(value, bool):
        return key if value else f"no {key}"
    return f"{key} {', '.join(value) if isinstance(value, tuple) else value}"
