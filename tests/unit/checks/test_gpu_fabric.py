"""The checks of NVLinks, fabric managers and InfiniBand ports: typed facts in, problems out."""

from collections.abc import Mapping
from typing import Any

import pytest

from doctor.api import Check, Skip, Undecided
from doctor.facts.gpus import Gpu, Gpus
from doctor.facts.infiniband import InfinibandPort
from doctor.facts.nvidia.gpus import NvidiaHealth
from doctor.facts.nvidia.nvlink import FabricManager, Links
from doctor.job.plan import JobPlan, draft
from doctor.job.wishes import JobWishes
from doctor.judge.playbook import load_remedies
from doctor.judge.registry import find_checks
from doctor.model import Backend, Host, Problem, View
from tests.support.cases import cases, cases_with

CHECKS = {check.id: check for check in find_checks().checks}
NVLINK = CHECKS["nvlink-down"]
MANAGER = CHECKS["fabric-manager-down"]
PORT = CHECKS["ib-port-down"]
PLAYBOOK = load_remedies()
Fabric = dict[int, Links]
Rails = list[tuple[Any, ...]]
"""The number of each port, and what it is if not active, LinkUp and InfiniBand."""


def plan(**env: str) -> JobPlan:
    return draft([Host(f"node{n}", f"node{n}") for n in range(1, 5)], JobWishes(env=env))


def found(check: Check, *facts: Any) -> list[Problem]:
    problems = list(check.run(*facts))
    for problem in problems:
        remedy = problem.remedy or check.remedy
        assert remedy
        assert PLAYBOOK.fill(remedy, problem.values), f"{remedy} says nothing to type"
        assert all(host not in problem.summary for host in problem.hosts)
        assert problem.evidence
        assert problem.expected
        assert problem.actual
    return problems


def severity(check: Check, problem: Problem) -> str:
    return (problem.severity or check.severity).value


def links(up: int = 18, of: int = 18, name: str = "NVIDIA H100") -> Links:
    return Links(name, tuple(range(up)), tuple(range(up, of)))


def fabric(count: int = 8, name: str = "NVIDIA H100", **changed: Links) -> Fabric:
    found = dict.fromkeys(range(count), links(name=name))
    return {**found, **{int(key.removeprefix("gpu")): value for key, value in changed.items()}}


def down(
    own: Mapping[str, Fabric],
    topologies: Mapping[str, Mapping[tuple[int, int], str]] | None = None,
    gpus: Mapping[str, Gpus] | None = None,
    job: JobPlan | None = None,
) -> list[Problem]:
    return found(NVLINK, own, topologies or {}, gpus or {}, job or plan())


BRIDGED = {0: links(12, 12), 1: links(12, 12), 2: links(0, 12)}
"""Two cards with a bridge between them, and one without."""


@cases_with(fabric, links, BRIDGED=BRIDGED)
def test_healthy_links(own: Mapping[str, Fabric]) -> None:
    assert down(own) == []


def test_links_that_the_other_hosts_have() -> None:
    own = {"node1": fabric(), "node2": fabric(gpu3=links(16)), "node3": fabric()}
    (problem,) = down(own)
    assert (problem.hosts, problem.subject, problem.actual) == (("node2",), "GPU 3", "16 active")
    assert problem.expected == "18 active links, as on 2 other hosts of the job"
    assert [(place.host, place.device) for place in problem.where] == [("node2", 3)]
    assert problem.evidence[0].text == "GPU 3: 16 active, inactive: 16, 17"
    assert severity(NVLINK, problem) == "fail"


def test_of_two_hosts_the_one_with_fewer_links_is_at_fault() -> None:
    (problem,) = down({"node1": fabric(), "node2": fabric(gpu3=Links("NVIDIA H100", ()))})
    assert (problem.hosts, problem.actual) == (("node2",), "0 active")


def test_gpus_of_one_host_that_lost_equally_many_links() -> None:
    (problem,) = down({"node1": fabric(), "node2": fabric(gpu3=links(6), gpu5=links(6))})
    assert problem.subject == "GPUs 3,5"


