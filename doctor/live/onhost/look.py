"""Two looks at the processes of jobs: first /proc, then sockets, then Python stacks."""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from doctor.live.onhost import asks, locks, proc, ranks, room, sockets, source, stacks
from doctor.live.onhost.careful import OwnerTurns, carefully
from doctor.live.onhost.launchers import Launchers
from doctor.live.onhost.recognise import candidates
from doctor.live.onhost.tree import Tree

EARLY = 1 << 19
"""The most bytes of a first look that are sent before the second one, so that the first counts even if the
second comes too late. More could make the second look wait for their reader.
"""
MOST_LINES = 400
MOST_OTHERS = 64
MOST_BETWEEN = 7
BUSY_LOOKS = 5
"""The least number of looks in between, at processes that compute: another line shows that they go on."""
MOST_BUSY = 16
ROUND = 0.1
"""Seconds by which the start of a process, or the time of a file, may be rounded."""
COMPARED = ("files", "positions", "kernel", "locks")
"""What only the first and the last look have, besides connections."""
ROWS, WHOLE = 14.0, 22.0
"""Seconds for the search for ranks: for reading the processes the first time, and in total."""
PROC, NETS, STACKS, LINES = 8.0, 4.0, 10.0, 2.0
"""Seconds of a look for each part, one after another, if there is time for all of them."""
LOOK = PROC + NETS + STACKS + LINES
APART = 2.0
"""Seconds between looks, if there are more than two."""


def find(known: "Launchers", own: int, within: float = math.inf, command: "Any" = None) -> "dict[str, Any]":
    """The members of this host's jobs, the launchers without ranks, processes that may be members, and what
    could not be read. It takes at most `within` seconds. `command`: mark what this command has started.
    """
    share = max(0.0, min(1.0, within / WHOLE))
    rows_over, over = time.monotonic() + ROWS * share, time.monotonic() + WHOLE * share
    row_of = partial(proc.row, names=known.names | set(command["names"] if command else ()))
    unread = []
    rows = []
    stuck = []
    owners = proc.owners()
    for (pid, _), row in carefully(
        row_of, [(pid, True) for pid in owners], owners=[*owners.values()], until=rows_over
    ):
        if row is not None:
            rows.append(row)
        else:
            stuck.append((pid, False))
    for (pid, _), row in carefully(row_of, stuck, owners=[owners[pid] for pid, _ in stuck], until=over):
        if row is not None:
            rows.append(dict(row, blocked=True))
            unread.append(f"process {pid}: its command line and variables could not be read in time")
    rows.sort(key=lambda row: row["pid"])
    tree = Tree(known, rows, own, proc.users({row["uid"] for row in rows}), proc.TICKS, proc.uptime())
    found = ranks.members(tree, _ports(candidates(tree), owners, over))
    place = room.Room(room.FOR_MEMBERS, {member["user"] for member in found})
    found = [member for member in found if place.takes(member["user"], member)]
    idle = {m["pid"]: m for m in found if m.get("helps") is None and not m["joins"]}
    for pid, loaded in carefully(
        proc.has_library, list(idle), owners=[m["user"] for m in idle.values()], until=over
    ):
        idle[pid]["joins"] = loaded is not False  # if nothing is known, it may join
        if loaded is None:
            unread.append(f"process {pid}: the libraries that it has loaded could not be read in time")
    pids = {member["pid"] for member in found}
    lacking = ranks.without_ranks(tree, pids) + ranks.unseen(tree, pids)
    net = proc.namespace("self", "net")
    starters = [
        each  # elsewhere, as in containers, the addresses of this host say nothing
        for each in ranks.starters(tree, pids)
        if net and proc.namespace(each["pid"], "net") == net
    ]
    if command:
        _mark(found + starters, command, tree, over)
    others = ranks.may_be_ranks(tree, pids | {one["pid"] for one in starters})[:MOST_OTHERS]
    may_be = _may_be(tree, others, owners, over)
    return {"members": found + starters, "unread": (lacking + unread)[:32], "may_be": may_be}


def _mark(members: "Sequence[dict[str, Any]]", command: "Any", tree: Tree, until: float) -> None:
    """Say of each member that this command has started how the kernel shows it."""
    from doctor.live.onhost import origin  # few looks are for a command

    proofs = origin.Proofs(command, tree, until)
    for member in members:
        member["started"] = proofs.of(member["pid"])


