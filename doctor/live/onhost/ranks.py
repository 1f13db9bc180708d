"""The members of a host's jobs: ranks and their helpers, and what may be ranks. Pure: reads nothing.

Helpers inherit the variables of their rank, and launchers may have a rank number themselves. So the rank is
the topmost process with a number below all launchers and shells. A process with threads of process groups is
a rank, whatever is above or below it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from doctor.live.onhost.programs import is_doctor
from doctor.live.onhost.recognise import recognised
from doctor.live.onhost.tree import Tree, is_python, is_stale, line

MOST = 4000
MOST_STARTERS = 64
MOST_HELPERS = 64
"""The most helpers of one rank."""
RANKLESS = "has no rank here"
"""Part of the message about a launcher without ranks."""


def members(tree: Tree, ports: "Mapping[int, Sequence[int]] | None" = None) -> "list[dict[str, Any]]":
    """The ranks and their helpers. `ports`: the ports of TCP connections of processes without a number, if
    they were read.
    """
    found = recognised(tree, ports or {})
    pids = {one["pid"] for one in found}
    for rank in found[:]:
        helpers = _helpers(tree, rank, pids)
        pids.update(one["pid"] for one in helpers)
        found += helpers
    for one in found:
        row = tree.rows[one["pid"]]
        one["user"], one["age"] = tree.user(one["pid"]), tree.age(one["pid"])
        one["start"], one["joins"] = row["start"], row["groups"]
    return _shared(found)


def _shared(found: "list[dict[str, Any]]") -> "list[dict[str, Any]]":
    """At most MOST members, shared equally among the users, so that no user can crowd out the others."""
    users = {one["user"] for one in found}
    kept = dict.fromkeys(users, MOST if len(found) <= MOST else MOST // len(users))
    chosen = []
    for one in found:
        kept[one["user"]] -= 1
        if kept[one["user"]] >= 0:
            chosen.append(one)
    return chosen


def _helpers(tree: Tree, rank: "dict[str, Any]", known: "set[int]") -> "list[dict[str, Any]]":
    return [
        dict(
            rank,
            pid=pid,
            parent=tree.rows[pid]["parent"],
            helps=rank["pid"],
            rank=None,
            command=line(tree.rows[pid]),
        )
        for pid in [pid for pid in tree.under(rank["pid"], known) if pid not in tree.ours][:MOST_HELPERS]
    ]


def unseen(tree: Tree, found: "Collection[int]" = ()) -> "list[str]":
    """Messages about users whose processes may be unreadable ranks. `found`: the processes that were seen."""
    counts = {}  # type: dict[str, int]
    for pid, row in tree.rows.items():
        known = pid in found or pid in tree.launchers or is_doctor(row["command"])
        if row["hidden"] and is_python(row) and not known:
            counts[tree.user(pid)] = counts.get(tree.user(pid), 0) + 1
    return [
        f"{count} Python processes of {name} may be ranks: only this user and root may read their variables"
        for name, count in sorted(counts.items())
    ][:16]


def without_ranks(tree: Tree, found: "Collection[int]") -> "list[str]":
    """Messages about launchers with no rank among their descendants."""
    why = "it is still starting some, or waits for other hosts"
    return [
        f"{tree.launchers[pid]['name']} (pid {pid}, {tree.user(pid)}) {RANKLESS}: {why}"
        for pid in _starting(tree, found)
    ][:16]


def starters(tree: Tree, found: "Collection[int]") -> "list[dict[str, Any]]":
    """The launchers with no rank among their descendants, as members with their words and variables."""
    return [
        {
            "pid": pid,
            "parent": row["parent"],
            "job": "",
            "launcher": tree.launchers[pid]["name"],
            "command": line(row),
            "words": row["command"],
            "env": {name: row["env"][name] for name in tree.known.settings if name in row["env"]},
            "user": tree.user(pid),
            "age": tree.age(pid),
            "start": row["start"],
            "joins": True,
            "hidden": row["hidden"],
        }
        for pid, row in ((pid, tree.rows[pid]) for pid in _starting(tree, found))
    ][:MOST_STARTERS]


def _starting(tree: Tree, found: "Collection[int]") -> "Iterator[int]":
    starts = {p for p, row in tree.rows.items() if tree.known.starts_ranks_here(row["command"])} - tree.ours
    pids = {*found}
    for pid in sorted(starts):
        below = [*tree.under(pid)]
        unsure = any(tree.rows[each]["hidden"] and is_python(tree.rows[each]) for each in below)
        if starts.isdisjoint(tree.above(pid)) and pids.isdisjoint(below) and not unsure:
            yield pid


def may_be_ranks(tree: Tree, found: "Collection[int]") -> "list[int]":
    """Other Python programs: they may be launchers or ranks that were not recognised."""
    known_ones = {*found, *tree.ours, *tree.launchers}
    apart = (pid for pid in tree.rows if pid not in known_ones and known_ones.isdisjoint(tree.above(pid)))
    return [pid for pid in apart if is_python(tree.rows[pid]) and not is_stale(tree.rows[pid])]
