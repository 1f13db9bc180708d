"""The agents of `doctor hang` as the controller sees them: their start, their commands and their answers."""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from doctor.agents.bootstrap import agent_script, by_sudo, module_texts
from doctor.agents.session import AgentPatience, AgentSession, Loss, RemoteAgent, printable
from doctor.job.launch.brief import brief
from doctor.live import messages, pyspy
from doctor.live.evidence import MOST_LIBRARIES, HostEnds, HostEvidence, JobMember, LibraryText, Look
from doctor.live.jobs.starters import called
from doctor.live.onhost.launchers import NAMELESS
from doctor.live.onhost.room import WHOLE, weight
from doctor.live.redaction import redacted
from doctor.live.wires import unpaired
from doctor.model import UnreachedHost
from doctor.transport import Line, Script, Session
from doctor.transport.question import LookQuestion

HOME = "doctor.live.onhost"
NEEDS = "ctypes, resource, select, signal, subprocess"
MOST_MEMBERS = 4_096
"""Processes that one host may report."""
MOST_BETWEEN = 16
SEARCH = 0.6
BACK = 0.1
"""The share of the time that is kept for answers to arrive."""
ENDS, MOST_ENDS = 8.0, 512
"""Seconds for the question about connections that lead to no rank, and the most of these."""
ARMING = 10.0
"""Seconds for py-spy to reach a host after its ranks are found. Longer delays shorten the look."""


def look_script(python: str | None = None, *, sudo: bool = False, home: str = HOME) -> Script:
    """The script that starts the agent of `home`. The session's stdin must stay open afterwards.

    `python` is the preferred interpreter. `sudo`: run as root if `sudo -n` allows it, else as the same user.
    """
    modules = {**module_texts(HOME), **module_texts(home)}
    script = agent_script(modules, f"{home}.agent", needs=NEEDS, python=python)
    script = replace(script, question=LookQuestion())
    return by_sudo(script) if sudo else script


@dataclass(frozen=True, slots=True, kw_only=True)
class LookPatience(AgentPatience):
    """Time limits in seconds. `whole` limits the entire run, without the time between the two looks. The
    search for ranks comes first and may take the share `SEARCH` of it.
    """

    whole: float = 60.0

    @property
    def search(self) -> float:
        return SEARCH * self.whole


@dataclass(slots=True)
class LookHost(RemoteAgent):
    members: dict[int, JobMember] = field(default_factory=dict)
    looks: dict[tuple[int, str], Look] = field(default_factory=dict)
    between: dict[int, list[Look]] = field(default_factory=dict)
    found: messages.MembersEnd | None = None
    armed: bool = True
    """False while py-spy is being sent to the host."""
    found_at: float = math.inf
    no_tool: str = ""
    """Why py-spy was not sent."""
    lacks: str = ""
    """The CPU architecture of the host, if no py-spy for it was at hand."""
    libraries: list[LibraryText] = field(default_factory=list)
    seen: messages.LooksEnd | None = None
    narrowed: bool = False
    """Whether only some of its members are looked at."""
    looking: bool = False
    asked_ends: bool = False
    half_open: HostEnds | None = None
    lost: str = ""
    received: int = 0
    """The total weight of the lines that it sent, as `onhost/room.py` counts it."""

    def evidence(self) -> HostEvidence:
        found, seen = self.found, self.seen
        assert found is not None
        unread = list(found.unread)
        if seen is not None:
            unread += [self._explained(each) for each in seen.unread]
        elif self.looking:
            unread.append(self.lost or "it did not answer in time while its processes were looked at")
        everybody = self.with_looks()
        unseen = {"addresses": found.addresses, "ages": False}
        shown: dict[str, Any] = msgspec.structs.asdict(seen) if seen else unseen
        shown.pop("told", None)
        return redacted(
            HostEvidence(
                host=self.host,
                members=tuple(member for member in everybody if not member.words),
                starters=tuple(member for member in everybody if member.words),
                may_be=found.may_be,
                lacks="" if seen and seen.stacks else self.lacks,
                libraries=tuple(self.libraries),
                ends=self.half_open,
                **{**shown, "unread": tuple(unread)[:64]},
            )
        )

    def with_looks(self) -> list[JobMember]:
        told = {each.pid: each for each in (self.seen.told if self.seen else ())}
        return [
            msgspec.structs.replace(
                self._with_numbers(member, told.get(pid)),
                host=self.host,
                job=f"{member.job} on {self.host}"[:256] if member.job.startswith(NAMELESS) else member.job,
                a=self.looks.get((pid, "a")),
                between=tuple(self.between.get(pid, ())),
                b=self.looks.get((pid, "b")),
            )
            for pid, member in self.members.items()
        ]

    def _explained(self, unread: str) -> str:
        """The message, with the reason why py-spy was not sent: the host does not know it."""
        return unread.replace("no py-spy was brought", self.no_tool) if self.no_tool else unread

    def _with_numbers(self, member: JobMember, told: messages.RankNumbers | None) -> JobMember:
        """The member. A rank without a number gets the one that was found among its local variables. If that
        is its number on its host, `rank` may be a variable for just that.
        """
        if told is None or member.rank is not None or member.helps is not None:
            return member
        rank = None if told.rank == told.local else told.rank
        return msgspec.structs.replace(member, rank=rank, local=told.local, world=member.world or told.world)


