"""The evidence of one job, prepared once for all rules."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from doctor.hang.judge.activity import doing
from doctor.hang.judge.judgement import Cause, RankStanding, WaitGroup
from doctor.hang.judge.position import ENDED, standing
from doctor.hang.judge.progress import ends_of_ranks
from doctor.hang.judge.waiting import SLOW, doubted, frozen, stuck_in_kernel
from doctor.live import threads
from doctor.live.evidence import JobMember, LiveEvidence, Look
from doctor.live.jobs.job import RunningJob
from doctor.live.jobs.unrecognised import unrecognised
from doctor.live.wires import (
    SHORT,
    Key,
    Wire,
    edges,
    is_lossy,
    key,
    last_exchange,
    received_between,
    scope,
    silent_for,
    wires,
)
from doctor.text.grouped import grouped

LOOKS_APART = 2.0
"""The assumed seconds between the looks, if no host reports them."""
TALK = 1000
"""The most bytes of NCCL's RAS over a connection, in a second and for each rank. Measured: 60 and 70."""
_KEY = re.compile(r"(?:\b|\._|(?:tcp|prefix|default|dist|c10d)_?)store(?:\(\))?\.(?:wait|get)\(", re.I)
SETS = "find the line that sets the key awaited at {place}, and why no rank came there"
ANSWERED = 3.0
"""Seconds between the last exchange of ranks and a wait for storage that began then."""


@dataclass(frozen=True, slots=True)
class HangCase:
    job: RunningJob
    standings: tuple[RankStanding, ...]
    """One for each rank whose process has not ended."""
    lost: tuple[tuple[JobMember, Cause], ...]
    """Ranks whose process cannot continue: it has ended, is stopped or is stuck in the kernel."""
    edges: frozenset[tuple[Key, Key]]
    """Pairs of ranks: the first waits for the second. Empty if collectives do not use TCP."""
    lossy: tuple[Wire, ...]
    """Connections whose sender gets no answer."""
    unplugged: Mapping[str, tuple[str, ...]]
    """Host -> its interfaces without a link, each with its address."""
    apart: float
    still: float | None
    strange: bool
    """Whether no rank of it may be read."""
    timed: bool
    """Whether `still` comes from the connections. Otherwise it is only the time between the looks."""
    exchanged: Mapping[Key, float] = field(default_factory=dict)
    """For each rank, the seconds since anything went over a connection to another; empty if not `timed`."""
    away: tuple[Key, ...] = ()
    """Ranks that are connected to a local process that was not recognised: it may be a rank."""

    @property
    def moves(self) -> bool:
        return self.still is not None and self.still < MOVING

    @property
    def upright(self) -> tuple[RankStanding, ...]:
        """Ranks whose process could continue."""
        lost = {key(member) for member, _ in self.lost}
        return tuple(each for each in self.standings if each.key not in lost)

    @property
    def inside(self) -> tuple[RankStanding, ...]:
        return tuple(each for each in self.upright if each.inside is True)

    @property
    def outside(self) -> tuple[RankStanding, ...]:
        return tuple(each for each in self.upright if each.inside is False)

    @property
    def unseen(self) -> tuple[RankStanding, ...]:
        return tuple(each for each in self.upright if each.inside is None)

    @property
    def waits(self) -> dict[Key, list[Key]]:
        return grouped(sorted(self.edges))

    def told(self, of: Sequence[RankStanding]) -> tuple[RankStanding, ...]:
        """These standings, each completed with what the rank is doing."""
        helpers = grouped(((each.host, each.helps or 0), each) for each in self.job.helpers)
        ranks = ends_of_ranks(self.job.ranks)
        told = (replace(e, doing=doing(e.member, helpers.get(e.key, ()), self.apart, ranks)) for e in of)
        return tuple(self._with_holder(self._with_slow_storage(each)) for each in told)

    def _with_slow_storage(self, each: RankStanding) -> RankStanding:
        """The standing; storage or a pipe that has answered it while the others waited may only be slow."""
        does, main = each.doing, threads.main(each.member.b)
        slept = main.slept if main else None
        if does is None or does.cause not in (Cause.STORAGE, Cause.PIPE) or does.unproved or not self.timed:
            return each
        if slept is None or self.still is None or slept + ANSWERED > self.still:
            return each
        return replace(each, doing=doubted(does, SLOW))

    def _with_holder(self, each: RankStanding) -> RankStanding:
        """The standing; if a rank of the job holds the lock that it waits for, or is the child that it waits
        for, with where that rank is.
        """
        does, main = each.doing, threads.main(each.member.b)
        pid = hex(does.held.holder or 0) if does and does.held else ""
        if does and does.cause is Cause.CHILD and main:
            pid = "".join(main.syscall[1:2])
        here = (one for one in self.standings if one.member.host == each.member.host)
        rank = next((one for one in here if hex(one.member.pid) == pid), None) or self._due_from(each)
        if does is None or rank is None:
            return each
        if key := not pid and bool(each.frames and _KEY.search(each.frames[0].source)):  # any rank may set it
            does = replace(does, words="waits for a key of the store that nobody has set", do=SETS)
        where = f"waits in {rank.operation or 'a collective'}" if rank.inside else "is outside as well"
        at = f", {rank.place}" if rank.place else ""
        who = f"rank {rank.rank}" if rank.rank is not None else "another rank"
        words = f"{does.words}; {'that is' if pid else 'it is due from'} {who}, which {where}{at}"
        held = replace(does.held, by_rank=True) if does.held else None
        polls = does.polls or key or not (pid or rank.inside)
        found = replace(does, words=words, held=held, place=does.place or each.place, polls=polls)
        return replace(each, doing=replace(found, frames=does.frames or each.frames))

    def _due_from(self, each: RankStanding) -> RankStanding | None:
        """The rank whose answer its main thread waits for."""
        due = [wire for wire in wires(self.job.ranks) if wire.of == each.key and wire.here.awaited]
        asks = each.doing is not None and each.doing.cause is Cause.INPUT
        return next((one for one in self.standings for wire in due if asks and one.key == wire.to), None)


