"""Checks the commands that a recording suggests for hosts that could not be asked.

A recording may come from anybody, and people type what it says to type. So each of its commands is taken
apart and rebuilt: it must have a form that a transport writes, with a host, a number, a file or a name at the
places for them. If no command is left, the kind of the failure decides what to type.
"""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from doctor.errors import UsageError
from doctor.model import Host, UnreachedHost, UnreachedKind
from doctor.text.hostprogram import table
from doctor.text.nodeset import check_jump, check_user, is_host
from doctor.transport.containers.command import ENGINES, NSENTER, flags
from doctor.transport.containers.refusals import REFUSALS

(_, *_FIXED), (_, *_WORDED) = table(__file__, "advice.txt")
_FORMS = [form.split() for form in _WORDED]
_OPEN = " && echo open"
_COMPARED = re.compile(r"(ssh-keyscan .*) >> (\S+|'[^'\n]*')   # compare it first")
_PROSE = re.compile(r"[A-Za-z][^|<>$&\\\n]{0,300}")
_ENTRY_WORD = re.compile(r"[\w.@:/=,+-]+")
_ENTRY_OPTIONS = {
    *("-i", "-n", "-c", "-u", "-w", "-T", "--interactive", "--stdin", "--namespace", "--container"),
    *("--context", "--user", "--workdir"),
}
_LOOKS = tuple(tuple(refusal.look.replace("{}", "NAME").split()) for refusal in REFUSALS if refusal.look)


def read_back(why: UnreachedHost, host: Host) -> UnreachedHost:
    """The same failure, without commands and remedies that a transport would not have written."""
    commands = [rebuilt(command) for command in why.commands]
    kept = tuple(command for command in commands if command)
    if not kept and commands:
        kept = (_of_kind(why.kind, host),)
    said = why.remedy  # a shell must see nothing but words in it
    prose = not said or (said.isprintable() and "://" not in said and _PROSE.fullmatch(said))
    return replace(why, host=host.name, remedy=said if prose else "Try the same by hand.", commands=kept)


def rebuilt(command: str) -> str | None:
    """The command, rebuilt from its words, if it is one of ours; None for any other."""
    if command in _FIXED:
        return command
    if compared := _COMPARED.fullmatch(command):
        scan, file = rebuilt(compared[1]), "".join(shlex.split(compared[2]))
        return command if scan and _is_known_hosts(file) else None
    knocks = command.endswith(_OPEN)
    bare = command.removesuffix(_OPEN)
    try:
        words = shlex.split(bare)
    except ValueError:
        return None
    if not words or shlex.join(words) != bare:  # then a part of it has a meaning to the shell
        return None
    if words[0] == "ssh" and not knocks:
        return _over_ssh(words[1:])
    adds = words[0] == "ssh-add" and all(map(_is_file, words[1:]))
    fits = any(_fits(form, words) for form in _FORMS) or adds or _enters(words)
    return command if fits and knocks is (words[0] == "timeout") else None


def _over_ssh(words: list[str]) -> str | None:
    options = ["ssh"]
    while words and words[0].startswith("-"):
        option, *words = words
        options.append(option)
        if option != "-v":
            value, *words = words or [""]
            if option not in _OPTIONS or not _OPTIONS[option](value):
                return None
            options.append(value)
    if not words or not is_login(words[0]):
        return None
    login, *there = words
    line = there[0] if len(there) == 1 else shlex.join(there)
    return shlex.join([*options, login, *there]) if not there or rebuilt(line) == line else None


def _of_kind(kind: UnreachedKind, host: Host) -> str:
    place = host.address if _is_place(host.address) else host.name
    if kind is UnreachedKind.NAME:
        return f"getent ahosts {shlex.quote(place)}"
    if kind in (UnreachedKind.REFUSED, UnreachedKind.NO_ROUTE, UnreachedKind.TIMEOUT):
        return f"ping -c 3 {shlex.quote(place)}"
    if kind is UnreachedKind.NODE:
        return f"scontrol show node {shlex.quote(host.name)}"
    return "squeue --me" if kind is UnreachedKind.STEP else f"ssh -v {shlex.quote(host.name)} true"


