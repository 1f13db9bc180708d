"""Rank tables as given to the processes of a launch: which table, and what it says about them."""

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from doctor.facts.tables import HostFile
from doctor.job.launch.process_env import ProcessEnv
from doctor.job.launch.rank_env import DEVICE
from doctor.job.launch.ranks import ranks_of
from doctor.job.launch.table_reference import TableReference, told_tables
from doctor.model import UNDECIDED, Confidence, Evidence, Problem
from doctor.rules.launch_names import LaunchNames, remark, some
from doctor.text.grouped import grouped
from doctor.text.ranks import ranks_text

SIZES = ("RANK_SIZE", "WORLD_SIZE")
READ = "cksum "
"""Prefix of the description of a table that was read."""
Told = Sequence[tuple[ProcessEnv, TableReference]]


def not_in_table(names: LaunchNames) -> Iterator[Problem]:
    """Processes whose device is not in the table, so that they find no rank; one problem per server."""
    lost = grouped(
        ((process.seat.path, tuple(sorted(process.seat.ranks))), process)
        for process in ranks_of(names.launch)
        if process.seat is not None and process.seat.rank is None
    )
    for (path, devices), processes in lost.items():
        listed = ranks_text(devices, "device", most=12) if devices else "no device"
        yield names.problem(
            processes,
            DEVICE,
            f"{DEVICE} is not in the rank table: the process cannot find its own rank",
            expected=f"{listed}, as the rank table has them for this host",
            actual=some([f"{DEVICE}={each.env[DEVICE][:100]} ({each.source})" for each in processes]),
            evidence=(*names.evidence(processes[:3], DEVICE), Evidence(path, listed)),
            commands=(f"export {DEVICE}=$i  # $i: a device of the rank table that no other rank has",),
        )


def another_size(names: LaunchNames) -> Iterator[Problem]:
    """A number of ranks that is the same for all processes but differs from their rank table."""
    present = [process for process in ranks_of(names.launch) if process.seat is not None]
    for name in SIZES:
        said = {process.env[name] for process in present if name in process.env}
        seat = present[0].seat if present else None
        if seat is None or len(said) != 1 or said == {str(seat.world)}:
            continue  # if only some processes have another number, they differ from the others
        yield names.problem(
            present,
            name,
            f"{name} is not the number of ranks in the rank table: they wait for ranks that do not exist",
            expected=f"{name}={seat.world}, as in {seat.path}",
            actual=f"{name}={said.pop()[:100]}, for {names.labels(present)}",
            hosts=(),
            evidence=(*names.evidence(present[:2], name), Evidence(seat.path, f"{seat.world} ranks")),
            commands=(f"export {name}={seat.world}",),
        )


def different_tables(names: LaunchNames, files: Mapping[str, Mapping[str, HostFile]]) -> Iterator[Problem]:
    """Ranks that were given a different file from most ranks, unless its content is the same."""
    told = [(process, table) for process in ranks_of(names.launch) for table in told_tables([process])[:1]]
    if len({table.path or table.text for _, table in told}) < 2:
        return

    def held_by(process: ProcessEnv, table: TableReference) -> str:
        if file := files.get(names.host(process) or "", {}).get(table.path):
            return file.trouble or f"{READ}{file.checksum}"
        return table.path or table.text

    groups = grouped((held_by(*each), each) for each in told)
    troubles = {file.trouble for found in files.values() for file in found.values() if file.trouble}
    lost = [key for key in groups if key in troubles]
    held = sorted((key for key in groups if key not in troubles), key=lambda key: -len(groups[key]))
    if not held:
        return  # no rank has a table: that is not a difference
    most = groups[held[0]]
    odd = held[1:] if 2 * len(most) > sum(len(groups[key]) for key in held) else []
    for key in (*lost, *odd):
        yield _other_table(names, groups[key], (key, held[0]), most)
    if held[1:] and not odd and all(key.startswith(READ) for key in held):
        yield _several_tables(names, {key: groups[key] for key in held})


def _several_tables(names: LaunchNames, groups: Mapping[str, Told]) -> Problem:
    """The problem if no table is held by more than half of the ranks."""
    processes = [process for group in groups.values() for process, _ in group]
    shown = [(group[0][1], [process for process, _ in group]) for group in groups.values()]
    return names.problem(
        processes,
        shown[0][0].said,
        f"the ranks were given different rank tables{UNDECIDED}",
        expected="one table for all ranks",
        actual="; ".join(f"{table.path}, for {names.labels(some)}" for table, some in shown[:6]),
        confidence=Confidence.SUSPECT,
        evidence=tuple(Evidence(table.path, key) for key, (table, _) in zip(groups, shown[:6], strict=False)),
        commands=(f"cksum {' '.join(quote(table.path) for table, _ in shown[:6])}",),
    )


def _other_table(
    names: LaunchNames,
    group: Told,
    held: tuple[str, str],
    most: Told,
) -> Problem:
    """`held` describes their file and that of most ranks: a checksum, why there is none, or a path."""
    processes, (mine, right) = [process for process, _ in group], held
    table, usual = group[0][1], most[0][1]
    read = mine.startswith(READ) and right.startswith(READ)
    return names.problem(
        processes,
        table.said,
        f"{table.said} names a different rank table than for the other ranks",
        expected=f"{usual.path or usual.text}, as for {names.labels([process for process, _ in most])}",
        actual=f"{table.path or table.text}, for {names.labels(processes)}"
        + ("" if mine.startswith(READ) or mine in (table.path, table.text) else f": {mine}"),
        confidence=Confidence.CERTAIN if read else Confidence.STRONG,
        evidence=(
            *names.evidence(processes[:3], table.said),
            Evidence(table.path or table.text, mine),
            Evidence(usual.path or usual.text, right),
        ),
        commands=(f"export {table.said}={quote(usual.path)}",)
        if usual.path
        else (remark(f"give every rank the same {table.said}"),),
    )
