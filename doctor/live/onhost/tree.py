"""The process tree of a host. Pure: reads nothing."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from doctor.live.onhost.launchers import Launchers, LaunchSeat
from doctor.live.onhost.programs import (
    TOOLS,
    is_doctor,
    is_notebook,
    is_relay,
    is_shell,
    program,
    runs,
    script,
)

DEEPEST = 64
"""Levels of the process tree that are searched. No job has this many, but anybody can create more."""

Row = Any
"""A result of proc.row."""


def is_python(row: Row) -> bool:
    """By its program too: a process may give itself any title."""
    named = "python" in program(row["command"]) or row["name"].startswith(("python", "pt_"))
    return named or "python" in row["exe"]


def is_mute(row: Row) -> bool:
    return bool(row["state"] == "Z" or row["blocked"])


def line(row: Row) -> str:
    return " ".join(row["command"])[:4096] or "[{}]".format(row["name"])


def is_stale(row: Row) -> bool:
    """Whether its variables are only left over: a small tool or an interactive Python in a shell that has a
    rank exported, or a worker whose rank may be gone.
    """
    tool = program(row["command"]) in TOOLS or is_notebook(row["command"])
    typed = row["typed"] and is_python(row) and not script(row["command"])
    return not row["groups"] and (tool or typed or row["name"].startswith("pt_data_"))


class Tree:
    """The process tree of a host, with its launchers, its seats and doctor's own processes marked."""

    def __init__(
        self,
        known: Launchers,
        rows: "Sequence[Row]",
        own: int = 0,
        users: "Mapping[int, str] | None" = None,
        ticks: int = 100,
        uptime: float = 0.0,
    ) -> None:
        self.known = known
        self.users, self.ticks, self.uptime = users or {}, ticks, uptime
        self.rows = {row["pid"]: row for row in rows}
        self.below = {}  # type: dict[int, list[int]]
        for row in rows:
            self.below.setdefault(row["parent"], []).append(row["pid"])
        ours = [r["pid"] for r in rows if r["pid"] == own or r["ours"] or is_doctor(r["command"])]
        relays = [row["pid"] for row in rows if is_relay(row["command"])]
        self.commands = [child for relay in relays for child in self.children(relay)]
        """What `doctor run` started for the user."""
        self.ours = {pid for one in ours for pid in (one, *self.under(one, self.commands))}
        launchers = ((row["pid"], known.of(row["command"])) for row in rows)
        self.launchers = {pid: launcher for pid, launcher in launchers if launcher is not None}
        self.seats = {}  # type: dict[int, LaunchSeat]
        for row in rows:
            seat = known.seat_of(row["env"])
            if seat is not None and row["pid"] not in self.ours and not is_stale(row):
                self.seats[row["pid"]] = seat
        self.named = {}  # type: dict[int, int]
        """Ranks whose job another process names."""
        self.grouped = {pid for pid in self.rows if self._has_groups(pid)}
        """Processes with threads of process groups. Each is a rank, whatever is below it."""

    def _has_groups(self, pid: int) -> bool:
        row = self.rows[pid]
        return bool(row["groups"] and row["state"] != "Z") and not (pid in self.ours or pid in self.launchers)

    def user(self, pid: int) -> str:
        uid = self.rows[pid]["uid"]
        return self.users.get(uid, f"uid {uid}")

    def age(self, pid: int) -> float:
        return max(0.0, round(self.uptime - int(self.rows[pid]["start"]) / float(self.ticks), 2))

    def env(self, pid: int) -> "dict[str, str]":
        """The variables that name its job."""
        return dict(self.rows[self.named.get(pid, pid)]["env"])

    def seat_as_first(self, pid: int, child: int) -> LaunchSeat:
        """Give a process the first seat beside those of its children."""
        self.named[pid] = child
        self.seats[pid] = self.seats[child].first()
        return self.seats[pid]

    def children(self, pid: int) -> "list[int]":
        return [child for child in self.below.get(pid, ()) if child != pid]

    def under(self, pid: int, without: "Collection[int]" = ()) -> "Iterator[int]":
        """The descendants, the nearest first; not these, nor what is only below them."""
        level, known = self.children(pid), {pid, *without}
        for _ in range(DEEPEST):
            level = [one for one in level if one not in known]
            yield from level
            known.update(level)
            level = [child for one in level for child in self.children(one)]

    def above(self, pid: int) -> "Iterator[int]":
        """The ancestors, the nearest first."""
        known = {pid}
        while pid in self.rows and self.rows[pid]["parent"] not in known and len(known) <= DEEPEST:
            pid = self.rows[pid]["parent"]
            known.add(pid)
            yield pid

    def launchers_above(self, pid: int) -> "Iterator[int]":
        return (one for one in self.above(pid) if one in self.launchers)

    def roots(self) -> "list[int]":
        return [
            pid for pid, row in self.rows.items() if row["parent"] not in self.rows or row["parent"] == pid
        ]

    def tops(self) -> "Iterator[int]":
        """The ranks by their variables: the topmost process of each, above its helpers."""
        todo = [*self.roots(), *(one for one in self.commands if self.rows[one]["parent"] in self.ours)]
        while todo:
            pid = todo.pop(0)
            if pid in self.ours:
                continue
            if pid in self.seats and not self._only_passes_on(pid) and not self._inherits(pid):
                yield pid
                yield from (one for one in self.under(pid) if self._has_own_seat(one, pid))
            else:
                todo += self.children(pid)

    def _inherits(self, pid: int) -> bool:
        """Whether its number is that of a process above it, which got it after its start, as in notebooks."""
        head = next((one for one in self.above(pid) if one in self.grouped), None)
        if head is None or head in self.seats or pid in self.grouped:
            return False
        return runs(self.rows[pid]["command"]) != runs(self.rows[head]["command"])

    def _has_own_seat(self, pid: int, top: int) -> bool:
        """Whether a process below a rank is another rank, not its helper."""
        return pid in self.grouped and pid in self.seats and not self.seats[pid].same(self.seats[top])

    def _only_passes_on(self, pid: int) -> bool:
        """Whether it is a launcher or a shell around the rank, not the rank itself."""
        row, seat = self.rows[pid], self.seats[pid]
        if pid in self.grouped:
            return False
        if pid in self.launchers or is_shell(row["command"]):
            return True
        inside = [each for each in self.under(pid) if each in self.seats]
        if any(each in self.grouped for each in inside):
            return True  # the process that takes part in groups is below
        marks = self.known.marks - row["env"].keys()
        return any(
            self.seats[each].weight >= seat.weight
            and (not self.seats[each].same(seat) or not marks.isdisjoint(self.rows[each]["env"]))
            for each in inside
        )
