"""Ranks that never came or no longer answer, host by host, in words."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from doctor.exam.in_job import proc
from doctor.exam.in_job.hub import Hub
from doctor.exam.in_job.job_key import VARIABLE
from doctor.exam.in_job.messages import SILENT
from doctor.model import Host, UnreachedHost, UnreachedKind
from doctor.text.nodeset import is_host

Place = tuple[str, str]
MOST_ASKED = 16
"""How many hosts are asked whether a missing rank runs there."""
SHOWN = 4
NOBODY = "host-of-rank-"
CONTESTED = "not alone: another process came with its number"


@dataclass(slots=True)
class _AbsentRank:
    """A missing rank. If `pid` is 0, no process of it is known."""

    rank: int
    pid: int
    state: str
    came: bool


@dataclass(slots=True)
class Roster:
    """Which host has which ranks. `waited` is how long rank 0 waited for all of them."""

    hub: Hub
    waited: float
    names: dict[Place, str] = field(default_factory=dict)
    ranks: dict[str, list[int]] = field(default_factory=dict)
    never: dict[str, list[_AbsentRank]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, members in self.hub.places():
            first = members[0].rank
            name = place[0] if is_host(place[0]) else f"{NOBODY}{first}"
            if name in self.ranks:
                name = f"{name}-rank{first}"
            self.names[place] = name
            self.ranks[name] = [member.rank for member in members]
        for rank in range(self.hub.seat.world):
            if rank not in self.hub.members:
                self._miss(rank)

    @property
    def unheard(self) -> dict[str, str]:
        """Hosts from which no rank came."""
        absent = self.never.keys() - self.names.values()
        return {host: _summary(self.never[host], self.waited) for host in absent}

    def _block(self, rank: int) -> int:
        most = max(len(ranks) for ranks in self.ranks.values()) if self.ranks else 1
        return rank // (self.hub.seat.local_world or most)

    def _miss(self, rank: int) -> None:
        """Place a missing rank: on the host where it is seen, else where its neighbours by number are."""
        block = self._block(rank)
        near = [
            place
            for place, members in self.hub.places()
            if any(self._block(member.rank) == block for member in members)
        ]
        others = [place for place in self.names if place not in near]
        sights = ((self.names[each], self.hub.find(rank, each)) for each in (*near, *others)[:MOST_ASKED])
        name, seen = next((each for each in sights if each[1]), ("", None))
        if not seen and len(near) == 1:
            name = self.names[near[0]]
        elif not seen:
            known = (h for h, gone in self.never.items() if h.startswith(NOBODY))
            name = next((h for h in known if self._block(self.never[h][0].rank) == block), f"{NOBODY}{rank}")
        pid, state = (seen.pid, seen.state) if seen else (0, "")
        self.never.setdefault(name, []).append(_AbsentRank(rank, pid, state, came=False))

    def hosts(self) -> tuple[Host, ...]:
        """The hosts, in the order of their first rank."""
        counts: dict[str, list[int]] = {host: list(ranks) for host, ranks in self.ranks.items()}
        for host, gone in self.never.items():
            counts.setdefault(host, []).extend(each.rank for each in gone)
        order = sorted(counts, key=lambda host: min(counts[host]))
        return tuple(Host(host, host, ranks=len(counts[host])) for host in order)

    def absent(self) -> Mapping[str, UnreachedHost]:
        """Ask every rank to answer; returns each host on which one is missing."""
        gone = {host: list(each) for host, each in self.never.items()}
        contested = ((rank, f"{CONTESTED} (pid {pid})") for rank, pid in self.hub.contested.items())
        for rank, state in (*self.hub.roll_call().items(), *contested):
            member = self.hub.members[rank]
            absent = _AbsentRank(rank, member.hello.pid, state, came=True)
            gone.setdefault(self.names[member.place], []).append(absent)
        return {host: self._unreached(host, each) for host, each in gone.items()}

    def _unreached(self, host: str, gone: list[_AbsentRank]) -> UnreachedHost:
        stopped = [each.pid for each in gone if each.state in proc.STOPPED and each.pid]
        pids = [each.pid for each in gone if each.pid][:SHOWN]
        commands = (f"ssh {shlex.quote(host)} ps -o pid,stat,wchan:24,args -p {','.join(map(str, pids))}",)
        if stopped:
            remedy = f"See who stopped it; kill -CONT {stopped[0]} on {host} resumes it."
        else:
            remedy = "Look at what the rank printed, and at what its launcher says about it."
        kind, summary = UnreachedKind.RANK, _summary(gone, self.waited)
        if (rivals := self.hub.rivals) and not any(each.came or each.state in proc.WORDS for each in gone):
            port, uid = next(iter(rivals.items()))
            kind, remedy = UnreachedKind.ASTRAY, f"Give all ranks a {VARIABLE}."
            summary += (
                f"; port {port} of {self.names[self.hub.own_place]}, where ranks look for rank 0, is held by "
                f"the user with uid {uid}, whom they may have met instead. {remedy}"
            )
        return UnreachedHost(
            host, kind, summary, remedy, commands if pids else (), ranks=tuple(each.rank for each in gone)
        )


def _summary(gone: list[_AbsentRank], waited: float) -> str:
    known = [_phrase(each, waited) for each in gone if each.pid][:SHOWN]
    unknown = [each.rank for each in gone if not each.pid]
    if unknown:
        them = ", ".join(map(str, unknown[:SHOWN])) + (" …" if len(unknown) > SHOWN else "")
        plural = len(unknown) > 1
        known.append(
            f"{'ranks' if plural else 'rank'} {them} never came within {waited:.0f} s, "
            f"and no process of {'theirs' if plural else 'its own'} was seen"
        )
    return "; ".join(known)


def _phrase(each: _AbsentRank, waited: float) -> str:
    who = f"rank {each.rank} (pid {each.pid})"
    words = each.state if each.state.startswith(CONTESTED) else proc.WORDS.get(each.state)
    if each.came:
        return f"{who} is {words}" if words else f"{who} has been silent for {SILENT:.0f} s"
    what = f"is {words}" if words else "runs, but has not called doctor or does not reach rank 0"
    return f"{who} never came within {waited:.0f} s: it {what}"
