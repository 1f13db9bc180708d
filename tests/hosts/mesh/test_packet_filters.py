"""The mesh against real packet filters: hosts are network namespaces on one bridge, cut off with nft."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from checks.packets import not_carried
from doctor.mesh import MeshBlame, MeshResult, culprits, plan_mesh
from doctor.mesh.run import mesh_script, run_mesh
from tests.lab.needs import missing
from tests.support.cases import cases_with, from_cases
from tests.support.faults import some_of
from tests.support.mesh_session import LocalSession

WHY_NOT = missing()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
MASTER = 29500
HCCL = 60000
SYN = "tcp flags & (syn | ack) == syn"


class Lab:
    """`count` namespaces with one address each; the bridge lives in a namespace of its own."""

    def __init__(self, count: int) -> None:
        self.mark = f"cdm{os.getpid()}"
        self.hosts = {f"h{i}": f"10.77.0.{i + 1}" for i in range(count)}
        bridge = f"{self.mark}-br"
        self.spaces = [bridge]
        self.sh(f"ip netns add {bridge}")
        self.sh(f"ip -n {bridge} link add br0 type bridge; ip -n {bridge} link set br0 up")
        for host, address in self.hosts.items():
            space = self.space(host)
            self.spaces.append(space)
            self.sh(f"ip netns add {space}")
            self.sh(f"ip -n {space} link add eth0 type veth peer name {host} netns {bridge}")
            self.sh(f"ip -n {bridge} link set {host} master br0 up; ip -n {space} link set lo up")
            self.sh(f"ip -n {space} address add {address}/24 dev eth0; ip -n {space} link set eth0 up")

    def space(self, host: str) -> str:
        return f"{self.mark}-{host}"

    @staticmethod
    def sh(command: str) -> str:
        done = subprocess.run(["sh", "-ec", command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def rule(self, host: str, hook: str, rule: str) -> None:
        lines = f"table inet t {{ chain {hook} {{ type filter hook {hook} priority 0; {rule}; }}; }}"
        self.sh(f"ip netns exec {self.space(host)} nft '{lines}'")

    def port_mtu(self, host: str, size: int) -> None:
        """The switch's port of this host silently drops larger packets."""
        for each in self.hosts:
            self.sh(f"ip -n {self.space(each)} link set eth0 gso_max_segs 1")
        self.sh(f"ip -n {self.mark}-br link set {host} mtu {size}")

    def clear(self) -> None:
        for host in self.hosts:
            self.sh(f"ip -n {self.mark}-br link set {host} mtu 1500")
            self.sh(f"ip -n {self.space(host)} link set eth0 mtu 1500 gso_max_segs 65535")
            self.sh(f"ip netns exec {self.space(host)} nft flush ruleset")
            self.sh(f"ip -n {self.space(host)} link set eth0 up")

    def mesh(self) -> MeshResult:
        plan = plan_mesh(self.hosts, head="h0", master_port=MASTER, hccl_port=HCCL)
        prefix = {host: ("ip", "netns", "exec", self.space(host)) for host in self.hosts}
        return run_mesh(LocalSession({host: mesh_script() for host in self.hosts}, prefix=prefix), plan)

    def close(self) -> None:
        for space in self.spaces:
            subprocess.run(["ip", "netns", "delete", space], check=False)


@pytest.fixture(scope="module")
def built() -> Iterator[Lab]:
    lab = Lab(4)
    yield lab
    lab.close()


@pytest.fixture
def lab(built: Lab) -> Iterator[Lab]:
    yield built
    built.clear()


Inject = Callable[[Lab], None]
Blame = tuple[tuple[str, ...], str, tuple[str, ...], bool]
"""The hosts, the direction, the kinds of ports, and whether it is decided."""


def named(result: MeshResult, *, ways: bool = False) -> list[Blame]:
    def plain(blame: MeshBlame) -> Blame:
        return blame.hosts, blame.direction, blame.kinds, blame.decided

    return sorted(map(plain, culprits(result.ways if ways else result.links)))


def test_a_healthy_mesh_leaves_no_socket_behind(lab: Lab) -> None:
    result = lab.mesh()
    assert named(result) == []
    assert {link.outcome for link in result.links} == {"ok"}
    assert {way.outcome for way in result.ways} == {"ok"}
    assert named(result, ways=True) == []
    assert not_carried(result) == {}
    for host in lab.hosts:
        left = lab.sh(f"ip netns exec {lab.space(host)} cat /proc/net/tcp").splitlines()[1:]
        assert left == []


def cut(host: str, hook: str, rule: str) -> Inject:
    return lambda lab: lab.rule(host, hook, rule)


def unplugged(host: str) -> Inject:
    return lambda lab: (lab.sh(f"ip -n {lab.space(host)} link set eth0 down"), None)[1]


def narrowed(host: str, size: int) -> Inject:
    return lambda lab: lab.port_mtu(host, size)


FAULTS = from_cases(__file__, "FAULTS", dict[str, tuple[Inject, list[Blame], str]], cut, unplugged)


@pytest.mark.parametrize(
    "fault", some_of(FAULTS, "inbound", "outbound", "rejected", "link down", "one pair", "answers lost")
)
def test_fault_is_named(lab: Lab, fault: str) -> None:
    inject, expected, outcome = FAULTS[fault]
    inject(lab)
    began = time.monotonic()
    result = lab.mesh()
    assert named(result) == expected
    failed = {link.outcome for link in result.links if link.failed}
    assert failed == {outcome} if outcome else failed <= {"dropped", "no-route"}
    assert time.monotonic() - began < 30
    assert result.troubles == ()


def test_a_third_of_the_packets_lost_is_not_a_firewall(lab: Lab) -> None:
    lab.rule("h1", "input", f"{SYN} numgen inc mod 3 == 0 drop")
    result = lab.mesh()
    assert named(result) == []
    assert any(link.ms is not None and link.ms > 500 for link in result.links)


@cases_with(cut, narrowed)
def test_a_hole_for_large_packets_is_named_though_connections_work(
    lab: Lab, inject: Inject, guilty: Blame
) -> None:
    inject(lab)
    result = lab.mesh()
    assert named(result) == []
    assert named(result, ways=True) == [guilty]
    assert result.troubles == ()


def test_a_smaller_mtu_that_both_ends_know_loses_nothing(lab: Lab) -> None:
    lab.sh(f"ip -n {lab.space('h1')} link set eth0 mtu 1300")
    result = lab.mesh()
    assert named(result) == named(result, ways=True) == []


@pytest.mark.long
def test_a_link_too_slow_for_the_load_loses_nothing(lab: Lab) -> None:
    """Six connections share 200 kbit/s: what has arrived at the end proves that large packets pass."""
    lab.sh(
        f"ip netns exec {lab.space('h1')} tc qdisc add dev eth0 root tbf rate 200kbit burst 8kb latency 2s"
    )
    result = lab.mesh()
    lab.sh(f"ip netns exec {lab.space('h1')} tc qdisc del dev eth0 root")
    assert named(result, ways=True) == []
    assert {link.carried for link in result.links if link.kind == "ephemeral"} >= {"both", "there"}
