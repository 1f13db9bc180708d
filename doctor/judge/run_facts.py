"""Facts about the run as a whole that checks may use, derived from a recording: no host reports them."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from doctor.api import PLAN
from doctor.facts.job import LAUNCHES
from doctor.facts.run import ANSWERED, CLOCKS, CUT_OFF, MESH, OFFERED, UNREACHED, Offset
from doctor.facts.smoke import SMOKE, SmokeRounds
from doctor.facts.system import CLOCK, CLOCK_END
from doctor.facts.tables import RANK_TABLE, TABLE_FILES, JobTable
from doctor.job.plan import JobPlan
from doctor.job.ranktable import read_table
from doctor.judge.engine import Facts
from doctor.judge.hung_tools import HungTools
from doctor.judge.launches import launches_of
from doctor.judge.partial_answers import cut_off
from doctor.judge.reading import Reading
from doctor.model import MissingFact
from doctor.recording import Recording


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
    """The clock's offset. If the two readings are further apart than the whole answer took, or less than
    zero, the clock was set between them, and only the later one holds.
    """
    passed, most = last - first, max(ended - started, 0.0)
    low = last - ended
    if 0 <= passed <= most:
        return Offset(low, max(first - started, low))
    return Offset(low, low + most, passed - most if passed > most else passed)


def _why_no_mesh(recording: Recording, plan: JobPlan) -> str:
    if not plan.several_hosts:
        return "there is only one host"
    return recording.no_mesh or "fewer than two hosts could take part"
