"""What launchers set for their ranks, by the table that the controller sends. Pure: reads nothing.

`doctor.job.launch.brief` builds the table from all launchers that doctor knows.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from posixpath import basename
from typing import Any

Row = Any
NAMELESS = "started by process"
"""The start of the name of a job that has no name of its own."""


class LaunchSeat:
    """Rank, world size and so on, as the variables of a process give them. If several launchers set them, the
    inner one has the higher `weight` and counts.
    """

    def __init__(self, weight: int, rank: str, world: str, local: str, size: str, launcher: str) -> None:
        self.weight = weight
        self.rank = number(rank)
        self.world = number(world)
        self.local = number(local)
        self.size = number(size)
        """How many ranks its host has, if they are numbered consecutively."""
        self.launcher = launcher
        self.node = None  # type: int | None
        """The number of its host, if its variables give only that and its number there."""

    def first(self) -> "LaunchSeat":
        """The first seat of its host."""
        seat = LaunchSeat(
            self.weight, "", "" if self.world is None else str(self.world), "0", "", self.launcher
        )
        seat.node = self.node
        return seat

    def count_on_hosts_of(self, size: int) -> None:
        """Number it, if every host has so many ranks."""
        if self.node == 0 or (self.node and self.world and self.world % size == 0):
            self.rank = self.node * size + (self.local or 0)

    def same(self, other: "LaunchSeat") -> bool:
        return (self.rank, self.world) == (other.rank, other.world)


def number(text: str) -> "int | None":
    return int(text) if re.match(r"\d{1,7}\Z", text) else None


NOBODY = LaunchSeat(0, "", "", "", "", "")


class Launchers:
    def __init__(self, table: "Mapping[str, Any]") -> None:
        self.names = frozenset(table["names"])
        """The variables that launchers set."""
        self.marks = frozenset(table["marks"])
        """Variables that only launchers set, not people or platforms."""
        self.settings = frozenset(table["settings"])
        """Variables that stand for options of launchers."""
        self._table = table
        self._commands = {name: row for row in table["launchers"] for name in row["commands"]}
        self._programs = {name: row for row in table["launchers"] for name in row["programs"]}
        self._modules = {name: row for row in table["launchers"] for name in row["modules"]}
        self._files = {"/" + name.replace(".", "/") + ".py": row for name, row in self._modules.items()}

    # From command lines.

    def of(self, command: "Sequence[str]") -> "Row | None":
        """The launcher that this command line starts; None if it does not start one."""
        for name in map(basename, command[:2]):
            row = self._commands.get(name) or self._programs.get(name)
            if row is not None and (not row["subcommand"] or row["subcommand"] in command[:4]):
                return row
        module = 2 + next((at for at, word in enumerate(command) if word == "-m"), 0)
        found = [self._modules.get(word) for word in command[:module]] + list(map(self._script, command[1:4]))
        return next(filter(None, found), None)

    def _script(self, word: str) -> "Row | None":
        return next((row for end, row in self._files.items() if word.endswith(end)), None)

    def starts_ranks_here(self, command: "Sequence[str]") -> bool:
        """Whether it is a launcher whose ranks run on its own host."""
        row = self.of(command)
        here = not self._programs.keys().isdisjoint(map(basename, command[:2]))
        return row is not None and (here or not row["outer"])

    def master_by(self, command: "Sequence[str]") -> "tuple[str, str]":
        """The rendezvous and the run id in a launcher's command line; empty if its address is local."""
        row = self.of(command)
        if row is None:
            return "", ""
        said = {}  # type: dict[str, str]
        for at, word in enumerate(command):
            if word.endswith(".py") and not self._script(word):
                break
            name, given, value = word.partition("=")
            called = row["options"].get(name[2:].replace("-", "_")) if name.startswith("--") else None
            if called:
                said.setdefault(called, value if given else "".join(command[at + 1 : at + 2]))
        master = said.get("rdzv_endpoint") or ""
        if not master and said.get("master_addr"):
            master = "{}:{}".format(said["master_addr"], said.get("master_port", row["port"]))
        here = master.startswith(("localhost", "127.", "[::1]", "::1"))
        return ("", "") if here else (master[:200], said.get("id", "")[:40])

    def step_by(self, command: "Sequence[str]") -> "tuple[str, str]":
        """The name and the number of the job for which a daemon runs, by its command line; else empty."""
        for word, title in self._table["titles"]:
            found = re.match(title, " ".join(command[:2]))
            if found:
                return "{} {}".format(word, ".".join(found.groups())), found.group(1)
        return "", ""

    # From variables.

    def seat_of(self, env: "Mapping[str, str]") -> "LaunchSeat | None":
        """The seat of a process with these variables; None if they give it no rank."""
        rows = self._rows(env)
        row = next((row for row in rows if _counts(row, env)), None)
        if row is None:
            return next(filter(None, (_on_host(row, env) for row in rows)), None)
        if any(env.get(name) in others for name, others in self._table["roles"].items()):
            return None
        launcher = next((r["launcher"] for r in rows if r["launcher"] and _counts(r, env)), "")
        numbered = [name for name in row["rank"] if number(env.get(name, "")) is not None]
        rank, world = _first(env, numbered), _first(env, row["world"])
        local, size = env.get(row["local"], ""), env.get(row["local_world"], "")
        return LaunchSeat(len(rows) - rows.index(row), rank, world, local, size, row["launcher"] or launcher)

    def _rows(self, env: "Mapping[str, str]") -> "list[Row]":
        """The rows of the table. The rows of launchers that have set a role in `env` come first."""
        return sorted(self._table["ranks"], key=lambda row: not env.get(row["role"]))

    def master_of(self, env: "Mapping[str, str]") -> str:
        for address, port in [row["meeting"] for row in self._rows(env)]:
            if env.get(port):
                return "{}:{}".format(env.get(address, ""), env[port])[:256]
        return ""

    def job_of(self, env: "Mapping[str, str]", parent: int) -> str:
        """The name of the job, which is the same for all its ranks on all hosts."""
        master = self.master_of(env)
        if master:
            runs = [env[name] for name, none in self._table["runs"] if env.get(name, "") not in ("", none)]
            return " ".join([master] + ["run " + run for run in runs[:1]])[:256]
        for word, names in self._table["jobs"]:
            if env.get(names[0]):
                return "{} {}".format(word, ".".join(env.get(name, "") for name in names))[:256]
        return f"{NAMELESS} {parent}"

    def job_number_of(self, env: "Mapping[str, str]") -> str:
        """The number of the job; for a task of a job array also "JOB_TASK"."""
        return " ".join(self._job_numbers(env))[:256]

    def _job_numbers(self, env: "Mapping[str, str]") -> "Iterator[str]":
        for job, array, task in self._table["arrays"]:
            if env.get(job):
                yield env[job]
            if env.get(array) and env.get(task):
                yield f"{env[array]}_{env[task]}"


def _on_host(row: Row, env: "Mapping[str, str]") -> "LaunchSeat | None":
    """The seat of a process that is told its number only on its host."""
    node, local = number(env.get(row["node"], "")), env.get(row["local"], "")
    if node is None or number(local) is None or _first(env, row["rank"]):
        return None
    world = _first(env, row["world"])
    seat = LaunchSeat(1, "", world, local, "", row["launcher"]) if number(world) is not None else None
    if seat is not None:
        seat.node = node
    return seat


def _first(env: "Mapping[str, str]", names: "Sequence[str]") -> str:
    return next((env[name] for name in names if env.get(name)), "")


def _counts(row: Row, env: "Mapping[str, str]") -> bool:
    """Whether the variables of this row are set. A process with a role may get its number later."""
    told = _first(env, row["rank"]) or env.get(row["role"])
    size = _first(env, row["world"]) or env.get(row["meeting"][1])
    others = any(re.match(values + r"\Z", env.get(name, "")) for name, values in row["unless"])
    return bool(told and size and not others and (not row["only_with"] or _first(env, row["only_with"])))
