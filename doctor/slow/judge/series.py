"""The share of the time in which each rank waits, by threads or stacks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from doctor.live.collectives import waits_in
from doctor.live.evidence import Frame
from doctor.live.jobs.job import RunningJob
from doctor.live.places import is_library, user_frame
from doctor.live.threads import uses_device
from doctor.live.wires import Key, key
from doctor.slow.evidence import Counts, HostSamples, Profile, RankSamples, SampleRound, SlowEvidence

BLOCKS = 8
FEWEST = 3
"""The fewest samples of a block."""
STAGES = "torch/distributed/pipelining/"
"""Its functions that wait do so for what a neighbour sends or receives."""
SENDS = frozenset(("send", "recv", "isend", "irecv", "batch_isend_irecv"))
OFTEN = 0.1
"""The share of a rank's samples in which it sends or receives, if the job is a pipeline; over NCCL in any."""


@dataclass(frozen=True, slots=True)
class Series:
    shares: Mapping[Key, Sequence[float]]
    """For each rank the share of each block in which it waited."""
    by: str
    """ "threads" or "stacks" """
    samples: int
    """Of one rank."""

    @property
    def few(self) -> bool:
        """Whether there are too few samples for any block."""
        return not all(self.shares.values())


@dataclass(frozen=True, slots=True)
class Sampled:
    """All rounds that every host of a job answered. A host that answers late lacks some."""

    job: RunningJob
    hosts: Mapping[str, HostSamples]
    rounds: tuple[int, ...]
    lost: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The hosts that did not answer the other rounds."""

    @property
    def seconds(self) -> float:
        return sum(median(self.round(host, n).seconds for host in self.hosts) for n in self.rounds)

    def round(self, host: str, number: int) -> SampleRound:
        return next(each for each in self.hosts[host].rounds if each.number == number)

    def ranks(self, of: Key) -> list[RankSamples]:
        """What each round shows of this rank; empty if a round lacks it."""
        found = [each for n in self.rounds for each in self.round(of[0], n).ranks if each.pid == of[1]]
        return found if len(found) == len(self.rounds) else []

    def profiles(self, of: Key, *, gil: bool = False) -> list[Profile]:
        """Its recorded stacks, the latest first."""
        found = (each for n in reversed(self.rounds) for each in self.round(of[0], n).profiles)
        return [each for each in found if each.pid == of[1] and each.gil is gil and each.samples]

    def failed(self, of: Key) -> bool:
        """Whether its stacks were asked for in vain."""
        return any(p.pid == of[1] and p.problem for n in self.rounds for p in self.round(of[0], n).profiles)

    @property
    def has_devices(self) -> bool:
        return any(uses_device(look) for rank in self.job.ranks for look in rank.looks)

    def inside(self, of: Key) -> float:
        """The share of its samples in which a thread of it was in a collective of gloo."""
        found = self.ranks(of)
        return sum(sum(each.inside) for each in found) / max(1, sum(sum(each.samples) for each in found))

    @property
    def keys(self) -> list[Key]:
        return [key(each) for each in self.job.ranks]


def sampled(evidence: SlowEvidence, job: RunningJob) -> Sampled:
    hosts = {each.host: each for each in evidence.samples if each.host in job.hosts}
    numbers = [{each.number for each in host.rounds} for host in hosts.values()]
    complete = set.intersection(*numbers) if numbers and len(hosts) == len(job.hosts) else set[int]()
    lost = {
        number: tuple(name for name, of in zip(hosts, numbers, strict=True) if number not in of)
        for number in sorted(set[int]().union(*numbers, *(host.late for host in hosts.values())) - complete)
    }
    return Sampled(job, hosts, tuple(sorted(complete)), lost)


def series(seen: Sampled) -> Series | None:
    """By what is most certain of that which shows every rank; None if nothing does."""
    if len(seen.keys) < 2 or not seen.rounds:
        return None
    ways = (_by_threads(seen, is_pipeline(seen)), _by_stacks(seen))
    found = [each for each in ways if each is not None]
    return next((each for each in found if not each.few), next(iter(found), None))


def _by_threads(seen: Sampled, sends: bool) -> Series | None:
    ranks = {each: seen.ranks(each) for each in seen.keys}
    kind = "proxies" if seen.has_devices else "workers"  # a group of gloo serves another purpose there
    if not all(of and all(getattr(r, kind) and r.inside for r in of) for of in ranks.values()):
        return None
    seconds = [median(seen.round(host, n).seconds for host in seen.hosts) for n in seen.rounds]
    shares = {
        each: _blocks([(r.waits if sends else r.inside, r.samples) for r in of], seconds)
        for each, of in ranks.items()
    }
    waited = {each for each, of in ranks.items() if any(any(r.waits if sends else r.inside) for r in of)}
    if seen.has_devices and any(seen.inside(each) < OFTEN for each in ranks):
        return None  # it may reach its neighbours without the network
    if not waited or not all(each in waited or _exchanges(seen, each) for each in ranks):
        return None  # somebody was never in a collective of gloo: it uses another library
    return _made(shares, "threads", min(sum(map(sum, (r.samples for r in of))) for of in ranks.values()))


def _exchanges(seen: Sampled, of: Key) -> bool:
    """Whether its connections carry data, in each round."""
    rounds = (seen.round(of[0], n).links for n in seen.rounds)
    return all(any(each.pid == of[1] and each.sent and each.received for each in links) for links in rounds)


def _by_stacks(seen: Sampled) -> Series | None:
    """By the recorded stacks of the rounds in which those of all ranks were recorded."""
    found: dict[Key, list[tuple[Counts, Counts]]] = {each: [] for each in seen.keys}
    lengths = []
    samples = 0
    for number in seen.rounds:
        of_rank = {each: _profile(seen, each, number) for each in seen.keys}
        if all(of_rank.values()):
            lengths.append(1.0)
            samples += min(sum(p.main) for p in of_rank.values() if p)
            for each, profile in of_rank.items():
                assert profile is not None
                found[each].append((_waiting(profile, seen.has_devices), profile.main))
    if not lengths:
        return None
    shares = {each: _blocks(of, lengths) for each, of in found.items()}
    return _made(shares, "stacks", samples) if any(map(any, shares.values())) else None


def _profile(seen: Sampled, of: Key, number: int) -> Profile | None:
    found = (p for p in seen.round(of[0], number).profiles if p.pid == of[1] and not p.gil and any(p.main))
    return next(found, None)


def _waiting(profile: Profile, device: bool) -> Counts:
    """In how many samples of each part its main thread waited for others or for its device."""
    counts = [0] * len(profile.main)
    for frames, parts in stacks_of(profile):
        if waited_in(frames, device):
            for at, number in enumerate(parts[: len(counts)]):
                counts[at] += number
    return tuple(counts)


def waited_in(frames: Sequence[Frame], device: bool = True) -> str:
    """The operation in which a stack waits; empty if it shows none."""
    stages = any(STAGES in frame.file and frame.name.startswith("_wait") for frame in frames[:1])
    return "recv" if stages else waits_in(frames, device=device)


def stacks_of(profile: Profile, *, main: bool = True) -> Iterator[tuple[tuple[Frame, ...], Counts]]:
    for each in profile.stacks:
        if each.main is main and all(index < len(profile.frames) for index in each.frames):
            yield tuple(profile.frames[index] for index in each.frames), each.counts


def _blocks(rounds: Sequence[tuple[Counts, Counts]], seconds: Sequence[float]) -> tuple[float | None, ...]:
    """The share in each of equal blocks of the whole time; None for a block with too few samples."""
    whole, before = sum(seconds), 0.0
    hits, samples = [0] * BLOCKS, [0] * BLOCKS
    for (waits, all_of), length in zip(rounds, seconds, strict=True):
        for at, number in enumerate(all_of):
            block = min(BLOCKS - 1, int((before + length * (at + 0.5) / len(all_of)) / whole * BLOCKS))
            samples[block] += number
            hits[block] += min(waits[at], number) if at < len(waits) else 0
        before += length
    return tuple(h / n if n >= FEWEST else None for h, n in zip(hits, samples, strict=True))


def _made(shares: Mapping[Key, Sequence[float | None]], by: str, samples: int) -> Series:
    """Only of the blocks that have samples of every rank; most must have them."""
    kept = [at for at in range(BLOCKS) if all(of[at] is not None for of in shares.values())]
    if len(kept) < BLOCKS - 2:
        kept = []
    return Series({each: [of[at] or 0.0 for at in kept] for each, of in shares.items()}, by, samples)


def is_pipeline(seen: Sampled) -> bool:
    """Whether ranks wait in sends and receives, in which no worker of gloo waits."""
    return any(
        sum(sum(parts) for frames, parts in stacks_of(profile) if waited_in(frames).lower() in SENDS)
        >= OFTEN * max(1, sum(profile.main))
        for each in seen.keys
        for profile in seen.profiles(each)[:1]
    ) or any(
        waited_in(thread.frames).lower() in SENDS
        for rank in seen.job.ranks
        for look in rank.looks
        for thread in look.python
        if thread.tid == rank.pid
    )


def own_line(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame of the user's code; None if there is none."""
    found = user_frame(frames)
    return found if found and not is_library(found.file) else None
