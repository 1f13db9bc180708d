"""What is read of logs, and what is concluded from it: frozen values that the parts hand to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from doctor.model import Confidence, Remedy


class Form(str, Enum):
    """Who wrote a line. A message counts only in its own form: a Python print of "Out of memory" is not the
    kernel's."""

    PLOG = "plog"
    """CANN's own log files: HCCL, HCCP, TSD, runtime, driver."""
    CANN = "cann"
    """What CANN prints on the console: `EI0006: …`, `[PID: 7277] …`."""
    MINDSPORE = "mindspore"
    TORCH = "torch"
    """c10d, gloo and their C++ loggers."""
    ELASTIC = "elastic"
    """torchrun and torch.distributed.run."""
    TORCH_NPU = "torch_npu"
    NCCL = "nccl"
    RAS = "ras"
    MPI = "mpi"
    SLURM = "slurm"
    KERNEL = "kernel"
    """dmesg, /var/log/messages, journalctl -k."""
    PYTHON = "python"
    """A traceback, or the last line of one."""
    PLAIN = "plain"
    """Anything else, such as what the script prints."""


class Role(str, Enum):
    ROOT = "root"
    """It can be the cause."""
    CONSEQUENCE = "consequence"
    """Normally something else, on another rank, came before it."""
    CONFIRMS = "confirms"
    """It is no event of its own, but makes a cause certain."""
    NAMES = "names-culprit"
    """Its text names the guilty rank or host, which need not be the one that writes it."""
    ADVICE = "advice"
    """Never evidence; named here so that nobody counts it."""


@dataclass(frozen=True, slots=True)
class Party:
    """Who wrote a line, or whom it names: as much as is known.

    `address` is as written, with its port if it has one.
    """

    rank: int | None = None
    host: str | None = None
    device: int | None = None
    pid: int | None = None
    address: str | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line, harmless and without secrets, cut to a bounded length.

    `at` is in seconds since 1970, as its own clock has it; where no zone was written, the wall clock's
    numbers are taken as UTC (`zoned` is False).
    """

    file: str
    number: int
    text: str
    form: Form = Form.PLAIN
    who: Party = Party()
    at: float | None = None
    zoned: bool = False
    level: str = ""
    """`ERROR`, `WARN`, `INFO`, `DEBUG`, or empty where the form has none."""


@dataclass(frozen=True, slots=True)
class Symptom:
    """One entry of playbooks/symptoms, as it is used."""

    id: str
    title: str
    """What it means, in one short sentence without a full stop: "a rank never came to the rendezvous"."""
    family: str
    """The name of its file: torch, nccl, hccl, mindspore, slurm, mpi, kernel, ..."""
    role: Role
    patterns: tuple[tuple[str, ...], ...]
    """Any of these: literals that stand in one line in this order."""
    forms: frozenset[Form] = frozenset()
    """The forms that it may stand in; empty: in any."""
    take: str = ""
    """A regular expression whose groups give values of the line: rank, ranks, host, address, device, pid,
    port, and others by their own names."""
    codes: tuple[str, ...] = ()
    """What a person may type for it: EI0006, 507018, Xid 79, exit code -9."""
    number: str = ""
    """A number of CANN: its spellings are the first patterns."""
    explains: tuple[str, ...] = ()
    """Ids (globs) of symptoms that it causes."""
    causes: tuple[str, ...] = ()
    """In words, likeliest first."""
    checks: tuple[str, ...] = ()
    """Ids of checks that can show it on the live hosts, likeliest first."""
    remedy: tuple[str, ...] = ()
    """What to type or do; sentences begin with #."""
    needs: str = ""
    """`repeated` or `last`: it also stands in healthy logs, and counts only when repeated or near the end."""
    unseen: str = ""
    """What its checks do not look at, so that they may pass while it lasts: "the folder that it wrote to"."""
    sources: tuple[str, ...] = ()
    versions: str = ""
    examples: tuple[str, ...] = ()
    counter_examples: tuple[str, ...] = ()
    zh: str = ""
    origin: str = ""
    """The file that it was read from."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A symptom in the lines of one party in one file. Repetitions are counted, not kept."""

    symptom: Symptom
    first: Line
    last: Line
    count: int = 1
    taken: Mapping[str, str] = field(default_factory=dict)
    """What `take` found in the first line."""


