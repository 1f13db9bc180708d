"""Which processes of a host are ranks, and which are their helpers. Pure: reads nothing.

Helpers inherit the variables of their rank, and launchers may have a rank number themselves. So the rank is
the topmost process with a number below all launchers and shells.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from doctor.hang.onhost.launchers import NOBODY, Launchers, LaunchSeat, number
from doctor.hang.onhost.programs import TOOLS, is_doctor, is_notebook, is_shell, program, script

MOST = 4000
MOST_HELPERS = 64
"""The most helpers of one rank."""
MOST_ABOVE = 16
DEEPEST = 64
"""Levels of the process tree that are searched. No job has this many, but anybody can create more."""


RANKLESS = "has no rank here"
"""Part of the message about a launcher without ranks."""

Row = Any
"""A result of proc.row."""


def is_python(row: Row) -> bool:
    return "python" in program(row["command"]) or row["name"].startswith(("python", "pt_"))


def is_stale(row: Row) -> bool:
    """Whether its variables are only left over: a small tool or an interactive Python in a shell that has a
    rank exported, or a worker whose rank may be gone.
    """
    tool = program(row["command"]) in TOOLS or is_notebook(row["command"])
    typed = row["typed"] and is_python(row) and not script(row["command"])
    return not row["groups"] and (tool or typed or row["name"].startswith("pt_data_"))


class Tree:
    """The process tree of a host, with its launchers, its seats and doctor's own processes marked."""

    def __init__(self, known: Launchers, rows: "Sequence[Row]", own: int = 0) -> None:
        self.known = known
        self.rows = {row["pid"]: row for row in rows}
        self.below = {}  # type: dict[int, list[int]]
        for row in rows:
            self.below.setdefault(row["parent"], []).append(row["pid"])
        ours = [r["pid"] for r in rows if r["pid"] == own or r["ours"] or is_doctor(r["command"])]
        self.ours = {pid for one in ours for pid in (one, *self.under(one))}
        launchers = ((row["pid"], known.of(row["command"])) for row in rows)
        self.launchers = {pid: launcher for pid, launcher in launchers if launcher is not None}
        self.seats = {}  # type: dict[int, LaunchSeat]
        for row in rows:
            seat = known.seat_of(row["env"])
            if seat is not None and row["pid"] not in self.ours and not is_stale(row):
                self.seats[row["pid"]] = seat

    def children(self, pid: int) -> "list[int]":
        return [child for child in self.below.get(pid, ()) if child != pid]

    def under(self, pid: int) -> "Iterator[int]":
        """The descendants, the nearest first."""
        level, known = self.children(pid), {pid}
        for _ in range(DEEPEST):
            level = [one for one in level if one not in known]
            yield from level
            known.update(level)
            level = [child for one in level for child in self.children(one)]

    def roots(self) -> "list[int]":
        return [
            pid for pid, row in self.rows.items() if row["parent"] not in self.rows or row["parent"] == pid
        ]

    def tops(self) -> "Iterator[int]":
        """The ranks by their variables: the topmost process of each, above its helpers."""
        todo = self.roots()
        while todo:
            pid = todo.pop(0)
            if pid in self.ours:
                continue
            if pid in self.seats and not self._only_passes_on(pid):
                yield pid
            else:
                todo += self.children(pid)

    def _only_passes_on(self, pid: int) -> bool:
        """Whether it is a launcher or a shell around the rank, not the rank itself."""
        row, seat = self.rows[pid], self.seats[pid]
        if pid in self.launchers or is_shell(row["command"]):
            return True
        inside = [each for each in self.under(pid) if each in self.seats]
        if not row["groups"] and any(self.rows[each]["groups"] for each in inside):
            return True  # the process that takes part in groups is below
        marks = self.known.marks - row["env"].keys()
        return any(
            self.seats[each].weight >= seat.weight
            and (not self.seats[each].same(seat) or not marks.isdisjoint(self.rows[each]["env"]))
            for each in inside
        )


