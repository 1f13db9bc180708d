"""What was seen of the processes of a job that runs: at least twice each, on every host at the same time.

These types are also what the agent says and what a recording holds, so their numbers and texts have bounds:
a host may be hostile. Ages and ticks count on a host's own clock; nothing here compares the clocks of two
hosts.
"""

from __future__ import annotations

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
    """A thread as /proc shows it. What may not be read is empty."""

    tid: Pid
    name: Word
    state: Annotated[str, msgspec.Meta(max_length=1)]
    cpu: Count = 0
    """Ticks of 10 ms."""
    switches: Count = 0
    waits: Word = ""
    """The function of the kernel that it sleeps in; its name changes with the kernel."""
    syscall: Annotated[tuple[Word, ...], msgspec.Meta(max_length=9)] = ()
    """Its number and arguments."""


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """A TCP connection of the process, as `ss -tnieHO` shows it."""

    state: Word
    local: Word
    """ADDRESS:PORT, a v4 address without ::ffff:."""
    peer: Word
    received: Count = 0
    """Bytes. Those that were sent are not here: they count what is sent again."""
    last_sent: Count = 0
    """Milliseconds ago; also 0 where ss leaves it out, which it does for 0."""
    last_received: Count = 0
    waiting_to_be_read: Count = 0
    waiting_to_be_sent: Count = 0
    unacknowledged: Count = 0
    backoff: Count = 0
    persist: bool = False
    """The peer's window is closed: it does not read."""
    user: Word = ""
    """Whose it is, where nobody can tell of which process."""


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    name: Word
    file: Text
    line: Count
    source: Text = ""
    """The text of the line, if the host could read it within its limits."""


class PythonThread(msgspec.Struct, frozen=True, kw_only=True):
    """A thread as py-spy shows it; frames from the innermost."""

    tid: Pid
    name: Word = ""
    owns_gil: bool = False
    frames: Annotated[tuple[Frame, ...], msgspec.Meta(max_length=200)] = ()
    step: Count | None = None
    """The value of a local called step, iteration or the like, of the frame nearest to the user's loop."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """One process at one moment."""

    pid: Pid
    state: Annotated[str, msgspec.Meta(max_length=1)]
    """R, S, D, T, t, Z, as in /proc; empty: the process is gone."""
    cpu: Count = 0
    bytes_moved: Count = 0
    """Read and written, by whatever means."""
    threads: Annotated[tuple[Thread, ...], msgspec.Meta(max_length=4_096)] = ()
    """Main thread first, then by TID."""
    connections: Annotated[tuple[Connection, ...], msgspec.Meta(max_length=4_096)] = ()
    files: Annotated[tuple[Text, ...], msgspec.Meta(max_length=64)] = ()
    """Open regular files, pipes with a name."""
    kernel: Annotated[tuple[Word, ...], msgspec.Meta(max_length=64)] = ()
    """The kernel's stack of the main thread; only root may read it."""
    python: Annotated[tuple[PythonThread, ...], msgspec.Meta(max_length=4_096)] = ()
    unread: Annotated[tuple[Text, ...], msgspec.Meta(max_length=16)] = ()
    """What could not be looked at and why: "stack: not permitted"."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A process of a job: a rank, or a helper of one (a data loader's worker, a compiler)."""

    host: Word
    """As the person named it; the controller fills it in."""
    pid: Pid
    parent: Pid
    above: Annotated[tuple[Pid, ...], msgspec.Meta(max_length=64)] = ()
    """Of a rank: its parent and so on, up to the first of its launchers."""
    launched: Pid | None = None
    """The nearest launcher above it, by its command line; None: there is none, or nobody wrote it down."""
    joins: bool = False
    """It has threads of process groups, or has loaded a library that makes them."""
    job: Word
    """Equal for all ranks of one job on all hosts: MASTER_ADDR:MASTER_PORT, run id, Slurm job and step."""
    rank: Rank | None = None
    """None: it is a rank, but nobody told which."""
    world: Rank | None = None
    helps: Pid | None = None
    """The PID of the rank whose helper it is."""
    launcher: Word = ""
    """torchrun, mpirun, srun, msrun; empty: unknown."""
    command: Text = ""
    """Redacted."""
    user: Word = ""
    """Its owner as the kernel says it: the login name on its host, or "uid 1001" where that host has none."""
    age: Seconds = 0.0
    """Since it was started."""
    master: Word = ""
    """ADDRESS:PORT of the rendezvous; its connections say nothing of collectives."""
    slurm_job: Word = ""
    """Its number; of an array's task also "JOB_TASK", behind a space."""
    hidden: bool = False
    """Its variables may not be read: that it is a rank shows only from outside."""
    a: Look | None = None
    between: Annotated[tuple[Look, ...], msgspec.Meta(max_length=16)] = ()
    """Where the two looks are far apart: threads and stacks alone."""
    b: Look | None = None

    @property
    def looks(self) -> tuple[Look, ...]:
        """All that were made, in their order."""
        return tuple(look for look in (self.a, *self.between, self.b) if look is not None)


class LibraryText(msgspec.Struct, frozen=True, kw_only=True):
    """What a library or a device tool of a host said, in its own words. `hang.libraries` reads it."""

    source: Word
    """See `hang.opinions.Source`."""
    name: Text
    """The file, address or command that said it."""
    which: Literal["a", "b"] = "a"
    """Asked twice: which answer it is."""
    pid: Pid | None = None
    """Of the rank that it belongs to, if it belongs to one."""
    at: Seconds = 0.0
    """When it was said or written, by the host's clock, as time since 1970."""
    text: Long = ""
    problem: Text = ""
    """Why there is no text."""


class HostSeen(msgspec.Struct, frozen=True, kw_only=True):
    host: Word
    members: Annotated[tuple[Member, ...], msgspec.Meta(max_length=20_000)] = ()
    at: Seconds = 0.0
    """When the second look began, by the host's clock, as time since 1970."""
    apart: Seconds = 0.0
    """Between the two looks."""
    root: bool = False
    stacks: Word = ""
    """Who showed Python stacks: "py-spy 0.4.3, brought", "… of the host"; empty: nobody, see `unread`."""
    lacks: Word = ""
    """Its machine, if there are no stacks because nobody had a py-spy for such a one."""
    ages: bool = True
    """Whether connections could be looked at (ss)."""
    addresses: Annotated[tuple[Word, ...], msgspec.Meta(max_length=1_024)] = ()
    """Of its interfaces, to tell whose connection is whose."""
    unread: Annotated[tuple[Text, ...], msgspec.Meta(max_length=64)] = ()
    """What could not be looked at on the whole host, and why."""
    libraries: Annotated[tuple[LibraryText, ...], msgspec.Meta(max_length=MOST_LIBRARIES)] = ()
    loose: Annotated[tuple[Connection, ...], msgspec.Meta(max_length=1_024)] = ()
    """Connections of users whose processes may not be read, in the second look."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the judgement is made from; judging it twice says the same."""

    started: Word
    """When, as in a recording: 2026-11-20T09:00:00Z."""
    hosts: tuple[HostSeen, ...] = ()
    unreached: dict[str, Text] = {}
    """Host -> why it did not answer."""
    asked: tuple[Word, ...] = ()
    """All hosts that were asked, in order."""
    local: bool = False
    """Taken on this machine, without a login."""
    transport: Word = ""
    """How the hosts were reached; empty: nobody wrote it down."""
    seconds: Seconds = 0.0
    """How long it took; 0: nobody wrote it down."""
    way: Way | None = None
    """How the hosts were reached; None: nobody wrote it down."""
    schema: int = 1
