"""The processes of a run on one host, as its agent starts, watches and ends them. Python 3.6 and later."""

import contextlib
import json
import mmap
import os
import resource
import select
import signal
import subprocess
from typing import TYPE_CHECKING, Any

from doctor.agents.onhost.bundle import command
from doctor.agents.onhost.process import die_with_parent, end_children
from doctor.agents.onhost.voice import parse
from doctor.smoke.onhost.connections import Connections
from doctor.smoke.onhost.environment import environment
from doctor.smoke.onhost.memory import anonymous, holding
from doctor.smoke.onhost.page import PHASES, SIZE
from doctor.smoke.onhost.ranks import LAST_WORDS, PHASE, STEP, Rank
from doctor.smoke.onhost.reverse_dns import DnsLookup
from doctor.smoke.onhost.stacks import Stacks

if TYPE_CHECKING:
    Said = dict[str, Any]

MOST_RANKS = 256
END_SECONDS = 2.0
JOIN = PHASES.index("join")
FORKSERVER = "doctor.smoke.onhost.forkserver"


class StartFailure(Exception):
    """The run cannot start on this host; the text says why."""


class HostRanks:
    def __init__(self, program: bytes, head: int) -> None:
        self.program = program
        self.head = head
        self.ranks = []  # type: list[Rank]
        self.python = ""
        self.trouble = ""
        self.state_changed = False
        self._forkserver = None  # type: subprocess.Popen[bytes] | None
        self._report = self._output = self._life = -1
        self._reported = self._words = b""
        self._lookup = None  # type: DnsLookup | None
        self._stacks = None  # type: Stacks | None
        self._again = False
        self._connections = Connections()
        self._compared = {}  # type: dict[str, list[str]]

    # Starting.

    def start(self, told: "dict[str, Any]") -> None:
        _allow_descriptors(64 + 8 * MOST_RANKS)
        try:
            self.python = str(told.get("python") or "python3")
            env = {str(name): str(value) for name, value in (told.get("env") or {}).items()}
            env = environment(env, str(told.get("framework") or "torch"))
            timeout = float(told["timeout"])
            inject = list(told.get("inject") or ())
            self.framework = str(told.get("framework") or "torch")
            cell = {"cell": told["cell"], "shape": told["shape"], "timeout": timeout, "inject": inject}
            cell["framework"] = self.framework
            worlds = [int(size) for size in told.get("worlds") or ()]
            self.ranks = [Rank(index, seat, cell) for index, seat in enumerate(told["ranks"][:MOST_RANKS])]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StartFailure(f"the agent did not understand what to start: {error!r}") from None
        except OSError as error:
            raise StartFailure(f"no memory or descriptors for the ranks: {error.strerror}") from None
        store = str(told.get("address") or "") if told.get("store") else None
        try:
            self._start_forkserver(env, store, timeout, worlds)
        except (OSError, subprocess.SubprocessError) as error:
            raise StartFailure(f"cannot start {self.python}: {error}") from None
        if told.get("head"):
            self._lookup = DnsLookup(str(told["head"]))

    def _start_forkserver(
        self, env: "dict[str, str]", store: "str | None", timeout: float, worlds: "list[int]"
    ) -> None:
        pages = anonymous(SIZE * max(1, len(self.ranks)))
        self.memory = mmap.mmap(pages, SIZE * max(1, len(self.ranks)))
        self._report, report = os.pipe()
        self._output, output = os.pipe()
        life, self._life = os.pipe()
        for descriptor in (self._report, self._output):
            os.set_blocking(descriptor, False)
        seats = [rank.seat() for rank in self.ranks]
        config = {
            "seat": None,
            "seats": seats,
            "pages": pages,
            "report": report,
            "life": life,
            "framework": self.framework,
            "store": store,
            "worlds": worlds,
            "timeout": timeout,
        }
        stdin = holding(self.program + json.dumps(config).encode("ascii"))
        names = ("events", "go", "output", "stack")
        keep = [pages, report, life] + [seat[name] for seat in seats for name in names]
        agent = os.getpid()

        def prepare() -> None:
            die_with_parent(agent)
            os.setpgid(0, 0)

        try:
            self._forkserver = subprocess.Popen(
                command(self.python, self.program, self.head, FORKSERVER),
                cwd="/",
                env=env,
                stdin=stdin,
                stdout=output,
                stderr=output,
                pass_fds=keep,
                preexec_fn=prepare,
            )
        finally:
            for descriptor in (stdin, output, pages, report, life):
                os.close(descriptor)
            for rank in self.ranks:
                rank.hand_over()
        self._ears = select.poll()
        for rank in self.ranks:
            self._ears.register(rank.events, select.POLLIN)
            self._ears.register(rank.output, select.POLLIN)

    # Watching.

    def phase(self) -> "tuple[int, bool] | None":
        """The phase of the working rank that is furthest behind, and whether its first step is over."""
        working = [rank for rank in self.ranks if rank.working]
        return min(((rank.page[PHASE], rank.page[STEP] > 0) for rank in working), default=None)

    def still(self) -> float:
        """For how many seconds, at least, every working rank has stood still."""
        return min((rank.still for rank in self.ranks if rank.working), default=0.0)

    def look(self, seconds: float) -> bool:
        """Look at all living ranks; returns whether any page moved."""
        moved = False
        for rank in self.ranks:
            if rank.living:
                it_moved, news = rank.look(self.memory, seconds)
                moved = moved or it_moved
                self.state_changed = self.state_changed or news
        phase = self.phase()
        if phase is not None and phase[0] > JOIN:
            self._connections.note(phase, [rank.pid for rank in self.ranks if rank.living])
        return moved

    def news(self) -> "list[Said]":
        """The messages since the last call."""
        said = []  # type: list[Said]
        self._read_ranks(said)
        self._read_reports(said)
        if self._lookup is not None and self._lookup.poll():
            said.append({"say": "dns", "seconds": self._lookup.seconds})
        texts = self._stacks.poll() if self._stacks is not None else None
        if texts is not None:
            self._stacks = None
            said.append(dict(self._compared, say="stacks", stacks=texts))
            if self._again:
                self._again = False
                self.take_stacks()
        if self._forkserver is not None and not self.trouble and _has_ended(self._forkserver.pid):
            self._read_reports(said)
            self.trouble = self.trouble or self._last_words()
        return said

    def _read_ranks(self, said: "list[Said]") -> None:
        ready = {descriptor for descriptor, _ in self._ears.poll(0)}
        for rank in self.ranks:
            if not rank.gone and rank.output in ready:
                rank.read_output()
            if not rank.gone and rank.events in ready:
                said += [
                    {"say": "event", "rank": rank.number, "event": event} for event in rank.read_events()
                ]

    def _read_reports(self, said: "list[Said]") -> None:
        with contextlib.suppress(OSError):
            self._words = (self._words + os.read(self._output, 65536))[-LAST_WORDS:]
        data = b""
        with contextlib.suppress(OSError):
            data = os.read(self._report, 65536)
        lines = (self._reported + data).split(b"\n")
        self._reported = lines.pop()
        for line in lines:
            report = parse(line)
            if report is not None:
                self._take(report, said)

    def _take(self, report: "dict[str, Any]", said: "list[Said]") -> None:
        what = report.get("what")
        if what == "imported":
            self.python = report["path"]
            said.append({"say": "imported", "path": self.python, "version": report["version"]})
        elif what == "failed":
            self.trouble = str(report["text"])
        elif what == "store":
            said.append({"say": "store", "port": report["port"], "cell": report["cell"]})
        elif what == "store-ended":
            self.trouble = "the rendezvous store ended early: " + _tail(self._words)
        elif what == "spawned":
            for rank in self.ranks:
                rank.spawned(report["pids"][str(rank.index)])
                rank.look(self.memory, 0.0)
            said.append({"say": "spawned", "pids": {str(rank.number): rank.pid for rank in self.ranks}})
        elif what == "exit":
            self._ended(self.ranks[report["index"]], report, said)

    def _ended(self, rank: Rank, report: "dict[str, Any]", said: "list[Said]") -> None:
        """Handle the end of a rank. Its last output comes first: the pipes outlive it."""
        rank.look(self.memory, 0.0)
        rank.read_output()
        said += [{"say": "event", "rank": rank.number, "event": event} for event in rank.read_events()]
        self._ears.unregister(rank.events)
        self._ears.unregister(rank.output)
        rank.ended(report["peak"])
        words = "\n".join(filter(None, (rank.words, rank.fatal_error())))
        how = {"code": report["code"], "signal": report["signal"]}
        said.append(dict(how, say="exit", rank=rank.number, words=words, last=rank.shown()))

    def _last_words(self) -> str:
        """Why the fork server ended, with its last output."""
        assert self._forkserver is not None
        left = os.waitid(os.P_PID, self._forkserver.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        how = "it is gone"
        if left is not None:
            how = ("exit status %d" if left.si_code == os.CLD_EXITED else "signal %d") % left.si_status
        started = any(rank.pid for rank in self.ranks)
        what = "the process that started the ranks ended" if started else f"{self.python} ended early"
        return "{} ({}): {}".format(what, how, _tail(self._words) or "it printed nothing")

    # Commands.

    def join(self, line: bytes) -> None:
        for rank in self.ranks:
            rank.join(line)

    def take_stacks(self) -> None:
        if self._stacks is not None:
            self._again = True
            return
        living = [rank for rank in self.ranks if rank.living]
        for rank in living:
            rank.ask_backend()
        self._compared = self._connections.compare([rank.pid for rank in living])
        self._stacks = Stacks(living, self.python)

    # Ending.

    def peak_memory(self) -> int:
        return max((rank.peak for rank in self.ranks), default=0)

    def stop(self) -> "list[tuple[int, str]]":
        """Kill and reap everything. Returns the processes that could not be killed: pid and state."""
        for rank in self.ranks:
            rank.measure()
        if self._lookup is not None:
            self._lookup.stop()
        if self._forkserver is not None:
            with contextlib.suppress(OSError):
                os.killpg(self._forkserver.pid, signal.SIGKILL)
        return end_children(END_SECONDS)


def _allow_descriptors(wanted: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))


def _has_ended(pid: int) -> bool:
    """Whether the process has ended. It is not reaped, so that no other process group can get its number."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _tail(words: bytes) -> str:
    """The last lines that a program printed, as one line."""
    lines = [line.strip() for line in words.decode("utf-8", "replace").splitlines()]
    return " | ".join([line for line in lines if line][-3:])[:600]
