"""The copies of the rank table on the hosts: present, and all the same file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from shlex import quote

from doctor.api import (
    PLAN,
    UNDECIDED,
    Confidence,
    Evidence,
    JobPlan,
    Problem,
    Scope,
    Undecided,
    check,
    maybe,
)
from doctor.facts.tables import RANK_TABLE, TABLE_FILES, HostFile, TableSeen
from doctor.job.plan.draft import TABLES as TABLE_VARIABLES


@check("rank-table-differs", TABLE_FILES, PLAN, maybe(RANK_TABLE), scope=Scope.CLUSTER)
def rank_table_differs(
    files: Mapping[str, Mapping[str, HostFile]], plan: JobPlan, seen: TableSeen | None
) -> Iterator[Problem]:
    """The rank table at the job's path is not the same file on every host.

    Why it matters: each process reads its own host's copy. A copy that was not updated gives its ranks
    different peers from all the others; a missing one makes torch_npu negotiate while the others do not.

    What to do: copy the right file to every host, or put it on a shared file system.
    """
    told = {name: plan.env[name] for name in TABLE_VARIABLES if plan.env.get(name)}
    # If the launch names the path of the table, an old file at the path of --rank-table is not used.
    for path in plan.table_paths:
        if told and path not in told.values():
            continue
        held = {host: found[path] for host, found in files.items() if path in found}
        if told:
            yield from _absent(path, {host: file for host, file in held.items() if file.trouble})
        there = {host: file for host, file in held.items() if not file.trouble}
        given = seen if seen and seen.given and seen.path == path else None
        right = given.checksum if given else _majority(there)
        odd = tuple(host for host, file in there.items() if file.checksum != right)
        if odd:
            yield _odd(path, odd, there, right, given.text.strip() if given else None)
    for name, path in told.items():
        if not path.startswith("/"):
            raise Undecided(f"{name}={path[:100]} depends on the directory in which the job is started")


def _majority(there: Mapping[str, HostFile]) -> str | None:
    """The checksum of most copies; None if undecided."""
    votes = Counter(file.checksum for file in there.values()).most_common()
    return None if len(votes) > 1 and votes[0][1] == votes[1][1] else votes[0][0] if votes else None


def _absent(path: str, files: Mapping[str, HostFile]) -> Iterator[Problem]:
    for trouble in dict.fromkeys(file.trouble for file in files.values()):
        hosts = tuple(host for host, file in files.items() if file.trouble == trouble)
        yield Problem(
            f"the job's rank table: {trouble}",
            expected=f"{path} on every host",
            actual=trouble,
            subject=path,
            hosts=hosts,
            evidence=(Evidence(path, trouble),),
            commands=(f"ls -l {quote(path)}",),
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
    """The first line in which two texts differ; files that are too large were compared without their text."""
    if not (right and wrong):
        return "another checksum"
    mine, theirs = right.splitlines(), wrong.splitlines()
    for number, (a, b) in enumerate(zip(mine, theirs, strict=False), 1):
        if a != b:
            return f"line {number}: {b.strip()[:100]!r} instead of {a.strip()[:100]!r}"
    if len(mine) == len(theirs):
        return "the same lines, but other line ends or blanks at the beginning or end"
    return f"{len(theirs)} lines instead of {len(mine)}"
