"""What was seen of the processes of a running job: at least two looks at each, on all hosts at the same time.

The agent sends these types and a recording contains them. Their numbers and texts are bounded because a host
may be hostile. Ages and ticks are by the host's own clock; the clocks of two hosts are never compared.
"""

from typing import Annotated, Literal

import msgspec

from doctor.transport.way import Way

Text = Annotated[str, msgspec.Meta(max_length=4_096)]
Word = Annotated[str, msgspec.Meta(max_length=256)]
LONGEST_LIBRARY_TEXT = 700_000
MOST_LIBRARIES = 256
Long = Annotated[str, msgspec.Meta(max_length=LONGEST_LIBRARY_TEXT)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Pid = Annotated[int, msgspec.Meta(ge=0, le=2**22)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e10)]
Rank = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]


class Thread(msgspec.Struct, frozen=True, kw_only=True):
    """A thread as /proc shows it. Fields that may not be read are empty."""

    tid: Pid
    name: Word
    state: Annotated[str, msgspec.Meta(max_length=1)]
    cpu: Count = 0
    """Ticks of 10 ms."""
    switches: Count = 0
    slept: Seconds | None = None
    """Seconds since it ran last; None if it does not sleep, or the kernel does not say."""
    waits: Word = ""
    """The kernel function in which it sleeps. The names differ between kernel versions."""
    syscall: Annotated[tuple[Word, ...], msgspec.Meta(max_length=9)] = ()
    """The name and the arguments of the system call that it is in. Earlier recordings hold its number on
    x86-64 in place of the name.
    """
    asks: Annotated[tuple[Word, ...], msgspec.Meta(max_length=4)] = ()
    """Sockets and pipes that it waits for and that lead to another process, except connections over TCP and
    pipes from helpers of its rank: the path of the socket, "a pipe", or "a pipe to process 812 (tee)" if it
    writes there; and terminals, by their path.
    """


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """A TCP connection of a process, as `ss -tnieHO` shows it."""

    state: Word
    local: Word
    """ADDRESS:PORT. An IPv4 address has no ::ffff: prefix."""
    peer: Word
    received: Count = 0
    """Bytes."""
    acknowledged: Count = 0
    """Bytes that the other end has acknowledged. The bytes sent would include retransmissions."""
    last_sent: Count = 0
    """Milliseconds ago. ss omits the value if it is 0."""
    last_received: Count = 0
    last_acknowledged: Count = 0
    unacknowledged: Count = 0
    backoff: Count = 0
    persist: bool = False
    """The peer's window is closed: the peer does not read."""
    awaited: bool = False
    """The main thread waits for what comes over it."""
    user: Word = ""
    """The owner, if the process behind the connection is unknown."""


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    name: Word
    file: Text
    line: Count
    source: Text = ""
    """The text of the line, if the host could read it within its limits."""
    changed: bool = False
    """The file is younger than the process: the line that ran is not known, so it has no text."""


class PythonThread(msgspec.Struct, frozen=True, kw_only=True):
    """A thread as py-spy shows it, the innermost frame first."""

    tid: Pid
    name: Word = ""
    owns_gil: bool = False
    frames: Annotated[tuple[Frame, ...], msgspec.Meta(max_length=200)] = ()
    step: Count | None = None
    """The value of a local variable such as `step` or `iteration`, from the innermost frame that has one."""


class LockHolder(msgspec.Struct, frozen=True, kw_only=True):
    """A process that holds a lock on a file, or has a lock file open."""

    pid: Pid
    user: Word = ""
    command: Text = ""
    """The command line, redacted."""
    age: Seconds = 0.0
    """Time since its start."""
    state: Annotated[str, msgspec.Meta(max_length=1)] = ""
    cpu: Count = 0
    moved: Count | None = None
    """Bytes read and written, plus the number of reads and writes; None if that may not be read."""