def _fits(form: Sequence[str], words: Sequence[str]) -> bool:
    return len(form) == len(words) and all(
        _HOLES[part](word) if part in _HOLES else part == word for part, word in zip(form, words, strict=True)
    )


def _enters(words: Sequence[str]) -> bool:
    """Whether it is `sudo -n docker exec -i NAME true`, or asks an engine why it refused that."""
    while words[:1] in (["sudo"], ["-n"]):
        words = words[1:]
    if not words or words[0] not in ENGINES or not all(map(_ENTRY_WORD.fullmatch, words)):
        return False
    rest = words[1:]
    if "exec" in rest:
        at = rest.index("exec")
        behind = list(_names(rest[at + 1 :]) or ())
        inside = shlex.join(rest[at + 1 :]).partition(" -- ")[2]
        enters = behind[1:] == ["true"] or (len(behind) == 1 and inside in ("true", f"{NSENTER} true"))
        return enters and _names(rest[:at]) == []
    return any(_fits(look, rest[-len(look) :]) and _names(rest[: -len(look)]) == [] for look in _LOOKS)


def is_entry(text: str) -> bool:
    """Whether the text is a safe value of --enter: a known engine, its exec command, known options."""
    try:
        return _enters([*shlex.split(text), "true"])
    except ValueError:
        return False


def _names(words: Sequence[str]) -> list[str] | None:
    """The words that are not options; None if an option is unknown and may be more than a name."""
    found = [word for _, word in flags(words)]
    options = {word.partition("=")[0] for word in found if word.startswith("-")}
    return None if options - _ENTRY_OPTIONS else [word for word in found if not word.startswith("-")]


def _is_place(text: str) -> bool:
    return is_host(text.partition("%")[0]) and re.fullmatch(r"[^%\s]+(?:%[\w.-]+)?", text) is not None


def is_login(text: str) -> bool:
    user, at, place = text.rpartition("@")
    return (not at or passes(check_user, user)) and _is_place(place)


def passes(check: Callable[[str], object], text: str) -> bool:
    try:
        check(text)
    except UsageError:
        return False
    return True


def _is_known(text: str) -> bool:
    """Whether it is a host in the form that known_hosts uses."""
    port = re.fullmatch(r"\[(.+)\]:\d{1,5}", text)
    return _is_place(port[1] if port else text)


def _is_knock(text: str) -> bool:
    place = re.fullmatch(r"</dev/tcp/(.+)/\d{1,5}", text)
    return place is not None and _is_place(place[1])


def _is_file(text: str) -> bool:
    return text.isprintable() and not text.startswith("-")


def is_whole_path(text: str) -> bool:
    """Whether it is the path of a file that did not come with the recording."""
    return text.startswith("/") and text.isprintable()


def _is_known_hosts(text: str) -> bool:
    return _is_file(text) and re.search(r"known_hosts\d?\Z", text) is not None


def is_number(text: str) -> bool:
    return re.fullmatch(r"\d{1,10}", text) is not None


_HOLES: Mapping[str, Callable[[str], bool]] = {
    "PLACE": _is_place,
    "LOGIN": is_login,
    "KNOWN": _is_known,
    "KNOCK": _is_knock,
    "FILE": _is_file,
    "KNOWN_HOSTS": _is_known_hosts,
    "NUMBER": is_number,
    "NUMBERS": lambda text: all(map(is_number, text.split(","))),
    "NAME": lambda text: re.fullmatch(r"\w[\w.-]*", text) is not None,
    "LINE": lambda text: re.fullmatch(r"\d{1,9}p", text) is not None,
}
_OPTIONS: Mapping[str, Callable[[str], bool]] = {
    "-F": is_whole_path,
    "-p": is_number,
    "-i": _is_file,
    "-J": partial(passes, check_jump),
}
