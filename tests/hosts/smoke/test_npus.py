"""`doctor smoke` over an emulated HCCL, which refuses what the product lacks: emulated hosts of each product.

No real NPU is involved.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from doctor.job.ranktable import LiveDevice, LiveServer, make_table
from tests.lab import Lab, missing
from tests.lab.npu_python import TorchNpu
from tests.lab.npus import Rack, fit_npus
from tests.support.cases import cases
from tests.trials.outcome import trouble

Report = dict[str, Any]


class Smoke:
    """`doctor smoke` with the interpreter of emulated hosts."""

    def __init__(self, rack: Rack, folder: Path, python: str) -> None:
        self.rack, self.folder, self.python = rack, folder, python
        self.text, self.code = "", -1

    def __call__(self, *args: str) -> Report:
        path = self.folder / "report.json"
        files = ("--json", str(path), "--python", self.python)
        done = self.rack.lab.doctor("smoke", *args, *files)
        assert path.exists(), f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        self.text, self.code = done.stdout, done.returncode
        report: Report = json.loads(path.read_bytes())
        return report

    def well(self, *args: str) -> Report:
        """Run it, and assert that it found nothing."""
        report = self(*args)
        assert not trouble(report), self.text
        assert report["smoke"]["status"] == "pass", self.text
        assert (self.code, report["verdict"]) == (0, "healthy"), self.text
        return report

    @property
    def used(self) -> dict[str, set[int]]:
        """The devices that processes were started on, by host; each of them once."""
        found = {}
        for host in self.rack:
            assert host.device_os is not None
            assert not host.device_os.refused
            if host.device_os.started:
                found[host.host.name] = set(host.device_os.started)
                assert len(found[host.host.name]) == len(host.device_os.started)
        return found


@pytest.fixture(scope="module")
def racks() -> Iterator[Callable[[str, int], Rack]]:
    """A lab for each requested product and number of hosts."""
    if reason := missing():
        pytest.skip(reason)
    with ExitStack() as stack:

        @cache
        def boot(product: str, hosts: int) -> Rack:
            rack = fit_npus(stack.enter_context(Lab(hosts)), product)
            stack.callback(rack.free)
            return rack

        yield boot


@pytest.fixture
def smoke(racks: Callable[[str, int], Rack], tmp_path: Path) -> Callable[..., Smoke]:
    """`smoke("atlas-a2", 2, TorchNpu(...))`: two healthy hosts of that product."""

    def fit(product: str, hosts: int = 1, way: TorchNpu | None = None, lingers: float = 0.0) -> Smoke:
        rack = racks(product, hosts)
        rack.lab.reset()
        rack.reset()
        return Smoke(rack, tmp_path, rack.fit_torch_npu(way or TorchNpu(), lingers))

    return fit


# Healthy servers.


@pytest.mark.long
@cases
def test_healthy_servers_pass(product: str, hosts: int, ranks: int, smoke: Callable[..., Smoke]) -> None:
    """Atlas training forms groups inside a ring only, and adds up neither bfloat16 nor int16: what it refuses
    breaks its queue of tasks.
    """
    run = smoke(product, hosts)
    report = run.well(*run.rack.lab.names, "--ranks-per-host", str(ranks))
    assert "torch_npu" in report["smoke"]["versions"]
    assert "EI0003" not in run.text
    if ranks > 1:
        assert run.used == {name: set(range(ranks)) for name in run.rack.lab.names}


# Sums in a random order.


@pytest.mark.long
def test_a_device_that_computes_the_same_twice_once_asked_to(smoke: Callable[..., Smoke]) -> None:
    smoke("atlas-a2", way=TorchNpu(wavers="default")).well("node1", "--ranks-per-host", "4")


def test_a_device_that_never_computes_the_same_twice(smoke: Callable[..., Smoke]) -> None:
    """No host is accused of what is normal for the device, and the report says what was not compared."""
    run = smoke("atlas-a2", way=TorchNpu(wavers="always"))
    run.well("node1", "--ranks-per-host", "2")
    assert "do not compute the same bits each time" in run.text


# Devices, and when they are free.


def test_the_devices_of_the_rank_table_are_used(smoke: Callable[..., Smoke]) -> None:
    run = smoke("atlas-a2", 2)
    servers = [
        LiveServer(
            id=host.host.name,
            address=host.host.name,
            devices=tuple(LiveDevice(device, host[device].address) for device in (5, 6)),
        )
        for host in run.rack
    ]
    table = run.folder / "hccl.json"
    table.write_text(make_table(servers, "1.0", "aarch64"))
    report = run.well("--rank-table", str(table))
    assert "torch_npu" in report["smoke"]["versions"]
    assert run.used == {"node1": {5, 6}, "node2": {5, 6}}


def test_a_second_run_waits_until_the_devices_are_free(smoke: Callable[..., Smoke]) -> None:
    """HCCL starts a process on each device, which outlives its rank by seconds: EJ0001."""
    run = smoke("atlas-a2", 2, lingers=10.0)
    report = run("node[1-2]", "--ranks-per-host", "1", "--inject", "exception@1")
    assert {each["check"] for each in trouble(report)} == {"smoke-crash"}, run.text
    assert "repeated without node2: passed" in run.text
    assert all(host.device_os is not None and not host.device_os.refused for host in run.rack)


# Faults of torch_npu itself.


@cases
def test_torch_npu_is_looked_for_before_the_run(
    way: TorchNpu, check: str, says: str, smoke: Callable[..., Smoke]
) -> None:
    run = smoke("atlas-a2", way=way)
    report = run("node1", "--ranks-per-host", "2")
    (found,) = trouble(report)
    assert found["check"] == check, run.text
    assert says in found["summary"]
    assert found["hosts"] == ["node1"]
    assert run.code == 1
