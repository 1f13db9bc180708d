"""The hosts that a launcher is given on its command line or in a hostfile, and its ranks on each."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise, takewhile
from pathlib import Path

from doctor.job.launch.allocation import is_scheduled
from doctor.job.launch.command import only_looks
from doctor.job.launch.launcher import LaunchCommand
from doctor.job.launch.wrappers import program_name

Slots = Callable[[Path], Sequence[int]]
"""The slots of each host of a hostfile, 0 if not given; empty if the file is not here."""
_LIST_OR_FILE = {"-H": "--hostfile"}
"""A list of hosts for a launcher of any program, and a file for others."""
_HOSTFILE = re.compile(r"--?(?:hostfile|machinefile|machine-file|f)(?:=(.+))?")


def share_of(words: Sequence[str], command: LaunchCommand, home: str, read: Slots) -> int | None:
    """The ranks per host; None if no hosts are given, 0 if they do not say. Paths start from `home`."""
    if command.launcher is None or command.option("nproc_per_node"):
        return None
    own = list(takewhile(lambda word: program_name(word) != command.program, words))
    file = _hostfile(own if command.launcher.outer else [_LIST_OR_FILE.get(word, word) for word in own])
    if not command.launcher.outer:
        each_host = set(read(Path(home, file))) if file else set()
        return None if not file else each_host.pop() if len(each_host) == 1 else 0
    ranks, hosts, nodes = (command.option(name) or "" for name in ("ranks", "hosts", "nnodes"))
    if (ranks + nodes).isdecimal() and ranks and nodes and int(nodes) and int(ranks) % int(nodes) == 0:
        return int(ranks) // int(nodes)
    if (each := command.option("each")) and each.isdecimal():
        return int(each)
    devices = command.option("gpus") or "1"
    if not {"ranks", "each"} & command.options.keys() and not command.partly and devices != "1":
        return int(devices)  # one rank for each device that the job asks for
    if file:
        slots = list(read(Path(home, file)))
    elif hosts:
        slots = [int(n) if n.isdecimal() else 0 for n in (h.rpartition(":")[2] for h in hosts.split(","))]
    else:
        return None
    if not ranks.isdecimal() or not slots or len(set(slots)) > 1:
        return 0
    if slots[0]:
        return slots[0] if slots[0] * len(slots) == int(ranks) else 0
    return int(ranks) // len(slots) if int(ranks) % len(slots) == 0 else 0


def lacks_hosts(command: LaunchCommand, text: str, read: Slots) -> bool:
    """Whether it starts all its ranks on its own host, because nothing gives it others: no option, no
    launcher around it, and no word in `text`, all that is read of its script. One rank may start the others.
    """
    besides = command.launcher.hosts_besides if command.launcher else ()
    given = command.options.keys() & {"hosts", "hostfile", "include"} or command.option("ranks") == "1"
    if not besides or given or command.partly or command.inside or only_looks(command):
        return False
    here = any(read(Path(name)) for name in besides if name.startswith("/"))
    return not here and not is_scheduled(text) and not any(name in text for name in besides)


def _hostfile(words: Sequence[str]) -> str:
    for word, following in pairwise((*words, "")):
        if match := _HOSTFILE.fullmatch(word):
            return match[1] or following
    return ""
