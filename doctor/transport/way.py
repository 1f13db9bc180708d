"""The way to the hosts of a run, as options to type again.

A run records how it was asked to reach its hosts, without secrets, so that every command it suggests reaches
the same hosts. A recording may come from anybody: `read_back` only keeps what has the form of our own.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import groupby

from doctor.job.needs import read_need
from doctor.text.hostprogram import table
from doctor.text.interpreter import to_type
from doctor.text.nodeset import check_jump, check_user, fold, is_host, unfold, unfold_users
from doctor.text.option import LIVE
from doctor.transport.advice import is_entry, is_number, is_whole_path, passes
from doctor.transport.containers.command import HOST, PODS, pod_entry, tool_of

Typed = tuple[str, ...]
"""An option, followed by its value if it takes one."""
BY_SRUN = ("--transport", "srun")
IN_CLUSTER = {"--pods": "pod", "--on-nodes": "node"}
"""Options that name pods or nodes of a cluster, and the kind that they take names of."""
IN_SLURM = "SLURM_JOB_ID="
"""Before a command: the Slurm job whose nodes srun reaches."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a run was asked to name and reach its hosts, and its other options."""

    named: tuple[Typed, ...] = ()
    """Options that name all hosts: --hostfile FILE, --exclude NODESET; empty if each is named."""
    reached: tuple[Typed, ...] = ()
    """Options that reach any of them: --ssh-config FILE, --sudo."""
    asked: tuple[Typed, ...] = ()
    """Other options: --backend NAME, --exam NAME."""
    users: Mapping[str, str] = field(default_factory=dict)
    """Host -> the user in front of its name."""
    logins: Mapping[str, tuple[Typed, ...]] = field(default_factory=dict)
    """Host -> how an inventory says to log in to it: ("--user", NAME), ("address", ADDRESS)."""
    slurm_job: str = ""
    """The Slurm job through which srun reached the hosts: commands, read outside it, name it."""
    defaults: str = ""
    """The file of the user's own defaults, and what it set; empty if it set nothing."""

    @property
    def local(self) -> bool:
        return ("--local",) in self.reached

    @property
    def in_cluster(self) -> str:
        """The option that names pods or nodes of a cluster."""
        return next((option[0] for option in self.named if option[0] in IN_CLUSTER), "")

    def typed(
        self,
        command: str,
        hosts: Sequence[str],
        options: Sequence[Typed] = (),
        *,
        whole: bool = False,
        job: bool = False,
    ) -> str:
        """`whole`: these are all hosts of the run; `job`: with the options of the job, too."""
        inside = ("--in-job", *(() if whole else ("--need-hosts",)))  # the command is typed outside the job
        asked = [o for o in self.asked if job and o[0] not in inside]
        known = (*(self.named if whole else ()), *asked, *self.reached)
        given = {option[0] for option in options}
        more = [o for o in known if o[0] not in given and _takes(command, o[0])]
        words = ["doctor", *command.split()]
        if command == "ranktable check":
            words += [option[1] for option in self.reached if option[0] == "--rank-table"]
        named = [option[0] for option in self.named if option[0] != "--exclude"]
        if (way := self.in_cluster) and not whole and hosts:
            words += [way, f"{IN_CLUSTER[way]}/{self.node_set(hosts)}"]
        elif not self.local and not (whole and named):
            words += [self.node_set(hosts)] if hosts else []
        line = shlex.join([*words, *(word for option in (*options, *more) for word in option)])
        return f"{IN_SLURM}{self.slurm_job} {line}" if self.slurm_job and BY_SRUN in more else line

    def login(self, host: str, command: Sequence[str]) -> str:
        """A command on a host, by this run's way. Empty if unknown: a container numbers processes anew."""
        given = {option[0]: option[1] for option in (*self.logins.get(host, ()), *self.reached) if option[1:]}
        pod = self.in_cluster and pod_entry(*map(given.get, ("--namespace", "--context", "--container")))
        try:
            entry = shlex.split(given.get("--enter", pod).replace(HOST, shlex.quote(host)))
        except ValueError:  # one of two quotes was hidden, together with a secret
            return ""
        if self.slurm_job and BY_SRUN in self.reached:
            step = ["srun", f"--jobid={self.slurm_job}", "--overlap", "--nodes=1", "--ntasks=1"]
            return shlex.join([*step, f"--nodelist={host}", *entry, *command])
        if self.local or (entry and tool_of(shlex.join(entry)) in PODS):
            return shlex.join([*entry, *command])
        if host in self.users:
            given["--user"] = self.users[host]
        options = [(letter, given[name]) for name, letter in _LETTERS if name in given]
        options += [("-o", f"HostName={given['address']}")] if "address" in given else []
        options += [("-i", option[1]) for option in self.reached if option[0] == "--identity"]
        words = ["ssh", *(word for option in options for word in option), host]
        behind = [*words, *map(shlex.quote, (*entry, *command))]  # two shells read these
        if not (via := given.get("--via", "")):
            return shlex.join(behind)
        if "/" in via:
            return ""
        first = unfold_users(via)[0]
        return shlex.join(
            ["ssh", *(("-l", first.user) if first.user else ()), first.hosts[0], *map(shlex.quote, behind)]
        )

    def node_set(self, hosts: Sequence[str]) -> str:
        """The hosts as a node set, in their order, which is the order of the ranks."""
        if not self.users:
            return _in_order(tuple(hosts), "")
        groups = groupby(hosts, key=lambda host: self.users.get(host, ""))
        return ",".join(_in_order(tuple(names), f"{user}@" if user else "") for user, names in groups)