def case_of(evidence: LiveEvidence, job: RunningJob) -> HangCase:
    apart = [host.apart for host in evidence.hosts if host.host in job.hosts and host.apart > 0]
    lost = tuple((member, cause) for member in job.ranks if (cause := _lost(member)))
    ended = {key(member) for member, cause in lost if cause is Cause.ENDED}
    standings = tuple(standing(member) for member in job.ranks if key(member) not in ended)
    after = wires(job.ranks)
    gap = min(apart, default=LOOKS_APART)
    strange = all(rank.hidden for rank in job.ranks)
    if strange:
        timed, still = silence(evidence, job)
    else:
        timed, still = _still(job, standings, after, gap)
    waits = edges(after) if timed else frozenset()
    unplugged = {host.host: host.unplugged for host in evidence.hosts if host.unplugged}
    quiet = last_exchange(after, SHORT) if timed else {}
    return HangCase(
        job=job,
        standings=tuple(replace(each, since=quiet.get(each.key)) for each in standings),
        lost=lost,
        edges=waits,
        lossy=tuple(wire for wire in after if is_lossy(wire.here)),
        unplugged=unplugged,
        apart=gap,
        still=still,
        strange=strange,
        timed=timed,
        exchanged=last_exchange(after) if timed else {},
        away=unrecognised(evidence, job),
    )