def _may_be(tree: Tree, pids: "Sequence[int]", owners: "Mapping[int, int]", until: float) -> "list[str]":
    """The users of those that have, or may have, loaded a library that creates process groups."""
    known = carefully(proc.has_library, pids, owners=[owners[pid] for pid in pids], until=until)
    found = {tree.user(pid) for pid, loaded in known if tree.rows[pid]["hidden"] or loaded is not False}
    return sorted(found)[:MOST_OTHERS]


def _ports(pids: "Sequence[int]", owners: "Mapping[int, int]", until: float) -> "dict[int, list[int]]":
    """The ports of these processes' connections, at both ends."""
    if not pids:
        return {}
    looks = {}
    starts = [(proc.row((pid, False)) or {"start": -1})["start"] for pid in pids]
    items = [(pid, start, False, True) for pid, start in zip(pids, starts)]  # noqa: B905 (Python 3.6)
    for (pid, *_), look in carefully(proc.seen, items, owners=[owners[pid] for pid in pids], until=until):
        looks[pid] = (look or {}).get("inodes", ())
    inodes = {inode for some in looks.values() for inode in some}
    known, _ = sockets.connections(lambda inode, _: inode in inodes, until=until)
    found = {}
    for pid, some in looks.items():
        ends = [known[inode] for inode in some if inode in known]
        texts = [end[side].rpartition(":")[2] for end in ends for side in ("local", "peer")]
        found[pid] = [int(text) for text in texts if text.isdigit()]
    return found