@pytest.mark.parametrize(("up", "wanted", "confidence"), [(17, "fail", "strong"), (0, "warn", "suspect")])
def test_links_that_the_other_gpus_of_the_host_have(up: int, wanted: str, confidence: str) -> None:
    (problem,) = down({"node1": fabric(gpu3=links(up))})
    assert problem.expected == "18 active links, as 7 other GPUs of the host have"
    assert (severity(NVLINK, problem), problem.confidence) == (wanted, confidence)


def test_links_of_gpus_that_the_job_does_not_use() -> None:
    listed = Gpus(tuple(Gpu(index, f"GPU-{index}", "NVIDIA H100", "") for index in range(8)))
    own, seen = {"node1": fabric(gpu3=links(17)), "node2": fabric()}, {"node1": listed, "node2": listed}
    assert down(own, gpus=seen, job=plan(CUDA_VISIBLE_DEVICES="0,1,2")) == []
    assert down(own, gpus=seen, job=plan(CUDA_VISIBLE_DEVICES="3"))
    assert down(own, gpus={"node1": Gpus((), silent="it hangs")})


def test_no_gpu_has_nvlinks() -> None:
    with pytest.raises(Skip, match="no GPU has NVLinks"):
        down({})


def topology(far: int = -1) -> dict[tuple[int, int], str]:
    """Eight GPUs, all connected alike, except that `far` has lost one link."""
    return {(a, b): "NV17" if far in (a, b) else "NV18" for a in range(8) for b in range(a + 1, 8)}


CUBE = {(0, 1): "NV1", (0, 2): "NV1", (0, 3): "NV2", (1, 2): "NV2", (1, 3): "NV1", (2, 3): "SYS"}
"""GPUs that are connected differently by design."""


@pytest.mark.parametrize(
    ("count", "topologies"),
    [
        (8, {"node1": topology(), "node2": topology()}),
        (4, {"node1": CUBE, "node2": CUBE}),
        (4, {"node1": CUBE}),
        (2, {"node1": {(0, 1): "SYS"}}),
        (1, {"node1": {}}),
    ],
)
def test_gpus_that_are_connected_as_they_should_be(
    count: int, topologies: Mapping[str, Mapping[tuple[int, int], str]]
) -> None:
    assert down({host: fabric(count) for host in topologies}, topologies) == []


def test_gpus_that_are_connected_by_fewer_links_than_on_other_hosts() -> None:
    less = {**CUBE, (0, 3): "SYS"}
    (problem,) = down({"node1": fabric(4), "node2": fabric(4)}, {"node1": CUBE, "node2": less})
    assert (problem.hosts, problem.subject) == (("node2",), "GPUs 0,3")
    assert (problem.expected, problem.actual) == ("NV2", "SYS")


def test_a_gpu_that_is_further_from_all_others() -> None:
    (problem,) = down({"node1": fabric()}, {"node1": topology(far=5)})
    assert (problem.subject, problem.expected, problem.actual) == ("GPU 5", "NV18", "NV17")


def test_a_gpu_is_blamed_once() -> None:
    own = {"node1": fabric(gpu5=links(17)), "node2": fabric()}
    (problem,) = down(own, {"node1": topology(far=5), "node2": topology()})
    assert problem.summary == "NVLinks are inactive"


JOINED = dict.fromkeys(range(8), NvidiaHealth(fabric="Completed", fabric_status="Success"))
UP, GONE, HIDDEN = FabricManager(4, True), FabricManager(4, False), FabricManager(4, None)
NONE = FabricManager(0, False)
QUIET = dict.fromkeys(range(8), NvidiaHealth())


@cases_with(NvidiaHealth, UP=UP, JOINED=JOINED, QUIET=QUIET, NONE=NONE, GONE=GONE, HIDDEN=HIDDEN)
def test_a_fabric_that_is_set_up(
    manager: FabricManager, health: Mapping[int, NvidiaHealth] | None, view: View
) -> None:
    assert found(MANAGER, manager, health, view) == []


