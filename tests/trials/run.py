"""One trial: break something in the lab, run `doctor smoke`, read its report."""

import json
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from doctor.job.parallel import read_layout
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.model import Host as job_host
from doctor.model import SourcedValue
from doctor.smoke.inject import EARLY, KINDS
from doctor.smoke.onhost.page import PHASES
from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.plan import SmokeWishes, plan_smoke
from tests.lab import Host, Lab, found
from tests.support.smoke.faults import JobPython, hogs
from tests.support.smoke.pages import Rank, Watch, watching
from tests.trials.kinds import HEALTHY, Inside, Outside, truth_of
from tests.trials.once import ONCE
from tests.trials.outcome import Outcome, Ran, Truth, judged

HOGS = 4


@dataclass(frozen=True)
class Field:
    """The place of the trials: a lab whose ranks have a network of their own."""

    lab: Lab
    ranks: int
    """The number of ranks on each host."""
    steps: int
    tp: int = 2
    python: str = sys.executable
    limit: float = 180.0
    """The time limit of a run, in seconds."""
    framework: str = "torch"
    size: int | None = None
    """How many hosts of the lab take part; None means all."""
    plan: str = ""
    """The parallel plan of the job, instead of `tp`."""

    @property
    def folder(self) -> Path:
        return self.lab.directory

    @property
    def recording(self) -> Path:
        """The recording of the last run."""
        return self.folder / "recording.json"

    @property
    def hosts(self) -> Sequence[Host]:
        return self.lab.hosts[: self.size]

    @cached_property
    def interpreter(self) -> JobPython:
        ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
        site = subprocess.run([self.python, "-c", ask], check=True, capture_output=True, text=True).stdout
        return JobPython(self.framework, site.strip())

    def world(self) -> int:
        return len(self.hosts) * self.ranks

    def host_of(self, rank: int) -> Host:
        return self.lab.hosts[rank // self.ranks]

    def truth(self, fault: Inside | Outside, rank: int) -> Truth:
        replica = self.shape.replica(self.shape.dp_of(rank))
        return truth_of(fault, rank, replica, lambda each: self.host_of(each).name)

    @cached_property
    def shape(self) -> CellShape:
        """How the ranks are grouped, if all of them train together."""
        wishes = JobWishes(
            ranks_per_host=SourcedValue(self.ranks, "--ranks-per-host"),
            layout=SourcedValue(read_layout([self.plan]), "--plan") if self.plan else None,
        )
        names = [host.name for host in self.hosts]
        job = draft([job_host(name, name) for name in names], wishes)
        return plan_smoke(job, names, SmokeWishes(tp=None if self.plan else self.tp)).shape(0)

    def groups(self, kind: str, rank: int) -> list[str]:
        """The groups of a plan in which a fault may change a call of this rank; "" is the usual one."""
        named = KINDS[kind].groups.split(",") if self.plan else ()
        shape = self.shape
        there = [name for name in named if len(shape.members(name, rank)) > 1]
        return ["", *there, *(["pair"] if "pair" in named and shape.stages > 1 else ())]

    def argv(self, *args: str) -> list[str]:
        inventory = self.folder / "inventory.yaml"
        hosts = "".join(f"  {host.name}: {{data: {host.data_address}}}\n" for host in self.hosts)
        inventory.write_text(f"hosts:\n{hosts}")
        shape = ["--ranks-per-host", str(self.ranks), "--steps", str(self.steps)]
        shape += ["--plan", self.plan] if self.plan else ["--tp", str(self.tp)]
        where = ["--inventory", str(inventory), "--python", self.python]
        if self.framework != "torch":
            where += ["--framework", self.framework]
        return ["smoke", *where, *shape, *args]


def trial(field: Field, fault: Inside | Outside, number: int) -> Outcome:
    draw = random.Random(f"{fault.kind} {number}")
    rank = draw.randrange(field.world())
    try:
        if isinstance(fault, Inside):
            return _inside(field, fault, number, rank, draw)
        return _outside(field, fault, number, rank, draw)
    finally:
        field.lab.reset()


def healthy(field: Field, number: int, beside: int = 0) -> Outcome:
    with hogs(beside):
        ran = Run(field).finish()
    return judged(HEALTHY[beside > 0], number, "", None, ran)


def _inside(field: Field, fault: Inside, number: int, rank: int, draw: random.Random) -> Outcome:
    step = f":{draw.randrange(2, field.steps - 2)}" if fault.late else ""
    group = draw.choice(field.groups(fault.kind, rank))
    step = f"{'' if group in EARLY else step}/{group}" if group else step
    ran = Run(field, "--inject", f"{fault.kind}@{rank}{step}").finish()
    latency = None if ran.report is None else (ran.report["smoke"] or {}).get("latency")
    return judged(fault.name, number, f"{rank}{step}", field.truth(fault, rank), ran, latency)


def _outside(field: Field, fault: Outside, number: int, rank: int, draw: random.Random) -> Outcome:
    host = field.host_of(rank)
    phase = draw.choice(fault.phases)
    step = draw.randrange(2, field.steps - 4) if phase == "train" else 0
    if fault.before is not None:
        fault.before(host, field.interpreter)
    run = Run(field)
    place, into = str(rank), None
    try:
        if fault.strike is not None:
            place = f"{rank} {phase}{f':{step}' if step else ''}"
            with watching(field.lab) as watch:
                _, entered = run.await_rank(watch, rank, phase, 0)
                victim, struck = run.await_rank(watch, rank, phase, step)
            fault.strike(host, victim)
            into = struck - entered
        ran = run.finish()
    except BaseException:
        run.process.kill()
        raise
    latency = None if into is None else _latency(field, rank, phase, into)
    return judged(fault.name, number, place, field.truth(fault, rank), ran, latency)


def _latency(field: Field, rank: int, phase: str, into: float) -> float | None:
    """Seconds from a fault to the decision, if it struck a rank `into` seconds after the rank entered a
    phase.

    The recording says how long the rank was in each phase by the time of the decision.
    """
    if not field.recording.exists():
        return None
    (run, *_) = json.loads(field.recording.read_bytes())["smoke"]
    spent: dict[str, float] = run["ranks"][rank]["seconds"]
    return round(sum(spent[each] for each in PHASES[PHASES.index(phase) :] if each in spent) - into, 3)


class Run:
    """`doctor smoke` on all hosts of a lab."""

    def __init__(self, field: Field, *args: str) -> None:
        self.field = field
        self.report = field.folder / "report.json"
        for old in (self.report, field.recording):
            old.unlink(missing_ok=True)
        files = ("--json", str(self.report), "--save", str(field.recording))
        self.began = time.monotonic()
        self.process = field.lab.start_doctor(*field.argv(*files, *args), program=ONCE)

    def await_rank(self, watch: Watch, rank: int, phase: str, step: int) -> tuple[Rank, float]:
        """Wait until the rank has reached a step of a phase; returns the rank and the time."""
        name, local = self.field.host_of(rank).name, rank % self.field.ranks

        def come(seen: Rank) -> bool:
            return seen.host == name and seen.local == local and seen.has_come_to(phase, step)

        what = f"rank {rank} in {phase} at step {step}"
        ranks = watch.await_that(lambda seen: any(map(come, seen)), what, self.process, self.field.limit)
        return next(filter(come, ranks)), time.monotonic()

    def finish(self) -> Ran:
        try:
            _, errors = self.process.communicate(timeout=self.field.limit)
        except subprocess.TimeoutExpired:
            self.process.kill()  # otherwise its ranks continue to run during the next trial
            self.process.communicate()
            raise
        seconds = time.monotonic() - self.began
        report = json.loads(self.report.read_bytes()) if self.report.exists() else None
        code = self.process.wait()
        found.keep(("--json", str(self.report)), code, self.field.folder, "")
        return Ran(code, report, errors, seconds)
