"""Which events of a kernel log belong to the job: a kernel reports on all programs of its host, for weeks."""

import re
from collections.abc import Iterable, Iterator

from doctor.agents.onhost.kernel_kills import own_limit
from doctor.job.launch.launchers import LAUNCHERS
from doctor.job.launch.launchers.srun import SRUN
from doctor.logs.model import Form, Sighting
from doctor.text.grouped import grouped
from doctor.text.hostprogram import table

MOST = 200
"""The most events of processes in one log that count, the last ones."""
EARLIER = 3600.0
"""An event of a process that ended this many seconds before the last one belongs to an earlier run."""
UNORDERED = 60.0
"""Lines of one kernel may be out of order by a little."""
_OF_PROCESSES = re.compile(r"kernel-(?:segfault|oom)$|gpu-xid-(?:13|31|43|45)$|amdgpu-page-fault$")
"""Symptoms about one process. Those of devices, disks and the kernel itself concern every job."""
_OOM = "kernel-oom"
"""It may end a rank, whatever the program of the rank is called."""
_STARTS = "|".join(re.escape(n[:15]) for e in LAUNCHERS if e is not SRUN for n in (*e.commands, *e.programs))
RANKS = re.compile(
    r"(?:i?python|pt_|torch|vllm|sglang|train|mpi|hydra|nccl|rccl|cuda|all_reduce|horovod|mindspore|ascend|ray)"
    rf"|(?:{_STARTS})\b",
    re.IGNORECASE,
)
"""How the kernel calls the processes of trainings, at most 15 characters long."""
_SYSTEM, _SERVER = (re.compile("|".join(rows)) for _, *rows in table(__file__, "kernel_events.txt"))
"""Programs of the system and of a desktop, and services: they are never ranks."""
_OF_JOB = re.compile(r"memcg=\S{0,300}(?:slurm|/job|train|torch)")
"""The container of a job, as the kernel names it."""
_NOBODY = "none"
_UPTIME = re.compile(r"\[ {0,8}(\d{1,9}\.\d{6})\]")


def of_others(sightings: Iterable[tuple[Sighting, bool]], timed: bool, alone: bool) -> frozenset[int]:
    """The identities (`id`) of what the kernel reports of other programs, and of processes of earlier runs.
    Each sighting comes with whether its process is known to be a rank. `timed`: the log of the job itself has
    times, which tell earlier runs apart if the kernel's log has them too. `alone`: only logs of kernels were
    given.
    """
    told = [(each, is_rank) for each, is_rank in sightings if each.first.form is Form.KERNEL]
    by_file = grouped((each.first.file, each) for each, _ in told)
    ranks = {id(each) for each, is_rank in told if is_rank}
    return frozenset(
        id(each) for several in by_file.values() for each in _left_out(several, ranks, timed, alone)
    )


def _left_out(sightings: list[Sighting], ranks: set[int], timed: bool, alone: bool) -> Iterator[Sighting]:
    of_processes = [each for each in sightings if _OF_PROCESSES.match(each.symptom.id)]
    pids = {each.taken.get("pid", ""): name for each in sightings if (name := each.taken.get("process"))}
    names = {id(each): each.taken.get("process") or pids.get(_pid(each), "") for each in sightings}
    ours = {
        id(each): each.symptom.id
        for each in sightings
        if id(each) in ranks or RANKS.match(names[id(each)]) or ("pci" in each.taken and not names[id(each)])
    }
    others = not alone or any(each.symptom.id != _OOM for each in sightings)

    def foreign(each: Sighting) -> bool:
        name, killed = names[id(each)], each.symptom.id == _OOM
        if id(each) in ours:
            return False
        if killed and _pid(each) == _NOBODY:  # it only announces the line that names the process
            return any(other.symptom.id == _OOM and _pid(other) != _NOBODY for other in of_processes)
        if others and of_another_container(each, name) and _SERVER.match(name):
            return True
        known = _OOM in ours.values() if killed else bool(ours)
        return bool(name) and (known or _SYSTEM.match(name) is not None)

    left = [each for each in of_processes if foreign(each)]
    gone = set(map(id, left))
    kept = sorted((each for each in of_processes if id(each) not in gone), key=lambda each: each.last.number)
    yield from left
    yield from kept[:-MOST]
    for each in kept[-MOST:]:
        if _long_before(each, kept[-1], timed):
            yield each


def of_another_container(sighting: Sighting, name: str = "") -> bool:
    """Whether a process whose name is not that of a training exceeded the limit of its own container."""
    name = name or sighting.taken.get("process", "")
    texts = [sighting.first.text, sighting.last.text]
    own = any(map(own_limit, texts))
    return own and bool(name) and not RANKS.match(name) and not any(map(_OF_JOB.search, texts))


def _pid(sighting: Sighting) -> str:
    return sighting.taken.get("pid", _NOBODY)


def _long_before(one: Sighting, last: Sighting, timed: bool) -> bool:
    """Whether an event is long over when the last one happens, by the times of the same kernel."""
    a, b = one.last, last.first
    if a.number >= b.number:
        return False
    if a.at is not None and b.at is not None:
        return not timed and b.at - a.at > EARLIER
    up = [float(found[1]) for line in (a, b) if (found := _UPTIME.search(line.text))]
    return len(up) == 2 and not -UNORDERED <= up[1] - up[0] <= EARLIER  # before: the host was restarted