def members(
    known: Launchers,
    rows: "Sequence[Row]",
    own: int = 0,
    ports: "Mapping[int, Sequence[int]] | None" = None,
    ticks: int = 100,
    uptime: float = 0.0,
    users: "Mapping[int, str] | None" = None,
) -> "list[dict[str, Any]]":
    """The ranks and their helpers. `ports`: the ports of TCP connections of processes without a number, if
    they were read.
    """
    tree = Tree(known, rows, own)
    tops = _one_of_a_seat(tree, list(tree.tops()))
    taken = {pid for top in tops for pid in (top, *tree.under(top))}
    forked = [pid for pid in _without_number(tree, ports or {}) if pid not in taken]
    found = [_rank(tree, top, tree.seats[top]) for top in tops] + [_rank(tree, pid, NOBODY) for pid in forked]
    found += _unread(tree, found, taken)
    found += _hidden(tree, taken | {one["pid"] for one in found})
    pids = {one["pid"] for one in found}
    for rank in found[:]:
        helpers = _helpers(tree, rank, pids)
        pids.update(one["pid"] for one in helpers)
        found += helpers
    for one in found:
        row = tree.rows[one["pid"]]
        one["user"] = (users or {}).get(row["uid"], "uid {}".format(row["uid"]))
        one["age"] = max(0.0, round(uptime - row["start"] / float(ticks), 2))
        one["start"] = row["start"]
        one["joins"] = row["groups"]
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


def _without_number(tree: Tree, ports: "Mapping[int, Sequence[int]]") -> "list[int]":
    """Ranks without a number in their variables, such as forked or spawned processes. They take part in
    process groups. If a process has children that do so as well, the children are the ranks.
    """
    part = {
        pid
        for pid, row in tree.rows.items()
        if pid not in tree.ours
        and row["state"] != "Z"
        and not row["hidden"]
        and pid not in tree.launchers
        and (row["groups"] or (is_python(row) and _port_of(tree, pid) in ports.get(pid, ())))
    }
    tops = [pid for pid in sorted(part) if part.isdisjoint(_above(tree, pid))]
    return [rank for top in tops for rank in ([p for p in tree.children(top) if p in part] or [top])]


def candidates(known: Launchers, rows: "Sequence[Row]", own: int = 0) -> "list[int]":
    """Processes whose connections can show whether they are ranks."""
    tree = Tree(known, rows, own)
    return [
        pid
        for pid, row in tree.rows.items()
        if pid not in tree.ours and pid not in tree.seats and is_python(row) and _port_of(tree, pid)
    ]


def _port_of(tree: Tree, pid: int) -> "int | None":
    return number(tree.known.master_of(tree.rows[pid]["env"]).rpartition(":")[2])


def _above(tree: Tree, pid: int) -> "Iterator[int]":
    known = {pid}
    while pid in tree.rows and tree.rows[pid]["parent"] not in known and len(known) <= DEEPEST:
        pid = tree.rows[pid]["parent"]
        known.add(pid)
        yield pid


def _rank(tree: Tree, pid: int, seat: LaunchSeat) -> "dict[str, Any]":
    row = tree.rows[pid]
    return {
        "pid": pid,
        "parent": row["parent"],
        "above": _up_to_launcher(tree, pid),
        "launched": next(_launchers(tree, pid), None),
        "job": tree.known.job_of(row["env"], row["parent"]),
        "rank": seat.rank,
        "world": seat.world,
        "launcher": _launcher(tree, pid) or seat.launcher,
        "command": _line(row),
        "master": tree.known.master_of(row["env"]),
        "slurm_job": tree.known.job_number_of(row["env"]),
    }


def _up_to_launcher(tree: Tree, pid: int) -> "list[int]":
    """Its ancestors up to the topmost launcher. If there is no launcher, only its parent, unless that is
    process 1, which adopts orphans.
    """
    above = [one for one in _above(tree, pid) if one in tree.rows]
    starts = [at for at, one in enumerate(above) if one in tree.launchers]
    kept = above[: max(starts, default=0) + 1]
    return [one for one in kept if one != 1 or starts][:MOST_ABOVE]


def _launchers(tree: Tree, pid: int) -> "Iterator[int]":
    """The launchers above it, the nearest first."""
    return (one for one in _above(tree, pid) if one in tree.launchers)


def _launcher(tree: Tree, pid: int) -> str:
    """The name of the launcher above it, if that sets no numbers, so that variables cannot show it."""
    above = (tree.launchers[one] for one in _launchers(tree, pid))
    return next((one["name"] for one in above if not one["numbers"] and not one["outer"]), "")


def _line(row: Row) -> str:
    return " ".join(row["command"])[:4096] or "[{}]".format(row["name"])


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
        mute = [p for p in tree.children(parent) if p not in taken and _is_mute(tree.rows[p])]
        seats = [tree.seats[rank["pid"]] for rank in alike if rank["pid"] in tree.seats]
        missing = _missing(seats)
        for pid in mute:
            number = missing[0] if len(mute) == len(missing) == 1 else None
            found.append(dict(alike[0], pid=pid, rank=number, command=_line(tree.rows[pid])))
    return found


