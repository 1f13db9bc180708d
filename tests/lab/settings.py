"""Mistakes of an administrator on a host: kernel settings, names, memory, links, limits, ports."""

import sys
from collections.abc import Mapping

from tests.support.cases import from_cases

from .files import hosts_file
from .machine import Machine, Process

# Accepts every connection and never answers.
LISTENER = from_cases(__file__, "LISTENER", str)


class Settings(Machine):
    """Everything here is real."""

    def sysctl(self, name: str, value: int | str) -> None:
        """Set a `net.` sysctl of this host. Other sysctls belong to the machine: use `shadow`."""
        self.do('printf %s "$2" >"/proc/sys/$1"', name.replace(".", "/"), str(value))

    def etc_hosts(self, text: str) -> None:
        self.do("cat >/etc/hosts", stdin=text)

    def names(self, addresses: Mapping[str, str | None]) -> None:
        """Change what names resolve to on this host; None removes a name."""
        known = {line.split()[1]: line.split()[0] for line in self._named()}
        changed = {**known, **addresses}
        self.etc_hosts(hosts_file({name: address for name, address in changed.items() if address}))

    def hostname(self, name: str) -> None:
        self.do('hostname "$1"; echo "$1" >/etc/hostname', name)

    def shm(self, size: str) -> None:
        """Give /dev/shm another size, such as 64m."""
        self.resize("/dev/shm", size)

    def resize(self, path: str, size: str) -> None:
        """Give /tmp, /home, /dev/shm or /run another size (the size of the root disk: `Lab(disk=)`)."""
        self.do('mount -o "remount,size=$2" "$1"', path, size)

    def fill(self, path: str, size: str) -> None:
        """Make a file that takes up `size`, such as 50m."""
        self.do('mkdir -p "$(dirname "$1")"; fallocate -l "$2" "$1"', path, size)

    def mtu(self, size: int) -> None:
        self.do('ip link set eth0 mtu "$1"', str(size))

    def link_down(self, interface: str = "eth0") -> None:
        self.do('ip link set "$1" down', interface)

    def slow_link(self, rate: str, interface: str = "eth0") -> None:
        """Let this host send no faster than `rate`, such as 1mbit."""
        self.do('tc qdisc add dev "$1" root tbf rate "$2" burst 32kbit latency 400ms', interface, rate)

    def add_interface(self, name: str, address: str) -> None:
        """Add an interface without a connection (one with a connection: `Lab(data=True)`).

        `address` comes with its prefix length.
        """
        script = """
            ip link add "$1" type veth peer name "$1-far"
            ip link set "$1" up
            ip link set "$1-far" up
            ip addr add "$2" dev "$1"
        """
        self.do(script, name, address)

    def limits(self, **limits: int | str) -> None:
        """Set the limits of later logins, named as prlimit names them: nofile, nproc, memlock, …

        nproc counts the processes of a user on all hosts of all labs, and never binds root.
        """
        options = [f"--{name}={limit}:{limit}" for name, limit in limits.items()]
        self.do('prlimit --pid "$(cat /run/sshd.pid)" "$@"', *options)

    def listen(self, port: int, address: str = "0.0.0.0", user: str = "root") -> Process:
        """A process of this host that holds `port`: it accepts connections and never answers."""
        process = self.spawn([sys.executable, "-IS", "-c", LISTENER, str(port), address], user)
        self.await_listener(port)
        return process

    def _named(self) -> list[str]:
        lines = self.ask("cat /etc/hosts").stdout.splitlines()
        return [line for line in lines if line.split()[1:] and "localhost" not in line]
