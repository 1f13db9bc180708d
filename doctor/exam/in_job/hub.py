"""Rank 0's end of the connections: who came, who still answers, and the programs that run over them."""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from doctor import __version__
from doctor.exam.in_job import messages, proc
from doctor.exam.in_job.handshake import HANDSHAKE
from doctor.exam.in_job.job_key import VARIABLE
from doctor.exam.in_job.listener import RankListener, RankVisitor
from doctor.exam.in_job.messages import BEAT, SILENT, SLEPT
from doctor.exam.in_job.rank_env import JobRank
from doctor.exam.in_job.relayed_program import RelayedProgram
from doctor.exam.in_job.wire import CONTROL, STDERR, STDOUT, Loop, RankLink
from doctor.text.grouped import grouped
from doctor.text.nodeset import fold
from doctor.text.printable import clean_line

MOST_DOUBTS = 4

# Seconds: until a silent rank is looked at; for an answer; for all to receive the verdict.
SOON, ANSWER, TAKE = 1.0, 2.0, 3.0


@dataclass(slots=True)
class HubMember:
    """One rank that came; `link` is None for rank 0 itself."""

    hello: messages.Hello
    link: RankLink | None = None
    here: int = 0
    taken: bool = False
    silent: bool = False

    @property
    def rank(self) -> int:
        return self.hello.rank

    @property
    def place(self) -> tuple[str, str]:
        return self.hello.host, self.hello.machine

    @property
    def gone(self) -> bool:
        return self.link is not None and self.link.closed

    @property
    def speaks(self) -> bool:
        return not self.gone and not self.silent


