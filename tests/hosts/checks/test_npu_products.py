"""What differs between Ascend products: rails, dies, ports. Healthy ones are silent."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.lab import Lab, missing
from tests.lab.npu_products import PRODUCTS
from tests.lab.npus import NpuHost, Rack, fit_npus
from tests.support.batches import batches, prove_each
from tests.support.cases import cases, from_cases
from tests.support.faults import ALONE, assert_healthy, assert_only
from tests.support.npu_faults import NpuExaminer, NpuFault, assert_says

Fitted = Callable[[str], NpuExaminer]
TRAINING, A3, A950 = "atlas-training", "atlas-a3", "atlas-950"


@pytest.fixture(scope="module")
def racks() -> Iterator[Callable[[str], Rack]]:
    """A lab of three hosts for each requested product."""
    if reason := missing():
        pytest.skip(reason)
    with ExitStack() as stack:

        @cache
        def boot(product: str) -> Rack:
            rack = fit_npus(stack.enter_context(Lab(3)), product)
            stack.callback(rack.free)
            return rack

        yield boot


@pytest.fixture
def fitted(racks: Callable[[str], Rack], tmp_path: Path) -> Fitted:
    """Healthy hosts of a product."""

    def healthy_again(product: str) -> NpuExaminer:
        rack = racks(product)
        rack.lab.reset()
        rack.reset()
        return NpuExaminer(rack, tmp_path)

    return healthy_again


@cases
def test_healthy(product: str, devices: int, exam: tuple[str, ...], fitted: Fitted) -> None:
    examine = fitted(product)
    began = time.monotonic()
    outcome = examine(*exam)
    print(f"{product}: examined in {time.monotonic() - began:.1f} s")
    assert not outcome.trouble
    assert outcome.code == 0
    assert not outcome.unknown
    assert f"{3 * devices} ranks ({devices} a host, devices found)" in outcome.text
    assert {host["product"] for host in outcome.report["hosts"]} == {product}


def other_rail(host: NpuHost) -> None:
    host[4].address = "192.168.101.200"


def pair_elsewhere(host: NpuHost) -> None:
    host[2].address, host[6].address = "192.168.150.1", "192.168.150.2"


def exchanged(host: NpuHost) -> None:
    host[1].address, host[2].address = host[2].address, host[1].address


def without_addresses(host: NpuHost) -> None:
    for npu in host:
        npu.address = None


def all_ports_down(host: NpuHost) -> None:
    host[3].says("dev_info", (host[3].said("dev_info") or "").replace(" UP  ", " DOWN"))


@dataclass(frozen=True)
class ProductFault(NpuFault):
    product: str = ""


FAULTS = ProductFault.table(
    __file__, "FAULTS", other_rail, pair_elsewhere, exchanged, without_addresses, all_ports_down
)


SAMPLE = from_cases(__file__, "SAMPLE", tuple[str, ...])
"""Faults that show differently than on Atlas A2; `make test-long` tries the others."""
INVALID_PLAN = "Atlas training, a card is missing"
"""HCCL does not support seven devices of a host: the whole job is wrong."""


def by_product() -> Iterator[Any]:
    for product in (TRAINING, A3, A950):
        faults = {name: fault for name, fault in FAULTS.items() if fault.product == product}
        for batch in batches(faults, *SAMPLE, size=2, alone=[INVALID_PLAN]):
            yield pytest.param(product, *batch.values, id=batch.id, marks=batch.marks)


@pytest.mark.parametrize(("product", "names"), [*by_product()])
def test_found(product: str, names: list[str], fitted: Fitted) -> None:
    examine = fitted(product)
    prove_each({name: FAULTS[name] for name in names}, examine)
    assert not examine.rack.refused


def test_one_of_several_ports_may_be_down(fitted: Fitted) -> None:
    examine = fitted(A950)
    examine.rack["node2"][3].link_up = False
    assert_healthy(examine(*ALONE))


@pytest.mark.long
def test_one_segment_for_all_rails(fitted: Fitted) -> None:
    """It is undecided which device is wrong: all are suspects."""
    examine = fitted(TRAINING)
    for host in examine.rack:
        for npu in host:
            npu.address = f"192.168.100.{20 * host.number + npu.device}"
    names = examine.rack.lab.names
    seats = [(name, device) for name in names for device in range(8)]
    (found,) = assert_only(examine(*ALONE), "device-ip-subnet", names, devices=seats)
    assert_says([found], "devices of different rails share one segment; undecided", "pairs 0/4, 1/5, 2/6")
    assert found["confidence"] == "suspect"


def test_a_single_training_server_needs_addresses(fitted: Fitted) -> None:
    """Its rank tables need them; a server of another product does not."""
    examine = fitted(TRAINING)
    without_addresses(examine.rack["node2"])
    outcome = examine(*ALONE, hosts="node2")
    assert_only(outcome, "device-ip-missing", ["node2"], devices=[("node2", n) for n in range(8)])


@pytest.mark.long
def test_a_number_of_ranks_that_hccl_does_not_connect(fitted: Fitted) -> None:
    """The hosts are sound but the job is not: no host is blamed, and there is no launch line."""
    examine = fitted(TRAINING)
    outcome = examine(*ALONE, "--ranks-per-host", "6")
    (found,) = outcome.trouble
    assert (found["check"], found["status"], found["hosts"], outcome.code) == ("plan-invalid", "fail", [], 1)
    assert_says([found], "HCCL does not connect this number", r"6 on node\[1-3\]", "--ranks-per-host")
    done = examine.rack.lab.doctor("check", "node[1-3]", *ALONE, "--ranks-per-host", "6", "--print", "launch")
    assert done.returncode == 1
    assert "torchrun" not in done.stdout
    assert not examine(*ALONE, "--ranks-per-host", "4").trouble


@pytest.mark.long
def test_the_remedy_names_the_die(fitted: Fitted) -> None:
    examine = fitted(A3)
    examine.rack["node2"][13].health("Alarm", "80E18400")
    (found,) = examine(*ALONE).trouble
    assert_says([found], "npu-smi set -t reset -i 6 -c 1")


def test_hosts_of_different_products(make_lab: Callable[..., Lab], tmp_path: Path) -> None:
    """Hosts are compared only with hosts of the same product; one job cannot have both."""
    rack = fit_npus(make_lab(4), {f"node{n}": TRAINING if n < 3 else "atlas-a2" for n in range(1, 5)})
    examine = NpuExaminer(rack, tmp_path)
    for job, status, code in ((), "warn", 0), (("--ranks-per-host", "8"), "fail", 1):
        outcome = examine(*ALONE, *job, hosts="node[1-4]")
        (found,) = outcome.trouble
        told = (found["check"], found["status"], found["hosts"], outcome.code)
        assert told == ("plan-invalid", status, [], code)
        assert_says([found], r"atlas-training on node\[1-2\]; atlas-a2 on node\[3-4\]")
    assert_healthy(examine(*ALONE, hosts="node[3-4]"))


def test_models_of_one_product(make_lab: Callable[..., Lab], tmp_path: Path) -> None:
    slower = replace(PRODUCTS["atlas-a2"], chip="910B3")
    rack = fit_npus(make_lab(3), {"node1": "atlas-a2", "node2": slower, "node3": "atlas-a2"})
    outcome = NpuExaminer(rack, tmp_path)(*ALONE)
    (found,) = assert_only(outcome, "version-drift", ["node2"], "warn")
    assert_says([found], "NPU model differs", r"910B1, as on 2 hosts \| 910B3")
