"""A saved run: its options, the answers of all hosts, and the results of the mesh and the smoke run.

It is support bundle, replay and test fixture in one format. Everything in it was redacted when it was
captured, so that a replay sees exactly what the first run saw.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from doctor.baseline import Baseline, nonsense
from doctor.floors import ALONE, MOST, Floor
from doctor.job.parallel import AXES
from doctor.job.wishes import JobWishes
from doctor.mesh import MeshResult
from doctor.model import Capture, Host, UnreachedHost
from doctor.probe import HostAnswer
from doctor.savedrun import SavedRun
from doctor.smoke.plan import MOST_PATHS, MOST_STEPS
from doctor.smoke.result import SmokePlan, SmokeResult, divides
from doctor.smoke.soak import Soak
from doctor.targets.inputkind import InputKind
from doctor.text.nodeset import is_host
from doctor.text.outfile import write_file
from doctor.transport import way as ways
from doctor.transport.advice import read_back

MOST_RANKS = 1_000_000
"""The most ranks on one host."""
MOST_SEED = 2**32
MOST_TRIES = 10
"""How often the gradient may be computed again to see whether a device is nondeterministic."""
MOST_SECONDS = 1e7
MOST_COUNT = 2**53
MOST_PLACES = 1_000_000
"""The most collectives that a rank may have entered."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything that a report is made from; judging it twice gives the same report."""

    schema: int
    tool: str
    command: str
    exam: str
    transport: str
    started: str
    seconds: float
    hosts: tuple[Host, ...]
    wishes: JobWishes
    expect: Mapping[str, str]
    heard: Mapping[str, HostAnswer] = field(default_factory=dict)
    unreached: Mapping[str, UnreachedHost] = field(default_factory=dict)
    mesh: MeshResult | None = None
    offered: MeshResult | None = None
    """The mesh over the addresses that ranks would offer, for hosts where they are not the data addresses."""
    mesh_mode: str = "auto"
    unfinished: tuple[str, ...] = ()
    """Hosts still outstanding when the run was interrupted or its deadline passed."""
    stopped_by: int | None = None
    """The signal that ended the run early."""
    no_mesh: str = ""
    """Why no mesh ran although one was wanted."""
    smoke_wanted: bool = False
    smoke: tuple[SmokeResult, ...] = ()
    """The smoke run, and its repeats without the hosts that it blamed."""
    soak: Soak | None = None
    no_smoke: str = ""
    """Why no smoke run was made although one was wanted."""
    notes: tuple[str, ...] = ()
    """Messages of the transport, such as a known_hosts file that could not be written."""
    hosts_from: str = ""
    """The source of the host names, if it was not the command line."""
    way: ways.Way | None = None
    """How to reach the hosts, for commands to type; older recordings do not have it."""
    baseline: Baseline | None = None
    """What the hosts are compared with."""
    floor: Floor | None = None
    """What links must carry at least."""


BEFORE = "-before"
COUNTS = "counts"
"""How facts that count end. What an earlier run read of them is put beside, by their names with `BEFORE`."""
Counted = Mapping[str, Mapping[str, str]]
"""Host -> fact -> what was printed."""


def counted(heard: Mapping[str, HostAnswer]) -> Counted:
    return {
        host: {fact: said.stdout for fact, said in own.captures.items() if fact.endswith(COUNTS)}
        for host, own in heard.items()
    }


def with_earlier(heard: Mapping[str, HostAnswer], earlier: Counted) -> dict[str, HostAnswer]:
    """The answers, and in those that count what the same host had counted in an earlier run."""
    found = dict(heard)
    for host in heard.keys() & earlier.keys():
        captures = heard[host].captures
        then = {f"{fact}{BEFORE}": text for fact, text in earlier[host].items() if fact in captures}
        more = {name: Capture(name, 0, text) for name, text in then.items()}
        found[host] = replace(heard[host], captures={**captures, **more})
    return found


