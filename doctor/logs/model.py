"""What is read from logs and what is concluded from it: frozen values that the parts hand to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from doctor.model import Confidence, Remedy

CUT = "the log ends here"
"""In the text of a line that begins a traceback without an end."""


class Form(str, Enum):
    """Who wrote a line. A message counts only in its own form: a Python print of "Out of memory" is not the
    kernel's message."""

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


OF_OTHERS = frozenset({Form.KERNEL, Form.ELASTIC, Form.MPI, Form.SLURM, Form.RAS})
"""Forms that ranks do not write: their lines belong to the rank that they name, or to none."""


class Role(str, Enum):
    ROOT = "root"
    """It can be the cause."""
    CONSEQUENCE = "consequence"
    """Normally something else, on another rank, came before it."""
    CONFIRMS = "confirms"
    """It is not an event of its own, but makes a cause certain."""
    NAMES = "names-culprit"
    """Its text names the guilty rank or host, which need not be the one that writes it."""
    ADVICE = "advice"
    """It is never evidence; the role exists so that nobody counts it."""
    STATES = "states"
    """It says how the job runs, such as over which network, and never that something is wrong."""


@dataclass(frozen=True, slots=True)
class Party:
    """Who wrote a line, or whom the line names, as far as that is known.

    `address` is as written, with its port if it has one.
    """

    rank: int | None = None
    host: str | None = None
    device: int | None = None
    pid: int | None = None
    address: str | None = None


HINT = "HINT"
"""The level of a line that only complains if its log shows no work."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line, harmless and without secrets, cut to a bounded length.

    `at` is in seconds since 1970 by the line's own clock; if it states no time zone, its time is read as
    UTC and `zoned` is False.
    """

    file: str
    number: int
    text: str
    form: Form = Form.PLAIN
    who: Party = Party()
    at: float | None = None
    zoned: bool = False
    level: str = ""
    """`ERROR`, `WARN`, `INFO`, `DEBUG`, or empty if the form has none."""
    since: int = 0
    """For a line that shows a step: the line from which on its writer made several steps; 0 if unknown."""
    times: int = 1
    """For an odd line: how often its file has one of that wording, as far as they were counted."""
    final: bool = False
    """For an exception: only the rest of its message, and what others say of an end, follow it."""
    frames: tuple[str, ...] = ()
    """For an exception: the lines of its traceback, as they are in the log."""
    rest: tuple[str, ...] = ()
    """For an odd line: the next lines of its message, such as what the program advises."""


@dataclass(frozen=True, slots=True)
class Symptom:
    """One entry of playbooks/symptoms, ready for use."""

    id: str
    title: str
    """What it means, in one short sentence without a full stop: "a rank never came to the rendezvous"."""
    family: str
    """The name of its file: torch, nccl, hccl, mindspore, slurm, mpi, kernel, ..."""
    role: Role
    patterns: tuple[tuple[str, ...], ...]
    """Alternatives; each is a list of literals that must stand in one line in this order."""
    forms: frozenset[Form] = frozenset()
    """The forms in which it counts; empty: any."""
    take: str = ""
    """A regular expression whose named groups take values from the line: rank, ranks, host, address,
    device, pid, port and others."""
    above: tuple[str, ...] = ()
    """Regular expressions like `take`, for the lines above: a message may have several lines."""
    below: tuple[str, ...] = ()
    """The same for the lines below."""
    codes: tuple[str, ...] = ()
    """Codes that a person may type to find it: EI0006, 507018, Xid 79, exit code -9."""
    number: str = ""
    """An error number of CANN; its spellings are the first patterns."""
    explains: tuple[str, ...] = ()
    """Ids (globs) of the symptoms that it causes."""
    causes: tuple[str, ...] = ()
    """Possible causes in words, the likeliest first."""
    checks: tuple[str, ...] = ()
    """Ids of checks that can show it on the live hosts, the likeliest first."""
    remedy: tuple[str, ...] = ()
    """Commands to type; sentences of advice begin with #."""
    needs: str = ""
    """`repeated`, `last`, `end`, `no-step`, `unfinished`, `effect` or `differs`: healthy logs have it too, so
    it counts only if it is repeated, near the end, in the last few lines, near it with no step after it, near
    it with no word before it or at the end that the training is over, explains another, or has a value that
    ranks lack.
    """
    unseen: str = ""
    """What its checks do not cover, so that they may pass while it lasts: "the folder that it wrote to"."""
    sources: tuple[str, ...] = ()
    versions: str = ""
    examples: tuple[str, ...] = ()
    counter_examples: tuple[str, ...] = ()
    zh: str = ""
    origin: str = ""
    """The file that defines it."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A symptom in the lines of one party in one file. Repetitions are counted, not kept."""

    symptom: Symptom
    first: LogLine
    last: LogLine
    count: int = 1
    taken: Mapping[str, str] = field(default_factory=dict)
    """The values that `take` found in the first line."""


