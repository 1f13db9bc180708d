"""The clocks of the devices that ranks use. They show a cause without any timing, and not what it costs."""

from collections.abc import Mapping, Sequence
from statistics import median

from doctor.facts.device_pace import DevicePace
from doctor.live.wires import Key
from doctor.slow.devices import read
from doctor.slow.judge.judgement import DeviceShare
from doctor.slow.judge.series import Sampled

LOWER = 0.9
"""A device is slow if it never runs faster than this share of the median of all."""
READINGS = 2
WORKS = 20
"""Per cent: below it a low clock may only mean that there is nothing to do."""


def devices_of(seen: Sampled) -> dict[Key, DeviceShare]:
    """The device of each rank that has one, by all readings. A rank with several devices has its slowest."""
    found: dict[Key, dict[str, list[DevicePace]]] = {}
    ranks = {*seen.keys}
    for host in seen.hosts:
        for number in seen.rounds:
            for said in seen.round(host, number).devices:
                for name, pace, pids in read(said.tool, said.text):
                    for pid in pids:
                        if (host, pid) in ranks:
                            found.setdefault((host, pid), {}).setdefault(name, []).append(pace)
    return {
        of: min((_share(*each) for each in named.items()), key=lambda share: share.mhz or 0)
        for of, named in found.items()
    }


def _share(name: str, paces: Sequence[DevicePace]) -> DeviceShare:
    """Reasons count that are said at least every second time."""
    said = dict.fromkeys(words for each in paces for words in each.reasons)
    clocks = [each.mhz for each in paces if each.mhz is not None]
    busy = [each.busy for each in paces if each.busy is not None]
    return DeviceShare(
        name,
        round(median(clocks)) if clocks else None,
        max(clocks, default=None),
        max((each.most_mhz for each in paces if each.most_mhz), default=None),
        _middle([each.watts for each in paces]),
        max((each.celsius for each in paces if each.celsius is not None), default=None),
        tuple(words for words in said if 2 * sum(words in each.reasons for each in paces) >= len(paces)),
        len(clocks) >= READINGS and not any(each.idle for each in paces) and min(busy, default=0) >= WORKS,
    )


def _middle(numbers: Sequence[int | None]) -> int | None:
    known = [each for each in numbers if each is not None]
    return round(median(known)) if known else None


def slow_devices(devices: Mapping[Key, DeviceShare]) -> tuple[list[Key], str]:
    """Those that work and never reached the clock of the others, if they are at most half of all; in words:
    "NVIDIA GPU 3 runs at 1,005 MHz, the others at 1,980: hardware thermal slowdown".
    """
    clocks = {of: each.mhz for of, each in devices.items() if each.mhz}
    if len(clocks) < 2:
        return [], ""
    usual = max(median(clocks.values()), max(clocks.values()) if len(clocks) == 2 else 0)
    slow = [
        of
        for of, each in devices.items()
        if each.works and each.fastest is not None and each.fastest <= LOWER * usual
    ]
    rest = [mhz for of, mhz in clocks.items() if of not in slow]
    if not slow or 2 * len(slow) > len(clocks) or not rest:
        return [], ""
    who = f"{devices[slow[0]].name} runs" if len(slow) == 1 else f"{len(slow)} devices run"
    slowest = min(devices[of].mhz or 0 for of in slow)
    said = f"{who} at {slowest:,} MHz, the others at {round(median(rest)):,}"
    reasons = dict.fromkeys(words for of in slow for words in devices[of].reasons)
    return slow, said + (f": {', '.join(reasons)}" if reasons else "")


def clocks_words(devices: Mapping[Key, DeviceShare]) -> str:
    """What the clocks of the devices say, if none of them is slow; empty if they are unknown."""
    clocks = sorted(each.mhz for each in devices.values() if each.mhz)
    if len(clocks) < 2:
        return ""
    low, high = clocks[0], clocks[-1]
    said = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return (
        f"the devices run at {said} MHz, alike; one that is slow at the same clock would not be seen: all "
        "hosts wait alike for it"
    )