def _read(head: Mapping[str, msgspec.Raw]) -> Recording:
    """The recording. Equal captures become one object: thousands of hosts give much the same answers."""
    rest = {name: value for name, value in head.items() if name != "heard"}
    recording = msgspec.json.decode(msgspec.json.encode(rest), type=Recording)
    known: dict[Capture, Capture] = {}
    heard = {}
    for name, value in msgspec.json.decode(head.get("heard", b"{}"), type=dict[str, msgspec.Raw]).items():
        answer = msgspec.json.decode(value, type=HostAnswer)
        captures = {fact: known.setdefault(capture, capture) for fact, capture in answer.captures.items()}
        heard[name] = replace(answer, captures=captures)
    return replace(recording, heard=heard)


def _with_our_commands(recording: Recording) -> Recording:
    """The recording with its commands rebuilt from facts; no command is taken from the file."""
    hosts = {host.name: host for host in recording.hosts}
    unreached = {name: read_back(why, hosts[name]) for name, why in recording.unreached.items()}
    smoke = tuple(
        replace(
            run,
            hosts=tuple(
                replace(seen, lost=read_back(seen.lost, hosts[seen.host])) if seen.lost else seen
                for seen in run.hosts
            ),
        )
        for run in recording.smoke
    )
    way = ways.read_back(recording.way) if recording.way else None
    return replace(recording, unreached=unreached, smoke=smoke, way=way)


def _nonsense(recording: Recording) -> Iterator[str]:
    """What no run would have recorded: a recording may come from anywhere, and its names end up in files."""
    names = [host.name for host in recording.hosts]
    known = set(names)
    meshes = (*_hosts_of(recording.mesh), *_hosts_of(recording.offered))
    mentioned = (*recording.heard, *recording.unreached, *recording.unfinished, *meshes)
    wishes = recording.wishes
    head, port = wishes.head, wishes.master_port
    ranks = [host.ranks for host in recording.hosts if host.ranks is not None]
    ranks += [wishes.ranks_per_host.value] if wishes.ranks_per_host else []
    faults = {
        "it has no hosts, or the same host twice": not names or len(known) < len(names),
        "the name of a host is not valid": not all(map(is_host, names)),
        "it mentions hosts that are not in its list of hosts": not known >= {*mentioned},
        "an answer is under the name of another host": any(
            answer.host != name for name, answer in recording.heard.items()
        ),
        "its head is not one of its hosts": head and head.value not in known,
        "a number of ranks is out of range": not all(0 < number <= MOST_RANKS for number in ranks),
        "its master port is out of range": port and not 0 < port.value < 65536,
        "its time is out of range": not 0 <= recording.seconds < 1e6,
    }
    yield from (words for words, wrong in faults.items() if wrong)
    if recording.baseline and any(nonsense(recording.baseline)):
        yield "its baseline does not add up"
    if (floor := recording.floor) and not all(
        0 <= value < MOST for value in (floor.value, *(each.value for each in floor.all))
    ):
        yield "its floor is out of range"
    for run in recording.smoke:
        yield from _nonsense_of_smoke(run, known)
    if soak := recording.soak:
        told = [each for _, figures in soak.rounds for each in figures.items()]
        times = [soak.lacking, *(at for at, _ in soak.rounds), *(at for _, at, *_ in soak.left)]
        read = [own for _, figures in soak.readings for own in figures.values()]
        times += (at for at, _ in soak.readings)
        named = (*(own for _, own in told), *(hosts for hosts, *_ in soak.left), *read)
        if not (
            known.issuperset(host for hosts in named for host in hosts)
            and {*ALONE, "train", "sends", "receives"}.issuperset(what.split(" ")[0] for what, _ in told)
            and all(0 < value < MOST for _, own in told for value in own.values())
            and all(-MOST < value < MOST for own in read for value in own.values())
            and all(0 <= at < 1e11 for at in times)
            and 0 < soak.every < MOST_COUNT
        ):
            yield "the rounds of its soak do not add up"


def _hosts_of(mesh: MeshResult | None) -> Iterator[str]:
    if mesh is not None:
        for link in mesh.links:
            yield from (link.source, link.target)
        for part in (mesh.listeners, mesh.troubles, mesh.left_out):
            yield from (each.host for each in part)


