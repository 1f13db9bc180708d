"""A conclusion with what was read and what checks on the hosts show: everything in a report of logs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from enum import Enum

from doctor.errors import EXIT_FAULT, EXIT_INCONCLUSIVE, EXIT_OK
from doctor.logs.model import Conclusion, LogCause, LogLine, LogOutcome, Logs, Party
from doctor.logs.naming import short_names
from doctor.logs.search import LogSearch, read_instead
from doctor.model import Confidence
from doctor.text.nodeset import fold
from doctor.text.ranks import ranks_text
from doctor.transport.way import Way

_AT_THE_PORT = {"port-in-use", "port-unreachable", "master-not-here"}
_MEETS = ("torch", "mindspore")
"""Families of symptoms whose port is the port of the rendezvous."""
ALONE = "no check of a single host can show it"
NO_TIME = "time not known"
MOST = 200
"""The most characters of a line that a headline repeats."""
HOSTS = "HOSTS"
"""Placeholder in a command if no log names a host."""


class ProofState(str, Enum):
    """What the checks on the hosts show about a cause."""

    PROVED = "proved"
    GONE = "not seen any more"
    OPEN = "not examined"


_KILLED = re.compile(
    r"^\W{0,8}(?:\d{1,3}\]\W{1,8}\d{1,9} )?(?:Killed|killed(?= {4})|已杀死)(?:: 9)?(?:\W{0,8}$| {4})"
)
"""What a shell writes of a program that SIGKILL ended."""
_HEAD = re.compile(
    r"(?:.{0,90} NCCL WARN |(?:\[rank\d+\]:|[\[(]?\d{4}[-/]\d\d[-/]\d\d[ T_-][\d:.,+Z-]*"
    r"(?: [+-]\d{4})?[\])]?|[EFW](?:\d{4} [\d:.]+ {1,6}\d+)? [\w./-]{1,200}:\d+\])[\s:-]*){0,3}"
)
"""When a line was written, and by whom: in a headline its writer would seem to be accused."""


@dataclass(frozen=True, slots=True)
class Proof:
    """`charge` is an index of Conclusion.charges; `says` is a clause: "kernel-log fails on node3"."""

    charge: int
    proved: ProofState
    says: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    conclusion: Conclusion
    logs: Logs = field(default_factory=Logs)
    command: str = "explain"
    started: str = ""
    """In the format of a recording: 2026-01-31T10:00:00Z."""
    seconds: float = 0.0
    way: Way = field(default_factory=Way)
    """How hosts are reached, for the suggested commands."""
    proofs: tuple[Proof, ...] = ()
    folder: str = ""
    """The common folder that was cut off the names of all files, or empty."""
    fetched: tuple[str, ...] = ()
    """Hosts that logs were fetched from."""
    asked: tuple[str, ...] = ()
    """Hosts that were asked for logs."""
    in_vain: LogSearch | None = None
    """The search that was made on these hosts, if it found no log of a job."""
    transport: str = ""
    """How these hosts were reached."""
    silent: Mapping[str, str] = field(default_factory=dict)
    """Hosts that gave no logs, and why."""

    @property
    def exit_code(self) -> int:
        """A named cause counts, whatever the hosts show now. If a host gave no logs, the job is not clean."""
        if self.conclusion.outcome is LogOutcome.NAMED:
            return EXIT_FAULT
        clean = self.conclusion.outcome is LogOutcome.CLEAN and not self.silent
        return EXIT_OK if clean else EXIT_INCONCLUSIVE

    @property
    def attempts(self) -> int:
        """How often the job was started, according to its logs."""
        return len(self.logs.earlier) + 1

    @property
    def roots(self) -> tuple[int, ...]:
        """The indices of the charges that no other charge explains."""
        return tuple(n for n, each in enumerate(self.conclusion.charges) if each.because is None)

    def led_to(self, root: int) -> tuple[LogCause, ...]:
        """The direct and indirect consequences of a charge, in the order of the conclusion."""
        charges, found = self.conclusion.charges, {root}
        for _ in charges:
            more = {n for n, each in enumerate(charges) if each.because in found} - found
            if not more:
                break
            found |= more
        return tuple(charges[n] for n in sorted(found - {root}))

    def proof_of(self, charge: int) -> Proof | None:
        return next((each for each in self.proofs if each.charge == charge), None)

    def proves(self) -> tuple[str, ...]:
        """The commands that show the cause on the live hosts, but for those that were tried and cannot."""
        alone = any(proof.says == ALONE for proof in self.proofs)
        checks = [id for id in self.conclusion.checks if not alone or id.startswith("smoke-")]
        return commands(self.conclusion.hosts, checks, self.way, self.master_port)

    @property
    def master_port(self) -> int | None:
        """The port of the rendezvous, if a line of a cause names it and a check looks at it."""
        named = {self.conclusion.charges[root].symptom for root in self.roots}
        for each in self.logs.sightings:
            of_it = each.symptom.id in named and _AT_THE_PORT & set(each.symptom.checks)
            port = each.taken.get("port", "")
            if of_it and each.symptom.family in _MEETS and port.isdecimal() and 0 < int(port) < 65536:
                return int(port)
        return None

    @property
    def progress(self) -> tuple[LogLine, ...]:
        """The last line of each rank that shows its step."""
        return tuple(line for file in self.logs.files for line in file.progress)

    @property
    def not_found(self) -> tuple[str, ...]:
        """What was looked for in vain, and where."""
        if self.in_vain is None:
            return ()
        since = f" written since {self.in_vain.since}" if self.in_vain.since else ""
        read = "; ".join(read_instead(self.logs)) or "nothing"
        where = ", ".join(self.in_vain.patterns)
        return (f"{no_log_of_a_job(self)}: looked for {where}{since}; read instead: {read}",)

    @property
    def unread(self) -> tuple[str, ...]:
        """What was not read, or not to its end, with the reason."""
        cut = tuple(f"{file.name}: {file.problem}" for file in self.logs.files if file.problem)
        return (*cut, *self.logs.left_out, *tuple(f"{host}: {why}" for host, why in self.silent.items()))


def commands(
    hosts: Sequence[str], checks: Sequence[str], way: Way, port: int | None = None
) -> tuple[str, ...]:
    """`doctor check HOSTS --only …`, and `doctor smoke HOSTS` for what only a training run shows."""
    plain = [id for id in checks if not id.startswith("smoke-")]
    named = tuple(hosts) or (HOSTS,)
    only: list[tuple[str, ...]] = [("--only", ",".join(plain))]
    only += [("--master-port", str(port))] if port and _AT_THE_PORT & set(plain) else []
    made = [way.typed("check", named, only)] if plain else []
    return (*made, *([way.typed("smoke", named)] if len(plain) < len(checks) else []))


def last_words(explained: Explanation) -> str:
    """The verdict in one line. Logs never prove that a host is healthy."""
    found = explained.conclusion
    if found.outcome is LogOutcome.CLEAN and explained.attempts > 1:
        number = explained.attempts
        return (
            f"Attempt {number} went on and does not complain; "
            f"{'the one' if number == 2 else 'those'} before it ended early."
        )
    if found.outcome is LogOutcome.CLEAN:
        return f"{clean_words(found)[0].upper()}{clean_words(found)[1:]}."
    if found.outcome is LogOutcome.UNKNOWN:
        in_vain = explained.in_vain and not (found.odd or found.charges)
        if found.odd:
            line, names = found.odd[0], short_names(file.name for file in explained.logs.files)
            return f"No cause is named. Look at {names.get(line.file, line.file)}:{line.number} first."
        return "No log of a job was read." if in_vain else "No cause is named."
    first = _first(explained)
    name, more = whom(first.who), len(explained.roots) - 1
    said = first.says.rstrip(".").split("; ")[0]
    without_host = whom([replace(each, host=None) for each in first.who])
    said = said if name in said or (without_host and without_host in said) else f"{name}: {said}"
    attempt = f"attempt {explained.attempts}" if explained.attempts > 1 else ""
    within = " of ".join(filter(None, (attempt, first.job)))
    of = f", in {within}" if within else ""
    beside = f"; {more} more cause{'s' if more > 1 else ''}" if more > 0 else ""
    return f"{named_word(explained)}: {said}{of}{beside}."


def clean_words(found: Conclusion) -> str:
    if found.survived:
        return "the job went on after everything that complains"
    return "nothing in what was read complains"


def named_word(explained: Explanation) -> str:
    """The word for a named cause: whether it is certain, and whether it is about somebody."""
    first = _first(explained)
    unsure = first.confidence is Confidence.SUSPECT
    if not whom(first.who):
        return "Possible cause" if unsure else "Cause"
    return "Suspected" if unsure else "Named"


def _first(explained: Explanation) -> LogCause:
    return explained.conclusion.charges[next(iter(explained.roots), 0)]


def headline(charge: LogCause) -> str:
    """Who, and what happened."""
    return f"{charge.job}: " * bool(charge.job) + charge.says.rstrip(".")


def why_unknown(explained: Explanation) -> str:
    found = explained.conclusion
    wrong = "Something is wrong that doctor does not know"
    if found.charges and found.charges[0].symptom == "python-interrupted":
        return "Somebody ended the job; its log does not say whether it hung before"
    if found.charges and not found.odd:
        return headline(found.charges[0])
    if found.odd:
        from doctor.logs.forms.line_facts import level_of
        from doctor.logs.judge.deaths import raised  # not for a page about a symptom

        if _KILLED.search((line := found.odd[0]).text):
            return "A program was killed (SIGKILL), and the log does not say by whom"
        text = raised(line) or " ".join((line.text, *line.rest[: line.text.endswith(":")]))
        said = _HEAD.sub("", " ".join(text.split()), 1)
        if level_of(said.strip(" :")):
            return wrong
        return (
            f"No rule knows the cause; most telling: {said if len(said) <= MOST else f'{said[: MOST - 1]}…'}"
        )
    if explained.in_vain:
        return no_log_of_a_job(explained)
    if not any(file.lines for file in explained.logs.files):
        return "Nothing could be read"
    if explained.logs.missed or any(file.problem for file in explained.logs.files):
        return "Nothing complains, but not all was read"
    if explained.attempts > 1:
        return f"The log does not say whether the last attempt went on; {found.beside[-1]}"
    return wrong


def no_log_of_a_job(explained: Explanation) -> str:
    heard = [host for host in explained.asked if host not in explained.silent]
    return f"No log of a job was found on {fold(heard)}" if heard else "No log of a job was found"


def whom(who: Sequence[Party]) -> str:
    """The parties as text: "ranks 1-2 on node[3-4]"; unknown parts, and where others are, are left out."""
    who = [each for each in who if {each.rank, each.device, each.pid} != {None}] or who
    ranks = [each.rank for each in who if each.rank is not None]
    place = _place(who)
    if ranks:
        everywhere = all(each.host or each.address for each in who if each.rank is not None)
        return ranks_text(ranks, most=6) + (f" on {place}" if place and everywhere else "")
    if len(devices := {each.device for each in who} - {None}) == 1:
        return f"device {devices.pop()}" + (f" of {place}" if place else "")
    if len(pids := {each.pid for each in who} - {None}) == 1:
        place = _place([each for each in who if each.pid is not None])
        return f"process {pids.pop()}" + (f" on {place}" if place else "")
    return place


def _place(who: Sequence[Party]) -> str:
    hosts = list(dict.fromkeys(each.host for each in who if each.host))
    addresses = dict.fromkeys(each.address for each in who if each.address and not each.host)
    return ", ".join([fold(hosts)] * bool(hosts) + [*map(str, addresses)])


def place_of(line: LogLine) -> str:
    return f"{line.file}:{line.number}"


def told_at(story: Sequence[tuple[float | None, str]]) -> Iterator[tuple[str, str]]:
    """The time line as pairs of time and text; the day is shown only if it changes. Entries without a time
    come last, which does not mean that they are later: the first of them is marked with NO_TIME.
    """
    day = ""
    timed = max((place for place, (at, _) in enumerate(story, 1) if _when(at)), default=0)
    for place, (at, says) in enumerate(story):
        when = _when(at)
        if when is None:
            yield NO_TIME if place == timed > 0 else "", says
            continue
        today = f"{when:%Y-%m-%d}"
        yield f"{today} {when:%H:%M:%S}" if today != day else f"{when:%H:%M:%S}", says
        day = today


def _when(at: float | None) -> datetime | None:
    try:
        return None if at is None else datetime.fromtimestamp(at, timezone.utc)
    except (OverflowError, ValueError, OSError):
        return None
