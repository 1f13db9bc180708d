"""What a lab needs from the machine, and the removal of what a killed lab left behind."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

PROGRAMS = (
    "ip",
    "mount",
    "nft",
    "nsenter",
    "pivot_root",
    "prlimit",
    "setpriv",
    "setsid",
    "ssh-keygen",
    "sshd",
    "unshare",
)
PREFIX = "cluster-doctor-lab-"
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"


def missing() -> str | None:
    """The reason why no lab can be booted here, as text for a skipped test; None if one can."""
    if not sys.platform.startswith("linux"):
        return "the lab needs Linux"
    if os.geteuid() != 0:
        return "the lab needs root"
    for program in PROGRAMS:
        if without(program):
            return f"the lab needs the program {program!r}"
    if subprocess.run(["unshare", "--mount", "--net", "true"], capture_output=True).returncode:
        return "the lab needs the right to make namespaces, which this container lacks"
    if "\toverlay" not in Path("/proc/filesystems").read_text():
        return "the lab needs the overlay file system"
    return None


def without(program: str) -> bool:
    """Whether `program` is absent, sbin included (an ordinary PATH often leaves it out)."""
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:{SBIN}") is None


def new_directory() -> Path:
    """A private directory whose name shows `sweep` which process owns it."""
    pid = os.getpid()
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{pid}-{_started(pid)}-"))


def sweep() -> list[Path]:
    """Remove the labs whose owner is dead, and return their directories.

    Their hosts die with their owner (see `boot.sh`), unless another process inherited the lifeline.
    """
    swept = []
    for directory in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*-*"):
        pid, started = directory.name.removeprefix(PREFIX).split("-")[:2]
        if not pid.isdigit() or _started(int(pid)) == started:
            continue
        for process in processes_of(directory):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        shutil.rmtree(directory, ignore_errors=True)
        swept.append(directory)
    return swept


def processes_of(directory: Path) -> list[int]:
    """The processes that carry a path of this lab on their command line: its hosts and its controller."""
    every = psutil.process_iter(["cmdline"])
    return [each.pid for each in every if str(directory) in " ".join(each.info["cmdline"] or ())]


def _started(pid: int) -> str:
    """When the process began, in clock ticks: distinguishes a living owner from a newer process with the same
    id.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "dead"
    return stat.rpartition(")")[2].split()[19]