def _nonsense_of_smoke(run: SmokeResult, known: set[str]) -> Iterator[str]:
    plan = run.plan
    seats = plan.seats
    ranks = range(len(seats))
    mentioned = [
        *(seen.host for seen in run.hosts),
        *(left.host for left in run.left_out),
        *_hosts_of(run.mesh),
    ]
    if (
        not known >= {*plan.hosts, *mentioned}
        or list(plan.hosts) != [seen.host for seen in run.hosts]
        or {*plan.hosts} & {left.host for left in run.left_out}
        or plan.head not in plan.hosts
        or not plan.addresses.keys() >= {*plan.hosts}
    ):
        yield "the hosts of its smoke run do not add up"
    elif (
        not _seated(plan)
        or [seen.rank for seen in run.ranks] != list(ranks)
        or not 0 < plan.tp <= 64
        or any(not members or len(members) % plan.tp for members in plan.cells)
        or not divides(plan.layout, plan.tp, plan.cells)
        or sorted(plan.order.split("-")) != sorted(AXES)
        or not 0 < plan.steps <= MOST_STEPS
        or not 0 <= plan.seed < MOST_SEED
        or not 0 <= plan.waver_tries <= MOST_TRIES
        or not 0 <= plan.turns <= MOST_TRIES
        or not 0 <= plan.pairs_at_once <= MOST_RANKS
        or not 0 <= plan.sweep < MOST_SECONDS
        or len(plan.paths) > 2 * MOST_PATHS
        or len(seats) > MOST_RANKS
        or (run.end.cell is not None and not 0 <= run.end.cell < len(plan.cells))
        or any(each.rank not in ranks for each in plan.injected)
        or any(each.rank not in ranks for each in run.hiccups)
    ):
        yield "the ranks of its smoke run do not add up"
    elif not all(0 <= value < MOST_SECONDS for value in _measured(run)):
        yield "a time of its smoke run is out of range"
    elif not all(0 <= value <= MOST_COUNT for value in _counted(run)):
        yield "a number of its smoke run is out of range"


def _seated(plan: SmokePlan) -> bool:
    """Whether the ranks sit in the order of their hosts, each host in one cell."""
    each = Counter(seat.host for seat in plan.seats)
    cell_of = {seat.host: seat.cell for seat in plan.seats}
    order = [(host, local, cell_of.get(host)) for host in plan.hosts for local in range(each[host])]
    places = [(rank, cell, place) for cell, own in enumerate(plan.cells) for place, rank in enumerate(own)]
    return (
        len({*plan.hosts}) == len(plan.hosts) == len(each) > 0
        and order == [(seat.host, seat.local, seat.cell) for seat in plan.seats]
        and sorted(places) == [(seat.rank, seat.cell, seat.place) for seat in plan.seats]
        and sorted(rank for rank, _, _ in places) == list(range(len(plan.seats)))
    )


def _measured(run: SmokeResult) -> Iterator[float]:
    """All times that the events of the run do not bound."""
    end = run.end
    yield from (run.total, end.seconds, end.limit or 0.0, end.latency or 0.0, *run.seconds.values())
    for hiccup in run.hiccups:
        yield hiccup.seconds
    for host in run.hosts:
        yield from (host.login or 0.0, host.imported or 0.0, host.load, host.reverse_dns or 0.0)
    for seen in run.ranks:
        yield from (seen.cpu or 0.0, seen.disturbed or 0.0, *seen.seconds.values())
        yield from (page.still for page in seen.samples)
        yield seen.exit.after if seen.exit else 0.0


def _counted(run: SmokeResult) -> Iterator[int]:
    yield from (each.step or 0 for each in run.plan.injected)
    yield from (seat.device or 0 for seat in run.plan.seats)
    for host in run.hosts:
        yield from (host.cores, host.peak_memory)
    for seen in run.ranks:
        yield seen.pid or 0
        for page in seen.samples:
            yield from (page.version, page.step, page.bytes)
            yield from (each if each <= MOST_PLACES else -1 for each in (page.position, page.seq))
        if seen.exit:
            yield (seen.exit.code or 0) + 1  # -1 is a code too
            yield seen.exit.signal or 0


FILE = SavedRun(
    "recording",
    InputKind.RECORDING,
    "Recordings are written by --save.",
    _read,
    _nonsense,
    _with_our_commands,
)
encoded, decoded, load = FILE.encoded, FILE.decoded, FILE.load


def save(recording: Recording, path: Path) -> None:
    """Raises OSError."""
    write_file(path, encoded(recording))
