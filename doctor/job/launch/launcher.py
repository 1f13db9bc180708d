"""What is known of one launcher, and what can be asked of a process that it runs in.

The launchers themselves are in `doctor.job.launch.launchers`, one file for each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from doctor.job.launch.allocation import first_node
from doctor.job.launch.forms import Form

Role = Literal["rank", "scheduler", "server"]
Meeting = Literal["rank 0", "scheduler", "any host"]
MASTER, PORT = "MASTER_ADDR", "MASTER_PORT"


@dataclass(frozen=True, slots=True)
class ToldNumber:
    """A number as it was given: `said` is the variable or option. `value` is None where it is not one."""

    said: str
    text: str

    @property
    def value(self) -> int | None:
        return int(self.text) if re.fullmatch(r"-?\d{1,9}", self.text) else None


@dataclass(frozen=True, slots=True)
class Master:
    """Where the ranks meet. `on` is who has to be there; `said` is the variable or option that says so."""

    address: str
    port: str
    said: str
    on: Meeting


@dataclass(frozen=True, slots=True)
class OptionNames:
    """The options of a command. Names are without dashes and with underscores.

    `values` take a value, and say what it is called here: `ranks`, `nproc_per_node`, `nnodes`, `node_rank`,
    `master_addr`, `master_port` mean the same for every launcher; "" is read and dropped. `pairs` take two
    words; of those in `sets` the value is a variable for every rank. `abbreviated`: the beginning of a name
    is enough, as with argparse. `glued`: `-n8` is `-n 8`. `shared` options have to be the same wherever the
    launcher is started. `variables` begins the name of a variable that stands for an option.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()
    pairs: frozenset[str] = frozenset()
    sets: frozenset[str] = frozenset()
    abbreviated: bool = False
    glued: bool = False
    shared: tuple[str, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    variables: str = ""

    def known(self, name: str) -> str | None:
        """The full name of an option that takes a value."""
        if name in self.values:
            return name
        fitting = [full for full in self.values if full.startswith(name)] if self.abbreviated else []
        return fitting[0] if len(fitting) == 1 and len(name) > 2 else None

    def spelled(self, called: str) -> str:
        return f"--{next((own for own, name in self.values.items() if name == called), called)}"


def named(*names: str) -> dict[str, str]:
    """Options that are called here as the launcher calls them."""
    return {name: name for name in names}


def unnamed(*names: str) -> dict[str, str]:
    """Options whose value says nothing of the ranks."""
    return dict.fromkeys(names, "")


@dataclass(frozen=True, slots=True)
class RankVariables:
    """The variables by which a process knows which rank it is. `world` may have several names.

    They count only together with one of `only_with`, where others set them as well, and not where a variable
    has a value that is in `unless`. `by_hand`: people and platforms set them too, so that they may be wrong.
    `may_be_name`: the rank need not be a number; then `spare` may be.

    For --in-job, `identity` is what the ranks of one job have in common and no other job has; without any
    these variables do not lead to rank 0. Those in `secret` are random, and only the job's user can read
    them. Where `master` is not set, rank 0 may be at `heads`. `give_master` is how it can be set.
    """

    rank: str
    world: tuple[str, ...]
    local_rank: str = ""
    local_world: str = ""
    master: str = MASTER
    port: str = PORT
    meeting: Meeting = "rank 0"
    only_with: tuple[str, ...] = ()
    unless: tuple[tuple[str, str], ...] = ()
    spare: str = ""
    by_hand: bool = False
    may_be_name: bool = False
    identity: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    heads: Callable[[Mapping[str, str]], tuple[str, ...]] = first_node
    give_master: str = ""

    def names(self) -> tuple[str, ...]:
        own = (self.rank, self.world[0], self.local_rank, self.local_world, self.master, self.port)
        return tuple(filter(None, own))

    def counts_in(self, env: Mapping[str, str]) -> bool:
        others = any(re.fullmatch(values, env.get(name, "")) for name, values in self.unless)
        return not others and (not self.only_with or any(map(env.get, self.only_with)))

    def number_in(self, env: Mapping[str, str]) -> bool:
        return bool(env.get(self.rank)) and self.counts_in(env)


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """`launcher` is None for a program that starts no ranks. `sets` are variables that it gives to its ranks.

    `program` is the script or module, without its folder. `partly`: words that were not known may hold more
    options. `shown` is what may be shown of it: nothing that stands behind the program. `inside`: another
    launcher starts this one.
    """

    launcher: Launcher | None
    options: Mapping[str, str]
    program: str
    sets: Mapping[str, str] = field(default_factory=dict)
    partly: bool = False
    shown: tuple[str, ...] = ()
    inside: bool = False

    def option(self, name: str) -> str | None:
        """Its value; None where there is none, or it is not known."""
        value = self.options.get(name)
        return value if value and "$" not in value and "`" not in value else None


@dataclass(frozen=True, slots=True)
class LauncherAgent:
    """A process that starts ranks: its launcher, its command line and its own variables."""

    launcher: Launcher
    command: LaunchCommand
    env: Mapping[str, str]

    def given(self, name: str) -> str | None:
        """An option, or the variable in its place; no default."""
        value, variables = self.command.option(name), self.launcher.options.variables
        if value is None and variables and name not in self.command.options:
            value = self.env.get(f"{variables}{name.upper()}")
        return value

    def setting(self, name: str) -> ToldNumber | None:
        """An option or its default, where that is certain."""
        given = self.given(name)
        if given is not None:
            return ToldNumber(self.spelled(name), given)
        default = self.launcher.options.defaults.get(name)
        if default is None or self.unknown(name):
            return None
        return ToldNumber(f"the default of {self.launcher.name}", default)

    def unknown(self, *names: str) -> bool:
        """Whether one of these options may be there with a value that is not known."""
        return self.command.partly or any(
            self.command.options.get(name) and self.command.option(name) is None for name in names
        )

    def spelled(self, name: str) -> str:
        """An option as this launcher calls it."""
        return self.launcher.options.spelled(name)

    @property
    def standalone(self) -> bool:
        return self.command.options.get("standalone") == "true"

    @property
    def nodes(self) -> tuple[int, int] | None:
        """The fewest and the most hosts."""
        number = self.setting("nnodes")
        return nodes_in(number.text) if number else None

    @property
    def world(self) -> ToldNumber | None:
        ranks = self.setting("ranks")
        if ranks is not None:
            return ranks
        nodes, each = self.nodes, self.local_world
        if nodes and each and nodes[0] == nodes[1] and each.value is not None:
            return ToldNumber("nnodes × nproc_per_node", str(nodes[0] * each.value))
        return None

    @property
    def local_world(self) -> ToldNumber | None:
        return self.setting("nproc_per_node")

    @property
    def node_rank(self) -> ToldNumber | None:
        return self.setting("node_rank")


def nodes_in(text: str) -> tuple[int, int] | None:
    """torchrun takes a range."""
    match = re.fullmatch(r"(\d{1,6})(?::(\d{1,6}))?", text)
    return (int(match[1]), int(match[2] or match[1])) if match else None


@dataclass(frozen=True, slots=True, eq=False)
class Launcher:
    """One row of the table; docs/adding-a-launcher.md goes through the fields.

    Fields that hold names of variables are extended regular expressions that grep, awk and Python read alike.
    """

    name: str

    # Its command line.
    commands: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    """Started by `python -m`."""
    subcommand: str = ""
    """The word that has to follow the command."""
    programs: tuple[str, ...] = ()
    """Its own programs between it and the ranks of a host; their command lines say nothing."""
    by_name: bool = False
    """Nor does its own: it is only known to be above ranks."""
    outer: bool = False
    """It starts whatever follows, perhaps another launcher."""
    options: OptionNames = OptionNames()
    master: Callable[[LauncherAgent], Master | None] | None = None
    """Where its ranks will meet; None where that is what their variables say."""
    goes_by_node_rank: Callable[[LauncherAgent], bool] = lambda _: False
    """Whether each host has to be given a number of its own."""
    first_node: str = ""
    """The node rank where none is given."""
    ignores: str = ""
    """Variables that it makes for its ranks and does not read itself."""

    # What it tells a rank.
    ranks: tuple[RankVariables, ...] = ()
    """Without any, RANK, WORLD_SIZE and so on, as in plain.py."""
    role: str = ""
    roles: Mapping[str, Role] = field(default_factory=dict)
    """The variable that says what a process is, and its values."""
    step: str = ""
    """A variable that tells two jobs of one program apart."""
    system: str = ""
    """What its jobs are named after, if not after itself."""
    array: tuple[str, ...] = ()
    """The variables with the id of an array of jobs and the number of a job in it."""
    title: str = ""
    """How a daemon of it calls itself, as a regular expression with the id of the job and its step."""
    job_id: str = ""
    job_id_option: str = ""
    no_job_id: str = ""
    """The variable and option that hold the id of a job, and what it is when none was given."""
    kept: str = ""
    """Further variables that matter to a job."""
    per_rank: str = ""
    """Those of them that differ from rank to rank."""
    per_helper: tuple[str, ...] = ()
    """Those that a rank hands to the helpers that it starts."""
    must_agree: str = ""
    """Those that all ranks have to be told alike."""
    own: str = ""
    """What no program may inherit that a rank starts and that is not a rank itself."""

    forms: Mapping[str, Form] = field(default_factory=dict)
    """How `--print launch=FORM` prints it."""
    ends_job: str = ""
    """When it ends the whole job because one rank has failed; "" is never. docs/in-job.md has it."""

    @property
    def counts_twice(self) -> bool:
        """Whether it is given the ranks of all hosts, and those of each host as well."""
        return {"ranks", "nproc_per_node"} <= set(self.options.values.values())

    @property
    def master_variables(self) -> tuple[str, str]:
        """What its ranks find the master's address and port in."""
        return (self.ranks[0].master, self.ranks[0].port) if self.ranks else (MASTER, PORT)


def master_given(agent: LauncherAgent) -> Master | None:
    """Where ranks meet, for a launcher that says so by options only."""
    address, port = agent.given("master_addr"), agent.setting("master_port")
    if address is None:
        return None
    return Master(address, port.text if port else "", agent.spelled("master_addr"), "rank 0")