class LossForm(str, Enum):
    MEGATRON = "megatron"
    TRAINER = "trainer"
    CSV = "csv"
    JSON = "json"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class Curve:
    """The losses of one rank in one file. A long curve is thinned; `steps` are those that were kept."""

    file: str
    who: Party
    steps: tuple[int, ...]
    losses: tuple[float, ...]
    """NaN and infinities are kept."""
    seconds: tuple[float | None, ...] = ()
    """When each line was written; None if unknown."""
    lines: tuple[int, ...] = ()
    """The line number of each loss."""
    total: int = 0
    counted: bool = False
    """Whether the log does not number steps: `steps` then counts its losses from 1."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file that was read. `who` is empty if several ranks wrote it."""

    name: str
    size: int = 0
    lines: int = 0
    forms: tuple[Form, ...] = ()
    """The forms of its lines, the most frequent first."""
    who: Party = Party()
    ranks: tuple[int, ...] = ()
    """All ranks that wrote in it."""
    world: int | None = None
    first_at: float | None = None
    last_at: float | None = None
    last: LogLine | None = None
    over: tuple[LogLine, ...] = ()
    """Of each writer, the last of the last lines in which it says that the training is over."""
    progress: tuple[LogLine, ...] = ()
    """The last line of each rank that names a step or an epoch."""
    odd: tuple[LogLine, ...] = ()
    """The first and the last few lines that complain and match no symptom, one for each wording."""
    problem: str = ""
    """Why it was not read to its end: "damaged archive", "more than 4 GB"."""


@dataclass(frozen=True, slots=True)
class Logs:
    """Everything that was read."""

    files: tuple[LogFile, ...] = ()
    sightings: tuple[Sighting, ...] = ()
    curves: tuple[Curve, ...] = ()
    left_out: tuple[str, ...] = ()
    """Inputs that were not read, each with its reason."""
    missed: bool = False
    """Whether a log with complaints may be among `left_out`: one was unreadable or too large."""
    earlier: tuple[Logs, ...] = ()
    """If the job was started more than once: all attempts but the last, in their order."""
    job: str = ""
    """"job 4242", "run_a"; empty if everything that was read may belong to one job."""
    maybe_jobs: tuple[str, ...] = ()
    """The names of two jobs, if it is unknown whether the logs belong to one job or to both."""
    jobs: tuple[Logs, ...] = ()
    """The logs of each job, if there are several; the fields above hold the logs of all."""


class LogOutcome(str, Enum):
    NAMED = "named"
    """A cause is named: exit 1."""
    CLEAN = "clean"
    """Nothing complains: exit 0."""
    UNKNOWN = "unknown"
    """Something is wrong but the cause is unknown, or nothing could be read: exit 3."""


@dataclass(frozen=True, slots=True)
class LogCause:
    """One cause, or one consequence: `because` is the index of what led to it in Conclusion.charges."""

    symptom: str | None
    """None if it follows from a curve, or from something that is missing."""
    says: str
    """What happened, and to whom, in one sentence."""
    who: tuple[Party, ...] = ()
    role: Role = Role.ROOT
    because: int | None = None
    how: tuple[str, ...] = ()
    """How it is known, one sentence each: "ranks 0-2 wait for it, and it never said that it waits"."""
    lines: tuple[LogLine, ...] = ()
    causes: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    remedy: Remedy | None = None
    confidence: Confidence = Confidence.STRONG
    count: int = 1
    brief: str = ""
    """What happened in two or three words, if it has no symptom whose id says it."""
    job: str = ""
    """The job that it belongs to, if several were read."""
    unseen: str = ""
    """What its checks do not cover; see Symptom."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    outcome: LogOutcome
    charges: tuple[LogCause, ...] = ()
    """The cause first, then its consequences in the order of time."""
    story: tuple[tuple[float | None, str], ...] = ()
    """The time line of all ranks: the time by the clock of the first host, and a short sentence."""
    odd: tuple[LogLine, ...] = ()
    """Lines that complain and match no symptom, the most telling first."""
    telling: str = ""
    """What is special about the first of them: "it is an exception"."""
    open: tuple[str, ...] = ()
    """What the logs could not show, and what would show it: "no log of rank 3 was given"."""
    hosts: tuple[str, ...] = ()
    """The hosts to run the checks on; empty if no host name is known."""
    checks: tuple[str, ...] = ()
    read: str = ""
    """What was read, in one line: "8 files of 8 ranks on node[1-4], torchrun, 1,204,331 lines"."""
    survived: bool = False
    """Something complains that may end a job, and it went on after that."""
    beside: tuple[str, ...] = ()
    """How earlier attempts and other jobs ended, one sentence each."""
    ways: tuple[str, ...] = ()
    """How the job ran by its own words: "NCCL sends over sockets on node1"."""