class FileLock(msgspec.Struct, frozen=True, kw_only=True):
    """A lock that a process may wait for."""

    path: Text = ""
    kind: Word = ""
    """FLOCK, POSIX or OFDLCK, as in /proc/locks; empty if there is only a file."""
    by: Literal["kernel", "library", "own", "open"]
    """The kernel shows that it waits for the lock; a library of locks, or a function of the user, has its
    name in a local variable; or it has the file open, and another process holds a lock on it.
    """
    age: Seconds = 0.0
    """Time since the file was last written."""
    holders: Annotated[tuple[LockHolder, ...], msgspec.Meta(max_length=16)] = ()


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """One process at one moment."""

    pid: Pid
    state: Annotated[str, msgspec.Meta(max_length=1)]
    """R, S, D, T, t or Z, as in /proc; empty if the process is gone."""
    tracer: Word = ""
    """Who holds it in state t: "process 812 (gdb)"."""
    timed: bool = False
    """It has a handler of a signal that comes by itself, as of a timer."""
    cpu: Count = 0
    bytes_moved: Count = 0
    """Bytes read and written. The kernel counts none of send, recv and mapped files."""
    disk: Count = 0
    """Bytes read from and written to storage, which grow during a long call as well."""
    calls: Count = 0
    """How often the main thread has read or written."""
    positions: Annotated[tuple[Word, ...], msgspec.Meta(max_length=256)] = ()
    """For each open file but logs and the standard streams: descriptor, checksum of the name, and offset."""
    threads: Annotated[tuple[Thread, ...], msgspec.Meta(max_length=4_096)] = ()
    """The main thread first, then by TID."""
    connections: Annotated[tuple[Connection, ...], msgspec.Meta(max_length=4_096)] = ()
    files: Annotated[tuple[Text, ...], msgspec.Meta(max_length=64)] = ()
    """Open regular files and named pipes."""
    kernel: Annotated[tuple[Word, ...], msgspec.Meta(max_length=64)] = ()
    """The main thread's kernel stack, which only root may read."""
    locks: Annotated[tuple[FileLock, ...], msgspec.Meta(max_length=8)] = ()
    python: Annotated[tuple[PythonThread, ...], msgspec.Meta(max_length=4_096)] = ()
    unread: Annotated[tuple[Text, ...], msgspec.Meta(max_length=16)] = ()
    """What could not be read, and why: "stack: not permitted"."""


class JobMember(msgspec.Struct, frozen=True, kw_only=True):
    """A process of a job: a rank, or a helper of a rank (a data loader's worker, a compiler)."""

    host: Word
    """As the user named it. The controller fills it in."""
    pid: Pid
    parent: Pid
    above: Annotated[tuple[Pid, ...], msgspec.Meta(max_length=64)] = ()
    """For a rank: its ancestors, from the parent up to the first of its launchers."""
    launched: Pid | None = None
    """The nearest launcher above it, by its command line; None if there is none or it was not recorded."""
    joins: bool = False
    """Whether it has threads of process groups, or has loaded a library that creates process groups."""
    job: Word
    """The same for all ranks of a job: MASTER_ADDR:MASTER_PORT, a run id, or a Slurm job and step."""
    rank: Rank | None = None
    """None if the number of the rank is unknown."""
    local: Rank | None = None
    """Its number among the ranks of its host, if its stack shows only that."""
    world: Rank | None = None
    helps: Pid | None = None
    """The PID of the rank that it helps; None for a rank."""
    launcher: Word = ""
    """torchrun, mpirun, srun, msrun; empty if unknown."""
    command: Text = ""
    """The command line, redacted."""
    user: Word = ""
    """Its owner by the kernel: the login name on its host, or "uid 1001" if that host has no name for it."""
    age: Seconds = 0.0
    """Time since its start."""
    start: Count = 0
    """The ticks from the boot of its host to its start, which tell it from a later process with its PID; 0 if
    they were not recorded.
    """
    master: Word = ""
    """ADDRESS:PORT of the rendezvous, whose connections show nothing about collectives."""
    slurm_job: Word = ""
    """The number of its Slurm job. For a task of a job array, a space and "JOB_TASK" follow."""
    words: Annotated[tuple[Text, ...], msgspec.Meta(max_length=200)] = ()
    """For a launcher without ranks: its own words and options, and the program that it is to start."""
    env: Annotated[dict[Word, Word], msgspec.Meta(max_length=64)] = {}
    """For a launcher without ranks: its variables that stand for options."""
    started: Word = ""
    """How the kernel shows that the command of `doctor run` has started it; empty if nothing does."""
    hidden: bool = False
    """Its environment may not be read, so only what is visible from outside shows that it is a rank."""
    a: Look | None = None
    between: Annotated[tuple[Look, ...], msgspec.Meta(max_length=16)] = ()
    """Looks in between, with threads and stacks only, if the two looks are far apart."""
    b: Look | None = None

    @property
    def looks(self) -> tuple[Look, ...]:
        """All looks in their order."""
        return tuple(look for look in (self.a, *self.between, self.b) if look is not None)


class ResolvedName(msgspec.Struct, frozen=True, kw_only=True):
    name: Word
    addresses: Annotated[tuple[Word, ...], msgspec.Meta(max_length=64)] = ()
    problem: Word = ""
    """Why there are none."""


