"""Which framework the job trains with: as told, or else the one that all hosts have. Pure."""

import re
from collections.abc import Collection, Mapping

from doctor.job.launch.launchers import LAUNCHERS
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.rank_env import launcher
from doctor.job.wishes import JobWishes
from doctor.model import Framework, SourcedValue
from doctor.text.nodeset import fold

FRAMEWORKS: Mapping[Framework, str] = {"torch": "torch", "mindspore": "MindSpore"}
"""What a smoke run can train with, and the names in sentences; the first one that all hosts have."""
_ASSUMED: Framework = "torch"
"""Its variables decide nothing: they are often set for every job of a cluster."""
FOUND = "found on the hosts"


def told_framework(wishes: JobWishes) -> SourcedValue[Framework] | None:
    """What the flag, the parallel plan or the launch says, in this order."""
    if wishes.framework:
        return wishes.framework
    if layout := wishes.layout:
        for name in FRAMEWORKS:
            if layout.value.framework == name:
                return SourcedValue(name, f"{layout.source} framework")
    return _of_launch(wishes.launch) if wishes.launch else None


def _of_launch(launch: Launch) -> SourcedValue[Framework] | None:
    where = "the job" if launch.live else "--launch"
    for process in launch.told:
        if said := _of_process(process):
            return SourcedValue(said[0], f"{where} {said[1]}")
    return None


def _of_process(process: ProcessEnv) -> tuple[Framework, str] | None:
    """The framework of a launcher that starts no other, and the command or variable that shows it."""
    agent = launcher(process)
    if agent and agent.launcher.framework:
        return agent.launcher.framework, agent.launcher.name
    for known in LAUNCHERS:
        if known.framework in (None, _ASSUMED):
            continue
        name = next((name for name in process.env if known.own and re.fullmatch(known.own, name)), None)
        if name:
            return known.framework, name
    return None


def common_framework(has: Mapping[str, Collection[str]]) -> tuple[Framework | None, str]:
    """The first framework that all hosts have, of those that have any; or else who has which, in words.

    Neither if no host has one.
    """
    known = {host: set(FRAMEWORKS) & set(names) for host, names in has.items()}
    known = {host: names for host, names in known.items() if names}
    for name in FRAMEWORKS:
        if known and all(name in names for names in known.values()):
            return name, ""
    lists = (
        f"{shown} on {fold([host for host, names in known.items() if name in names])}"
        for name, shown in FRAMEWORKS.items()
    )
    return None, "; ".join(lists) if known else ""
