"""What of a kernel's message is the kernel's own word. Python 3.6 and later.

Users choose the names of programs, files and control groups, and these may hold anything: the text of another
message, or the end of a line. Such names are quotes, which say nothing.
"""

import re
from collections.abc import Iterable, Iterator

HIDDEN = "…"
NAME = r"[\w.+@/:<>\\-]{1,255}"
"""A name that cannot hold a message: it has no blanks."""
MOST_OF_A_NAME = 4
"""The most lines that a name which holds line ends is looked for on."""
_PLAIN = re.compile(rf"\(?{NAME}\)?\Z")
_CRASH = re.compile(
    r"(?P<traps>traps: )?(?P<name>.{1,64}?)\[(?P<pid>\d{1,7})\](?P<colon>:?) (?P<what>segfault at |trap "
    r"|general protection|bad frame |unhandled |invalid opcode|stack segment|alignment check|vsyscall )"
    r"(?P<more>.*)",
    re.DOTALL,
)
_PLACE = r"\[[0-9a-f]+[+,][0-9a-f+,]*\]"
"""Where the file of a crash lies in memory: the end of its name."""
_FILE = re.compile(rf"(?P<head>.*? in )(?P<file>{NAME})(?P<end>{_PLACE}.{{0,80}})\Z")
_UNENDED = re.compile(rf"\[\d{{1,7}}\]:? (?:segfault at |trap |general protection).* in (?!.*{_PLACE})")
_ENDS = re.compile(_PLACE)
_OF_A_PROGRAM = re.compile(r"[^\s\[\]:]{1,64}\[\d{1,7}\]: ")
"""A program of a user has written it into the kernel's log."""
_OF_OTHERS = re.compile(r"(?:audit(?::|\()|[^:]{1,40}: (?:Product|Manufacturer|SerialNumber): )")
_QUOTES = (
    re.compile(r"(?:rocess \d{1,7},? \()(?P<name>.{1,64}?)(?:\)(?:[ ,]|$))"),
    re.compile(r"task_memcg=(?P<name>.*?)(?=,task=)"),
    re.compile(r"oom_memcg=(?P<name>.*?)(?=,task_memcg=)"),
    re.compile(r",task=(?P<name>.{1,64}?)(?=,pid=)"),
    re.compile(r"^(?P<name>.{1,64}?) invoked oom-killer"),
    re.compile(r"\bname=(?P<name>.{1,64}?)(?=, |$)"),
    re.compile(r"\bComm: (?P<name>.{1,16}?)(?= +(?:Tainted|Not tainted|Kdump|$))"),
    re.compile(r"(?:(?<=[ (=])|^)['`](?P<name>.+)'"),
    re.compile(r"^Task in (?P<name>.*) killed as a result of limit"),
)


def own_words(message: str) -> str:
    """The message without quotes that may hold another one, and without a text of a program."""
    crash = _CRASH.match(message)
    if crash:
        return _crash(crash)
    if _OF_A_PROGRAM.match(message) or _OF_OTHERS.match(message):
        return HIDDEN
    for quote in _QUOTES:
        message = quote.sub(_without_message, message)
    return message


def is_crash(message: str) -> bool:
    """Whether it says that a program crashed, and nothing else."""
    return _CRASH.match(message) is not None


def whole_lines(lines: "Iterable[str]") -> "Iterator[str]":
    """The lines of a kernel's log without those that the name in a crash goes on with."""
    left = 0
    for line in lines:
        if left:
            left = 0 if _ENDS.search(line) else left - 1
            continue
        if _UNENDED.search(line):
            left = MOST_OF_A_NAME
        yield line


def _crash(found: "re.Match[str]") -> str:
    name = found["name"] if _PLAIN.match(found["name"]) else HIDDEN
    more = found["more"]
    before, within, _ = more.partition(" in ")
    if within and not _FILE.match(more):
        more = before + within + HIDDEN
    return "{}{}[{}]{} {}{}".format(
        found["traps"] or "", name, found["pid"], found["colon"], found["what"], more
    )


def _without_message(found: "re.Match[str]") -> str:
    if _PLAIN.match(found["name"]):
        return found.group()
    begin, end = (each - found.start() for each in found.span("name"))
    return found.group()[:begin] + HIDDEN + found.group()[end:]