def _is_mute(row: Row) -> bool:
    return bool(row["state"] == "Z" or row["blocked"])


def _missing(seats: "Sequence[LaunchSeat]") -> "list[int]":
    """The numbers of this host's ranks without a process, if ranks are numbered host by host."""
    size = seats[0].size if seats else None
    firsts = {s.rank - s.local for s in seats if s.rank is not None and s.local is not None}
    if size is None or len(firsts) != 1 or size > 1024:
        return []
    (first,) = firsts
    return sorted(set(range(first, first + size)) - {s.rank for s in seats if s.rank is not None})


def _helpers(tree: Tree, rank: "dict[str, Any]", known: "set[int]") -> "list[dict[str, Any]]":
    below = [pid for pid in tree.under(rank["pid"]) if pid not in tree.ours and pid not in known]
    return [
        dict(
            rank,
            pid=pid,
            parent=tree.rows[pid]["parent"],
            helps=rank["pid"],
            rank=None,
            command=_line(tree.rows[pid]),
        )
        for pid in below[:MOST_HELPERS]
    ]


def _hidden(tree: Tree, taken: "set[int]") -> "list[dict[str, Any]]":
    """Ranks whose variables may not be read: processes that take part in process groups, or several equal
    ones below a launcher. Ended processes beside them are included.
    """
    part = {pid for pid in tree.rows if pid not in taken and _may_be_rank(tree, pid)}
    tops = [pid for pid in sorted(part) if part.isdisjoint(_above(tree, pid))]
    ranks = [rank for top in tops for rank in ([p for p in tree.children(top) if p in part] or [top])]
    for parent in sorted({tree.rows[pid]["parent"] for pid in ranks}):
        names = {tree.rows[pid]["name"] for pid in ranks if tree.rows[pid]["parent"] == parent}
        beside = [pid for pid in tree.children(parent) if pid not in taken and pid not in ranks]
        ranks += [pid for pid in beside if _is_mute(tree.rows[pid]) and tree.rows[pid]["name"] in names]
    return [dict(_unseen_rank(tree, pid), hidden=True) for pid in ranks]


def _may_be_rank(tree: Tree, pid: int) -> bool:
    return _takes_part(tree, pid) or _is_launched(tree, pid)


def _takes_part(tree: Tree, pid: int) -> bool:
    row = tree.rows[pid]
    return bool(row["hidden"] and row["groups"]) and pid not in tree.ours and pid not in tree.launchers


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
    above = [one for one in _above(tree, pid) if one in tree.rows]
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


def unseen(
    known: Launchers, rows: "Sequence[Row]", users: "Mapping[int, str]", found: "Collection[int]" = ()
) -> "list[str]":
    """Messages about users whose processes may be unreadable ranks. `found`: the processes that were seen."""
    counts = {}  # type: dict[str, int]
    for row in rows:
        if row["pid"] in found:
            continue
        if row["hidden"] and is_python(row) and not (is_doctor(row["command"]) or known.of(row["command"])):
            name = users.get(row["uid"], "uid {}".format(row["uid"]))
            counts[name] = counts.get(name, 0) + 1
    return [
        f"{count} Python processes of {name} may be ranks: only this user and root may read their variables"
        for name, count in sorted(counts.items())
    ][:16]


def without_ranks(
    known: Launchers, rows: "Sequence[Row]", users: "Mapping[int, str]", found: "Collection[int]"
) -> "list[str]":
    """Messages about launchers with no rank among their descendants."""
    tree = Tree(known, rows)
    starts = {pid for pid, row in tree.rows.items() if known.starts_ranks_here(row["command"])} - tree.ours
    said = []
    pids = {*found}
    for pid in sorted(starts):
        below = [*tree.under(pid)]
        unsure = any(tree.rows[each]["hidden"] and is_python(tree.rows[each]) for each in below)
        if starts.isdisjoint(_above(tree, pid)) and pids.isdisjoint(below) and not unsure:
            name = tree.launchers[pid]["name"]
            user = users.get(tree.rows[pid]["uid"], "uid {}".format(tree.rows[pid]["uid"]))
            why = "it is still starting some, or waits for other hosts"
            said.append(f"{name} (pid {pid}, {user}) {RANKLESS}: {why}")
    return said[:16]
