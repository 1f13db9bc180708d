"""Groups processes into jobs, and finds out which ranks are missing."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace as with_changes

from msgspec.structs import replace

from doctor.live.collectives import meets
from doctor.live.evidence import HostEvidence, JobChoice, JobMember, LiveEvidence
from doctor.live.jobs.job import LostHost, RunningJob
from doctor.live.jobs.owners import HERE, JobPart, parts, ranks_of
from doctor.live.jobs.starting import StartingJob
from doctor.live.wires import key, unpaired
from doctor.text.grouped import grouped

STORE = "pt_tcpstore_uv"
"""A thread of the process that holds the store in which ranks meet."""
MOST_JOBS = 256
MOST_MISSING = 20_000
"""The largest world whose missing ranks are listed: a host may claim a world of any size."""


def find_jobs(evidence: LiveEvidence) -> tuple[RunningJob, ...]:
    """All jobs, in the order of the hosts."""
    seen = {host.host: host for host in evidence.hosts}
    return tuple(_with_lost(_job(part, seen), evidence) for part in _limited(parts(evidence)))


def _with_lost(job: RunningJob, evidence: LiveEvidence) -> RunningJob:
    """The job with the hosts that lost its ranks without a word."""
    lost = lost_hosts(evidence, job)
    gone = ((rank, each.host) for each in lost if not each.unsure for rank in each.ranks)
    return with_changes(job, lost=lost, gone=(*job.gone, *gone)) if lost else job


def _limited(found: Iterable[JobPart]) -> list[JobPart]:
    """At most MOST_JOBS, because a host can invent jobs. Bound jobs and the first of each host are kept."""
    every = [part for part in found if ranks_of(part.members)]
    if len(every) <= MOST_JOBS:
        return every
    before: Counter[str] = Counter()
    order: list[tuple[bool, int, int]] = []
    for at, part in enumerate(every):
        host = part.members[0].host
        order.append((not part.bound, before[host], at))
        before[host] += 1
    return [every[at] for at in sorted(at for *_, at in sorted(order)[:MOST_JOBS])]


def chosen(jobs: Sequence[RunningJob], choice: JobChoice) -> tuple[RunningJob, ...]:
    """The jobs that match all given options."""
    found, pid, number = list(jobs), choice.pid, choice.slurm_job
    if pid is not None:
        found = [job for job in found if pid in {m.pid for m in (*job.ranks, *job.helpers)}]
        above = {id(job): {each for m in job.ranks for each in m.above or (m.parent,)} for job in jobs}
        found = found or [job for job in jobs if pid in above[id(job)] - {1}]  # process 1 adopts orphans
    if choice.master_port is not None:
        end = f":{choice.master_port}"
        found = [job for job in found if any(member.master.endswith(end) for member in job.ranks)]
    if number is not None:
        found = [job for job in found if any(number in m.slurm_job.split() for m in job.ranks)]
    if choice.user is not None:
        found = [job for job in found if any(member.user == choice.user for member in job.ranks)]
    return tuple(found)


def chosen_starts(starts: Sequence[StartingJob], choice: JobChoice) -> tuple[StartingJob, ...]:
    """The same for jobs without ranks. The launcher of a Slurm job is not known."""
    port = choice.master_port
    return tuple(
        job
        for job in starts
        if choice.slurm_job is None
        and (choice.pid is None or choice.pid in {each.member.pid for each in job.starters})
        and (port is None or str(port) in {each.master.port for each in job.starters})
        and choice.user in (None, job.user)
    )


def _job(part: JobPart, seen: dict[str, HostEvidence]) -> RunningJob:
    ranks = _numbered(_counted(_meeting(ranks_of(part.members))), part.world)
    ranks.sort(key=lambda each: (each.rank is None, each.rank or 0, each.host, each.pid))
    here = {each.host for each in ranks}
    world = part.world
    missing = _missing(ranks, world)
    begun = [seen[each.host].at - each.age for each in ranks if each.age and seen[each.host].at]
    return RunningJob(
        name=part.name,
        launcher=next((each.launcher for each in ranks if each.launcher), ""),
        world=world,
        ranks=tuple(ranks),
        helpers=tuple(each for each in part.members if each.helps is not None),
        hosts=tuple(host for host in seen if host in here),
        missing=missing,
        gone=tuple(home for home in _homes(missing, ranks, world or 0) if _was_there(home[1], ranks)),
        started=min(begun, default=None),
        age=min((each.age for each in ranks), default=0.0),
        bound=part.bound & {key(each) for each in ranks},
        stray=part.stray,
    )


def _meeting(ranks: list[JobMember]) -> list[JobMember]:
    """The ranks. If none says where they meet, that is where all of them call one that runs a store."""
    known = any(each.master for each in ranks)
    ends = {end.local for of in ranks if _runs_store(of) for look in of.looks for end in look.connections}
    met = ends.intersection(*({end.peer for look in of.looks for end in look.connections} for of in ranks))
    return ranks if known or len(met) != 1 else [replace(each, master=min(met)) for each in ranks]


def _counted(ranks: list[JobMember]) -> list[JobMember]:
    """The ranks. One with only a number on its host gets that of the job if the first host is known, and no
    other host lies between them.
    """
    alone = [each for each in ranks if each.rank is None and each.local is not None]
    firsts = _firsts(alone)
    numbers = {key(e): firsts[e.host] + e.local for e in alone if e.local is not None and e.host in firsts}
    taken = {*numbers.values()} | {each.rank for each in ranks if each.rank is not None}
    if len(taken) < len(numbers) + sum(each.rank is not None for each in ranks):
        return ranks
    return [replace(each, rank=numbers.get(key(each), each.rank)) for each in ranks]


def _firsts(ranks: Sequence[JobMember]) -> dict[str, int]:
    """Host -> the number of its first rank, as far as that is known."""
    hosts = list(dict.fromkeys(each.host for each in ranks))
    if len(hosts) < 2:
        return dict.fromkeys(hosts, 0)
    heads = {each.host for each in ranks if each.local == 0 and _runs_store(each)}
    if len(heads) != 1:
        return {}
    (head,) = heads
    size = 1 + max(each.local or 0 for each in ranks if each.host == head)
    return {head: 0, **({host: size for host in hosts if host != head} if len(hosts) == 2 else {})}


def _runs_store(rank: JobMember) -> bool:
    return any(thread.name == STORE for look in rank.looks for thread in look.threads) or _holds_store(rank)


def _numbered(ranks: list[JobMember], world: int | None) -> list[JobMember]:
    """The ranks. One without a number is rank 0 if it holds the store, or has the only number left."""
    left = set(range(min(world or 0, MOST_MISSING))) - {each.rank for each in ranks}
    without = [each for each in ranks if each.rank is None]
    store = [each for each in without if _holds_store(each)]
    chosen: JobMember | None = None
    if len(store) == 1 and all(each.rank != 0 for each in ranks):
        chosen, number = store[0], 0
    elif len(without) == len(left) == 1 and len(ranks) == world:
        chosen, number = without[0], *left
    if chosen is None:
        return ranks
    return _numbered([replace(each, rank=number) if each is chosen else each for each in ranks], world)


def _holds_store(rank: JobMember) -> bool:
    """Whether others reach it at the port of the rendezvous. A launcher would hold that itself."""
    port = rank.master.rpartition(":")[2]
    ends = (each.local.rpartition(":")[2] for look in rank.looks for each in look.connections)
    return bool(port) and rank.launched is None and port in ends


def _missing(ranks: Sequence[JobMember], world: int | None) -> tuple[int, ...]:
    """The ranks that were not found. Empty if a rank without a number was found: it may be one of these."""
    found = {each.rank for each in ranks}
    if world is None or world > MOST_MISSING or None in found:
        return ()
    return tuple(rank for rank in range(world) if rank not in found)


def _was_there(host: str, ranks: Sequence[JobMember]) -> bool:
    """Whether all ranks of this host have been there: the ranks have met, or its launcher started them."""
    return not any(map(meets, ranks)) or any(each.host == host and each.launched for each in ranks)


def _homes(missing: Sequence[int], ranks: Sequence[JobMember], world: int) -> Iterator[tuple[int, str]]:
    """Missing ranks with the host on which they must have run, if each host has an equal block of ranks."""
    of_host = grouped((each.host, each.rank) for each in ranks if each.rank is not None)
    if len(of_host) == 1 and all(each.master.startswith(HERE) for each in ranks):
        yield from ((rank, ranks[0].host) for rank in missing)
        return
    size = _block(of_host.values(), world) if missing else 0
    if not size:
        return
    full = any(len(of) == size for of in of_host.values())
    hosts = grouped((of[0] // size, host) for host, of in of_host.items())
    for rank in missing:
        homes = hosts.get(rank // size, [])
        if len(homes) == 1 and (full or min(of_host[homes[0]]) < rank < max(of_host[homes[0]])):
            yield rank, homes[0]


def _block(of_hosts: Collection[Sequence[int]], world: int) -> int:
    """The least number of ranks that each host may have; 0 if the hosts do not have equal blocks of ranks."""
    for size in range(max(max(map(len, of_hosts), default=0), 1), world + 1):
        if world % size == 0 and all(len({n // size for n in of}) == 1 for of in of_hosts):
            return size
    return 0


MARGIN = 2.0
"""Seconds by which the ages of a host and of a job, or of an event, may be wrong."""


def lost_hosts(evidence: LiveEvidence, job: RunningJob) -> tuple[LostHost, ...]:
    """Hosts to which ranks have connections whose other end is gone: they were rebooted, or lost their
    processes without a word.
    """
    missing = sorted({*job.missing} - {rank for rank, _ in job.gone})
    own = {host.host: {*host.addresses} for host in evidence.hosts}
    leads = [
        (f"{each.peer} {each.local}", rank)
        for rank, each in (unpaired(job.ranks) if missing else ())
        if each.peer.rpartition(":")[0].strip("[]") not in own[rank.host]
    ]
    # Several hosts may have one address, such as that of a bridge for containers.
    claims = Counter(end for host in evidence.hosts if host.ends for end in {*host.ends.lacks})
    found: list[tuple[HostEvidence, list[JobMember], str]] = []
    for host in evidence.hosts:
        gone = {end for end in (host.ends.lacks if host.ends else ()) if claims[end] == 1}
        waiting = [(end, rank) for end, rank in leads if end in gone and rank.host != host.host]
        if waiting:
            found.append(
                (host, [rank for _, rank in waiting], waiting[0][0].partition(" ")[0].rpartition(":")[0])
            )
    of_host = _homes_of_addresses([host for host, *_ in found], evidence.asked, job.ranks, missing)
    return tuple(
        _lost(host, waiting, address, of_host.get(host.host, ()), job.age, missing)
        for host, waiting, address in found
    )


def _lost(
    host: HostEvidence,
    waiting: Sequence[JobMember],
    address: str,
    ranks: tuple[int, ...],
    age: float,
    missing: Collection[int],
) -> LostHost:
    assert host.ends is not None
    own = [each for each in host.members if each.helps is None]
    may_be = [each for each in own if each.rank is None or each.rank in missing]
    unsure = f"process {may_be[0].pid} there may be it" if may_be else host.ends.unsure
    numbers = sorted({rank.rank for rank in waiting if rank.rank is not None})
    again = host.ends.uptime if 0 < host.ends.uptime < age - MARGIN else None
    return LostHost(host.host, ranks, tuple(numbers), address, unsure, _killed(host.ends.killed, age), again)


def _killed(lines: Sequence[str], age: float) -> str:
    """ "the kernel killed python (pid 812) there 40 s ago" """
    for line in reversed(lines):
        seconds, pid, name = [*line.split(" ", 2), "", ""][:3]
        if seconds.isdigit() and pid.isdigit() and int(seconds) <= age + MARGIN:
            return f"its kernel killed {name} (pid {pid}) {seconds} s ago for lack of memory"
    return ""


def _homes_of_addresses(
    hosts: Sequence[HostEvidence], asked: Sequence[str], ranks: Sequence[JobMember], missing: Sequence[int]
) -> dict[str, tuple[int, ...]]:
    """The missing ranks of each of these hosts, if all hosts have as many ranks and these hosts explain all
    that are missing: one host, or several if the order of the hosts is that of the ranks.
    """
    of_host = grouped((rank.host, rank.rank or 0) for rank in ranks)
    sizes = {len(numbers) for numbers in of_host.values()}
    size = sizes.pop() if len(sizes) == 1 else 0
    first = [min(of_host[host]) for host in asked if host in of_host]
    if not size or len(missing) != size * len(hosts) or (len(hosts) > 1 and first != sorted(first)):
        return {}
    return {host.host: tuple(missing[at * size : (at + 1) * size]) for at, host in enumerate(hosts)}