@cases
def test_a_fabric_that_is_not_set_up(
    manager: FabricManager,
    every: NvidiaHealth | None,
    odd: dict[int, NvidiaHealth],
    view: View,
    summary: str,
    subject: str | None,
    wanted: str,
) -> None:
    (problem,) = found(MANAGER, manager, dict.fromkeys(range(8), every) | odd if every else None, view)
    assert (problem.summary, problem.subject, severity(MANAGER, problem)) == (summary, subject, wanted)


@cases_with(GONE=GONE, HIDDEN=HIDDEN)
def test_a_manager_that_cannot_be_seen(manager: FabricManager, view: View | None, reason: str) -> None:
    with pytest.raises(Undecided, match=reason):
        found(MANAGER, manager, None, view)


def test_there_is_nothing_to_manage() -> None:
    with pytest.raises(Skip, match="no NVSwitch"):
        found(MANAGER, NONE, dict.fromkeys(range(8), NvidiaHealth()), View.HOST)


def rail(
    number: int, state: str = "active", physical: str = "LinkUp", layer: str = "InfiniBand"
) -> InfinibandPort:
    return InfinibandPort(f"mlx5_{number}", 1, state, physical, "400", layer)


ALL_UP = (rail(0), rail(1), rail(2), rail(3, layer="Ethernet"))
SPARE = (rail(0), rail(1, "down", "Polling"), rail(2, "down", "Disabled", "Ethernet"))


def ports(*changed: InfinibandPort) -> dict[str, tuple[InfinibandPort, ...]]:
    """Three hosts with all ports up; node3 has these ports instead of its own."""
    other = {port.device: port for port in changed}
    return {
        **dict.fromkeys(("node1", "node2", "node4"), ALL_UP),
        "node3": tuple(other.get(port.device, port) for port in ALL_UP),
    }


@cases_with(ports, rail, SPARE=SPARE)
def test_healthy_ports(own: Mapping[str, tuple[InfinibandPort, ...]], env: dict[str, str]) -> None:
    assert found(PORT, own, plan(**env)) == []


@cases
def test_a_port_is_down(
    good: Rails | None,
    bad: Rails,
    env: dict[str, str],
    summary: str,
    subject: str,
    expected: str,
    wanted: str,
) -> None:
    """Without `good` ones, the other hosts have all ports up, and this one all but the bad ones."""
    own = {
        name: tuple(rail(*each) for each in some) for name, some in (("node1", good or ()), ("node3", bad))
    }
    (problem,) = found(PORT, own if good else ports(*own["node3"]), plan(**env))
    assert (problem.hosts, problem.summary, problem.subject) == (("node3",), summary, subject)
    assert (problem.expected, severity(PORT, problem)) == (expected, wanted)


def roce(number: int, state: str = "active", rate: str = "200 Gb/sec (2X NDR)") -> InfinibandPort:
    return InfinibandPort(
        f"mlx5_{number}", 1, state, "LinkUp" if state == "active" else "Disabled", rate, "Ethernet"
    )


@cases_with(roce, rail)
def test_ports_that_may_not_be_of_the_fabric_only_warn(
    good: tuple[InfinibandPort, ...],
    bad: tuple[InfinibandPort, ...],
    hosts: int,
    env: dict[str, str],
    wanted: str,
) -> None:
    own = {f"node{n}": good for n in range(1, hosts)} | {f"node{hosts}": bad}
    (problem,) = found(PORT, own, plan(**env))
    assert problem.hosts == (f"node{hosts}",)
    assert severity(PORT, problem) == wanted
    assert problem.confidence == ("strong" if wanted == "fail" else "suspect")


def test_a_port_that_is_up_on_some_hosts_only() -> None:
    own = {
        "node1": (rail(0),),
        "node2": (rail(0),),
        "node3": (rail(0, "down"),),
        "node4": (rail(0, "down"),),
    }
    problems = found(PORT, own, plan())
    assert [(p.hosts, severity(PORT, p)) for p in problems] == [(("node3",), "warn"), (("node4",), "warn")]


def test_no_subnet_manager_anywhere() -> None:
    own = {f"node{n}": (rail(0, "initializing"),) for n in (1, 2)}
    problems = found(PORT, own, plan())
    assert [(p.hosts, p.expected, severity(PORT, p)) for p in problems] == [
        (("node1",), "active", "warn"),
        (("node2",), "active", "warn"),
    ]


