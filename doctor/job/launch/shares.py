"""The hosts that a launcher is given on its command line or in a hostfile, and its ranks on each."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice, pairwise, takewhile
from pathlib import Path

from doctor.job.launch.allocation import is_scheduled
from doctor.job.launch.command import only_looks
from doctor.job.launch.launcher import LaunchCommand
from doctor.job.launch.launchers.deepspeed import CONFIGS
from doctor.job.launch.wrappers import program_name

Slots = Callable[[Path], Mapping[str, int]]
"""Host -> its slots in a hostfile, 0 if not given; empty if the file is not here."""
_LIST_OR_FILE = {"-H": "--hostfile"}
"""A list of hosts for a launcher of any program, and a file for others."""
_HOSTFILE = re.compile(r"--?(?:hostfile|machinefile|machine-file|f)(?:=(.+))?")
_TAKES = (
    rf"--?(?:hostfile|machine-?file|f|H|{'|'.join(CONFIGS)})(?:=|\s+)"
    r"|(?m:^)\s*(?:export\s+)?\w+="
)
"""What stands before the name of a file that is not written there."""


def is_only_given(path: str, text: str) -> bool:
    """Whether a script names a file only to give it to what it starts; else it may write it, too."""
    code, name = re.sub(r"(?m)(?:^|\s)#.*", " ", text), re.escape(os.path.basename(path))
    holders = re.findall(rf"(?m)^\s*(?:export\s+)?(\w+)=\S*{name}", code)
    named = "|".join((rf"(?<![\w-]){name}(?![\w-])", *(rf"\$\{{?{holder}\b" for holder in holders)))
    left = re.sub(rf"(?:{_TAKES})[^\s;|&]*(?:{named})", " ", code)
    return re.search(name, code) is not None and re.search(named, left) is None


def share_of(words: Sequence[str], command: LaunchCommand, home: str, read: Slots) -> int | None:
    """The ranks per host; None if no hosts are given, 0 if they do not say. Paths start from `home`."""
    if command.launcher is None or command.option("nproc_per_node"):
        return None
    file = _hostfile(_own_words(words, command))
    if not command.launcher.outer:
        each_host = set(read(Path(home, file)).values()) if file else set()
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
        slots = list(read(Path(home, file)).values())
    elif hosts:
        slots = list(_listed(hosts).values())
    else:
        return None
    if not ranks.isdecimal() or not slots or len(set(slots)) > 1:
        return 0
    if slots[0]:
        return slots[0] if slots[0] * len(slots) == int(ranks) else 0
    return int(ranks) // len(slots) if int(ranks) % len(slots) == 0 else 0


def hosts_of(
    words: Sequence[str], command: LaunchCommand, text: str, home: str, read: Slots
) -> Mapping[str, int]:
    """Host -> its slots, of all hosts on which it certainly starts ranks; empty if they are not known.

    The slots are 0 if they are not given, or if it may start more ranks than that. `text` is its script.
    """
    if command.launcher is None or {"include", "exclude"} & command.options.keys():
        return {}
    own, listed = _own_words(words, command), command.option("hosts")
    file = "" if "hosts" in command.options else _hostfile(own)
    found = dict(read(Path(home, file))) if file else _listed(listed or "")
    ranks, nodes, each = (command.option(name) or "" for name in ("ranks", "nnodes", "nproc_per_node"))
    if not command.launcher.outer:
        found = dict(islice(found.items(), int(nodes) if nodes.isdecimal() else None))
        return dict.fromkeys(found, int(each)) if each.isdecimal() else found
    slots = list(found.values())
    if ranks.isdecimal() and (int(ranks) <= sum(slots[:-1]) if all(slots) else file):
        return {}  # the last one may not be needed
    known = command.launcher.keeps_to_slots
    strict = known and not command.partly and "oversubscribe" not in text.lower()
    return found if strict and any(re.fullmatch(known, word) for word in own) else dict.fromkeys(found, 0)


def _listed(text: str) -> dict[str, int]:
    """Host -> its slots, in a list such as `node1:8,node2:8`."""
    found: dict[str, int] = {}
    for word in text.split(",") if "[" not in text else ():
        host, _, slots = word.rpartition(":") if re.search(r":\d*$", word) else (word, "", "")
        found |= {host: int(slots or 0)} if host else {}
    return found


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


def _own_words(words: Sequence[str], command: LaunchCommand) -> list[str]:
    """The words of the launcher, in which only `--hostfile` stands for a file with hosts."""
    own = list(takewhile(lambda word: program_name(word) != command.program, words))
    outer = command.launcher is not None and command.launcher.outer
    return own if outer else [_LIST_OR_FILE.get(word, word) for word in own]


def _hostfile(words: Sequence[str]) -> str:
    for word, following in pairwise((*words, "")):
        if match := _HOSTFILE.fullmatch(word):
            return match[1] or following
    return ""