@lru_cache(maxsize=64)
def _in_order(names: tuple[str, ...], login: str) -> str:
    """Cached, because many commands of a report name all hosts."""
    folded = fold(names)
    if not all(map(is_host, names)) or (not login and unfold(folded) == list(names)):
        return folded
    if login and "," not in re.sub(r"\[[^\]]*\]", "", folded) and unfold(folded) == list(names):
        return login + folded
    return ",".join(login + name for name in names)


_SSH = frozenset(
    {"--user", "--port", "--identity", "--jump", "--via", "--ssh-config", "--sudo", "--enter"}
    | {"--local", "--inventory", "--hostfile", "--connect-timeout", "--timeout"}
    | {*IN_CLUSTER, "--namespace", "--container", "--context"}
)
_BY = frozenset({"--transport", "--allocate"})
_ASKING = _BY | {"--exclude", "--rank-table", "--python", "--fanout"}
_LETTERS = (("--ssh-config", "-F"), ("--user", "-l"), ("--jump", "-J"), ("--port", "-p"))
_TRAINING = ("--steps", "--tp", "--smoke-timeout")
_OF_ACCEPT = ("--path", "--hosts-at-once")
EXAMINES = ("check", "smoke", "preflight", "accept")
"""The commands whose options choose checks; others choose theirs by themselves."""


def _takes(command: str, option: str) -> bool:
    """Whether a command that reaches hosts has the option."""
    if command == "ranktable make":
        return option in _SSH | _BY | {"--exclude"}
    if command == "ranktable check":
        return option in _SSH | _BY
    if command in ("facts", "hang", "slow", "logs"):
        return option in _SSH | _ASKING
    if command in ("check", "smoke") and option in ("--no-smoke", *(_TRAINING if command == "check" else ())):
        return False
    return command in (("accept",) if option in _OF_ACCEPT else EXAMINES)


def reaches_hosts(command: str) -> bool:
    return _takes(command, "--user")


def read_back(way: Way) -> Way:
    """The way, without anything that our own runs would not have written."""
    return Way(
        _our_options(way.named),
        _our_options(way.reached),
        _our_options(way.asked),
        {host: user for host, user in way.users.items() if passes(check_user, user)},
        {host: of for host, own in way.logins.items() if is_host(host) and (of := _our_login_options(own))},
        way.slurm_job if is_number(way.slurm_job) else "",
        way.defaults,
    )


def _our_login_options(login: Iterable[Typed]) -> tuple[Typed, ...]:
    known = {"--user", "--port", "--jump", "--enter", "address"}
    return tuple(each for each in login if len(each) == 2 and each[0] in known and _is_ours(each))


def _our_options(options: Iterable[Typed]) -> tuple[Typed, ...]:
    return tuple(option for option in options if _is_ours(option))


def _is_ours(option: Typed) -> bool:
    name, *value = option or ("",)
    form = _FORMS.get(name)
    if form is None:
        return name in _FORMS and not value
    return len(value) == 1 and value[0].isprintable() and form(value[0])


def _looks(pattern: str) -> Callable[[str], bool]:
    form = re.compile(pattern, re.ASCII)
    return lambda text: form.fullmatch(text) is not None


_CHECKS: Mapping[str, Callable[[str], bool] | None] = {
    "nothing": None,
    "path": is_whole_path,
    "number": is_number,
    "need": lambda text: text.isprintable() and passes(read_need, text),
    "launch": lambda text: text == LIVE or is_whole_path(text),
    "nodes": partial(passes, unfold),
    "via": lambda text: is_whole_path(text) or passes(unfold_users, text),
    "user": partial(passes, check_user),
    "jump": partial(passes, check_jump),
    "entry": is_entry,
    "python": lambda text: to_type(text) == text,
    "exam": lambda text: _looks(r"[\w-]{1,64}")(text) or is_whole_path(text),
    "host": is_host,
}
_FORMS = {
    option: _CHECKS[form] if form in _CHECKS else _looks(form)
    for form, options in table(__file__, "options.txt")
    for option in options.split()
}
"""The form of each option's value; None if it takes none."""
