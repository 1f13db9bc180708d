"""Recognises ranks: by variables, by threads of process groups, by connections, and beside other ranks.

Pure: reads nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from doctor.live.onhost.launchers import NAMELESS, NOBODY, LaunchSeat, number
from doctor.live.onhost.programs import is_shell
from doctor.live.onhost.tree import Tree, is_mute, is_python, line

MOST_ABOVE = 16


def recognised(tree: Tree, ports: "Mapping[int, Sequence[int]]") -> "list[dict[str, Any]]":
    """All ranks, without their helpers. `ports`: the ports of TCP connections of processes without a number,
    if they were read.
    """
    tops = _one_of_a_seat(tree, list(tree.tops()))
    tops += _first_of_families(tree, tops)
    taken = {pid for top in tops for pid in (top, *tree.under(top))}
    without = [pid for pid in _without_number(tree, ports) if pid not in tops]
    without = [pid for pid in without if pid not in taken or pid in tree.grouped]
    found = [_rank(tree, top, tree.seats[top]) for top in tops]
    found += [_rank(tree, pid, NOBODY) for pid in without]
    found += _unread(tree, found, taken)
    found += _hidden(tree, taken | {one["pid"] for one in found})
    return _named_alike(tree, found)


def _named_alike(tree: Tree, found: "list[dict[str, Any]]") -> "list[dict[str, Any]]":
    """The ranks, each without a job of its own in that of the nearest rank above it, or of those below."""
    ranks = {one["pid"]: one for one in found}
    for pid, one in ranks.items():
        if not one["job"].startswith(NAMELESS):
            head = next((ranks[each] for each in tree.above(pid) if each in ranks), None)
            if head is not None and head["job"].startswith(NAMELESS):
                head.update(job=one["job"], master=one["master"])
    for pid, one in ranks.items():
        head = next((ranks[each] for each in tree.above(pid) if each in ranks), None)
        if head is not None and one["job"].startswith(NAMELESS):
            one.update(job=head["job"], master=head["master"])
    return found


def _one_of_a_seat(tree: Tree, tops: "list[int]") -> "list[int]":
    """The processes that really are ranks, if several have the same number. In a pipe such as
    `python train.py | grep x`, the Python process is the rank. If some of one user's processes take part in
    process groups, only those are ranks.
    """
    pipes = {}  # type: dict[tuple[Any, ...], list[int]]
    seats = {}  # type: dict[tuple[Any, ...], list[int]]
    for pid in tops:
        row = tree.rows[pid]
        seat = row["uid"], tree.known.job_of(row["env"], row["parent"]), tree.seats[pid].rank
        pipes.setdefault((*seat, row["parent"]), []).append(pid)
        seats.setdefault(seat, []).append(pid)
    kept = set()  # type: set[int]
    for pids in pipes.values():
        kept.update([pid for pid in pids if is_python(tree.rows[pid])] or pids)
    for (*_, rank), pids in seats.items():
        part = [pid for pid in pids if tree.rows[pid]["groups"]]
        if part and rank is not None:
            kept.difference_update(set(pids) - set(part))
    return [pid for pid in tops if pid in kept]


def _first_of_families(tree: Tree, tops: "Sequence[int]") -> "list[int]":
    """Number the ranks that know their number only among those of their host. Returns the processes that have
    started them and are the first of them, as Lightning's `python train.py` is.
    """
    families = {}  # type: dict[int, list[int]]
    for pid in tops:
        if tree.seats[pid].node is not None:
            families.setdefault(tree.rows[pid]["parent"], []).append(pid)
    heads = []
    for parent, pids in families.items():
        seats = [tree.seats[pid] for pid in pids]
        if _is_first(tree, parent, seats):
            heads.append(parent)
            seats.append(tree.seat_as_first(parent, pids[0]))
        size = 1 + max(seat.local or 0 for seat in seats)
        for seat in seats:
            seat.count_on_hosts_of(size)
    return heads


def _is_first(tree: Tree, parent: int, seats: "Sequence[LaunchSeat]") -> bool:
    row = tree.rows.get(parent)
    if row is None or parent in tree.launchers or parent in tree.seats or parent in tree.ours:
        return False
    return is_python(row) and all(seat.local for seat in seats)


def _without_number(tree: Tree, ports: "Mapping[int, Sequence[int]]") -> "list[int]":
    """Ranks without a number in their variables, such as forked or spawned processes. They take part in
    process groups. Among those that only meet others, the children are the ranks if there are any.
    """
    part = {pid for pid in tree.rows if _takes_part(tree, pid, ports.get(pid, ()))}
    return [pid for pid in _lowest(tree, part) if not tree.rows[pid]["hidden"]]


def _takes_part(tree: Tree, pid: int, ports: "Sequence[int]") -> bool:
    if pid in tree.grouped:
        return True
    row = tree.rows[pid]
    apart = pid in tree.ours or pid in tree.launchers or row["hidden"] or row["state"] == "Z"
    return not apart and is_python(row) and _port_of(tree, pid) in ports


def _lowest(tree: Tree, part: "set[int]") -> "list[int]":
    """Those with threads of process groups. Of the others the topmost, or their children if any."""
    tops = [pid for pid in sorted(part) if part.isdisjoint(tree.above(pid))]
    ranks = [rank for top in tops for rank in ([p for p in tree.children(top) if p in part] or [top])]
    return [pid for pid in sorted(part) if pid in tree.grouped or pid in ranks]


def _port_of(tree: Tree, pid: int) -> "int | None":
    return number(tree.known.master_of(tree.rows[pid]["env"]).rpartition(":")[2])


def _rank(tree: Tree, pid: int, seat: LaunchSeat) -> "dict[str, Any]":
    row = tree.rows[pid]
    env = tree.env(pid)
    return {
        "pid": pid,
        "parent": row["parent"],
        "above": _up_to_launcher(tree, pid),
        "launched": next(tree.launchers_above(pid), None),
        "job": tree.known.job_of(env, row["parent"]),
        "rank": seat.rank,
        "world": seat.world,
        "launcher": _launcher(tree, pid) or seat.launcher,
        "command": line(row),
        "master": tree.known.master_of(env),
        "slurm_job": tree.known.job_number_of(env),
    }


def _up_to_launcher(tree: Tree, pid: int) -> "list[int]":
    """Its ancestors up to the topmost launcher. If there is no launcher, only its parent, unless that is
    process 1, which adopts orphans.
    """
    above = [one for one in tree.above(pid) if one in tree.rows]
    starts = [at for at, one in enumerate(above) if one in tree.launchers]
    return [one for one in above[: max(starts, default=0) + 1] if one != 1 or starts][:MOST_ABOVE]


def _launcher(tree: Tree, pid: int) -> str:
    """The name of the launcher above it, if that sets no numbers, so that variables cannot show it."""
    above = (tree.launchers[one] for one in tree.launchers_above(pid))
    return next((one["name"] for one in above if not one["numbers"] and not one["outer"]), "")


def _unread(tree: Tree, ranks: "Sequence[dict[str, Any]]", taken: "set[int]") -> "list[dict[str, Any]]":
    """Ranks whose variables cannot be read, found beside other ranks: they are blocked in the kernel, or they
    have ended and their launcher has not collected them yet.
    """
    found = []
    by_parent = {}  # type: dict[int, list[dict[str, Any]]]
    for rank in ranks:
        by_parent.setdefault(rank["parent"], []).append(rank)
    for parent, alike in sorted(by_parent.items()):
        if parent not in tree.launchers:
            continue
        mute = [p for p in tree.children(parent) if p not in taken and is_mute(tree.rows[p])]
        missing = _missing([tree.seats[rank["pid"]] for rank in alike if rank["pid"] in tree.seats])
        for pid in mute:
            number = missing[0] if len(mute) == len(missing) == 1 else None
            found.append(dict(alike[0], pid=pid, rank=number, command=line(tree.rows[pid])))
    return found


def _missing(seats: "Sequence[LaunchSeat]") -> "list[int]":
    """The numbers of this host's ranks without a process, if ranks are numbered host by host."""
    size = seats[0].size if seats else None
    firsts = {s.rank - s.local for s in seats if s.rank is not None and s.local is not None}
    if size is None or len(firsts) != 1 or size > 1024:
        return []
    (first,) = firsts
    return sorted(set(range(first, first + size)) - {s.rank for s in seats if s.rank is not None})


