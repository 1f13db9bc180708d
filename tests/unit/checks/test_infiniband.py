"""Ports that are all alike, and slower than any machine with these GPUs is built."""

import pytest

from checks.infiniband import ib_port_slow
from doctor.facts.gpus import Gpu, Gpus
from doctor.facts.infiniband import InfinibandPort
from tests.support.cases import cases
from tests.support.number_rows.devices import job


def machine(product: str, gpus: int) -> Gpus:
    return Gpus(tuple(Gpu(n, f"GPU-{n}", product, f"0000:{n:02x}:00") for n in range(gpus)))


def ports(rate: str, number: int, layer: str = "InfiniBand") -> list[InfinibandPort]:
    return [InfinibandPort(f"mlx5_{n}", 1, "active", "LinkUp", rate, layer) for n in range(number)]


@cases
def test_alike(product: str, gpus: int, rate: str, number: int, named: bool) -> None:
    own = dict.fromkeys(("a", "b"), ports(rate, number))
    found = [*ib_port_slow.run(own, dict.fromkeys(own, machine(product, gpus)), job())]
    assert [each.hosts for each in found] == [("a", "b")] * named


@pytest.mark.parametrize("layer", ["Ethernet", ""])
def test_only_infiniband_has_a_norm(layer: str) -> None:
    own = {"a": ports("100 Gb/sec (4X EDR)", 8, layer)}
    assert not [*ib_port_slow.run(own, {"a": machine("NVIDIA A100-SXM4-80GB", 8)}, job())]


def test_one_port_of_a_slow_machine_is_told_apart() -> None:
    """The ports of a machine that differs are judged by the others; the norm is for what all have."""
    own = {name: ports("200 Gb/sec (4X HDR)", 8) for name in "abc"}
    own["b"] = [
        *own["b"][:7],
        InfinibandPort("mlx5_7", 1, "active", "LinkUp", "50 Gb/sec (1X HDR)", "InfiniBand"),
    ]
    gpus = dict.fromkeys(own, machine("NVIDIA A100-SXM4-80GB", 8))
    (found,) = ib_port_slow.run(own, gpus, job())
    assert (found.hosts, found.subject) == (("b",), "mlx5_7 port 1")
