"""What is known about one launcher, and about a process that runs it.

The launchers themselves are in `doctor.job.launch.launchers`, one file each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from doctor.job.launch.allocation import first_node
from doctor.job.launch.forms import LaunchForm
from doctor.model import Framework
from doctor.text.hostprogram import fields_in, sections

Role = Literal["rank", "scheduler", "server"]
Meeting = Literal["rank 0", "scheduler", "any host"]
MASTER, PORT = "MASTER_ADDR", "MASTER_PORT"
DEFAULT_OF = "the default of "
"""The beginning of the source of a number that nobody gave."""


@dataclass(frozen=True, slots=True)
class LaunchNumber:
    """A number as it was given; `said` is the variable or option. `value` is None if it is not a number."""

    said: str
    text: str

    @property
    def value(self) -> int | None:
        return int(self.text) if re.fullmatch(r"-?\d{1,9}", self.text) else None


@dataclass(frozen=True, slots=True)
class Master:
    """Where the ranks meet. `on` is the process that must be there; `said` is the variable or option used."""

    address: str
    port: str
    said: str
    on: Meeting


@dataclass(frozen=True, slots=True)
class OptionNames:
    """The options of a command. Names have no dashes and use underscores.

    `values` are the options with a value, and the name of that value here: `ranks`, `nproc_per_node`,
    `nnodes`, `node_rank`, `master_addr`, `master_port` mean the same for every launcher; "" is read and
    dropped. `pairs` take two words; the value of an option in `sets` is a variable for every rank.
    `abbreviated`: the beginning of a name is enough, as with argparse. `glued`: `-n8` is `-n 8`. `shared`
    options must be the same on every host that starts the launcher. `variables` is the prefix of variables
    that stand for options. `file` is the option that names a file with more options.
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
    file: str = ""

    def known(self, name: str) -> str | None:
        """The full name of an option that takes a value."""
        if name in self.values:
            return name
        fitting = [full for full in self.values if full.startswith(name)] if self.abbreviated else []
        return fitting[0] if len(fitting) == 1 and len(name) > 2 else None

    def spelled(self, called: str) -> str:
        return f"--{next((own for own, name in self.values.items() if name == called), called)}"


NOT_SHOWN = frozenset({"", "hostfile", "log_dir"})
"""The names of options whose words stay on the host, because they concern no rank."""


_OPTIONS = sections(__file__, "options.txt")


def options_of(launcher: str, **more: Any) -> OptionNames:
    """The options of a launcher: options.txt, and what is more than names."""
    words = {name: told.split() for name, told in _OPTIONS[launcher].items()}
    more.update({name: frozenset(words.pop(name, ())) for name in ("flags", "pairs", "sets")})
    values = {each: {"same": each, "unread": ""}.get(name, name) for name in words for each in words[name]}
    return OptionNames(values, **more)


@dataclass(frozen=True, slots=True)
class RankVariables:
    """The variables that tell a process its rank. `world` may have several names.

    If `only_with` is set, they count only together with one of these, because others set them too; they do
    not count if a variable has a value that is in `unless`. `by_hand`: people and platforms set them too, so
    they may be wrong. `may_be_name`: the rank need not be a number; then `spare` may be. `node`: a rank that
    starts the others of its host sets this with `local_rank` for them, in place of `rank`.

    For --in-job, `identity` is what all ranks of one job have in common and no other job has; without it,
    these variables do not lead to rank 0. Those in `secret` are random, and only the job's user can read
    them. If `master` is not set, rank 0 may be at `heads`. `give_master` shows how to set it.
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
    node: str = ""
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

    `program` is the script or module, without its folder. `partly`: unknown words may contain more options.
    `shown` is the part that may be shown: nothing after the program. `inside`: another launcher starts this
    one. `strange` are the names of options that are not known, and of those that are meant.
    """

    launcher: Launcher | None
    options: Mapping[str, str]
    program: str
    sets: Mapping[str, str] = field(default_factory=dict)
    partly: bool = False
    shown: tuple[str, ...] = ()
    inside: bool = False
    strange: tuple[tuple[str, str], ...] = ()

    def option(self, name: str) -> str | None:
        """The value of an option; None if it is absent or unknown."""
        value = self.options.get(name)
        return value if value and "$" not in value and "`" not in value else None