def _is_ready(host: LookHost) -> bool:
    """Whether its ranks are found and py-spy has arrived or has taken too long."""
    return host.found is not None and (host.armed or time.monotonic() > host.found_at + ARMING)


H = TypeVar("H", bound=LookHost)


class LookAgents(AgentSession[H, messages.LiveMessage], Generic[H]):
    decoder: ClassVar[msgspec.json.Decoder[Any]] = messages.DECODER
    beat, last = b'{"do":"beat"}', b'{"do":"stop"}'
    kind: ClassVar[type[Any]] = LookHost
    """H"""

    def __init__(
        self,
        session: Session,
        hosts: Collection[str],
        patience: LookPatience,
        until: float,
        pyspy: Sequence[Path] = (),
    ) -> None:
        """`until`: when the run ends, by time.monotonic()."""
        super().__init__(session, {name: self.kind(name) for name in hosts}, patience, until)
        self.patience, self.pyspy = patience, pyspy
        self.began = self.over = time.monotonic()
        self.started = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.unreached: dict[str, str] = {}
        self.reasons: dict[str, UnreachedHost] = {}

    def find(self, tell: Callable[[], Any], command: Callable[[str], Any] = lambda _: None) -> None:
        """Find the ranks on all hosts, and send py-spy to the hosts that have some. `command`: what each host
        is told of the command whose ranks are to be marked.
        """
        within = (1 - BACK) * self.patience.search
        asked = {"do": "find", "lease": self.patience.lease, "beat": self.patience.beat, "within": within}
        asked["launchers"] = brief()
        for host in self.live():
            about = {"command": told} if (told := command(host.host)) else {}
            self.session.send(host.host, msgspec.json.encode({**asked, **about}))
        self.await_all(self.began + self.patience.search, _is_ready, tell)
        for host in self.live():
            if host.found is None:
                heard = f"; it printed: {' | '.join(host.noise[:3])}" if host.noise else ""
                self.unreached[host.host] = f"no answer within {self.patience.search:g} s{heard}"
                self.ignore(host)

    def narrow(self, to: Mapping[str, Collection[int]]) -> None:
        """Keep only these ranks of each host and their helpers."""
        for host in self.agents.values():
            pids = {*to.get(host.host, ())}
            host.members = {pid: m for pid, m in host.members.items() if pid in pids or m.helps in pids}
            host.narrowed = True

    def look(self, apart: float, tell: Callable[[], Any]) -> None:
        """Look at all ranks twice, starting on all hosts at once."""
        for host in self.live():
            host.looking = bool(host.members)
        self.over = over = min(self.began + apart + self.patience.whole, self.until)
        within = max(0.0, over - apart - BACK * self.patience.whole - time.monotonic())
        for host in self.live():
            if host.looking:
                asked = {"do": "look", "apart": apart, "within": within}
                pids = {"pids": [*host.members]} if host.narrowed else {}
                names = sorted({name for each in host.members.values() for name in called(each)})
                named = {"names": names} if names else {}
                self.session.send(host.host, msgspec.json.encode({**asked, **pids, **named}))
        self.await_all(over, lambda host: not host.looking or host.seen is not None, tell)

    def ask_ends(self, tell: Callable[[], Any]) -> None:
        """Ask all hosts about connections that lead from a rank to no other rank."""
        everybody = [member for host in self.agents.values() for member in host.with_looks()]
        lines = unpaired(member for member in everybody if not member.words)
        ends = sorted({(each.peer, each.local) for _, each in lines})[:MOST_ENDS]
        for host in self.live() if ends else ():
            host.asked_ends = True
            self.session.send(host.host, msgspec.json.encode({"do": "ends", "ends": ends}))
        over = min(time.monotonic() + ENDS, self.over)
        self.await_all(over, lambda host: not host.asked_ends or host.half_open is not None, tell)

    def await_all(self, deadline: float, over: Callable[[H], bool], tell: Callable[[], Any]) -> None:
        """Listen until it is over for all hosts that are left."""
        deadline = min(deadline, self.until)
        while not all(over(host) for host in self.live()) and time.monotonic() < deadline:
            self.hear(min(deadline, time.monotonic() + 0.5))
            tell()

    def _line(self, host: H, line: Line) -> None:
        host.received += weight(line.text)
        if host.received > WHOLE:
            self._silence(host, f"it sent more than {WHOLE >> 20} MB")
        else:
            super()._line(host, line)

    def _silence(self, host: H, why: str) -> None:
        """Drop everything that this host sent: an honest host never sends this much."""
        for kept in (host.members, host.looks, host.between, host.libraries):
            kept.clear()
        self._fail(host, f"{why}, so it counts as not seen")

    def take(self, host: H, message: messages.LiveMessage, size: int) -> bool:
        del size  # _line has already counted it
        host.ready = True
        if isinstance(message, messages.MemberMessage) and host.found is None:
            host.members[message.member.pid] = message.member
            if len(host.members) > MOST_MEMBERS:
                self._silence(host, f"it reported more than {MOST_MEMBERS:,} processes")
        elif isinstance(message, messages.MembersEnd) and host.found is None:
            host.found, host.found_at = message, time.monotonic()
            self._bring(host, message)
        elif isinstance(message, messages.PySpyStatus) and not host.armed:
            host.armed = True
            host.no_tool = message.problem and f"py-spy could not be taken: {message.problem}"
        elif isinstance(message, messages.LookMessage) and host.looking and message.look.pid in host.members:
            if message.which != "between":
                host.looks[message.look.pid, message.which] = message.look
            elif len(between := host.between.setdefault(message.look.pid, [])) < MOST_BETWEEN:
                between.append(message.look)
        elif isinstance(message, messages.LibraryMessage) and host.looking:
            if len(host.libraries) < MOST_LIBRARIES:
                host.libraries.append(message.text)
        elif isinstance(message, messages.LooksEnd) and host.looking:
            host.seen = message
        elif isinstance(message, messages.Ends) and host.asked_ends:
            host.half_open = message.ends
        elif isinstance(message, messages.Trouble):
            host.lost = message.text
        elif isinstance(message, messages.ChildEnd):
            if host.found is None:
                self._fail(host, f"its agent could not look for ranks: {host.lost}")
            elif message.what == "look" and host.looking and host.seen is None:
                host.lost = f"its agent could not look at the processes: {host.lost}"
                self.ignore(host)
        else:
            return False
        return True

    def _bring(self, host: H, found: messages.MembersEnd) -> None:
        if not found.ranks:
            return
        if not found.memory:
            host.no_tool = "py-spy could not be brought: Python 3.8 is needed for a program in memory"
            return
        lines, host.no_tool = pyspy.for_host(found.machine, self.pyspy)
        host.armed, host.lacks = not lines, "" if lines else found.machine
        for line in lines:
            self.session.send(host.host, line)

    def _fail(self, host: H, why: str) -> None:
        self.unreached[host.host] = why
        self.ignore(host)

    def lose(self, agent: H, how: Loss, detail: str, unreached: UnreachedHost | None) -> None:
        if self.excused:
            detail = "this program was stopped for longer than an agent waits"
        agent.lost = printable(detail)
        if agent.found is None or (agent.members and how == "unreached"):
            self.unreached[agent.host] = agent.lost
        if unreached is not None:
            self.reasons[agent.host] = unreached
