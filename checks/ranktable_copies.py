"""The copies of the rank table on the hosts: present, and all the same file."""

from collections.abc import Collection, Iterator, Mapping
from shlex import quote

from doctor.api import (
    PLAN,
    UNDECIDED,
    Confidence,
    Damage,
    Evidence,
    JobPlan,
    Problem,
    Scope,
    Undecided,
    check,
    fold,
    maybe,
)
from doctor.facts.job import LAUNCHES
from doctor.facts.tables import RANK_TABLE, TABLE_FILES, HostFile, JobTable
from doctor.job.launch.process_env import Launch, NearbyTable
from doctor.rules.machines import votes_of


@check(
    "rank-table-differs",
    TABLE_FILES,
    PLAN,
    maybe(RANK_TABLE),
    maybe(LAUNCHES),
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
)
def rank_table_differs(
    files: Mapping[str, Mapping[str, HostFile]],
    plan: JobPlan,
    seen: JobTable | None,
    launches: tuple[Launch, ...] | None,
) -> Iterator[Problem]:
    """The rank table at the job's path is not the same file on every host, or the job does not find it.

    Why it matters: each process reads its own host's copy. A copy that was not updated gives its ranks
    different peers from all the others; a missing one makes torch_npu negotiate while the others do not.

    What to do: copy the right file to every host, or put it on a shared file system. In a script that changes
    its folder before it starts a rank, RANK_TABLE_FILE has to be an absolute path.
    """
    for launch in launches or ():
        yield from (_left_behind(table) for table in launch.beside)
    told = {table.path: table for table in plan.told_tables if table.path}
    lost: dict[str, Mapping[str, HostFile]] = {}
    # If the launch names the path of the table, an old file at the path of --rank-table is not used.
    for path in plan.table_paths:
        if plan.told_tables and path not in told:
            continue
        held = {host: found[path] for host, found in files.items() if path in found}
        if path in told and not told[path].beside:
            lost[path] = {
                host: file
                for host, file in held.items()
                if file.trouble and not _has_another(files[host], told.keys())
            }
        there = {host: file for host, file in held.items() if not file.trouble}
        given = seen if seen and seen.given and seen.path == path else None
        right = given.checksum if given else _majority(there)
        odd = tuple(host for host, file in there.items() if file.checksum != right)
        if odd:
            yield _odd(path, odd, there, right, given.text.strip() if given else None)
    yield from _absent(lost, files, plan)
    for table in plan.told_tables:
        if not table.path:
            raise Undecided(f"{table.said}={table.text[:100]} {table.why}")
    yield from _nowhere(plan, seen)


def _left_behind(table: NearbyTable) -> Problem:
    folders = ", ".join(table.folders[:8]) + (", …" if len(table.folders) > 8 else "")
    return Problem(
        "the rank table is not where the ranks look for it: the script has changed its folder by then",
        expected=f"an absolute path in {table.said}, such as {table.path}",
        actual=f"{table.text} is looked for in {folders}, but lies beside {table.script}",
        subject=f"{table.script}: {table.said}",
        evidence=(Evidence(table.script, f"{table.said}={table.text}"),),
        commands=(f"export {table.said}={quote(table.path)}",),
    )


def _nowhere(plan: JobPlan, seen: JobTable | None) -> Iterator[Problem]:
    """The problem of a table that is not beside its script; undecided if the script may be elsewhere on the
    hosts.
    """
    for table in (table for table in plan.told_tables if table.beside and seen is None):
        if [host.given for host in plan.hosts] != ["localhost"]:
            raise Undecided(f"{table.said}={table.text[:100]} is not by the script: name it by --rank-table")
        yield Problem(
            "the job's rank table: there is no such file",
            expected=f"{table.said}={table.text[:100]}, from the folder of the script",
            actual=f"there is no {table.path}",
            subject=table.path,
            hosts=plan.names,
            evidence=(Evidence(table.path, "there is no such file"),),
            commands=(f"ls -l {quote(table.path)}",),
        )


def _majority(there: Mapping[str, HostFile]) -> str | None:
    """The checksum of most copies; None if undecided."""
    votes, tie = votes_of({host: file.checksum for host, file in there.items()})
    return None if tie or not votes else votes[0][0]


def _has_another(files: Mapping[str, HostFile], told: Collection[str]) -> bool:
    """Whether other ranks have a table here: then these got a wrong path, see launch-inconsistent."""
    return any(path in told and not file.trouble for path, file in files.items())


def _absent(
    lost: Mapping[str, Mapping[str, HostFile]], seen: Collection[str], plan: JobPlan
) -> Iterator[Problem]:
    """The problems of missing tables; `lost` maps a path to the hosts that lack it. Equal ones are merged.
    What all lack is no fault of a host.
    """
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for path, files in lost.items():
        for trouble in dict.fromkeys(file.trouble for file in files.values()):
            hosts = tuple(host for host, file in files.items() if file.trouble == trouble)
            alike.setdefault((trouble, hosts), []).append(path)
    for (trouble, hosts), paths in alike.items():
        many = f", nor {len(paths) - 1} more in other folders" if len(paths) > 1 else ""
        rest = [host for host in plan.names if host not in seen]
        everywhere = len(hosts) >= max(2, len(seen))
        part = f"; {fold(rest)} could not be looked at" if everywhere and rest else ""
        yield Problem(
            f"the job's rank table: {trouble}{part}",
            expected=f"{paths[0]} on every host",
            actual=trouble + many,
            subject=paths[0],
            hosts=() if everywhere else hosts,
            evidence=tuple(Evidence(path, trouble) for path in paths[:6]),
            commands=(f"ls -l {' '.join(map(quote, paths[:3]))}",),
        )


def _odd(
    path: str, odd: tuple[str, ...], there: Mapping[str, HostFile], right: str | None, given: str | None
) -> Problem:
    whole = given or next((file.text for file in there.values() if file.checksum == right), "")
    decided = right is not None
    return Problem(
        "the rank table on this host is not the right one"
        if decided
        else "the hosts have different rank tables" + UNDECIDED,
        expected="the same file on every host",
        actual=_difference(whole, there[odd[0]].text) if decided else f"{len(odd)} hosts, {path} differs",
        subject=path,
        hosts=odd,
        confidence=Confidence.CERTAIN if decided else Confidence.SUSPECT,
        evidence=tuple(Evidence(f"{host}: {path}", f"cksum {there[host].checksum}") for host in odd[:6])
        + ((Evidence("the right one", f"cksum {right}"),) if decided else ()),
        commands=(f"cksum {quote(path)}",),
    )


def _difference(right: str, wrong: str) -> str:
    """The first line in which two texts differ; of files that are too large only the checksums are known."""
    if not (right and wrong):
        return "another checksum"
    mine, theirs = right.splitlines(), wrong.splitlines()
    for number, (a, b) in enumerate(zip(mine, theirs, strict=False), 1):
        if a != b:
            return f"line {number}: {b.strip()[:100]!r} instead of {a.strip()[:100]!r}"
    if len(mine) == len(theirs):
        return "the same lines, but other line ends or blanks at the beginning or end"
    return f"{len(theirs)} lines instead of {len(mine)}"