class Looks:
    """Looks at the members of jobs. The messages go to `say`; nothing here waits for their reader."""

    def __init__(
        self,
        members: "Sequence[Mapping[str, Any]]",
        pyspy: "stacks.PySpy | None",
        say: "Callable[..., None]",
        within: float = 2 * LOOK,
    ) -> None:
        """`within`: seconds that the looks may take, without the time between them."""
        self.members = members
        self.users = {member["pid"]: member["user"] for member in members}
        starts = {member["pid"]: member["start"] for member in members}
        self.starts = {m["pid"]: starts.get(m.get("helps"), m["start"]) for m in members}
        """When each process got its code: a helper may have been forked long after its rank started."""
        self.hidden = {member["user"] for member in members if member.get("hidden")}
        self.pyspy = pyspy
        self.say = say
        self.within = within
        self.silent = set()  # type: set[int]
        """Processes that gave no stack in time. They are not asked again."""
        self.root = os.geteuid() == 0
        self.no_ages = ""
        self.net = proc.namespace("self", "net")
        self.whole = dict.fromkeys([member["pid"] for member in members], True)
        self.loose = []  # type: list[dict[str, Any]]
        """Connections of users whose ranks may not be read."""
        self.told = {}  # type: dict[int, dict[str, int]]
        """Numbers of ranks and world sizes among the local variables of each process."""

    def both(self, apart: float) -> "tuple[float, float]":
        """Make both looks, with further ones in between: of processes that compute, and of all processes if
        the two looks are far apart. Returns when the second look began, and the seconds between the two.
        """
        began = time.monotonic()
        first = self.look(self.within / 2)
        looks = []
        if sum(map(room.size, first)) < EARLY:
            for look in first:
                self.say("look", which="a", look=look)
        else:
            looks = [("a", look) for look in first]
        used = {look["pid"]: look.get("cpu", 0) for look in first}
        between = parts(apart)
        for part, everybody in between:
            wait = began + part - time.monotonic()
            if wait >= 0:
                time.sleep(wait)
                chosen = self.members if everybody else self._busy(used)
                seen = self.look(apart - part, room.FOR_BETWEEN // len(between), True, chosen)
                looks += [("between", look) for look in seen]
        time.sleep(max(0.0, began + apart - time.monotonic()))
        at, passed = time.time(), time.monotonic() - began
        looks += [("b", look) for look in self.look(self.within - max(0.0, passed - apart))]
        for which, look in looks:
            self.say("look", which=which, look=look)
        return at, passed

    def _busy(self, used: "Mapping[int, int]") -> "list[Mapping[str, Any]]":
        """Those that have used the CPU since the first look: ranks before helpers, the busiest first."""
        ticks = {m["pid"]: proc.ticks(m["pid"]) - used.get(m["pid"], 0) for m in self.members}
        busy = [m for m in self.members if ticks[m["pid"]] > 0]
        return sorted(busy, key=lambda m: (m.get("helps") is not None, -ticks[m["pid"]]))[:MOST_BUSY]

    def look(
        self,
        seconds: float,
        whole: int = room.FOR_LOOK,
        brief: bool = False,
        members: "Sequence[Mapping[str, Any]] | None" = None,
    ) -> "list[dict[str, Any]]":
        """One look at these members, or at all. `whole` is the room for them. A `brief` one lacks what is
        compared only between the first and the last look.
        """
        members = self.members if members is None else members
        over = time.monotonic() + seconds
        proc_over = _until(over, PROC, 0.5)
        items = [(m["pid"], m["start"], self.root, self.whole[m["pid"]]) for m in members]
        looks = {}
        owners = [m["user"] for m in members]
        for item, look in carefully(proc.seen, items, owners=owners, until=_until(proc_over, PROC, 0.8)):
            if look is None:
                self.whole[item[0]] = False
            looks[item[0]] = look
        again = [(pid, start, root, False) for pid, start, root, _ in items if looks[pid] is None]
        users = [self.users[pid] for pid, *_ in again]
        for item, look in carefully(proc.seen, again, owners=users, until=proc_over):
            gone = {"pid": item[0], "state": "", "inodes": [], "unread": ["/proc: no answer in time"]}
            looks[item[0]] = gone if look is None else look
        if not brief:
            self._connections(looks, _until(over, NETS, 0.5))
        named = {}  # type: dict[int, list[Any]]
        if self.pyspy is not None:
            self._stacks(looks, over, named)
        if not brief:
            self._locks(looks, named, _until(over, LINES, 1.0))
        place = room.Room(whole, {member["user"] for member in self.members})
        without = ("inodes", "pipes", "polled", *(COMPARED if brief else ()))
        kept = {pid: {k: v for k, v in look.items() if k not in without} for pid, look in looks.items()}
        return [room.fitting(kept[m["pid"]], m["user"], place) for m in members]

    def _connections(self, looks: "Mapping[int, dict[str, Any]]", until: float) -> None:
        """Add the connections of each process."""
        inodes = {inode for look in looks.values() for inode in look["inodes"]}
        named, lent = (proc.users(), proc.lends()) if self.hidden else ({}, [])

        def user(uid: int) -> str:
            return named.get(uid) or named.get(proc.person(uid, lent), f"uid {uid}")

        def wanted(inode: str, uid: int) -> bool:
            return inode in inodes or bool(self.hidden and user(uid) in self.hidden)

        known, self.no_ages = sockets.connections(wanted, until=until)
        local = sockets.local_ends(until=until) if asks.may_ask(looks, known) else {}
        self._add_other_namespaces(looks, known, local, wanted, until)
        asks.add(looks, self.members, known, local)
        for look in looks.values():
            look["connections"] = [known[i] for i in look["inodes"] if i in known][: sockets.MOST_OF_ONE]
        owned = [dict(one, user=user(one["uid"])) for one in known.values()]
        self.loose = [one for one in owned if one["user"] in self.hidden][: sockets.MOST_OF_ONE]

    def _add_other_namespaces(
        self,
        looks: "Mapping[int, dict[str, Any]]",
        known: "dict[str, dict[str, Any]]",
        local: "dict[str, tuple[str, str]]",
        wanted: "sockets.Wanted",
        until: float,
    ) -> None:
        """Add connections in other network namespaces, such as those of containers, which only root sees."""
        inside = {}  # type: dict[str, list[int]]
        for pid, look in looks.items():
            net = proc.namespace(pid, "net")
            if look["state"] not in ("", "Z") and net not in ("", self.net):
                inside.setdefault(net, []).append(pid)
        nets = [*inside]
        turns = OwnerTurns([self.users[inside[net][0]] for net in nets])
        at = turns.next()
        while at is not None:
            pids, began = inside[nets[at]], time.monotonic()
            why = "only root may look into its network namespace"
            if self.root and began < until:
                enter = ["nsenter", "-t", str(pids[0]), "-n", "--"]
                found, why = sockets.connections(wanted, enter, until)
                known.update(found)
                if asks.may_ask({pid: looks[pid] for pid in pids}, known):
                    local.update(sockets.local_ends(enter, until))
            elif self.root:
                why = "there was no time to look into its network namespace"
            for pid in pids if why else ():
                looks[pid]["unread"].append("connections: " + why)
            turns.over(time.monotonic() - began)
            at = turns.next()

    def _locks(
        self, looks: "dict[int, dict[str, Any]]", named: "Mapping[int, Sequence[Any]]", until: float
    ) -> None:
        """Add the locks that each process may wait for. `named`: names of lock files in its stack."""
        table = locks.entries()
        items = [
            (pid, _inside(pid), proc.rights(pid), named.get(pid, ()), table)
            for pid, look in looks.items()
            if look["state"] not in ("", "Z") and locks.concerns(pid, table, named.get(pid, ()))
        ]
        owners = [self.users[item[0]] for item in items]
        users = {}  # type: dict[int, str]
        for (pid, *_), found in carefully(locks.of, items, owners=owners, until=until):
            if found:
                looks[pid]["locks"] = found
            holders = [one for lock in found or () for one in lock["holders"]]
            users = users or (proc.users({one["uid"] for one in holders}) if holders else {})
            for one in holders:
                uid = one.pop("uid")
                one["user"] = users.get(uid, f"uid {uid}")

    def _stacks(self, looks: "dict[int, dict[str, Any]]", over: float, named: "dict[int, list[Any]]") -> None:
        assert self.pyspy is not None
        fit = [m for m in self.members if looks.get(m["pid"], {"state": ""})["state"] not in ("", "Z", "X")]
        fit = [m for m in fit if m["pid"] not in self.silent]
        fit = [m for m in fit if not m.get("hidden")]
        fit = [m for m in fit if m.get("helps") is None or "python" in m["command"].partition(" ")[0]]
        fit.sort(key=lambda member: member.get("helps") is not None)
        owners = {m["pid"]: m["user"] for m in fit}
        seconds = _until(over, STACKS, 0.9) - time.monotonic()
        found, failed = stacks.dumps(self.pyspy, owners, 2 * stacks.processors(), seconds)
        for pid, threads in found.items():
            told = self.told.setdefault(pid, {})
            for thread in threads:
                held = thread.pop("locks", ())
                if thread["tid"] == pid or thread["name"] == "MainThread":
                    named[pid] = [*held]
                for key in stacks.NUMBERS:
                    if key in thread:
                        number = thread.pop(key)
                        if thread["tid"] == pid:
                            told[key] = number
            looks[pid]["python"] = threads
        for pid, why in failed.items():
            looks[pid]["unread"].append("Python stack: " + why)
        # In less time, as between the two looks, a missing answer says nothing about the next look.
        if seconds >= stacks.SECONDS / 2:
            self.silent |= {pid for pid, why in failed.items() if why.startswith(stacks.SILENT)}
        self.add_sources(found, _until(over, LINES, 1.0))

    def add_sources(
        self, found: "Mapping[int, Sequence[dict[str, Any]]]", until: float, most: int = source.INNERMOST
    ) -> None:
        """Read the text of the innermost lines of the users' code: at most this many of each stack."""
        frames = {}  # type: dict[tuple[str, Any, float], list[dict[str, Any]]]
        booted = time.time() - proc.uptime()
        for pid, threads in found.items():
            rights = proc.rights(pid)
            since = round(booted + self.starts[pid] / float(proc.TICKS) + ROUND, 1)
            for frame in source.wanted(list(threads), stacks.is_users, most) if rights else ():
                frames.setdefault((_inside(pid) + frame["file"], rights, since), []).append(frame)
        items = [
            (path, sorted({f["line"] for f in some}), rights, since)
            for (path, rights, since), some in frames.items()
        ][:MOST_LINES]
        for (path, _, rights, since), texts in carefully(
            source.lines, items, owners=[at[2][0] for at in items], until=until
        ):
            for frame in frames[path, rights, since]:
                if texts and str(frame["line"]) in texts:
                    frame["source"] = texts[str(frame["line"])]
                elif texts and source.CHANGED in texts:
                    frame["changed"] = True


def _until(over: float, most: float, share: float) -> float:
    """The deadline of a part of the work that ends at `over`: at most `most` seconds and this share of it."""
    now = time.monotonic()
    return now + max(0.0, min(most, share * (over - now)))


def _inside(pid: int) -> str:
    """The prefix for paths of this process; empty if it has the same mounts as the agent."""
    return "" if proc.namespace(pid, "mnt") in ("", proc.namespace("self", "mnt")) else f"/proc/{pid}/root"


def parts(apart: float) -> "list[tuple[float, bool]]":
    """The times of further looks between the two, in seconds after the first, and whether at all processes:
    only if that is not too often.
    """
    number = max(BUSY_LOOKS, min(MOST_BETWEEN, int(apart / APART) - 1))
    found, last = [], 0.0
    for part in range(1, number + 1):
        at = apart * part / (number + 1)
        everybody = min(at - last, apart - at) > APART - 0.001
        last = at if everybody else last
        found.append((at, everybody))
    return found
