"""What the words of the command say about its hosts."""

import glob
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from doctor.errors import UsageError
from doctor.job.launch.command import read_command
from doctor.job.launch.launcher import Launcher, LauncherAgent
from doctor.job.launch.wrappers import program_name
from doctor.run.placeholders import is_here, own_place

_SLOTS = re.compile(r":\d{1,6}$")


def agent_of(words: Sequence[str], environ: Mapping[str, str] = os.environ) -> LauncherAgent | None:
    """The launcher that the command starts."""
    command = read_command(tuple(words))
    if command is None or command.launcher is None:
        return None
    return LauncherAgent(command.launcher, command, environ)


def named_hosts(agent: LauncherAgent | None) -> tuple[tuple[str, ...], Path | None]:
    """The hosts that its options list, or the file with them."""
    if agent is None:
        return (), None
    listed, file = agent.command.option("hosts"), agent.command.option("hostfile")
    if listed and "{" not in listed:
        found = re.findall(r"[^,\[]+(?:\[[^\]]*\][^,\[]*)*", listed)
        return tuple(_SLOTS.sub("", each) for each in found), None
    return (), Path(file) if file and "{" not in file and os.path.isfile(file) else None


def own_logs(agent: LauncherAgent | None) -> tuple[str, ...]:
    """Where the ranks print, as patterns of files, if it does not pass that on."""
    if agent is None:
        return ()
    folder = os.path.abspath(agent.command.option("log_dir") or ".")
    return tuple(f"{glob.escape(folder)}/{name}" for name in agent.launcher.prints_into)


def spans_hosts(agent: LauncherAgent | None) -> bool:
    """Whether it starts ranks on other machines too."""
    if agent is None:
        return False
    if agent.launcher.elsewhere:
        return True
    if agent.standalone:
        return False
    world, local, nodes = agent.world, agent.local_world, agent.nodes
    if nodes is not None:
        return nodes[1] > 1
    differ = world and local and world.value and local.value and world.value > local.value
    return bool(agent.launcher.counts_twice and differ)


def runs_on_each_host(agent: LauncherAgent | None, environ: Mapping[str, str]) -> bool:
    """Whether the same command is started on all hosts of the job."""
    return _in_step(environ) or (agent is not None and not agent.launcher.elsewhere and spans_hosts(agent))


def is_first(
    agent: LauncherAgent | None, environ: Mapping[str, str], hosts: Callable[[], Sequence[str]]
) -> bool:
    """Whether this machine is the first of those on which the command is started; the others follow it.
    `hosts` finds out their names, in the order of ranks.
    """
    if _in_step(environ) or agent is None:
        return environ.get("SLURM_PROCID", "0") == "0"
    number = agent.node_rank if agent.given("node_rank") is not None else None
    if number is not None and number.value is not None and number.value >= 0:
        return number.value == 0
    try:
        return own_place(hosts(), environ) == 0
    except UsageError:  # it has another name there
        master = agent.launcher.master(agent) if agent.launcher.master else None
        return master is None or is_here(master.address)


def _in_step(environ: Mapping[str, str]) -> bool:
    return environ.get("SLURM_STEP_NUM_TASKS", "1") != "1" and "SLURM_STEP_ID" in environ


def line_to_type(words: Sequence[str], agent: LauncherAgent | None, before: Sequence[str]) -> str:
    """The command line, with placeholders in the command. `before` are the words before it."""
    launcher = agent.launcher if agent else None
    new = (
        _with_places(words, launcher) if launcher and launcher.on_hosts else ["env", "HOSTS={hosts}", *words]
    )
    return shlex.join([*before, "--", *new])


def _with_places(words: Sequence[str], launcher: Launcher) -> list[str]:
    """The words with the options that list hosts in the place of those that do so now."""
    ours = {_key(each, launcher) for each in launcher.on_hosts if each.startswith("-")}
    ours |= {"hosts", "hostfile"} if ours & {"hosts", "hostfile"} else set()
    names = (*launcher.commands, *launcher.modules)
    at = next((place for place, word in enumerate(words) if program_name(word) in names), 0)
    begin = at + 1 + bool(launcher.subcommand)
    kept, rest = list(words[:begin]), list(words[begin:])
    more: list[str] = []
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        apart = "=" not in word and _key(word, launcher) in launcher.options.values.values()
        value = [rest.pop(0)] if apart and rest and not rest[0].startswith("-") else []
        if _key(word, launcher) not in ours:
            more += [word, *value]
    return [*kept, *launcher.on_hosts, *more, *rest]


def _key(word: str, launcher: Launcher) -> str:
    name = word.lstrip("-").partition("=")[0].replace("-", "_")
    return launcher.options.values.get(name, name)
