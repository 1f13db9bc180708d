"""Which processes a command has started, by what the kernel says of them. Python 3.6 and later.

A process proves it by what it is, by what it descends from, or by a connection whose two ends are that of a
process here and that of a process of the command. A variable proves nothing alone: anybody can set it.
"""

import contextlib
import ipaddress
import os
import re
import struct
import time
from collections.abc import Collection, Mapping
from typing import Any

from doctor.live.onhost import proc
from doctor.live.onhost.tree import Tree

BELOW, CAME, STEP = "below", "connection", "step"
SSH, JOB, IN_STEP = "SSH_CONNECTION", "SLURM_JOB_ID", "SLURM_STEP_ID"
SRUN = "SLURM_SRUN_COMM_HOST", "SLURM_SRUN_COMM_PORT"
NAMES = (SSH, JOB, IN_STEP, *SRUN)
"""The variables that name what has started a process."""
_NUMBERS = re.compile(r"^NSpid:\s*([\d\s]*)$", re.MULTILINE)
_STEP = re.compile(r"/job_(\d+)/step_(\d+)(?:/|$)", re.MULTILINE)

Asked = Any
"""What the controller says of the command; see `doctor.run.own.OwnCommand`."""


def boot() -> str:
    return proc.lenient(proc.PROC + "/sys/kernel/random/boot_id").strip()


def identity(pid: int) -> "list[Any] | None":
    """The PID namespace of a process, its PID in there, and its start: the same from wherever one looks."""
    home = f"{proc.PROC}/{pid}"
    with contextlib.suppress(OSError, ValueError, IndexError):
        start = proc.stat_of(proc.read(home + "/stat"))[1][19]
        numbers = _NUMBERS.search(proc.lenient(home + "/status"))
        own = numbers.group(1).split()[-1] if numbers else str(pid)
        return [os.readlink(home + "/ns/pid"), own, start]
    return None


def plain_end(address: str, port: "int | str") -> str:
    """ "ADDRESS PORT", in one form only. Raises ValueError."""
    found = ipaddress.ip_address(address.partition("%")[0])
    return f"{getattr(found, 'ipv4_mapped', None) or found} {int(port)}"


class Proofs:
    """How the kernel shows of processes on this host that the command has started them."""

    def __init__(self, asked: Asked, tree: Tree, until: float) -> None:
        self.asked, self.tree = asked, tree
        self.processes = {tuple(each) for each in asked["processes"]} if asked["boot"] == boot() else set()
        sockets = _sockets(set(asked["ends"]))
        self.seen = set(sockets.values())
        """The connections of the command that lead to this host."""
        self.holders = _holders(sockets, until)

    def of(self, pid: int) -> str:
        if self.processes and tuple(identity(pid) or ()) in self.processes:
            return BELOW
        holders = self.holders.keys() & {pid, *self.tree.above(pid)}
        if any(self._uid(each) in (0, self.asked["uid"]) for each in holders) or self._came(pid):
            return CAME  # sshd and slurmstepd hold its connections as root
        return STEP if self._in_step(pid) else ""

    def _uid(self, pid: int) -> "int | None":
        row = self.tree.rows.get(pid)
        return row["uid"] if row else None

    def _came(self, pid: int) -> bool:
        """Whether it was set free by a session that came by a connection of the command. Who may not see the
        holder of that can read the variables of own processes only.
        """
        row = self.tree.rows[pid]
        words = row["env"].get(SSH, "").split()
        with contextlib.suppress(ValueError):
            if len(words) == 4:
                came = plain_end(*words[:2]) + " " + plain_end(*words[2:])
                users = {self._uid(each) for each, ends in self.holders.items() if came in ends}
                return came in self.seen and row["uid"] in (users or {os.geteuid()})
        return False

    def _in_step(self, pid: int) -> bool:
        """Whether it is in a step of the command's Slurm job: in that of doctor, or in one of which a process
        of the command is the srun. Slurm gives a user the same number on every host.
        """
        row = self.tree.rows[pid]
        env = row["env"]
        slurm = self.asked["slurm"]
        group = _STEP.search(proc.lenient(f"{proc.PROC}/{pid}/cgroup"))
        job, step = group.groups() if group else (env.get(JOB, ""), env.get(IN_STEP, ""))
        if row["uid"] != self.asked["uid"] or not slurm or job != slurm["job"]:
            return False
        by = [env.get(each, "") for each in SRUN]
        return bool(step) and (step == slurm["step"] or by in slurm["sruns"])


def _sockets(ends: "Collection[str]") -> "dict[str, str]":
    """The connections of the command that lead to this host, by the number of the socket here. `ends` are
    those of the command and those here, as in SSH_CONNECTION.
    """
    ports = {f"{int(each.split()[1]):04X}" for each in ends}
    found = {}
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"{proc.PROC}/net/{name}") as lines:
            for words in map(str.split, lines):
                if words[2][-4:] in ports:
                    end = _end(words[2]) + " " + _end(words[1])
                    found.update({words[9]: end} if end in ends else {})
    return found


def _end(text: str) -> str:
    """An end of a connection as the kernel writes it: the address in words of the host's byte order."""
    digits, port = text.split(":")
    address = b"".join(struct.pack("=I", int(digits[at : at + 8], 16)) for at in range(0, len(digits), 8))
    return plain_end(str(ipaddress.ip_address(address)), int(port, 16))


def _holders(sockets: "Mapping[str, str]", until: float) -> "dict[int, set[str]]":
    """The processes that hold these sockets, with the connections of each."""
    names = {f"socket:[{inode}]": end for inode, end in sockets.items()}
    found = {}  # type: dict[int, set[str]]
    for pid in proc.pids() if names else ():
        if time.monotonic() > until:
            break
        for link in proc.links(f"{proc.PROC}/{pid}/fd"):
            if link in names:
                found.setdefault(pid, set()).add(names[link])
    return found