class Hub:
    """Rank 0's end of all connections. Call `listen`, then `join`; `close` at the end."""

    def __init__(self, seat: JobRank, me: messages.Hello) -> None:
        self.seat = seat
        self.members: dict[int, HubMember] = {seat.rank: HubMember(me)}
        self.refused: dict[int, str] = {}
        self.contested: dict[int, int] = {}
        """Numbers that a second process claimed -> its pid."""
        self.programs: dict[int, RelayedProgram] = {}
        self._changed = threading.Condition()
        self._by_link: dict[RankLink, HubMember] = {}
        self._leaving: dict[RankLink, float] = {}
        """Links that were refused -> until when they may read the reason."""
        self._answers: dict[int, SimpleQueue[messages.ProcessState]] = {}
        """Where each question waits for its answer."""
        self._serial = 0
        self._beat_at = 0.0
        self._door: RankListener | None = None
        self.loop = Loop(self._heard, self._lost, self._drained, self._tick)

    # Arrival.

    def listen(self) -> None:
        self.loop.start()
        if self.seat.world > 1:
            self._door = RankListener(self.seat, self._let_in)

    def join(self, seconds: float, progress: Callable[[Collection[int]], None]) -> None:
        """Return when all ranks have come, or after `seconds`; later ranks are not let in."""
        until = time.monotonic() + seconds
        with self._changed:
            while len(self.members) < self.seat.world and (left := until - time.monotonic()) > 0:
                progress(self.members)
                self._changed.wait(min(left, 1.0))
        if self._door:
            self._door.look_for_others()
            self._door.close()

    @property
    def rivals(self) -> Mapping[int, int]:
        """Port where ranks may have met another user's process instead of rank 0 -> its uid."""
        return self._door.passed_over if self._door and not self.seat.secret else {}

    def _let_in(self, visitor: RankVisitor) -> None:
        """Admit or refuse a visitor. Runs in the listener's thread."""
        seals, hello, me = visitor.greeting.seals, visitor.hello, self.members[self.seat.rank].hello
        assert seals is not None
        assert hello is not None
        link = self.loop.link(visitor.connection, seals, visitor.reader)
        with self._changed:
            why = self._unfit(hello)
            if why:
                self.refused[hello.rank] = why
                self._leaving[link] = time.monotonic() + HANDSHAKE
                link.tell(messages.RunVerdict(2, [f"rank {hello.rank} was not let in: {why}"]))
            else:
                self.members[hello.rank] = self._by_link[link] = HubMember(hello, link)
                link.tell(messages.Welcome(me.host, me.machine, me.pid, me.began))
                self._changed.notify_all()
        self.loop.adopt(link)

    def _unfit(self, hello: messages.Hello) -> str:
        if hello.version != __version__:
            return f"it runs cluster-doctor {clean_line(hello.version[:40])}, rank 0 runs {__version__}"
        if hello.world != self.seat.world or hello.rank >= self.seat.world:
            return f"it expects {hello.world} ranks, rank 0 expects {self.seat.world}"
        if hello.rank in self.members:
            self.contested[hello.rank] = hello.pid
            return "another process has its number"
        return ""

    @property
    def own_place(self) -> tuple[str, str]:
        return self.members[self.seat.rank].place

    def doubts(self, places: Mapping[str, tuple[str, str]]) -> list[str]:
        """What could not be verified, in sentences; `places` maps host names to their places."""
        found = []
        key = self.seat.key
        if key.short:
            found.append(f"{key.source} has {len(key.text)} characters: it can be guessed")
        unsure = {member.place for member in self.members.values() if member.link and not member.hello.sure}
        if unsure:
            names = fold([name for name, place in places.items() if place in unsure])
            found.append(
                f"the ranks on {names} could not verify rank 0 by anything that only this user can read: a "
                f"process in its place could give them a verdict, but no command. Give all ranks a {VARIABLE}"
            )
        if self._door:
            found += [
                f"port {port}, where ranks look for rank 0, is held by the user with uid {uid}: passed over"
                for port, uid in self._door.passed_over.items()
            ]
            found += list(self._door.turned_away)[:MOST_DOUBTS]
        found += [
            f"rank {rank} was not let in: {why}" for rank, why in list(self.refused.items())[:MOST_DOUBTS]
        ]
        return found

    # Incoming messages, in the thread of the loop.

    def _heard(self, link: RankLink, kind: int, number: int, payload: bytes) -> None:
        member = self._by_link.get(link)
        message = messages.MEMBER.decode(payload) if kind == CONTROL else None
        if member is None:
            if isinstance(message, messages.VerdictReceipt):
                link.hang_up()
        elif kind == CONTROL:
            member.silent = False
            self._take_message(member, message)
        elif kind in (STDOUT, STDERR):
            program = self.programs.get(number)
            if program is not None and program.link is link:
                program.came(kind, payload)

    def _take_message(self, member: HubMember, message: object) -> None:
        with self._changed:
            if isinstance(message, messages.BeatAnswer):
                member.here = max(member.here, message.serial)
            elif isinstance(message, messages.VerdictReceipt):
                member.taken = True
            elif isinstance(message, messages.ProcessState):
                answers = self._answers.get(message.serial)
                if answers is not None:
                    answers.put(message)
            elif isinstance(message, messages.ProgramEnded):
                program = self.programs.get(message.number)
                if program is not None and program.link is member.link:
                    program.over(message.rc)
            self._changed.notify_all()

    def _lost(self, link: RankLink) -> None:
        for program in list(self.programs.values()):
            if program.link is link:
                program.cut()
        with self._changed:
            self._changed.notify_all()

    def _drained(self, link: RankLink) -> None:
        for program in list(self.programs.values()):
            if program.link is link:
                program.ring()

    def _tick(self, now: float, since: float) -> None:
        linked = [(member, member.link) for member in list(self.members.values()) if member.link]
        if since > SLEPT:
            for _, link in linked:
                link.heard_at = now
        for member, link in linked:
            if not member.silent and not member.gone and now - link.heard_at > SILENT:
                member.silent = True
                self._lost(link)
        for link in [link for link, until in list(self._leaving.items()) if until <= now]:
            del self._leaving[link]
            link.hang_up()
        if now >= self._beat_at:
            self._beat_at = now + BEAT
            for _, link in linked:
                link.tell(messages.Beat())

    # Questions to the ranks.

    def leader(self, place: tuple[str, str]) -> HubMember | None:
        """The first rank of a host that still receives messages."""
        there = (self.members[rank] for rank in sorted(self.members) if self.members[rank].place == place)
        return next((member for member in there if member.speaks), None)

    def roll_call(self) -> dict[int, str]:
        """Ranks that came but do not answer now, with the state of their process ('' if unknown)."""
        serial = self._next()
        for member in self.members.values():
            if member.link:
                member.link.tell(messages.RollCall(serial))
        began = time.monotonic()
        states: dict[int, str] = {}
        while True:
            wait = SOON if time.monotonic() < began + SOON else 1.0
            with self._changed:
                self._changed.wait_for(lambda: not self._mute(serial), wait)
                mute = self._mute(serial)
            states = {member.rank: self._state(member) for member in mute}
            sure = all(state and state in proc.WORDS for state in states.values())
            if sure or time.monotonic() >= began + SILENT:
                return states

    def _mute(self, serial: int) -> list[HubMember]:
        """Members that have not answered this question, including those whose connection ended."""
        return [m for m in self.members.values() if m.link and (m.gone or m.here < serial)]

    def _state(self, member: HubMember) -> str:
        """The state of its process, as another rank of its host sees it."""
        pid, began = member.hello.pid, member.hello.began
        mates = [m for m in self.members.values() if m.place == member.place and m is not member and m.speaks]
        if any(mate.link is None for mate in mates):
            return proc.state(pid, began)
        for mate in mates[:2]:
            if mate.link and (
                seen := self._put(mate.link, lambda serial: messages.StateQuestion(serial, pid, began))
            ):
                return seen.state
        return proc.GONE if member.gone else ""

    def find(self, rank: int, place: tuple[str, str]) -> messages.ProcessState | None:
        """The process of a rank that has not come, if it runs on this host."""
        mate = self.leader(place)
        if mate is None:
            return None
        if mate.link is None:
            found = proc.find_rank(self.seat.variable, rank, self.seat.same)
            return messages.ProcessState(0, *found) if found else None
        seen = self._put(mate.link, lambda serial: messages.Find(serial, rank))
        return seen if seen and seen.pid else None

    def _put(
        self, link: RankLink, question: Callable[[int], messages.StateQuestion | messages.Find]
    ) -> messages.ProcessState | None:
        serial = self._next()
        answers = self._answers[serial] = SimpleQueue()
        link.tell(question(serial))
        try:
            return answers.get(timeout=ANSWER)
        except Empty:
            return None
        finally:
            del self._answers[serial]

    def _next(self) -> int:
        with self._changed:
            self._serial += 1
            return self._serial

    def tell(self, code: int) -> None:
        """Send all ranks the verdict, and wait until those that answer have it."""
        waiting = [(member, member.link) for member in self.members.values() if member.link]
        for _, link in waiting:
            link.tell(messages.RunVerdict(min(code, 255)))
        with self._changed:
            self._changed.wait_for(lambda: all(m.taken or not m.speaks for m, _ in waiting), TAKE)

    def close(self) -> None:
        if self._door:
            self._door.close()
        self.loop.stop()

    def places(self) -> Iterator[tuple[tuple[str, str], list[HubMember]]]:
        """The ranks of each host, hosts in the order of their first rank."""
        yield from grouped((member.place, member) for _, member in sorted(self.members.items())).items()
