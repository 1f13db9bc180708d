"""Which hosts should try to reach which."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.mesh.plan import MeshPlan, attempts, master_attempts, plan_mesh, wanted_ports
from doctor.mesh.result import Listener


def cluster(count: int, **options: object) -> MeshPlan:
    hosts = {f"n{i}": f"10.0.{i // 250}.{i % 250 + 1}" for i in range(count)}
    return plan_mesh(hosts, head="n0", master_port=29500, **options)  # type: ignore[arg-type]


@settings(deadline=None)
@given(st.integers(2, 32))
def test_up_to_32_hosts_every_pair_meets(count: int) -> None:
    plan = cluster(count)
    assert plan.shape == "full"
    assert len(set(plan.pairs)) == len(plan.pairs) == count * (count - 1)


@pytest.mark.slow
@settings(deadline=None)
@given(st.integers(33, 400))
def test_above_32_hosts_each_meets_about_twice_the_logarithm(count: int) -> None:
    plan = cluster(count)
    assert plan.shape == "sparse"
    assert {(b, a) for a, b in plan.pairs} == set(plan.pairs)
    met = [sum(a == node.host for a, _ in plan.pairs) for node in plan.nodes]
    assert max(met) - min(met) == 0
    assert 2 * math.log2(count) - 3 <= met[0] <= 2 * math.log2(count)


def test_ring_and_none() -> None:
    assert len(cluster(40, shape="ring").pairs) == 80
    assert cluster(2, shape="ring").pairs == (("n0", "n1"), ("n1", "n0"))
    none = cluster(4, shape="none")
    assert (none.pairs, wanted_ports(none, none.nodes[0])) == ((), ())


def test_a_single_host_meets_no_other() -> None:
    plan = cluster(1)
    assert (plan.pairs, wanted_ports(plan, plan.nodes[0])) == ((), ())


def test_hosts_without_an_address_of_their_own_are_left_out_with_the_reason() -> None:
    plan = plan_mesh(
        {
            "a": "10.0.0.1",
            "b": None,
            "c": "10.0.0.9",
            "d": "node-d",
            "e": "10.0.0.9",
            "f": "fe80::1",
            "g": "2001:DB8:0::1",
            "h": "0.0.0.0",
        },
        head="b",
        master_port=29500,
    )
    assert [(n.number, n.host, n.address) for n in plan.nodes] == [
        (0, "a", "10.0.0.1"),
        (1, "g", "2001:db8::1"),
    ]
    reasons = {out.host: out.reason for out in plan.left_out}
    assert reasons.keys() == set("bcdefh")
    assert reasons["c"] == "it shares the data address 10.0.0.9 with e"
    assert "'node-d' is not an IP address" in reasons["d"]
    assert (plan.head, plan.master_port) == (None, None)


def test_ports_of_the_job_come_first_and_the_master_port_is_on_the_head_only() -> None:
    plan = cluster(3, hccl_port=60000)
    assert wanted_ports(plan, plan.nodes[0]) == (("master", 29500), ("hccl", 60000), ("ephemeral", 0))
    assert wanted_ports(plan, plan.nodes[1]) == (("hccl", 60000), ("ephemeral", 0))
    ranks = cluster(3, mccl_ports={"n0": 8118, "n1": 8374})
    assert wanted_ports(ranks, ranks.nodes[0]) == (("master", 29500), ("mccl", 8118), ("ephemeral", 0))
    assert wanted_ports(ranks, ranks.nodes[1]) == (("mccl", 8374), ("ephemeral", 0))
    assert wanted_ports(ranks, ranks.nodes[2]) == (("ephemeral", 0),)
    same = cluster(3, hccl_port=29500)
    assert wanted_ports(same, same.nodes[0]) == (("master", 29500), ("ephemeral", 0))


def test_only_ports_that_our_agents_bound_are_connected_to() -> None:
    plan = cluster(3)
    listeners = [
        Listener("n0", "master", 29500, None, "in-use"),
        Listener("n0", "ephemeral", 0, 40001),
        Listener("n1", "ephemeral", 0, 40002),
        Listener("n2", "ephemeral", 0, None, "cannot-listen"),
    ]
    tried = attempts(plan, plan.pairs, listeners)
    assert {(t.source, t.target, t.port) for t in tried} == {
        ("n1", "n0", 40001),
        ("n2", "n0", 40001),
        ("n0", "n1", 40002),
        ("n2", "n1", 40002),
    }
    assert master_attempts(plan, listeners) == ()
    bound = master_attempts(plan, [Listener("n0", "master", 29500, 29500)])
    assert [(t.source, t.port) for t in bound] == [("n1", 29500), ("n2", 29500)]
