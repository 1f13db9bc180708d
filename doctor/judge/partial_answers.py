"""Whether a host's answer is complete: its end, the host's identity, its devices and their state.

Without these a host cannot be judged: if its files could not be read, it would pass for one without devices.
"""

from collections.abc import Mapping
from typing import Any

from doctor.api import AMD, ASCEND, NVIDIA, Fact, Vendor
from doctor.facts.amd.gpus import AMD_GPUS
from doctor.facts.ascend.npus import NPUS
from doctor.facts.gpus import Gpus
from doctor.facts.nvidia.gpus import GPUS
from doctor.facts.run import PartialAnswer
from doctor.facts.smoke import JudgedRun
from doctor.facts.system import DEVICES, IDENTITY, VIEW, FoundDevices
from doctor.judge.hung_tools import HungTools
from doctor.judge.reading import Reading
from doctor.model import MissingFact, View
from doctor.probe import ABSENT, DAMAGED, HostAnswer


def cut_off(heard: HostAnswer, reading: Reading, hung: HungTools | None = None) -> PartialAnswer | None:
    """None if the answer is complete. A hung tool is a fault of the host, which counts as examined."""
    damaged = [fact for fact, missing in heard.missing.items() if missing.reason == DAMAGED]
    known = [reading.facts.get(heard.host, fact) for fact in (IDENTITY, DEVICES)]
    vital = [
        value
        for value in (*known, _unseen_devices(heard, reading, hung or {}))
        if isinstance(value, MissingFact)
    ]
    if heard.complete and not damaged and not vital:
        return None
    asked = [missing for missing in heard.missing.values() if not missing.absent]
    gone = [missing for missing in asked if missing.fact not in heard.captures]
    lost = {missing.fact for missing in (*gone, *vital)} | {*damaged}
    if gone and not heard.complete:
        reason = gone[0].reason
    elif damaged:
        reason = "part of it arrived damaged"
    else:
        reason = vital[0].reason if vital else "the end is missing"
    return PartialAnswer(tuple(sorted(lost)), reason)


def _unseen_devices(heard: HostAnswer, reading: Reading, hung: HungTools) -> MissingFact | None:
    """Why the state of the job's devices is unknown, if no tool listed them and no training used them."""
    vendor, recording, facts = reading.plan.vendor, reading.recording, reading.facts
    found = facts.get(heard.host, DEVICES)
    if vendor is None or isinstance(found, MissingFact) or not found.of(vendor).numbers:
        return None
    listing = _LISTINGS[vendor]
    asked = listing.name in heard.captures or listing.name in heard.missing
    listed = facts.get(heard.host, listing)
    if isinstance(listed, Gpus) and listed.silent and not listed.denied:
        listed = MissingFact(listing.name, listed.silent)
    if not asked or not isinstance(listed, MissingFact) or listed.absent:
        return None
    if (heard.host, listing.group) in hung or _undriven(
        found.of(vendor), vendor, facts.get(heard.host, VIEW)
    ):
        return None
    undecided = recording.smoke_wanted and not recording.smoke and not recording.no_smoke
    if undecided or any(_trained(run, heard.host) for run in reading.runs):
        return None
    tool = listing.group.tool if listing.group else "its tool"
    why = f"{tool} is not installed there" if listed.reason == ABSENT else listed.reason
    return MissingFact(listing.name, f"{why}, so the state of its {vendor.thing}s is unknown")


def _undriven(own: FoundDevices, vendor: Vendor, view: View | MissingFact) -> bool:
    """Whether its driver is known not to be loaded. This is a fault, and its tool is then never called."""
    return vendor.asked_with_driver and bool(own.on_bus) and not own.driver and view is not View.CONTAINER


_LISTINGS: Mapping[Vendor, Fact[Any]] = {ASCEND: NPUS, NVIDIA: GPUS, AMD: AMD_GPUS}


def _trained(run: JudgedRun, host: str) -> bool:
    """Whether the host passed a smoke run on its devices."""
    return run.passed and any(seat.host == host and seat.device is not None for seat in run.result.plan.seats)
