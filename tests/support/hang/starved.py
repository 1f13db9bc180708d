"""A host of the lab that gets a small share of one processor, through a cgroup of the machine's kernel."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.lab import Host
from tests.lab.processes import processes

PERIOD = 100_000
CGROUPS = Path("/sys/fs/cgroup")


def possible() -> bool:
    """Whether this machine allows processor limits."""
    try:
        folder = _made("trial", 0.5)
    except OSError:
        return False
    folder.rmdir()
    return True


@contextmanager
def starved(host: Host, share: float) -> Iterator[None]:
    """Limit everything that runs on the host now, and everything that it starts, to a `share` of one
    processor.
    """
    folder = _made(host.name, share)
    try:
        for each in processes(host.pid):
            with suppress(OSError):
                (folder / "cgroup.procs").write_text(str(each.pid))
        yield
    finally:
        for pid in (folder / "cgroup.procs").read_text().split():
            with suppress(OSError):
                (folder.parent / "cgroup.procs").write_text(pid)
        _remove(folder)


def _made(name: str, share: float) -> Path:
    unified = not (CGROUPS / "cpu").is_dir()
    folder = (CGROUPS if unified else CGROUPS / "cpu") / f"cluster-doctor-lab-{os.getpid()}-{name}"
    folder.mkdir()
    quota = int(share * PERIOD)
    try:
        if unified:
            (folder / "cpu.max").write_text(f"{quota} {PERIOD}")
        else:
            (folder / "cpu.cfs_quota_us").write_text(str(quota))
    except OSError:
        folder.rmdir()
        raise
    return folder


def _remove(folder: Path) -> None:
    for _ in range(200):
        with suppress(OSError):
            folder.rmdir()
            return
        time.sleep(0.02)
    folder.rmdir()