def _still(
    job: RunningJob, standings: Sequence[RankStanding], after: Sequence[Wire], apart: float
) -> tuple[bool, float | None]:
    """Whether the connections show for how long the job has stood still, and the seconds; None if unknown.

    Connections are used only if they carry the collectives: with a device, they may be silent for days.
    """
    looks = [each.member.b for each in standings]
    device, gloo = any(map(threads.uses_device, looks)), any(map(threads.uses_gloo, looks))
    talk = TALK * (apart + len(job.ranks)) if device else 0
    received = received_between(wires(job.ranks, first=True), after, talk) > 0
    silent = silent_for(after)
    if gloo and not device and silent is not None and all(map(_connections_seen, looks)):
        if silent > apart and any(each.moved and each.inside is not False for each in standings):
            return False, None  # some connections were not seen
        if received:
            return True, 0.0
        return True, min(silent, job.age or silent)
    moved = received or any(each.moved for each in standings)
    if all(each.inside is not True for each in standings):
        moved = moved or any(each.went for each in standings)
    if moved:
        return False, 0.0
    twice = any(each.by and each.member.a and each.member.b for each in standings)
    inside = [_asleep(each) for each in standings if each.inside and gloo and not device]
    alone = (_asleep(each) for each in standings if each.inside is False)
    return False, max(apart, min(inside, default=0.0), *alone) if twice else None


def _asleep(each: RankStanding) -> float:
    """Seconds without being woken: if it is outside, or all inside were so long, the job made no step."""
    before, now = threads.main(each.member.a), threads.main(each.member.b)
    if before is None or now is None or before.switches != now.switches:
        return 0.0
    return now.slept or 0.0


def _connections_seen(look: Look | None) -> bool:
    """Whether all connections were seen. An unseen one may be the one that carries data."""
    refused = any(each.startswith("connections") for each in look.unread) if look else True
    return look is not None and bool(look.connections) and not refused


def _lost(member: JobMember) -> Cause | None:
    first, last = _state(member.a), _state(member.b)
    if first in ENDED and last in ENDED:
        return Cause.ENDED
    throughout = first == last and {*map(_state, member.between)} <= {first, "?"}
    if throughout and first == "T":
        return Cause.STOPPED
    if throughout and first == "t":
        return Cause.TRACED
    if frozen(member):
        return Cause.FROZEN
    return Cause.KERNEL if stuck_in_kernel(member) else None


def _state(look: Look | None) -> str:
    """Empty if the process is gone, "?" if it could not be read."""
    return "?" if look is None or (not look.state and look.unread) else look.state


def groups_of(standings: Sequence[RankStanding]) -> tuple[WaitGroup, ...]:
    """The ranks that wait at the same place, the largest group first."""
    at = grouped(((each.operation, each.place, each.function, each.noticed), each) for each in standings)
    made = [
        WaitGroup(
            tuple(sorted(s.rank for s in of if s.rank is not None)), len(of), op, place, function, noticed
        )
        for (op, place, function, noticed), of in at.items()
    ]
    return tuple(sorted(made, key=lambda group: (-group.number, group.ranks)))


MOVING = 1.0
"""Seconds: a job that exchanged data within this time moves."""


def silence(evidence: LiveEvidence, job: RunningJob) -> tuple[bool, float | None]:
    """Whether the connections show for how long the job has been silent, and the seconds; None if unknown.

    A job is silent while its user's processes exchange no data. It is unknown which process a connection
    belongs to, so both ends must belong to this user, on hosts of this job. A recent exchange counts only if
    every rank was woken as well.
    """
    looks = [rank.b for rank in job.ranks]
    if any(map(threads.uses_device, looks)) or not any(map(threads.uses_gloo, looks)):
        return False, None
    user = job.ranks[0].user
    ends = [
        (scope(host.host, each), each)
        for host in evidence.hosts
        if host.host in job.hosts
        for each in host.loose
        if each.user == user and each.received >= SHORT
    ]
    known = {(network, each.local, each.peer) for network, each in ends}
    ages = [each.last_received / 1000 for network, each in ends if (network, each.peer, each.local) in known]
    still = min(ages, default=None)
    if still is None or (still < MOVING and not all(threads.woken(rank.a, rank.b) for rank in job.ranks)):
        return False, None
    return True, min(still, job.age or still)
