"""How busy devices are: an idle device among busy ones has not been given the collective.

A device that waits in an NCCL collective is 100 % busy. Input: `nvidia-smi` with
`--query-gpu=index,uuid,utilization.gpu` and with `--query-compute-apps=pid,gpu_uuid`, both as csv with
noheader and nounits; or `npu-smi info`.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from doctor.live.libraries.groups import named
from doctor.live.libraries.opinions import Opinion, Source, Subject, Trust, blames
from doctor.live.libraries.rank_finder import HostText, RankFinder, pairs

BUSY = 50
_GPU = re.compile(r"(\d{1,3}), ?(GPU-[\w-]{1,60}|MIG-[\w/-]{1,80}), ?(\d{1,3})(?:,|\s*$)")
_APP = re.compile(r"(\d{1,7}), ?(GPU-[\w-]{1,60})\s*$")
_ABOVE = re.compile(r"\| (\d{1,3}) +\S.{0,40}\| \w")
_BELOW = re.compile(r"\|(?: (\d{1,3})(?: +\d{1,3})?)? +\|(?: +\|)? [0-9A-Fa-f:.]{7,16} +\| (\d{1,3}) ")
_PROCESS = re.compile(r"\| (\d{1,3})(?: +(\d{1,3}))? +\| (\d{1,8}) +\|")


@dataclass(frozen=True, slots=True)
class DeviceLoad:
    name: str
    busy: int
    pids: tuple[int, ...] = ()


def nvidia(text: str) -> tuple[DeviceLoad, ...]:
    apps: dict[str, list[int]] = {}
    rows: list[tuple[str, str, int]] = []
    for line in text.splitlines():
        if gpu := _GPU.match(line):
            rows.append((gpu[1], gpu[2], int(gpu[3])))
        elif app := _APP.match(line):
            apps.setdefault(app[2], []).append(int(app[1]))
    return tuple(DeviceLoad(index, busy, tuple(apps.get(uuid, ()))) for index, uuid, busy in rows)


def npu(text: str) -> tuple[DeviceLoad, ...]:
    """The tables of `npu-smi info`: two lines for each chip, and the processes."""
    pids: dict[tuple[str, str], list[int]] = {}
    rows: list[tuple[str, str, int]] = []
    card, listing = "", False
    for line in text.splitlines():
        listing |= "Process id" in line
        if listing:
            if process := _PROCESS.match(line):
                pids.setdefault((process[1], process[2] or ""), []).append(int(process[3]))
        elif below := card and _BELOW.match(line):
            rows.append((card, below[1] or "", int(below[2])))
            card = ""
        elif above := _ABOVE.match(line):
            card = above[1]
    return tuple(
        DeviceLoad(f"{card}.{chip}".rstrip("."), busy, tuple(pids.get((card, chip), ())))
        for card, chip, busy in rows
    )


READERS: dict[str, Callable[[str], tuple[DeviceLoad, ...]]] = {"nvidia-smi": nvidia, "npu-smi": npu}


def opinion(who: RankFinder) -> Opinion | None:
    """It blames devices of the job's ranks that were idle both times, if more were busy both times."""
    answers = [*pairs(who.said(Source.UTILISATION))]
    once = list(_devices(who, (b for _, b in answers)))
    before = {(host, each.name): each.busy for host, each in _devices(who, (a for a, _ in answers))}
    busy = [each for host, each in once if min(each.busy, before.get((host, each.name), 0)) >= BUSY]
    idle = [(host, each) for host, each in once if not each.busy and before.get((host, each.name)) == 0]
    if not idle or len(idle) >= len(busy):
        return None
    subjects = tuple(_subject(who, host, each) for host, each in idle)
    have = "has" if len(subjects) == 1 else "have"
    words = f"The devices: {named(subjects)} {have} no work, {len(busy)} others are busy."
    return blames(Source.UTILISATION, Trust.VOTE, words, subjects)


def _devices(who: RankFinder, said: Iterable[HostText]) -> Iterator[tuple[str, DeviceLoad]]:
    for each in said:
        read = READERS.get(each.about.name)
        for device in read(each.about.text) if read else ():
            if any(who.is_ours(each.host, pid) for pid in device.pids):
                yield each.host, device


def _subject(who: RankFinder, host: str, device: DeviceLoad) -> Subject:
    pid = next(pid for pid in device.pids if who.is_ours(host, pid))
    return replace(who.process(host, pid), device=device.name)