def _hidden(tree: Tree, taken: "set[int]") -> "list[dict[str, Any]]":
    """Ranks whose variables may not be read: processes that take part in process groups, or several equal
    ones below a launcher. Ended processes beside them are included.
    """
    part = {pid for pid in tree.rows if pid in tree.grouped and tree.rows[pid]["hidden"]}
    part = {pid for pid in tree.rows if pid not in taken and (pid in part or _is_launched(tree, pid))}
    ranks = _lowest(tree, part)
    for parent in sorted({tree.rows[pid]["parent"] for pid in ranks}):
        names = {tree.rows[pid]["name"] for pid in ranks if tree.rows[pid]["parent"] == parent}
        beside = [pid for pid in tree.children(parent) if pid not in taken and pid not in ranks]
        ranks += [pid for pid in beside if is_mute(tree.rows[pid]) and tree.rows[pid]["name"] in names]
    return [dict(_unseen_rank(tree, pid), hidden=True) for pid in ranks]


def _is_launched(tree: Tree, pid: int) -> bool:
    """Whether it is one of several equal processes below a launcher."""
    row = tree.rows[pid]
    if not row["hidden"] or row["parent"] not in tree.launchers or pid in tree.ours:
        return False
    alike = [p for p in tree.children(row["parent"]) if tree.rows[p]["command"] == row["command"]]
    return len(alike) > 1 and is_python(row) and not is_shell(row["command"])


def _unseen_rank(tree: Tree, pid: int) -> "dict[str, Any]":
    """A rank that may not be read, described by the command lines above it, which everybody may read."""
    rank = _rank(tree, pid, NOBODY)
    above = [one for one in tree.above(pid) if one in tree.rows]
    commands = [tree.rows[one]["command"] for one in above]
    launchers = [one for one in above if one in tree.launchers]
    if launchers:
        rank["launcher"] = rank["launcher"] or tree.launchers[launchers[0]]["name"]
    job, number = next((found for found in map(tree.known.step_by, commands) if found[0]), ("", ""))
    masters = (tree.known.master_by(tree.rows[one]["command"]) for one in launchers)
    master, run = next((found for found in masters if found[0]), ("", ""))
    if job:
        rank.update(job=job, slurm_job=number)
    if master:
        rank.update(job=master + (" run " + run if run else ""), master=master)
    return rank


def candidates(tree: Tree) -> "list[int]":
    """Processes whose connections can show whether they are ranks."""
    return [
        pid
        for pid, row in tree.rows.items()
        if pid not in tree.ours and pid not in tree.seats and is_python(row) and _port_of(tree, pid)
    ]
