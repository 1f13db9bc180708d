"""The prefixes that launchers put in front of a rank's line. They nest: Slurm's, torchrun's, mpirun's."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from doctor.job.launch.launchers import LAUNCHERS
from doctor.logs.forms.line_facts import LineFacts, level_of
from doctor.logs.forms.system import SERVICES
from doctor.logs.forms.times import DATED, NAMED, Clock
from doctor.text.hostprogram import table

MOST_PREFIXES = 5
LEAST_LINES = 3
"""Fewer lines show no layout."""
_HOST = r"[A-Za-z0-9][\w.-]{0,62}"

_ENGINE = re.compile(r"EngineCore_(?:DP)?[1-9]")
"""Another engine of vLLM than the first one: each numbers its workers from 0."""
_PROGRAM = rf" (?P<host>{_HOST}(?= )|) ?(?P<tag>[\w./@-]{{1,60}})\[\d{{1,9}}\]: "
_SYSLOG = (re.compile(NAMED + _PROGRAM), re.compile(rf"{DATED}(?= [^\s\[]{{1,64}} ){_PROGRAM}"))
"""The prefixes of syslog and journalctl for the lines of a program."""
_LABEL = re.compile(r" {0,4}(?P<task>\d{1,6}): ")
_NO_TASK = re.compile(
    r" {0,4}\d{1,6}: (?:srun: |Test command: |Working Directory: |Test timeout computed to be: )"
)
"""srun labels the lines of tasks, and never its own: the label is of another program, such as ctest."""
_OWN_RANK = re.compile(r"\[rank(\d{1,6})\]|\(rank (\d{1,6}) in comm 0\)")
_BRACKET = re.compile(r"\[(?P<task>\d{1,6})\] ")
_NUMBERED_NAME = r"[A-Za-z][\w.-]{0,60}[-_]\d{1,4}"
_AHEAD = re.compile(
    rf"(?P<host>{_HOST}): |(?P<container>{_NUMBERED_NAME}) {{1,40}}\| ?|\[(?P<worker>{_NUMBERED_NAME})\] "
)
"""Who writes a line: `node1: ` of pdsh, `vllm-1  | ` of `docker compose logs`, `[worker-0] `."""
_RANK = re.compile(r"(?i)(?:global[_-]?)?rank[_-]?(\d{1,6})")
_PROCESS = re.compile(r"(?:^|[._-])(?:worker|trainer|rank|node|host|master)[._-]?\d{1,6}$")
_NAMES = re.compile(
    r"\b[Rr]ank[ _:=-]{0,2}(?P<rank>\d{1,6})\b"
    r"|(?P<host>\b[A-Za-z][\w.-]{0,62})(?::(?P<local>\d{1,3}))?(?=[\s\]|):>]|$)"
)
"""What an unknown prefix may name: a rank, or a host or container and perhaps a rank on it."""
_PARTS, _WORDS, *_ROWS = table(__file__, "prefix.txt")
_TEXTS = ("|".join(rows).replace("@DATED@", DATED).replace("@NAMED@", NAMED) for _, *rows in _ROWS)
_ANY, _POD, _GREP = map(re.compile, _TEXTS)
_NO_HOST = re.compile("(?i)" + "|".join(_PARTS))
"""Numbered parts of a host, the end of a UUID, and files."""
_TIME = re.compile(DATED)
_LAUNCHERS = (name for each in LAUNCHERS for name in (*each.commands, *each.programs))
_NOT_HOSTS = frozenset((*" ".join(_WORDS).split(), *_LAUNCHERS))
_DIGITS = re.compile(r"\d{1,20}")
_NUMBERED = re.compile(r"(?!\d+$|E[A-Z0-9]\d{4}$|(?:slurmstepd|slurmd|srun)-).*\d")
"""A host's name: it has a digit, but is neither a number, a code of CANN nor the name of a Slurm program."""


@dataclass(frozen=True, slots=True)
class PrefixLayout:
    """The prefix that every line of a file has."""

    label: bool = False
    """`3: ` of `srun -l`."""
    bracket: bool = False
    """`[3] ` of MPICH's `-prepend-rank`."""
    hosts: frozenset[str] = frozenset()
    """The names in front, see _AHEAD."""
    indent: int = 0
    """Spaces before every line, as in a text that was pasted."""
    learned: tuple[re.Pattern[str], ...] = ()
    """Prefixes of unknown launchers, see unknown_prefix.py."""
    shapes: frozenset[str] = frozenset()
    """Those names without their numbers: a host may write its first line late."""


def layout_of(lines: Iterable[str]) -> PrefixLayout:
    """The layout, from the first lines of a file. A prefix counts only if nearly all of them have it."""
    some = [line for line in lines if line.strip()]
    if len(some) < LEAST_LINES:
        return PrefixLayout()
    enough = max(LEAST_LINES, len(some) * 0.8)
    labels, brackets = (
        [int(found["task"]) for line in some if (found := each.match(line))] for each in (_LABEL, _BRACKET)
    )
    found_ahead = (found for line in some if (found := _AHEAD.match(line)))
    ahead = Counter(_name(found) for found in found_ahead if found["worker"] is None or _writes(found))
    hosts = {each for each in ahead if rank_of(each) is not None or _is_host(each)}
    if sum(ahead[host] for host in hosts) < enough or len(hosts) * 2 > len(some):
        hosts = set()
    labelled = len(labels) >= enough and not _counts(labels)
    return PrefixLayout(
        label=labelled and not _of_test(labels, some),
        bracket=len(brackets) >= enough and not _counts(brackets),
        hosts=frozenset(hosts),
        indent=min(len(line) - len(line.lstrip(" ")) for line in some),
        learned=(_LABEL,) if labelled and _of_test(labels, some) else (),
        shapes=frozenset(map(_shape, hosts)),
    )