@dataclass(frozen=True, slots=True)
class LauncherAgent:
    """A process that starts ranks: its launcher, its command line and its own variables."""

    launcher: Launcher
    command: LaunchCommand
    env: Mapping[str, str]
    hidden: frozenset[str] = frozenset()
    """The variables that it has, with unknown values."""

    def given(self, name: str) -> str | None:
        """The value of an option, or of the variable in its place; defaults do not count."""
        value, variables = self.command.option(name), self.launcher.options.variables
        if value is None and variables and name not in self.command.options:
            value = self.env.get(f"{variables}{name.upper()}")
        return value

    def setting(self, name: str) -> LaunchNumber | None:
        """The value of an option, or its default if the option is certainly absent."""
        given = self.given(name)
        if given is not None:
            return LaunchNumber(self.spelled(name), given)
        default = self.launcher.options.defaults.get(name)
        if default is None or self.unknown(name):
            return None
        return LaunchNumber(f"{DEFAULT_OF}{self.launcher.name}", default)

    def unknown(self, *names: str) -> bool:
        """Whether one of these options, or the variable in its place, may have an unknown value."""
        variables, options = self.launcher.options.variables, self.command.options
        return self.command.partly or any(
            (options.get(name) and self.command.option(name) is None)
            or (name not in options and variables and f"{variables}{name.upper()}" in self.hidden)
            for name in names
        )

    def spelled(self, name: str) -> str:
        """The name of an option in this launcher."""
        return self.launcher.options.spelled(name)

    @property
    def standalone(self) -> bool:
        return self.given("standalone") in ("true", "1")

    @property
    def nodes(self) -> tuple[int, int] | None:
        """The fewest and the most hosts."""
        number = self.setting("nnodes")
        return nodes_in(number.text) if number else None

    @property
    def world(self) -> LaunchNumber | None:
        ranks = self.setting("ranks")
        if ranks is not None:
            return ranks
        nodes, each = self.nodes, self.local_world or self.setting("each")
        if nodes and each and nodes[0] == nodes[1] and each.value is not None:
            return LaunchNumber("nnodes × nproc_per_node", str(nodes[0] * each.value))
        return None

    @property
    def local_world(self) -> LaunchNumber | None:
        return self.setting("nproc_per_node")

    @property
    def node_rank(self) -> LaunchNumber | None:
        return self.setting("node_rank")


def nodes_in(text: str) -> tuple[int, int] | None:
    """The fewest and the most hosts in a text, as torchrun takes a range."""
    match = re.fullmatch(r"(\d{1,6})(?::(\d{1,6}))?", text)
    return (int(match[1]), int(match[2] or match[1])) if match else None


