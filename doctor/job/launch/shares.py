"""The hosts that a launcher is given on its command line or in a hostfile, and its ranks on each."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice, pairwise, takewhile
from pathlib import Path

from doctor.job.launch.allocation import is_scheduled
from doctor.job.launch.command import only_looks
from doctor.job.launch.launcher import LaunchCommand
from doctor.job.launch.wrappers import program_name

Slots = Callable[[Path], Mapping[str, int]]
"""Host -> its slots in a hostfile, 0 if not given; empty if the file is not here."""
_LIST_OR_FILE = {"-H": "--hostfile"}
"""A list of hosts for a launcher of any program, and a file for others."""
_HOSTFILE = re.compile(r"--?(?:hostfile|machinefile|machine-file|f)(?:=(.+))?")
_NAMES_HOSTS = re.compile(r"--?(?:H|hosts?|hostfile|machine-?file|f)(?:=.*)?")
_MORE = re.compile(r"--?(?:(?:min|max)[-_]np|add[-_]host\w*|tune|am|app|configfile|rf|rankfile)(?:=.*)?")
"""Options that may add hosts or slots to those that others name, or select some of these."""
_MORE_SLOTS = re.compile(r"(?i)oversub|:over|hwthread")


def share_of(words: Sequence[str], command: LaunchCommand, read: Slots) -> int | None:
    """The ranks per host; None if no hosts are given, 0 if they do not say."""
    if command.launcher is None or command.option("nproc_per_node"):
        return None
    file = _hostfile(_own_words(words, command))
    if not command.launcher.outer:
        each_host = set(read(Path(file)).values()) if file else set()
        return None if not file else each_host.pop() if len(each_host) == 1 else 0
    ranks, nodes, each = (_number(command, name) for name in ("ranks", "nnodes", "each"))
    hosts = command.option("hosts") or ""
    if ranks is not None and nodes and ranks % nodes == 0:
        return ranks // nodes
    if each is not None:
        return each
    devices = command.option("gpus") or "1"
    if not {"ranks", "each"} & command.options.keys() and not command.partly and devices != "1":
        return int(devices)  # one rank for each device that the job asks for
    if not file and not hosts:
        return None
    slots = list((read(Path(file)) if file else _listed(hosts)).values())
    if ranks is None or not slots or len(set(slots)) > 1:
        return 0
    if slots[0]:
        return slots[0] if slots[0] * len(slots) == ranks else 0
    return ranks // len(slots) if ranks % len(slots) == 0 else 0


def hosts_of(words: Sequence[str], command: LaunchCommand, text: str, read: Slots) -> Mapping[str, int]:
    """Host -> its slots, of all hosts on which it certainly starts ranks; empty if they are not known.

    The slots are 0 if they are not given, or if it may start more ranks than that. `text` is its script.
    """
    own = _own_words(words, command)
    several = sum(map(bool, map(_NAMES_HOSTS.fullmatch, own))) > 1 or any(map(_MORE.fullmatch, own))
    chosen = {"exclude", "elastic_training"} & command.options.keys()
    if command.launcher is None or command.partly or several or chosen:
        return {}
    file = "" if "hosts" in command.options else _hostfile(own)
    if "include" in command.options:
        named = [part.partition(":")[0] for part in (command.option("include") or "").split("@")]
        return dict.fromkeys(named, 0) if all(named) else {}
    found = dict(read(Path(file))) if file else _listed(command.option("hosts") or "")
    ranks, nodes, each = (_number(command, name) for name in ("ranks", "nnodes", "nproc_per_node"))
    if not command.launcher.outer:
        found = dict(islice(found.items(), nodes)) if nodes or "nnodes" not in command.options else {}
        return dict.fromkeys(found, each) if each is not None else found
    slots = list(found.values())
    if ranks is not None and (ranks <= sum(slots[:-1]) if all(slots) else file):
        return {}  # the last one may not be needed
    known = command.launcher.keeps_to_slots if not _MORE_SLOTS.search(text) else ""
    kept = [word for word in own if known and re.fullmatch(known, word)]
    one = int(len(kept) > 1 and not file and not is_scheduled(text))  # of a host that is named without any
    return {host: n or one if kept else 0 for host, n in found.items()}


def _number(command: LaunchCommand, name: str) -> int | None:
    text = command.option(name) or ""
    return int(text) if re.fullmatch("[0-9]{1,6}", text) else None


def _listed(text: str) -> dict[str, int]:
    """Host -> its slots, in a list such as `node1:8,node2:8`; those of a host that is named again add up."""
    found: dict[str, int] = {}
    for word in text.split(",") if "[" not in text else ():
        match = re.fullmatch(r"(.+?)(?::([0-9]{0,6}))?", word)
        if match:
            slots, before = int(match[2] or 0), found.get(match[1])
            found[match[1]] = slots if before is None else (before or 1) + (slots or 1)
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