def _name(found: re.Match[str]) -> str:
    return str(found[found.lastgroup or 0])


def rank_of(name: str) -> int | None:
    """The rank that a name in front of lines states; a number of a worker or a container may be another."""
    found = _RANK.fullmatch(name)
    return int(found[1]) if found else None


def _writes(found: re.Match[str]) -> bool:
    """Whether the name is that of who writes the line: a container's or a bracketed one may be anything, such
    as `[fold-0] ` or `[attempt-1] `.
    """
    return found["host"] is not None or _PROCESS.search(_name(found)) is not None


def _shape(host: str) -> str:
    return _DIGITS.sub("0", host)


def _is_host(name: str) -> bool:
    """Whether a name may be that of a host or a process: `step-3: ` is none."""
    stem = name.rstrip("0123456789").rstrip("-_").lower()
    return stem not in _NOT_HOSTS and _NUMBERED.match(name) is not None


def _counts(labels: list[int]) -> bool:
    """Whether the labels are line numbers, as `grep -n` writes them."""
    return labels[0] > 0 and all(before < label for before, label in pairwise(labels))


def _of_test(labels: list[int], lines: Iterable[str]) -> bool:
    """Whether the labels count tests, as those of ctest: all lines have the same, and name other ranks."""
    owns = [int(own[own.lastindex or 0]) for own in map(_OWN_RANK.search, lines) if own]
    return (len({*labels}) == 1 and any(own != labels[0] for own in owns)) or any(map(_NO_TASK.match, lines))


def strip(text: str, layout: PrefixLayout, clock: Clock, facts: LineFacts, at: int = 0) -> None:
    """Remove all prefixes from `at` on. `facts` gets the writer, and where the line's own text begins."""
    grep = _GREP.match(text) if at == 0 else None
    if grep:
        at = grep.end()
    elif at == 0 and layout.indent and text[: layout.indent].isspace():
        at = layout.indent
    for _ in range(MOST_PREFIXES):
        end = _one(text, at, layout, clock, facts)
        if end == at:
            break
        at = end
    facts.start = facts.prefix = at


def _one(text: str, at: int, layout: PrefixLayout, clock: Clock, facts: LineFacts) -> int:
    found = _ANY.match(text, at)
    if found:
        rank = found["rank"] or found["tagged"]
        if rank is not None:
            facts.rank, facts.task = int(rank), False
        if found["actor_rank"] and not _ENGINE.search(text, 0, at):
            facts.worker = int(found["actor_rank"])
        if (local := found["local"] or found["numbered"]) is not None:
            facts.local = int(local)
        if found["stamp"]:
            facts.at, facts.zoned = clock.at(found)
            facts.stamp = found.span("stamp")
        if found["pid"]:
            facts.pid, facts.host = int(found["pid"]), found["ip"] or facts.host
            facts.shared = True
        if found["raylet"]:
            facts.host, facts.shared = found["on"] or facts.host, True
        return found.end()
    found = _POD.match(text, at)
    if found:
        if found["pod"]:
            facts.host = found["pod"]
        else:
            facts.at, facts.zoned = clock.at(found)
            facts.stamp = found.span()
        facts.rank = int(found["rank"]) if found["rank"] else facts.rank
        return found.end()
    found = next(filter(None, (each.match(text, at) for each in _SYSLOG)), None) if at == 0 else None
    if found and not (level_of(found["host"]) or found["tag"] == "kernel" or SERVICES.match(found["tag"])):
        facts.at, facts.zoned = clock.at(found)
        facts.host = found["host"] or facts.host
        facts.stamp = at, found.start("host")
        return found.end()
    for wanted, pattern in ((layout.label, _LABEL), (layout.bracket, _BRACKET)):
        found = pattern.match(text, at) if wanted else None
        if found:
            facts.rank, facts.task = int(found["task"]), pattern is _LABEL
            return found.end()
    if layout.hosts:
        found = _AHEAD.match(text, at)
        if found and ((name := _name(found)) in layout.hosts or _shape(name) in layout.shapes):
            if (rank := rank_of(name)) is not None:
                facts.rank, facts.task = rank, False
            elif _writes(found):
                facts.host = name
            return found.end()
    found = next(filter(None, (each.match(text, at) for each in layout.learned)), None)
    if found and found.end() > at:
        _named(found[0], facts, clock)
        return found.end()
    return at


def _named(prefix: str, facts: LineFacts, clock: Clock) -> None:
    """Note whom an unknown prefix names."""
    time = _TIME.search(prefix)
    if time and facts.at is None:
        facts.at, facts.zoned = clock.at(time)
    for found in _NAMES.finditer(prefix):
        if found["rank"]:
            facts.rank = int(found["rank"])
        elif _NUMBERED.match(found["host"]) and (found["local"] or not _NO_HOST.match(found["host"])):
            facts.host = found["host"]
            facts.local = int(found["local"]) if found["local"] else facts.local
