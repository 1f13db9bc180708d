"""What a launch says as a whole: the variables on which all its processes agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from doctor.launch.seats import is_loopback_name, launcher, master_of
from doctor.launch.told import Launch, Told
from doctor.launch.variables import PER_PROCESS


def common_env(launch: Launch) -> Mapping[str, str]:
    """Options of launchers count as the variables that they stand for; a default address counts for nothing.

    What ranks were told goes over what their launchers were told.
    """
    agents = [told for told in launch.told if launcher(told)]
    ranks = [told for told in launch.told if not launcher(told)]
    return {**_agreed(agents), **_agreed(ranks)}


def _agreed(told: Sequence[Told]) -> dict[str, str]:
    seen = [_said(each) for each in told]
    names = dict.fromkeys(name for said in seen for name in said if not PER_PROCESS.fullmatch(name))
    agreed = {}
    for name in names:
        values = {said[name] for said in seen if name in said}
        missing = any(name not in said and each.whole for said, each in zip(seen, told, strict=True))
        if len(values) == 1 and not missing:
            agreed[name] = values.pop()
    return agreed


def _said(told: Told) -> dict[str, str]:
    command, master = launcher(told), master_of(told)
    if command is None or master is None:
        return dict(told.env)
    said = dict(told.env)
    kind = ("MS_SCHED_HOST", "MS_SCHED_PORT") if command.way == "msrun" else ("MASTER_ADDR", "MASTER_PORT")
    if not is_loopback_name(master.address):
        said[kind[0]] = master.address
    if master.port not in ("", "0"):
        said[kind[1]] = master.port
    return said
