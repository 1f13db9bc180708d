"""The agents of `doctor slow`: those of `doctor hang`, which also take samples, and what they send."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

import msgspec
from msgspec.structs import replace

from doctor.agents.session import Message, decoder_of
from doctor.live.agents import LookAgents, LookHost, look_script
from doctor.live.evidence import LONGEST_LIBRARY_TEXT, Count, Seconds
from doctor.live.messages import ChildEnd, LiveMessage
from doctor.live.redaction import clean, clean_frame
from doctor.slow import evidence
from doctor.slow.devices import SCRIPTS
from doctor.slow.evidence import BusyProcess, DeviceText, Length, Profile, RankLink, RankSamples
from doctor.text.redact import redact


class RankMessage(Message, frozen=True, tag="rank"):
    number: Count
    rank: RankSamples


class ProfileMessage(Message, frozen=True, tag="profile"):
    number: Count
    profile: Profile


class DeviceMessage(Message, frozen=True, tag="devices"):
    number: Count
    devices: DeviceText


class RoundEnd(Message, frozen=True, tag="round"):
    """A round is over, and all of it was sent."""

    number: Count
    began: Seconds
    seconds: Length
    links: Annotated[tuple[RankLink, ...], msgspec.Meta(max_length=1_024)] = ()
    busiest: Annotated[tuple[BusyProcess, ...], msgspec.Meta(max_length=16)] = ()


class Pong(Message, frozen=True, tag="pong"):
    """Its steady clock."""

    number: Count
    at: Seconds


SlowMessage = LiveMessage | RankMessage | ProfileMessage | DeviceMessage | RoundEnd | Pong
DECODER = decoder_of(SlowMessage)


PINGS = 5
PONG = 0.5
PARTS = 24
"""Parts of a round."""
LOOK = 0.3
"""The share of the whole patience for each of the looks of a round."""
START = 8.0
"""Seconds that recordings may end after their round."""
STACKS = 4
"""Ranks of a host whose stack is read before and after the samples: for the number of the step."""


slow_script = partial(look_script, home="doctor.slow.onhost")


_Sample = RankMessage | ProfileMessage | DeviceMessage | RoundEnd


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """The next round: how long, and whose stacks are recorded, by host."""

    seconds: float
    record: Mapping[str, Collection[int]] = field(default_factory=dict)
    gil: Mapping[str, Collection[int]] = field(default_factory=dict)


@dataclass(slots=True)
class SlowHost(LookHost):
    pongs: dict[int, tuple[float, float]] = field(default_factory=dict)
    """For each ping: its time there, and ours."""
    ranks: dict[int, list[evidence.RankSamples]] = field(default_factory=dict)
    profiles: dict[int, list[evidence.Profile]] = field(default_factory=dict)
    devices: dict[int, list[evidence.DeviceText]] = field(default_factory=dict)
    ends: dict[int, RoundEnd] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    """The rounds that it was asked for. It does one after the other, and may answer late."""
    over: int = 0
    """How many of them its agent has ended, well or not."""
    ahead: tuple[float, float] | None = None
    """The shortest way there and back, and how far its clock was ahead of ours then."""

    def samples(self) -> evidence.HostSamples:
        rounds = tuple(
            evidence.SampleRound(
                number=number,
                began=end.began,
                seconds=end.seconds,
                ranks=tuple(self.ranks.get(number, ())),
                links=end.links,
                busiest=tuple(replace(each, name=clean(each.name)) for each in end.busiest),
                profiles=tuple(
                    replace(each, frames=tuple(map(clean_frame, each.frames)), problem=clean(each.problem))
                    for each in self.profiles.get(number, ())
                ),
                devices=tuple(
                    replace(each, text=redact(each.text)[:LONGEST_LIBRARY_TEXT], problem=clean(each.problem))
                    for each in self.devices.get(number, ())
                ),
            )
            for number, end in sorted(self.ends.items())
        )
        late = tuple(number for number in self.asked if number not in self.ends)
        ahead = self.ahead[1] if self.ahead else None
        return evidence.HostSamples(host=self.host, ahead=ahead, rounds=rounds, late=late)


class SlowAgents(LookAgents[SlowHost]):
    decoder = DECODER
    kind = SlowHost

    def ping(self) -> None:
        """Learn how far the clocks of the hosts are ahead of ours."""
        for number in range(PINGS):
            sent = time.monotonic()
            for host in self.agents.values():
                host.pongs.clear()
            self.tell_all(msgspec.json.encode({"do": "ping", "number": number}))
            self.await_all(sent + PONG, lambda host, of=number: of in host.pongs, lambda: None)  # type: ignore[misc]
            for host in self.agents.values():
                if number in host.pongs:
                    there, here = host.pongs[number]
                    way = here - sent
                    if host.ahead is None or way < host.ahead[0]:
                        host.ahead = way, there - (sent + here) / 2

    def sample(self, number: int, plan: RoundPlan, tell: Callable[[], object]) -> None:
        """One round on all hosts with ranks. What a host answers later counts as soon as it comes."""
        within = LOOK * self.patience.whole
        for host in self.live():
            if not host.members:
                continue
            host.looking = True
            host.asked.append(number)
            ranks = sorted(pid for pid, m in host.members.items() if m.helps is None and not m.hidden)
            asked = {
                "do": "sample",
                "number": number,
                "first": number == 0,
                "seconds": plan.seconds,
                "parts": PARTS,
                "within": within,
                "stacks": [*ranks[:STACKS], *(pid for pid in ranks if host.members[pid].rank is None)],
                "record": [*plan.record.get(host.host, ())],
                "gil": [*plan.gil.get(host.host, ())],
                "devices": SCRIPTS,
            }
            if host.narrowed:
                asked["pids"] = [*host.members]
            self.session.send(host.host, msgspec.json.encode(asked))
        over = time.monotonic() + plan.seconds + START + 2 * within
        self.await_all(
            min(over, self.until), lambda host: {*host.asked[host.over :]} <= host.ends.keys(), tell
        )

    def take(self, host: SlowHost, message: SlowMessage, size: int) -> bool:
        if isinstance(message, Pong):
            if message.number in host.pongs or message.number >= PINGS:
                return False
            host.pongs[message.number] = message.at, time.monotonic()
        elif isinstance(message, _Sample):
            return self._take_sample(host, message)
        elif isinstance(message, ChildEnd) and message.what == "sample":
            host.over += 1
        else:
            return super().take(host, message, size)
        return True

    def _take_sample(self, host: SlowHost, message: _Sample) -> bool:
        number = message.number
        if number not in host.asked[host.over :] or number in host.ends:
            return False
        if isinstance(message, RankMessage):
            known = {each.pid for each in host.ranks.setdefault(number, [])}
            if message.rank.pid not in host.members or message.rank.pid in known:
                return False
            host.ranks[number].append(message.rank)
        elif isinstance(message, ProfileMessage):
            kept = host.profiles.setdefault(number, [])
            most = min(2 * len(host.members) + 1, evidence.MOST_PROFILES)
            if message.profile.pid not in host.members or len(kept) >= most:
                return False
            kept.append(message.profile)
        elif isinstance(message, DeviceMessage):
            said = host.devices.setdefault(number, [])
            if len(said) >= evidence.MOST_DEVICES:
                return False
            said.append(message.devices)
        else:
            host.ends[number] = message
        return True
