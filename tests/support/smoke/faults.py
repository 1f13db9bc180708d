"""Break a host of the lab from outside: packet filters, resets, modified libraries, contention.

Cables, links and disks: see `tests.lab`. A rank's process: see `tests.support.smoke.pages`.
"""

import contextlib
import signal
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass

from tests.lab import Host
from tests.support.cases import from_cases

RULES = from_cases(__file__, "RULES", dict[str, str])
"""What nft loads."""


@dataclass(frozen=True, slots=True)
class JobPython:
    """The ranks' interpreter, on every host of the lab."""

    framework: str
    site: str
    """The folder in which it finds its packages."""


WITH_TORCH = JobPython("torch", sysconfig.get_path("purelib"))


def sitecustomize(host: Host, code: str, python: JobPython = WITH_TORCH) -> None:
    """Make the interpreter run `code` at its start, on this host only."""
    host.write("/run/tampered/sitecustomize.py", code)
    _tamper(host, python)


def without_package(host: Host, name: str, python: JobPython = WITH_TORCH) -> None:
    """Hide a package from the interpreter, as if it had never been installed."""
    # In an overlay, such a device in place of a name means that the name does not exist.
    script = """
        mkdir -p /run/tampered; cd "$2"
        for each in "$1" "$1"-*.dist-info; do mknod "/run/tampered/$each" c 0 0; done
    """
    host.do(script, name, python.site)
    _tamper(host, python)


def _tamper(host: Host, python: JobPython) -> None:
    host.do('mount -t overlay overlay -o "lowerdir=/run/tampered:$1" "$1"', python.site)


def no_new_connections(host: Host, interface: str = "eth0") -> None:
    """A firewall that accepts SSH and established connections, and drops other incoming packets."""
    host.nft(RULES["closed"].format(interface=interface))


def no_way_out(host: Host, interface: str = "eth0") -> None:
    """In one direction: the host answers connections to it, but its own connections are dropped."""
    host.nft(RULES["oneway"].format(interface=interface))


def silence(host: Host, interface: str = "eth0", but_ssh: bool = True) -> None:
    """From now on packets are lost in both directions, also those of established connections."""
    match = "tcp sport != 22 tcp dport != 22" if but_ssh else ""
    host.nft(RULES["silent"].format(interface=interface, match=match))


def swallow_large(host: Host, interface: str = "eth0", hook: str = "input") -> None:
    """From now on, large packets are lost in one direction, without any message."""
    side = "iif" if hook == "input" else "oif"
    host.nft(RULES["hole"].format(hook=hook, side=side, interface=interface))


def reset_connections(host: Host) -> None:
    """End every connection of the host except SSH with a reset, as a restarted network card does."""
    host.do("ss -K -t state established 'sport != :22 and dport != :22' >/dev/null")


def full_shm(host: Host) -> None:
    """Fill /dev/shm completely."""
    host.shm("16m")
    host.do("dd if=/dev/zero of=/dev/shm/stale bs=4096 2>/dev/null || :")


@contextlib.contextmanager
def hogs(count: int) -> Iterator[None]:
    """Start `count` programs that each use a whole core of the machine. They end by themselves."""
    running = [subprocess.Popen(["timeout", "300", "sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
    finally:
        for hog in running:
            hog.send_signal(signal.SIGTERM)  # `timeout` passes it on
        for hog in running:
            hog.wait()