@dataclass(frozen=True, slots=True, eq=False)
class Launcher:
    """One row of the table; docs/adding-a-launcher.md explains the fields.

    Fields with names of variables are extended regular expressions that grep, awk and Python read alike.
    """

    name: str

    # Its command line.
    commands: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    """Modules started by `python -m`."""
    subcommand: str = ""
    """The word that must follow the command."""
    programs: tuple[str, ...] = ()
    """Its own programs between it and the ranks of a host; their command lines do not describe the ranks."""
    by_name: bool = False
    """Its own command line does not describe them either: it is only known to be an ancestor of ranks."""
    outer: bool = False
    """It starts any program that follows, even another launcher."""
    options: OptionNames = OptionNames()
    master: Callable[[LauncherAgent], Master | None] | None = None
    """Where its ranks will meet; None if the variables of the ranks say so."""
    goes_by_node_rank: Callable[[LauncherAgent], bool] = lambda _: False
    """Whether each host must be given its own number."""
    port: Callable[[LauncherAgent], LaunchNumber | None] = lambda agent: agent.setting("master_port")
    """The port where its ranks will meet, also if their address is unknown."""
    derived: Callable[[Mapping[str, str]], Mapping[str, str]] = dict
    """Its options, with those that follow from others."""
    first_node: str = ""
    """The node rank if none is given."""
    directive: str = ""
    """The comments of a batch script with options that count if its command line does not have them."""
    sets_for_job: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """An option among these comments -> the variables that a job has if it is given."""
    configured: Callable[[Mapping[str, object]], Sequence[tuple[str, object]] | None] | None = None
    """The options in its configuration file; None if the file belongs to another program."""
    configuration: str = ""
    """That file if no option names it."""
    env_file: str = ""
    """The file in the folder where it starts whose variables all its ranks get."""
    ignores: str = ""
    """Variables that it creates for its ranks and does not read itself."""

    # What it gives to a rank.
    ranks: tuple[RankVariables, ...] = ()
    """If empty, its ranks have RANK, WORLD_SIZE and so on, as in plain.py."""
    role: str = ""
    roles: Mapping[str, Role] = field(default_factory=dict)
    """The variable with the role of a process, and its values."""
    step: str = ""
    """A variable that distinguishes two jobs of one program."""
    system: str = ""
    """What its jobs are named after, if not after the launcher."""
    array: tuple[str, ...] = ()
    """The variables with the id of an array of jobs and the job's number in it."""
    title: str = ""
    """The process title of its daemon, as a regular expression with the id of the job and its step."""
    job_id: str = ""
    job_id_option: str = ""
    no_job_id: str = ""
    """The variable and the option with the id of a job, and the id if none was given."""
    kept: str = ""
    """Further variables that matter to a job."""
    per_rank: str = ""
    """The variables among these that differ from rank to rank."""
    per_helper: tuple[str, ...] = ()
    """Variables that a rank passes to the helpers that it starts."""
    must_agree: str = ""
    """Variables that must be equal on all ranks."""
    own: str = ""
    """Variables that must not be inherited by a program that a rank starts and that is not itself a rank."""

    on_hosts: tuple[str, ...] = ()
    """Its options for the hosts that take part, with the placeholders of `doctor run`."""
    prints_into: tuple[str, ...] = ()
    """The files in its `log_dir` that have what its ranks print, if it does not print that itself."""
    elsewhere: bool = False
    """It may start its ranks on machines that its command line does not name."""
    forms: Mapping[str, LaunchForm] = field(default_factory=dict)
    """How `--print launch=FORM` prints it."""
    hosts_besides: tuple[str, ...] = ()
    """It starts the ranks of all hosts that an option names, or else these variables and hostfiles; without
    any, all of them on its own host."""
    keeps_to_slots: str = ""
    """A pattern of words that show that it starts no more ranks on a host than it has slots."""
    framework: Framework | None = None
    """The framework with which all jobs of this launcher train, if it starts no others."""
    ends_job: str = ""
    """When it ends the whole job because one rank failed; "" means never. docs/in-job.md repeats it."""

    @property
    def counts_twice(self) -> bool:
        """Whether it is given both the ranks of all hosts and the ranks of each host."""
        return {"ranks", "nproc_per_node"} <= set(self.options.values.values())

    @property
    def master_variables(self) -> tuple[str, str]:
        """The variables in which its ranks find the master's address and port."""
        return (self.ranks[0].master, self.ranks[0].port) if self.ranks else (MASTER, PORT)


_TOLD = sections(__file__, "launchers.txt")


def launcher_of(name: str, heads: Any = first_node, unless: Any = (), **more: Any) -> Launcher:
    """The row of a launcher: launchers.txt, and what is more than words; `heads` and `unless` are of the
    first variables that tell a process its rank.
    """
    told = [fields_in(RankVariables, row) for of, row in _TOLD.items() if of.startswith(f"{name} gives ")]
    own = [{"heads": heads, "unless": unless}, *({} for _ in told[1:])]
    ranks = tuple(RankVariables(**row, **others) for row, others in zip(told, own, strict=False))
    return Launcher(name, **fields_in(Launcher, _TOLD[name]), ranks=ranks, **more)


def master_given(agent: LauncherAgent) -> Master | None:
    """Where ranks meet, for a launcher that defines it only by options."""
    address, port = agent.given("master_addr"), agent.setting("master_port")
    if address is None:
        return None
    return Master(address, port.text if port else "", agent.spelled("master_addr"), "rank 0")
