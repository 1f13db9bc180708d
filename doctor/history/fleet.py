"""What became of each machine, run by run. It grows with the machines and the days, not with the runs.

A machine is known by its serial number where a run says it, since names move; else by its name. A run decides
about a machine if it was faulty there, or healthy and everything that was last wrong was looked at again. A
host that did not answer is not decided, and a consequence of another fault is nobody's. A check that is
waived is no fault, but what was open stays open until it passes.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from sys import intern

from msgspec import structs

from doctor.facts.system import NO_SERIAL
from doctor.history.envelope import Called, CheckHistory, Machine, ShadowedHost
from doctor.history.kept import ENDED, EXAMINES, KeptFinding, KeptReport
from doctor.model import HostStatus, Status

OF_NODE = "node"
"""The exam of what is certain about a node. Others ask about a job, maybe from inside its container."""
SOON = 7
"""Days within which a fault that comes back was never gone for long."""
Faults = Mapping[str, None]
"""The checks that failed, in the order of the findings."""


@dataclass(slots=True)
class _Tracked:
    """A machine, and what the next run is compared with."""

    machine: Machine
    open: set[str] = field(default_factory=set)
    """The checks that fail, as far as the runs looked."""
    today: str = ""
    looked: set[str] = field(default_factory=set)
    """The checks that could have made it faulty today."""
    fell: bool = False
    """Whether one of them did."""
    wrong: dict[str, None] = field(default_factory=dict)
    """The checks that accuse it, until enough runs say otherwise."""
    row: int = 0
    """The runs in a row that speak against what it is called."""
    seen: str = ""
    """The last run that asked it."""

    def call(
        self, when: str, found: Faults, passed: set[str], accusing: Collection[str], enough: tuple[int, int]
    ) -> None:
        """Call it faulty, or clear it, after enough runs in a row. A run that did not look says nothing."""
        machine, accused = self.machine, [check for check in found if check in accusing]
        if not accused and not (self.wrong and self.wrong.keys() <= passed):
            return
        faulty = _faulty(self)
        self.wrong |= dict.fromkeys(accused)
        self.row = self.row + 1 if bool(accused) != faulty else 0
        if self.row >= enough[faulty]:
            machine.called, self.row = Called(faulty=not faulty, since=when, checks=(*self.wrong,)), 0
        elif machine.called and faulty and accused:
            machine.called = structs.replace(machine.called, checks=(*self.wrong,))
        if not accused and not _faulty(self):
            self.wrong = {}

    def note(
        self, when: str, found: Faults, passed: set[str], accusing: Collection[str], *, well: bool
    ) -> None:
        """One run. `passed` has the checks that were looked at and found nothing."""
        machine, before, day = self.machine, self.open, intern(when[:10])
        self.open = (before - passed) | found.keys()
        for check in found:
            known = machine.checks.setdefault(check, CheckHistory(first=when, last=when))
            known.returns += check not in before and known.runs > 0 and _soon(known.last, when)
            known.last, known.runs = when, known.runs + 1
        if not before.intersection(accusing):
            self._note_fall(day, found, passed, accusing)
        if found or (well and not self.open):
            machine.runs, machine.faulty = machine.runs + 1, machine.faulty + bool(found)
            machine.days[day] = machine.days.get(day, False) or bool(found)
        else:
            machine.undecided += 1

    def _note_fall(self, day: str, found: Faults, passed: set[str], accusing: Collection[str]) -> None:
        """The first check that accuses the machine gets the day: the others see the same fault."""
        if self.today != day:
            self.today, self.looked, self.fell = day, set(), False
        new = (passed | found.keys()).intersection(accusing) - self.looked
        self.looked |= new
        for check in new:
            _count(self.machine.looked, check)
        first = next((check for check in found if check in accusing), "")
        if first and not self.fell:
            self.fell = True
            _count(self.machine.fell, first)


@dataclass(slots=True)
class Fleet:
    """`accusing`: the checks whose faults are a machine's own, whatever runs there."""

    accusing: frozenset[str]
    enough: tuple[int, int] = (2, 3)
    """The runs in a row after which a machine is called faulty, and cleared."""
    runs: int = 0
    jobs: int = 0
    """Jobs whose end is explained."""
    first: str = ""
    last: str = ""
    examined: str = ""
    """The last run that examined hosts."""
    machines: list[Machine] = field(default_factory=list)
    shadow: Sequence[ShadowedHost] = ()
    _by_name: dict[str, _Tracked] = field(default_factory=dict)
    _by_serial: dict[str, _Tracked] = field(default_factory=dict)
    _found: set[str] = field(default_factory=set)
    """All checks that ever failed."""

    @property
    def empty(self) -> bool:
        return not (self.runs or self.jobs or self.shadow)

    def add(self, report: KeptReport) -> None:
        when, command = report.run.started, report.run.command
        if command in (*EXAMINES, *ENDED):
            self.first, self.last = self.first or when, when
        if command in EXAMINES:
            self._note_run(report, when)
        elif command in ENDED:
            self._note_end(report)

    def _note_run(self, report: KeptReport, when: str) -> None:
        self.runs, self.examined = self.runs + 1, when
        found: dict[str, dict[str, None]] = defaultdict(dict)
        for finding in roots(report):
            for name in finding.hosts:
                found[name][finding.check or ""] = None
        self._found.update(*found.values())
        good_of = passed(report, self._found | self.accusing)
        serials = Counter(host.serial for host in report.hosts)
        for host in report.hosts:
            own_serial = serials[host.serial] == 1 and not NO_SERIAL.fullmatch((host.serial or "").strip())
            tracked = self._track(host.name, host.serial if own_serial else None)
            answered, well = host.status is not HostStatus.UNEXAMINED, host.status is HostStatus.HEALTHY
            own = found.get(host.name, {}) if answered else {}
            good, tracked.seen = good_of.get(host.name, set()), when
            tracked.note(when, own, good, self.accusing, well=well)
            if report.run.exam == OF_NODE:
                tracked.call(when, own, good, self.accusing, self.enough)

    def current(self) -> list[Machine]:
        """The latest of each name asked lately; one cleared and faulty again is called nothing."""
        return [
            structs.replace(each.machine, called=None) if each.row and not _faulty(each) else each.machine
            for name, each in self._by_name.items()
            if each.machine.name == name and each.seen and _soon(each.seen, self.examined)
        ]

    def _track(self, name: str, serial: str | None) -> _Tracked:
        under = self._by_name.get(name)
        tracked = self._by_serial.get(serial) if serial else under
        if tracked is None and under is not None and under.machine.serial is None:
            tracked = under  # what was seen under the name before it told its number
        if tracked is None:
            tracked = _Tracked(Machine(name=name, names=[]))
            self.machines.append(tracked.machine)
        machine = tracked.machine
        if serial:
            machine.serial = serial
            self._by_serial[serial] = tracked
        if name not in machine.names:
            machine.names.append(name)
        machine.name = name
        self._by_name[name] = tracked
        return tracked

    def _note_end(self, report: KeptReport) -> None:
        guilty = roots(report)
        self.jobs += bool(guilty)
        for finding in guilty:
            for host in finding.hosts:
                _count(self._track(host, None).machine.ended, finding.cause or finding.check or "unknown")


def _faulty(tracked: _Tracked) -> bool:
    called = tracked.machine.called
    return called is not None and called.faulty


def _failing(report: KeptReport) -> tuple[Status, ...]:
    return (Status.FAIL, Status.WARN) if report.run.strict else (Status.FAIL,)


def roots(report: KeptReport) -> list[KeptFinding]:
    """The faults that no other one explains."""
    failed = [each for each in report.findings if each.status in _failing(report)]
    causes = {each.id for each in failed}
    return [each for each in failed if each.because not in causes]


def passed(report: KeptReport, wanted: Collection[str]) -> Mapping[str, set[str]]:
    """Host -> the wanted checks without a fault there (of "": anywhere); if strict, a warning is one."""
    good = {Status.PASS, Status.WARN}.difference(_failing(report))
    found: dict[str, set[str]] = defaultdict(set)
    for result in report.results:
        if result.check and result.status in good and result.check in wanted:
            for host in (*result.hosts, ""):
                found[host].add(result.check)
    return found


def _soon(last: str, when: str) -> bool:
    return (date.fromisoformat(when[:10]) - date.fromisoformat(last[:10])).days <= SOON


def _count(numbers: dict[str, int], name: str) -> None:
    numbers[name] = numbers.get(name, 0) + 1
