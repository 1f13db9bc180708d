"""The conversation with the agents of a smoke run: what they are told, and what is made of what they say."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from doctor.smoke.heard import HostWatch
from doctor.smoke.limits import Patience
from doctor.smoke.result import Backend, Exit, SmokePlan
from doctor.smoke.watch import Watch
from doctor.smoke.words import (
    Bye,
    Dns,
    Exited,
    Imported,
    Memory,
    Pages,
    Ready,
    Said,
    Spawned,
    Stacks,
    Store,
    Told,
    Trouble,
    parse,
)
from doctor.transport import Ended, Line, Session

BEFORE_BACKEND = ("spawned", "start", "ready", "join")
MOST_NOISE = 200
SLICE = 0.25
"""Seconds of listening at a time."""
MOST_SILENCE = 2 * SLICE
"""For so much silence one turn counts: who did not listen has not heard that nobody spoke."""
ALONE = 0.8
"""After so much of their lease without a word from here, agents may end."""


class Talk:
    """Takes in what hosts say, as far as it is believed, into `watch`."""

    def __init__(self, session: Session, watch: Watch, began: float) -> None:
        self.session = session
        self.watch = watch
        self.plan: SmokePlan = watch.plan
        self.patience: Patience = watch.patience
        self.began = began
        self.store_port: int | None = None
        self.stopping = False
        self.looks = 0
        self._stacks_of: set[str] = set()
        self._beat_at = 0.0
        self._beaten = self._listened = time.monotonic()
        self._excused_until = 0.0

    def live(self) -> list[HostWatch]:
        return [host for host in self.watch.hosts.values() if not host.gone]

    def send(self, host: str, what: Mapping[str, Any]) -> None:
        self.session.send(host, msgspec.json.encode(what))

    # Asking.

    def look(self) -> list[HostWatch]:
        """Fresh pages of all ranks; the agents that did not answer."""
        self.looks += 1
        wanted = self.looks
        self._ask({"do": "look", "id": wanted}, lambda host: host.looked >= wanted)
        missing = [host for host in self.live() if host.looked < wanted]
        for host in self.live():
            host.unanswered = host.unanswered + 1 if host in missing else 0
        return missing

    def take_stacks(self) -> None:
        self._ask({"do": "stacks"}, self._told_all)

    def _told_all(self, host: HostWatch) -> bool:
        """Stacks, and where there is a backend that knows something, its words."""
        joined = [
            rank
            for rank in (self.watch.ranks[seat.rank] for seat in self.plan.on(host.host))
            if self.plan.backend != "gloo" and rank.exit is None and rank.phase not in BEFORE_BACKEND
        ]
        return host.host in self._stacks_of and all(rank.events[Backend] for rank in joined)

    def _ask(self, what: Mapping[str, Any], answered: Callable[[HostWatch], bool]) -> None:
        for host in self.live():
            self.send(host.host, what)
        self._hear_until(self.patience.look, lambda: all(map(answered, self._expected())))

    def stop(self) -> None:
        """Tell every agent to stop, and hear that it did: only then is nothing of the run left."""
        self.stopping = True
        for host in self.live():
            self.send(host.host, {"do": "stop"})
        self._hear_until(self.patience.stop, lambda: not self._expected())

    def _expected(self) -> list[HostWatch]:
        return [host for host in self.live() if not host.mute]

    def _hear_until(self, seconds: float, over: Callable[[], bool]) -> None:
        deadline = time.monotonic() + seconds
        while not over() and time.monotonic() < deadline:
            self.hear(deadline)

    # Listening.

    def hear(self, deadline: float) -> bool:
        """Keep the leases alive and take in what is said, until `deadline` or the first silence before it.
        Whether all was taken in that was said until now: only then may anybody be judged by it.
        """
        now = time.monotonic()
        self._note_absence(now)
        if now >= self._beat_at:
            self._beat_at, self._beaten = now + self.patience.beat, now
            for host in self.live():
                self.send(host.host, {"do": "beat"})
        event = self.session.receive(max(0.0, min(deadline, self._beat_at, now + SLICE) - now))
        enough = time.monotonic() + SLICE
        while event is not None:
            self._take(event)
            if time.monotonic() >= enough:
                return False
            event = self.session.receive(0.0)
        self._count_silence(self.live())
        return True

    def _count_silence(self, hosts: Iterable[HostWatch]) -> None:
        now = time.monotonic()
        passed, self._listened = min(now - self._listened, MOST_SILENCE), now
        for host in hosts:
            host.silence = 0.0 if host.spoke else host.silence + passed
            host.spoke = False

    def _note_absence(self, now: float) -> None:
        """Agents end when they are left alone, as by a controller that was stopped for a while."""
        if now - self._beaten >= ALONE * self.patience.lease:
            self._excused_until = now + self.patience.lease

    def _take(self, event: Line | Ended) -> None:
        host = self.watch.hosts.get(event.host)
        if host is None or host.gone:
            return
        host.spoke = True
        self._note_absence(time.monotonic())
        if isinstance(event, Ended):
            self._ended(event, host)
        else:
            self._line(event.text, host)

    def _line(self, text: bytes, host: HostWatch) -> None:
        said = parse(text)
        if said is not None:
            self._said(said, host, len(text))
        elif text.strip():
            host.noise.append(text[:200].decode("utf-8", "replace"))
            if len(host.noise) > MOST_NOISE:
                self._gone(host, f"it printed more than {MOST_NOISE} lines that are no answer")

    def _ended(self, event: Ended, host: HostWatch) -> None:
        if event.unreached is not None and not self.stopping:
            host.gone, host.lost = True, event.unreached
            return
        words = event.stderr.decode("utf-8", "replace").strip().splitlines()[-3:] or host.noise[-3:]
        said = f": {' | '.join(words)}" if words else ""
        self._gone(host, f"its agent ended early (exit status {event.rc}){said}")

    def _gone(self, host: HostWatch, why: str) -> None:
        host.gone = True
        if self.stopping:
            return
        if time.monotonic() < self._excused_until:
            self.watch.abandoned = True
        else:
            host.trouble = host.trouble or why[:2000]

    def _said(self, said: Said, host: HostWatch, size: int) -> None:
        now = time.monotonic()
        if isinstance(said, Told | Exited):
            self._of_rank(said, host, now, size)
        elif isinstance(said, Pages):
            self.watch.pages(host, said, now)
        elif isinstance(said, Ready):
            host.ready, host.cores, host.load = True, said.cores, said.load
            host.ready_at = host.ready_at or now
        elif isinstance(said, Imported):
            host.imported_at, host.python, host.torch = now, said.path, said.torch
        elif isinstance(said, Store):
            if host.host == self.plan.head:
                self.store_port = said.port
        elif isinstance(said, Spawned):
            for seat in self.plan.on(host.host):
                self.watch.ranks[seat.rank].pid = said.pids.get(str(seat.rank))
        elif isinstance(said, Stacks):
            self._stacks_of.add(host.host)
            for seat in self.plan.on(host.host):
                self.watch.ranks[seat.rank].stack = said.stacks.get(str(seat.rank), "")
        elif isinstance(said, Dns):
            host.reverse_dns = said.seconds
        elif isinstance(said, Memory):
            host.peak_memory = said.peak
        elif isinstance(said, Trouble):
            if not self.stopping or not host.trouble:
                host.trouble = said.text
        elif isinstance(said, Bye):
            self._gone(host, "its agent ended early")

    def _of_rank(self, said: Told | Exited, host: HostWatch, now: float, size: int) -> None:
        """Hosts are believed about their own ranks only."""
        ranks = self.watch.ranks
        if said.rank >= len(ranks) or ranks[said.rank].seat.host != host.host:
            return
        rank = ranks[said.rank]
        if isinstance(said, Told):
            rank.take(said.event, now, size)
        elif rank.exit is None and not self.stopping:
            if said.last is not None and said.last.rank == said.rank:
                rank.look(said.last, now, self.patience.again)
            rank.exit = Exit(said.code, said.signal, round(now - self.began, 3), said.words)
            self.watch.ended(rank)
