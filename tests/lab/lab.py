"""A lab: N hosts, the switch between them, and the controller that the code under test runs on."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

from .controller import REPOSITORY, Controller
from .errors import LabError
from .files import hosts_file, passwd_file, write_host
from .host import Host
from .needs import missing, new_directory, sweep
from .spec import Spec
from .ssh import known_hosts, make_keys, public_key, ssh_config

ARP_ROOM = 16
"""Up to this many hosts find each other by themselves."""


class Lab(Controller):
    """Boots on `with` (or `start`), and leaves nothing behind when it closes.

    `keep` are paths that the hosts must see although they are in folders where a host has its own files
    (/tmp, /home, /root); the running interpreter and this repository are always among them. With `data`,
    the hosts share a second network, as eth1. `disk` is the size of their root disk.
    """

    def __init__(
        self,
        hosts: int = 4,
        *,
        names: Sequence[str] = (),
        data: bool = False,
        disk: str = "50%",
        keep: Sequence[Path | str] = (),
    ) -> None:
        super().__init__()
        self.names = tuple(names) or tuple(f"node{n}" for n in range(1, hosts + 1))
        self.hosts: tuple[Host, ...] = ()
        self._data = data
        self._disk = disk
        self._keep = _outermost([REPOSITORY, Path(sys.prefix), Path(sys.base_prefix), *map(Path, keep)])

    def __enter__(self) -> Lab:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __getitem__(self, name: str) -> Host:
        return self.hosts[self.names.index(name)]

    def __iter__(self) -> Iterator[Host]:
        return iter(self.hosts)

    def start(self) -> Lab:
        """Boot everything; returns when every sshd listens."""
        if reason := missing():
            raise LabError(reason)
        sweep()
        self.directory = new_directory()
        try:
            specs = self._specs()
            self._write(specs)
            self._switch_on()
            self.hosts = tuple(Host(spec) for spec in specs)
            self._boot(self.hosts)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """End every process of the lab and remove its directory."""
        _halt(self.hosts)
        self._switch_off()
        if self.directory != Path():
            shutil.rmtree(self.directory)
        self.hosts, self.directory = (), Path()

    def reset(self) -> None:
        """Reboot the hosts that may have been changed; addresses and host keys stay."""
        touched = [host for host in self.hosts if host.dirty or not host.running]
        if touched:
            _halt(touched)
            self.ip([cable.unplug for host in touched for cable in host.spec.cables], force=True)
            self._boot(touched)

    def _specs(self) -> list[Spec]:
        return [
            Spec(index, name, self.directory / name, self._disk, self._keep, self._data)
            for index, name in enumerate(self.names, start=1)
        ]

    def _write(self, specs: Sequence[Spec]) -> None:
        """Write the lab's directory: keys, names, and the files that each host boots from."""
        for spec in specs:
            spec.directory.mkdir()
        make_keys([self.identity, *(spec.key for spec in specs)])
        addresses = {spec.name: spec.address for spec in specs}
        for spec in specs:
            write_host(spec, addresses, public_key(self.identity))
        self.home.mkdir()
        self.known_hosts.write_text(known_hosts(specs))
        self.ssh_config.write_text(ssh_config(self.directory, specs))
        own = (("hosts", hosts_file(addresses)), ("passwd", passwd_file()), ("resolv.conf", ""))
        for name, text in own:
            (self.directory / name).write_text(text)

    def _boot(self, hosts: Sequence[Host]) -> None:
        """Do each step for all hosts before the next one, so that they boot side by side."""
        for host in hosts:
            host.switch_on()
        lines: list[str] = []
        for host in hosts:
            pid = host.await_namespaces()
            lines += [line for cable in host.spec.cables for line in cable.plug(pid)]
        self.ip(lines)
        for host in hosts:
            host.plugged_in()
        for host in hosts:
            host.await_sshd()
        self.await_cables([cable for host in hosts for cable in host.spec.cables])
        if len(self.hosts) > ARP_ROOM:
            self._introduce(hosts)

    def _introduce(self, hosts: Sequence[Host]) -> None:
        """Tell hosts the others' hardware addresses.

        One kernel keeps all hosts' ARP tables, with room for 1024 entries in all of them together: 32 hosts
        that each talk to 31 others overflow it, and every lost entry costs whole seconds. Permanent entries
        do not count.
        """
        for host in hosts:
            others = (other.spec for other in self.hosts if other is not host)
            lines = (
                f"neigh replace {spec.address} lladdr {spec.cables[0].mac} dev eth0 nud permanent\n"
                for spec in others
            )
            host.ask("ip -batch -", stdin="".join(lines))


def _halt(hosts: Sequence[Host]) -> None:
    for host in hosts:
        host.halt()


def _outermost(paths: Sequence[Path]) -> tuple[Path, ...]:
    """`paths` without those that lie inside another of them."""
    whole = sorted({path.resolve() for path in paths})
    return tuple(path for path in whole if not any(other in path.parents for other in whole))
