"""Mounts dead_files.py on a host of the lab, for all its processes."""

import sys
from pathlib import Path

from tests.lab import Host
from tests.lab.machine import Process
from tests.support.hang import dead_files


def mount_dead(host: Host, folder: str, seconds: str = "") -> Process:
    """A file system that answers each read after so many seconds, or never. Returns its server."""
    host.do(f"mkdir -p {folder}; [ -e /dev/fuse ] || mknod -m 666 /dev/fuse c 10 229")
    more = [seconds] if seconds else []
    server = host.spawn([sys.executable, dead_files.__file__, folder, "for-all", *more])
    mounts = Path(f"/proc/{host.pid}/mounts")
    host.await_that(lambda: folder in mounts.read_text(), "file system")
    return server
