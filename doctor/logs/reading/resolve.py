"""Finds out who wrote a file and its lines, from everything that was read from it and the other files."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from doctor.logs.model import OF_OTHERS, Curve, Form, LogFile, LogLine, Party, Sighting
from doctor.logs.reading.file_scan import Scan
from doctor.logs.reading.fold import Subject, UnresolvedParty


@dataclass(frozen=True, slots=True)
class Owner:
    """Who wrote a file."""

    host: str | None
    rank: int | None
    pid: int | None
    device: int | None
    local: int | None = None
    assumed: bool = False
    """The rank is assumed to be equal to the local rank."""


class People:
    """All processes of all files."""

    def __init__(self, scans: Sequence[Scan]) -> None:
        self.owners = {id(each): _owner(each) for each in scans}
        self._processes: dict[int, dict[str | None, int | None]] = {}
        for each in scans:
            owner = self.owners[id(each)]
            for pid, rank in each.learned.rank_of.items():
                if rank is not None:
                    self._put(owner.host, pid, rank)
            if owner.pid is not None and owner.rank is not None and not owner.assumed:
                self._put(owner.host, owner.pid, owner.rank)
        self._folders(scans)
        self._check_assumed(scans)
        for each in scans:
            owner = self.owners[id(each)]
            if owner.rank is None and owner.pid is not None:
                self.owners[id(each)] = replace(owner, rank=self.rank_of(owner.host, owner.pid))

    def _put(self, host: str | None, pid: int, rank: int) -> None:
        known = self._processes.setdefault(pid, {})
        if known.setdefault(host, rank) != rank:
            known[host] = None

    def rank_of(self, host: str | None, pid: int) -> int | None:
        return self._processes.get(pid, {}).get(host)

    def _folders(self, scans: Sequence[Scan]) -> None:
        """Replace assumed ranks by those in the folder's other file, in torchrun's table of the host, or by
        the place between its neighbours: one torchrun gives its ranks one after the other.
        """
        beside: dict[tuple[str, int], set[int]] = {}
        firsts: dict[str, set[int]] = {}
        tables: dict[tuple[str, int], set[int]] = {}
        for each in scans:
            owner = self.owners[id(each)]
            if owner.local is not None and owner.rank is not None and not owner.assumed:
                beside.setdefault((each.name.rpartition("/")[0], owner.local), set()).add(owner.rank)
                firsts.setdefault(_launched(each), set()).add(owner.rank - owner.local)
            for local, rank in each.learned.rank_of_local.items():
                if rank is not None and owner.host:
                    tables.setdefault((owner.host, local), set()).add(rank)
        for each in scans:
            owner = self.owners[id(each)]
            if owner.local is None or not owner.assumed:
                continue
            told = beside.get((each.name.rpartition("/")[0], owner.local), set())
            told = told or tables.get((owner.host or "", owner.local), set())
            told = told or {one + owner.local for one in firsts.get(_launched(each), ())}
            if len(told) == 1:
                self.owners[id(each)] = replace(owner, rank=next(iter(told)), assumed=False)

    def _check_assumed(self, scans: Sequence[Scan]) -> None:
        """Drop assumed ranks if two hosts share a local rank, or if a rank is known to differ from it."""
        places: dict[int, set[str]] = {}
        other = False
        for each in scans:
            owner = self.owners[id(each)]
            if owner.local is not None:
                places.setdefault(owner.local, set()).add(_launched(each))
                other = other or owner.rank not in (None, owner.local)
            other = other or any(rank != local for local, rank in each.learned.rank_of_local.items())
        more = places and max(each.learned.world or 0 for each in scans) > len(places)
        if other or more or any(len(folders) > 1 for folders in places.values()):
            for key, owner in self.owners.items():
                if owner.assumed:
                    self.owners[key] = replace(owner, rank=None, assumed=False)


def _launched(scan: Scan) -> str:
    """The folder of one launcher: each host of a job has its own."""
    return scan.name.rpartition("/attempt_")[0] or scan.name.rpartition("/workerlog.")[0]


def _owner(scan: Scan) -> Owner:
    name = scan.named
    if scan.shared:
        return Owner(name.host, name.rank, name.pid, name.device, name.local, False)
    host = name.host
    pasted = None in scan.learned.rank_of_local.values()  # two ranks share a local rank: several hosts
    if len(scan.hosts) == 1 and not pasted:  # then the host of one torchrun is not that of the other lines
        host = next(iter(scan.hosts))
    elif len(scan.hosts) > 1 and host not in scan.hosts:
        host = None
    pid = name.pid
    if pid is None and len(scan.pids) == 1 and OF_OTHERS.isdisjoint(scan.forms):
        pid = next(iter(scan.pids))
    rank, assumed = name.rank, False
    ranks = scan.ranks | scan.learned.ranks
    if len(ranks) > 1:
        rank = None
    elif ranks and rank not in ranks:
        alone = OF_OTHERS.isdisjoint(scan.forms) and rank is None and len(scan.pids) <= 1
        # torch marks only some lines: the others may be those of ranks that it never marks here
        alone = alone and (bool(scan.learned.ranks) or 0 in ranks)
        rank = next(iter(ranks)) if alone or name.local is not None else None
    elif rank is None and pid is not None:
        rank = scan.learned.rank_of.get(pid)
    if rank is None and not ranks and name.local is not None:
        rank, assumed = name.local, True
    return Owner(host, rank, pid, name.device, name.local, assumed)


def party(who: UnresolvedParty, form: Form, scan: Scan, owner: Owner, people: People) -> Party:
    """The party that wrote one line."""
    host = who.host
    if host is None and form is not Form.SLURM:
        host = owner.host
    rank = None if who.task and scan.starts_ranks else who.rank
    if rank is None and who.local is not None:
        rank = scan.learned.rank_of_local.get(who.local)
    if rank is None and who.pid is not None and form is not Form.ELASTIC:
        rank = scan.learned.rank_of.get(who.pid)
        rank = people.rank_of(host, who.pid) if rank is None else rank
    rank = who.worker if rank is None else rank
    alone = who.pid is None or owner.pid is None or who.pid == owner.pid
    if rank is None and form not in OF_OTHERS and alone:
        rank = owner.rank
    device = who.device if who.device is not None else who.local
    if device is None and form not in OF_OTHERS:
        device = owner.device if owner.device is not None else owner.local
    pid = who.pid
    if pid is None and rank == owner.rank and form not in OF_OTHERS:
        pid = owner.pid
    return Party(rank=rank, host=host, device=device, pid=pid)


def finished(scan: Scan, people: People) -> tuple[LogFile, Iterable[Sighting], tuple[Curve, ...]]:
    owner = people.owners[id(scan)]

    def of(who: UnresolvedParty, line: LogLine) -> LogLine:
        return replace(line, who=party(who, line.form, scan, owner, people))

    sightings: dict[tuple[str, Party, Subject], Sighting] = {}
    for (_, _, about), each in scan.fold.seen.items():
        first, last = of(each.who, each.first), of(each.who, each.last)
        made = Sighting(each.symptom, first, last, each.count, each.taken)
        key = (each.symptom.id, first.who, about)
        sightings[key] = _merge(sightings[key], made) if key in sightings else made
    ranks = scan.ranks | scan.learned.ranks
    if owner.rank is not None and len(ranks) < 2:
        ranks = {owner.rank}
    several = len(ranks) > 1
    device = owner.local if owner.device is None else owner.device
    who = Party() if several else Party(owner.rank, owner.host, device, owner.pid)
    file = LogFile(
        name=scan.name,
        size=max(scan.size, 0),
        lines=scan.lines,
        forms=tuple(form for form, _ in scan.forms.most_common()),
        who=who,
        ranks=tuple(sorted(ranks)),
        world=scan.learned.world,
        first_at=scan.first_at,
        last_at=scan.last_at,
        last=scan.last and of(UnresolvedParty(), scan.last),
        over=tuple(of(who, line) for who, line in scan.over.items()),
        progress=tuple(
            sorted(
                (of(who, line) for who, line in scan.progress.items()),
                key=lambda line: (-1 if line.who.rank is None else line.who.rank, line.number),
            )
        ),
        odd=tuple(of(*each) for each in scan.odd.values()) or ((of(*scan.faint),) if scan.faint else ()),
        problem=scan.problem,
    )
    return file, sightings.values(), tuple(_curve(each, scan, owner, people) for each in scan.curves)


def _merge(one: Sighting, other: Sighting) -> Sighting:
    first, second = sorted((one, other), key=lambda each: each.first.number)
    last = max(one.last, other.last, key=lambda line: line.number)
    return replace(first, last=last, count=one.count + other.count, taken=first.taken or second.taken)


def _curve(curve: Curve, scan: Scan, owner: Owner, people: People) -> Curve:
    said = curve.who
    task = said.rank in scan.tasks and said.rank not in scan.ranks
    who = UnresolvedParty(said.rank, said.host, said.pid, said.device, task=task)
    return replace(curve, who=party(who, Form.PLAIN, scan, owner, people))