class LibraryText(msgspec.Struct, frozen=True, kw_only=True):
    """The raw output of a library or a device tool on a host. `hang.libraries` reads it."""

    source: Word
    """A `hang.opinions.Source`, or `process-numbers`."""
    name: Text
    """The file, address or command that it comes from."""
    which: Literal["a", "b"] = "a"
    """The first or the second answer, if it was asked twice."""
    pid: Pid | None = None
    """The rank that it belongs to, if any."""
    at: Seconds = 0.0
    """When it was answered or written, in seconds since 1970 by the host's clock."""
    text: Long = ""
    problem: Text = ""
    """Why there is no text."""


class HostEnds(msgspec.Struct, frozen=True, kw_only=True):
    """What a host knows of connections that ranks of other hosts have to it."""

    lacks: Annotated[tuple[Word, ...], msgspec.Meta(max_length=1_024)] = ()
    """Those for which it has no socket: its address and port, a space, and those of the peer."""
    unsure: Word = ""
    """Why a rank may be there all the same; empty if none may."""
    uptime: Seconds = 0.0
    """Time since it was started; 0 if unknown."""
    killed: Annotated[tuple[Word, ...], msgspec.Meta(max_length=16)] = ()
    """Processes that its kernel killed: the seconds since then, PID and name."""


class HostLooks(msgspec.Struct, frozen=True, kw_only=True):
    """What the end of the looks tells of a host."""

    names: Annotated[tuple[ResolvedName, ...], msgspec.Meta(max_length=64)] = ()
    """The names that launchers without ranks call, as this host resolves them."""
    at: Seconds = 0.0
    """When the second look began, in seconds since 1970 by the host's clock."""
    apart: Seconds = 0.0
    """Seconds between the two looks."""
    root: bool = False
    stacks: Word = ""
    """The tool that showed Python stacks: "py-spy 0.4.3, brought"; if it is empty, see `unread`."""
    ages: bool = True
    """Whether ss could show connections."""
    addresses: Annotated[tuple[Word, ...], msgspec.Meta(max_length=1_024)] = ()
    """The addresses of its interfaces."""
    unread: Annotated[tuple[Text, ...], msgspec.Meta(max_length=64)] = ()
    """What could not be read for the host as a whole, and why."""
    unplugged: Annotated[tuple[Word, ...], msgspec.Meta(max_length=16)] = ()
    """Interfaces without a link that have an address: "eth1 10.0.0.3"."""
    loose: Annotated[tuple[Connection, ...], msgspec.Meta(max_length=1_024)] = ()
    """Connections of users whose processes may not be read, from the second look."""


class HostEvidence(HostLooks, frozen=True, kw_only=True):
    host: Word
    members: Annotated[tuple[JobMember, ...], msgspec.Meta(max_length=20_000)] = ()
    starters: Annotated[tuple[JobMember, ...], msgspec.Meta(max_length=256)] = ()
    """Launchers without ranks."""
    may_be: Annotated[tuple[Word, ...], msgspec.Meta(max_length=64)] = ()
    """Users with other Python programs here that may be ranks or launchers."""
    lacks: Word = ""
    """Its CPU architecture, if there are no stacks because no py-spy for it was at hand."""
    libraries: Annotated[tuple[LibraryText, ...], msgspec.Meta(max_length=MOST_LIBRARIES)] = ()
    ends: HostEnds | None = None
    """None if no rank of another host has a connection to it that none of its ranks has."""


class JobChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a run that its judgement depends on."""

    limit: Seconds | None = None
    """None if it was not given."""
    pid: Pid | None = None
    master_port: Count | None = None
    slurm_job: Word | None = None
    user: Word | None = None

    @property
    def of_job(self) -> tuple[int | str | None, ...]:
        """The options that choose a job."""
        return self.pid, self.master_port, self.slurm_job, self.user


class LiveEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the judgement is made from: the same evidence always gives the same judgement."""

    started: Word
    """The time, as in a recording: 2026-11-20T09:00:00Z."""
    hosts: tuple[HostEvidence, ...] = ()
    unreached: dict[str, Text] = {}
    """The reason for each host that did not answer."""
    asked: tuple[Word, ...] = ()
    """All hosts that were asked, in order."""
    local: bool = False
    """Whether the evidence was taken on this machine, without a login."""
    transport: Word = ""
    """The transport that reached the hosts; empty if it was not recorded."""
    seconds: Seconds = 0.0
    """How long the run took; 0 if it was not recorded."""
    way: Way | None = None
    """The options with which the hosts were reached; None if they were not recorded."""
    choice: JobChoice = JobChoice()
    schema: int = 1