class LossForm(str, Enum):
    MINDSPORE = "mindspore"
    MEGATRON = "megatron"
    TRAINER = "trainer"
    LIGHTNING = "lightning"
    CSV = "csv"
    JSON = "json"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class Curve:
    """The losses of one rank of one file. Longer curves are thinned, and `steps` says which were kept."""

    file: str
    who: Party
    form: LossForm
    steps: tuple[int, ...]
    losses: tuple[float, ...]
    """NaN and infinities stay what they are."""
    seconds: tuple[float | None, ...] = ()
    """When each line was written, or what a step took (`step_time`), where the log says it."""
    step_time: bool = False
    lines: tuple[int, ...] = ()
    """Where each stands in the file."""
    total: int = 0
    counted: bool = False
    """The log numbers no steps: `steps` counts its losses from 1."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file that was read. One whose lines are of several ranks has `who` empty."""

    name: str
    size: int = 0
    lines: int = 0
    forms: tuple[Form, ...] = ()
    """Those that were seen, the commonest first."""
    who: Party = Party()
    ranks: tuple[int, ...] = ()
    """All whose lines are in it."""
    world: int | None = None
    first_at: float | None = None
    last_at: float | None = None
    last: Line | None = None
    progress: tuple[Line, ...] = ()
    """The last line of each rank that says how far it is: a step, an epoch."""
    odd: tuple[Line, ...] = ()
    """The first lines that complain and that no symptom knows, one for each wording, a few at most."""
    problem: str = ""
    """Why it was not read to its end, in words: "damaged archive", "more than 4 GB"."""


@dataclass(frozen=True, slots=True)
class Logs:
    """All that was read."""

    files: tuple[LogFile, ...] = ()
    sightings: tuple[Sighting, ...] = ()
    curves: tuple[Curve, ...] = ()
    left_out: tuple[str, ...] = ()
    """What was given and not read, each with its reason."""
    missed: bool = False
    """There may be a log among them that complains: it could not be read, or was too much."""
    earlier: tuple[Logs, ...] = ()
    """Of a job that was started more than once, all but its last attempt, the first one first."""
    job: str = ""
    """"job 4242", "run_a"; empty where all that was read may be of one job."""
    maybe_jobs: tuple[str, ...] = ()
    """Two of them, where it is not known whether they are."""
    jobs: tuple[Logs, ...] = ()
    """What was read, job by job, where it is of several; the fields above have all of it."""


class Outcome(str, Enum):
    NAMED = "named"
    """A cause is named: exit 1."""
    CLEAN = "clean"
    """Nothing complains: exit 0."""
    UNKNOWN = "unknown"
    """Something is wrong that is not known, or nothing could be read: exit 3."""


@dataclass(frozen=True, slots=True)
class Charge:
    """One cause, or one consequence of another (`because` is the place of that in Conclusion.charges)."""

    symptom: str | None
    """None: it follows from what is not there, or from a curve."""
    says: str
    """What happened, to whom, in one sentence."""
    who: tuple[Party, ...] = ()
    role: Role = Role.ROOT
    because: int | None = None
    how: tuple[str, ...] = ()
    """How it is known, a sentence each: "ranks 0-2 wait for it, and it never said that it waits"."""
    lines: tuple[Line, ...] = ()
    causes: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    remedy: Remedy | None = None
    confidence: Confidence = Confidence.STRONG
    count: int = 1
    brief: str = ""
    """What happened in two or three words, where no symptom's id says it."""
    job: str = ""
    """Whose, where several jobs were read."""
    unseen: str = ""
    """What its checks do not look at; see Symptom."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    outcome: Outcome
    charges: tuple[Charge, ...] = ()
    """The cause first, then what it led to, in the order of time."""
    story: tuple[tuple[float | None, str], ...] = ()
    """The time line over all ranks: when (as the clock of the first host has it), and a short sentence."""
    odd: tuple[Line, ...] = ()
    """The first lines that complain and that nobody knows."""
    open: tuple[str, ...] = ()
    """What could not be told, and what would tell it: "no log of rank 3 was given"."""
    hosts: tuple[str, ...] = ()
    """Those that the checks are to be made on; empty where no name of a host is known."""
    checks: tuple[str, ...] = ()
    read: str = ""
    """What was read, in one line: "8 files of 8 ranks on node[1-4], torchrun, 1,204,331 lines"."""
    beside: tuple[str, ...] = ()
    """What became of earlier attempts, and of other jobs, a sentence each."""
