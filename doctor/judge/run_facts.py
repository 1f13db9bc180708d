"""Facts about the run as a whole that checks may use, derived from a recording: no host reports them.

One of them is whether a host's answer is complete: its end, the host's identity, its devices and their state.
If its files could not be read, a host would pass for one without devices.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from doctor.api import AMD, ASCEND, NVIDIA, PLAN, Fact, Vendor
from doctor.facts.amd.gpus import AMD_GPUS
from doctor.facts.ascend.npus import NPUS
from doctor.facts.gpus import Gpus
from doctor.facts.job import LAUNCHES
from doctor.facts.nvidia.gpus import GPUS
from doctor.facts.run import ANSWERED, CLOCKS, CUT_OFF, MESH, OFFERED, UNREACHED, Offset, PartialAnswer
from doctor.facts.smoke import SMOKE, SOAK, JudgedRun, SmokeRounds
from doctor.facts.system import CLOCK, CLOCK_END, DEVICES, IDENTITY, VIEW
from doctor.facts.tables import RANK_TABLE, TABLE_FILES, JobTable
from doctor.job.plan import JobPlan
from doctor.job.ranktable import read_table
from doctor.judge.engine import Facts
from doctor.judge.hung_tools import HungTools
from doctor.judge.launches import launches_of
from doctor.judge.reading import Reading
from doctor.model import MissingFact, View
from doctor.probe import ABSENT, DAMAGED, HostAnswer
from doctor.recording import Recording


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
    own, contained = found.of(vendor), facts.get(heard.host, VIEW) is View.CONTAINER
    undriven = vendor.asked_with_driver and own.on_bus and not own.driver and not contained  # that is a fault
    if (heard.host, listing.group) in hung or undriven:
        return None
    undecided = recording.smoke_wanted and not recording.smoke and not recording.no_smoke
    if undecided or any(_trained(run, heard.host) for run in reading.runs):
        return None
    tool = listing.group.tool if listing.group else "its tool"
    why = f"{tool} is not installed there" if listed.reason == ABSENT else listed.reason
    return MissingFact(listing.name, f"{why}, so the state of its {vendor.thing}s is unknown")


_LISTINGS: Mapping[Vendor, Fact[Any]] = {ASCEND: NPUS, NVIDIA: GPUS, AMD: AMD_GPUS}


def _trained(run: JudgedRun, host: str) -> bool:
    """Whether the host passed a smoke run on its devices."""
    return run.passed and any(seat.host == host and seat.device is not None for seat in run.result.plan.seats)


def run_facts(reading: Reading, hung: HungTools | None = None) -> Mapping[str, Any]:
    """By the name of the run value; MissingFact if the run has none."""
    recording, plan, facts = reading.recording, reading.plan, reading.facts
    table = _table(recording, plan, facts)
    return {
        PLAN.name: plan,
        UNREACHED.name: {
            host.name: recording.unreached.get(host.name)
            for host in recording.hosts
            if host.name not in recording.unfinished
        },
        ANSWERED.name: tuple(host.name for host in recording.hosts if host.name in recording.heard),
        CUT_OFF.name: {host: cut_off(heard, reading, hung) for host, heard in recording.heard.items()},
        MESH.name: recording.mesh or MissingFact("mesh", _why_no_mesh(recording, plan)),
        OFFERED.name: recording.offered or MissingFact(OFFERED.name, "no rank would offer another address"),
        CLOCKS.name: clock_offsets(recording, facts),
        RANK_TABLE.name: table,
        LAUNCHES.name: launches_of(reading, table),
        SMOKE.name: _smoke(reading, recording),
        SOAK.name: recording.soak or MissingFact(SOAK.name, "no soak was asked for"),
    }


def _smoke(reading: Reading, recording: Recording) -> SmokeRounds | MissingFact:
    if not reading.runs:
        return MissingFact(SMOKE.name, recording.no_smoke or "there was no smoke run")
    return SmokeRounds(reading.runs, frozenset((*recording.unreached, *recording.unfinished)))


def _table(recording: Recording, plan: JobPlan, facts: Facts) -> JobTable | MissingFact:
    """The table that was given, else what most hosts have at the path that the launch names."""
    given = recording.wishes.table
    if given:
        return JobTable(given.path, given.text, *read_table(given.text), given=True, checksum=given.checksum)
    held = facts.all(TABLE_FILES)
    told = [table.path for table in plan.told_tables if table.path]
    for paths in (told, plan.table_paths):  # ranks may have copies of their own, and one of them may be old
        found = [(path, files[path]) for path in paths for files in held.values() if path in files]
        votes = Counter((file.text, file.checksum) for _, file in found if file.text)
        if votes:
            text, checksum = votes.most_common(1)[0][0]
            path = next(path for path, file in found if (file.text, file.checksum) == (text, checksum))
            return JobTable(path, text, *read_table(text), given=False, checksum=checksum)
    return MissingFact(RANK_TABLE.name, *_why_no_table(plan, facts))


def _why_no_table(plan: JobPlan, facts: Facts) -> tuple[str, bool]:
    """Why there is no table, and whether that is certain: an unreadable table does not justify a skip."""
    for host in facts.hosts if plan.table_paths else ():
        found = facts.get(host, TABLE_FILES)
        if isinstance(found, MissingFact):
            return found.reason, False
        if any(file.checksum for file in found.values()):
            return (
                "on the hosts it is empty or too large to be fetched: name a copy of it by --rank-table",
                False,
            )
    return "the job has no rank table that could be read", True


def clock_offsets(recording: Recording, facts: Facts) -> Mapping[str, Offset | None]:
    """Each host read its clock once near the start of its answer and once at its end."""
    offsets: dict[str, Offset | None] = {}
    for host, heard in recording.heard.items():
        first = facts.known(host, CLOCK)
        last = facts.known(host, CLOCK_END, first)
        offsets[host] = None if first is None else _offset(first, last, heard.started, heard.ended)
    return offsets


def _offset(first: float, last: float, started: float, ended: float) -> Offset:
    """If both readings cannot be right, the clock was set between them, and only the later one holds."""
    passed, most = last - first, max(ended - started, 0.0)
    low = last - ended
    if 0 <= passed <= most:
        return Offset(low, max(first - started, low))
    return Offset(low, low + most, passed - most if passed > most else passed)


def _why_no_mesh(recording: Recording, plan: JobPlan) -> str:
    if not plan.several_hosts:
        return "there is only one host"
    return recording.no_mesh or "fewer than two hosts could take part"