def test_a_port_that_the_job_names_is_down_on_all_hosts() -> None:
    own = {f"node{n}": (rail(0), rail(1, "down")) for n in (1, 2)}
    problems = found(PORT, own, plan(NCCL_IB_HCA="mlx5_1"))
    assert [(p.hosts, p.expected, severity(PORT, p)) for p in problems] == [
        (("node1",), "active, for NCCL_IB_HCA=mlx5_1", "fail"),
        (("node2",), "active, for NCCL_IB_HCA=mlx5_1", "fail"),
    ]


def test_a_card_that_is_gone() -> None:
    own = {**ports(), "node3": ALL_UP[:2] + ALL_UP[3:]}
    (problem,) = found(PORT, own, plan())
    assert (problem.hosts, problem.summary) == (("node3",), "an InfiniBand port is not there")
    assert (problem.subject, problem.actual) == ("mlx5_2 port 1", "no such port")
    assert severity(PORT, problem) == "fail"


def test_a_card_that_the_only_other_host_has() -> None:
    (problem,) = found(PORT, {"node1": (rail(0), rail(1)), "node2": (rail(0),)}, plan())
    assert (problem.hosts, problem.subject) == (("node2",), "mlx5_1 port 1")
    assert (severity(PORT, problem), problem.confidence) == ("warn", "suspect")


@cases
def test_cards_that_a_host_lacks_are_one_finding(
    own: tuple[int, ...], env: dict[str, str], subject: str, wanted: str
) -> None:
    eight = tuple(rail(number) for number in range(8))
    hosts = {**dict.fromkeys(("node1", "node2", "node3"), eight), "node4": tuple(eight[n] for n in own)}
    (problem,) = found(PORT, hosts, plan(**env))
    assert (problem.hosts, problem.summary) == (("node4",), "InfiniBand ports are not there")
    assert (problem.subject, severity(PORT, problem)) == (subject, wanted)
    assert len(problem.evidence) > 1


def test_cards_of_both_kinds_are_distinguished() -> None:
    full = (rail(0), rail(1), rail(2), roce(3))
    hosts = {**dict.fromkeys(("node1", "node2", "node3"), full), "node4": full[:2]}
    problems = found(PORT, hosts, plan())
    assert [(p.summary, severity(PORT, p)) for p in problems] == [
        ("an InfiniBand port is not there", "fail"),
        ("a RoCE port is not there", "warn"),
    ]


@pytest.mark.parametrize(("env", "wanted"), [({}, []), ({"NCCL_IB_HCA": "mlx5"}, ["fail"])])
def test_a_host_with_fewer_cards_of_other_names(env: dict[str, str], wanted: list[str]) -> None:
    other = (InfinibandPort("bnxt_re0", 1, "active", "LinkUp", "200", "Ethernet"),)
    hosts = {**dict.fromkeys(("node1", "node2", "node3"), ALL_UP), "node4": other}
    problems = [p for p in found(PORT, hosts, plan(**env)) if "InfiniBand" in p.summary]
    assert [severity(PORT, problem) for problem in problems] == wanted


def test_cards_of_other_names_accuse_no_host() -> None:
    assert found(PORT, {"node1": (rail(0), rail(1)), "node2": (rail(0), rail(5))}, plan()) == []


def test_infiniband_is_not_used() -> None:
    for off in ({"NCCL_IB_DISABLE": "1"}, {"NCCL_NET": "Socket"}):
        with pytest.raises(Skip, match="NCCL_IB_DISABLE or NCCL_NET=Socket is set"):
            found(PORT, ports(rail(1, "down")), plan(**off))
    for on in ({"NCCL_IB_DISABLE": "0"}, {"NCCL_NET": "IB"}):
        assert found(PORT, ports(rail(1, "down")), plan(**on))


@pytest.mark.parametrize("check", [NVLINK, MANAGER, PORT], ids=lambda check: check.id)
def test_only_nccl_jobs_are_examined_for_their_fabric(check: Check) -> None:
    assert check.backends == (Backend.NCCL,)
