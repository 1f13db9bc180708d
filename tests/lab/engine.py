"""A container engine for hosts of a lab: emulated, but its containers are real namespaces.

`docker exec` on hosts and `kubectl exec` on the controller talk to a daemon on the host, like the real ones:
a command that they started outlives them, and ends by itself when its stdin ends.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from .container import Container, Memory
from .emulated import emulator
from .errors import LabError
from .host import Host
from .lab import Lab
from .machine import Process

SOCKET = "/run/docker.sock"
REGISTRY = "/run/containers-of-the-lab"
PLACES = "/etc/containers-of-the-lab.json"
_GATEWAY = "169.254.1.1"
"""The first hop of a pod's route, whatever its address (as with Calico)."""


class Engine:
    """Containers on the hosts of one lab. `remove_all` ends them and removes their memory cgroups."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.containers: list[Container] = []
        self._daemons: dict[str, tuple[int, Process]] = {}

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove_all()

    def run(
        self,
        host: str,
        name: str,
        *,
        shm: str = "64m",
        net: str = "host",
        memory: int | None = None,
        names: Mapping[str, str] | None = None,
        sysctls: Mapping[str, int | str] | None = None,
    ) -> Container:
        """Start a container.

        `net`: "host"; "pod", with its own address in the lab's network; or "bridge", with the same address on
        every host. `memory` is its limit in bytes. `names` are additional entries of its /etc/hosts.
        """
        machine = self.lab[host]
        self._install(machine)
        address = {"host": "", "pod": pod_address(machine), "bridge": "172.17.0.2"}[net]
        limit = Memory(memory, f"{name}-{machine.spec.index}") if memory else None
        place = f"{REGISTRY}/{name}"
        hostname = {"host": machine.name, "pod": name}.get(net, f"c0ffee{machine.spec.index:06x}")
        environment = {
            "HOSTNAME": hostname,
            "SHM": shm,
            "KEEP": ":".join(map(str, machine.spec.keep)),
            "NAMES": "" if net == "host" else _hosts(names or {}, hostname, address),
            "OWN_NET": "" if net == "host" else "1",
            "ADDRESS": f"{address}/32",
            "GATEWAY": _GATEWAY,
            "SYSCTLS": " ".join(f"{key}={value}" for key, value in (sysctls or {}).items()),
            "CGROUP": str(limit.folder) if limit else "",
            "UNIFIED": "1" if limit and limit.unified else "",
        }
        words = ["env", *(f"{key}={value}" for key, value in environment.items())]
        unshare = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
        unshare += ["--net"] if net != "host" else []
        console = f"{place}.console"
        setup = [*unshare, "sh", "/usr/local/lib/container.sh", name, place]
        machine.do(f"rm -f {place}.net {place}.plugged {place}.new")
        process = machine.spawn([*words, "sh", "-c", f'exec "$@" 2>{console}', "sh", *setup])

        def ready(file: str) -> str:
            found = machine.ask(f"cat {file} 2>/dev/null").stdout.strip()
            if not found and not process.alive:
                said = machine.ask(f"cat {console}").stdout.strip()
                raise LabError(f"container {name} on {host} did not start: {said}")
            return found

        if net != "host":
            machine.await_that(lambda: bool(ready(f"{place}.net")), f"network of container {name}")
            self._plug(machine, name, int(ready(f"{place}.net")), address)
            machine.do(f": >{place}.plugged")
        machine.await_that(lambda: bool(ready(f"{place}.new")), f"container {name}")
        container = Container(machine, name, int(ready(f"{place}.new")), address or machine.address, limit)
        self.containers.append(container)
        container.registered = {"pid": container.pid_on_host, "hostname": hostname}
        container.registered |= {"cgroup": str(limit.folder)} if limit else {}
        self.change(container)
        return container

    def made_from(self, host: Host, image: str) -> None:
        """The number of the image of which the containers of a host were made."""
        host.write(PLACES, json.dumps({"*": {"socket": SOCKET, "image": f"sha256:{image}"}}))

    def change(self, container: Container, **changes: object) -> None:
        """Change its state, as the daemon does: `refuses` is the text of its refusal, `delay` in seconds."""
        container.registered |= changes
        text = json.dumps(container.registered)
        container.host.do(
            f'mkdir -p {REGISTRY}; cat >"$1.tmp"; mv "$1.tmp" "$1"',
            f"{REGISTRY}/{container.name}",
            stdin=text,
        )

    def pods(self, folder: Path) -> Path:
        """Put into `folder` a `kubectl` that knows every container as a pod of the namespace `default`."""
        folder.mkdir(exist_ok=True)
        places = {
            f"default/{each.name}": {
                "socket": f"/proc/{each.host.pid}/root{SOCKET}",
                "name": each.name,
            }
            for each in self.containers
        }
        (folder / "pods.json").write_text(json.dumps(places))
        program = folder / "kubectl"
        program.write_text(_client("kubectl", str(folder / "pods.json")))
        program.chmod(0o755)
        return folder

    def remove_all(self) -> None:
        for container in self.containers:
            container.remove()
        self.containers.clear()

    def _install(self, host: Host) -> None:
        if self._daemons.get(host.name, (0, None))[0] == host.pid:
            return
        host.write("/usr/local/bin/docker", _client("docker", PLACES), 0o755)
        self.made_from(host, "1" * 64)
        host.write("/usr/local/lib/engined.py", emulator("engined"))
        host.write("/usr/local/lib/container.sh", Path(__file__).with_name("container.sh").read_text())
        host.do(f"mkdir -p {REGISTRY}; rm -f {SOCKET}")
        argv = [sys.executable, "-ISB", "/usr/local/lib/engined.py", SOCKET, REGISTRY]
        self._daemons[host.name] = (host.pid, host.spawn(argv))
        host.await_that(lambda: host.ask(f"test -S {SOCKET}").returncode == 0, "engine")

    def _plug(self, host: Host, name: str, pid: int, address: str) -> None:
        """Connect a cable and let the host answer for its far end (proxy ARP), so that the lab's network
        reaches it.
        """
        port = f"c-{name}"[:15]
        host.do(
            """
            ip link del "$1" 2>/dev/null || :
            ip link add "$1" type veth peer name eth0 netns "$2"
            ip link set "$1" up
            ip route replace "$3/32" dev "$1"
            for each in eth0 "$1"; do echo 1 >/proc/sys/net/ipv4/conf/$each/proxy_arp; done
            echo 0 >"/proc/sys/net/ipv4/neigh/$1/proxy_delay" 2>/dev/null || :
            echo 1 >/proc/sys/net/ipv4/ip_forward
            """,
            port,
            str(pid),
            address,
        )


def pod_address(host: Host) -> str:
    """The address of a pod: a further one in the lab's network."""
    return f"198.18.9.{host.spec.index}"


def _client(kind: str, places: str) -> str:
    return f"#!{sys.executable} -ISB\n{emulator('enginecli')}\n\nmain({kind!r}, {places!r})\n"


def _hosts(names: Mapping[str, str], own: str, address: str) -> str:
    lines = ["127.0.0.1 localhost", f"{address} {own}"]
    return "\n".join([*lines, *(f"{value} {name}" for name, value in names.items() if name != own)])
