"""The devices of ranks. nccl and hccl are tested with stand-ins that have the names of the real modules."""

from __future__ import annotations

import json
import math
import os
import socket
import sys
import threading
import time
from datetime import timedelta
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._C._distributed_c10d import FileStore

from doctor.smoke.onhost import evidence
from doctor.smoke.onhost.collectiveplan import COMMON, FURTHER
from doctor.smoke.onhost.devices import Cuda, Npu, framework_of
from doctor.smoke.onhost.torch_framework import Torch
from tests.support.cases import cases, from_cases

TORCH = str(torch.__version__)


class Api:
    """The common part of torch.cuda and torch_npu.npu; remembers its calls."""

    def __init__(self, product: str) -> None:
        self.asked: list[tuple[str, Any]] = []
        self._product = product
        self.nccl = SimpleNamespace(version=lambda: (2, 21, 5))
        self.utils = SimpleNamespace(get_cann_version={"CANN": "8.2.RC1", "HCCL": "8.2.RC1.0"}.__getitem__)

    there = True

    def is_available(self) -> bool:
        return self.there

    def set_device(self, number: int) -> None:
        self.asked.append(("set_device", number))

    def synchronize(self) -> None:
        self.asked.append(("synchronize", None))

    def manual_seed(self, seed: int) -> None:
        self.asked.append(("manual_seed", seed))

    def get_device_name(self, number: int) -> str:
        self.asked.append(("get_device_name", number))
        return self._product

    def Event(self, *, enable_timing: bool) -> SimpleNamespace:
        return SimpleNamespace(timed=enable_timing)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    stand_in = Api("Ascend910B3")
    npu = ModuleType("torch_npu")
    npu.__dict__.update(__version__="2.6.0", npu=stand_in, _C=SimpleNamespace())
    monkeypatch.setitem(sys.modules, "torch_npu", npu)
    monkeypatch.setitem(sys.modules, "torch_npu.npu", stand_in)
    monkeypatch.setitem(sys.modules, "torch.cuda", stand_in)
    for name in ("NCCL_DEBUG", "NCCL_RAS_ADDR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(evidence, "_FILES", [])
    return stand_in


@pytest.mark.parametrize(
    ("backend", "local", "number", "kind", "expected"),
    [
        ("gloo", 3, None, Torch, 3),
        ("nccl", 3, None, Cuda, 3),
        ("nccl", 3, 0, Cuda, 0),
        ("hccl", 1, 6, Npu, 6),
    ],
)
def test_a_rank_uses_the_device_it_was_given_or_that_of_its_place(
    backend: str, local: int, number: int | None, kind: type[Torch], expected: int
) -> None:
    framework = framework_of(backend, local, number)
    assert type(framework) is kind
    assert framework.number == expected
    assert framework.backend == backend
    assert framework.on_cpu == (backend == "gloo")


def test_the_cpu() -> None:
    framework = framework_of("gloo", 0, None)
    assert framework.device == torch.device("cpu")
    assert framework.product
    assert framework.draw_many(3) == {}
    assert framework.environment(60) == {}
    assert framework.versions().keys() == {"torch"}
    assert framework.evidence() == ""
    assert framework.limit(9.5) == timedelta(seconds=9.5)


def test_every_dtype_of_the_cpu_is_summed_by_gloo(tmp_path: Any) -> None:
    store = FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        for name in (*COMMON, *FURTHER["gloo"]):
            one = torch.ones(2, dtype=getattr(torch, name))
            torch.distributed.all_reduce(one)
            assert one.tolist() == [1, 1]
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("kind", [Cuda, Npu])
def test_an_accelerator_asks_its_own_module(api: Api, kind: type[Torch]) -> None:
    device = kind(2)
    device.set_up()
    device.synchronise()
    device.seed(7)
    assert device.product == "Ascend910B3"
    assert api.asked == [
        ("set_device", 2),
        ("synchronize", None),
        ("manual_seed", 7),
        ("get_device_name", 2),
    ]


def test_the_module_of_the_npu_is_loaded_only_by_the_rank() -> None:
    Npu(0).environment(60)
    Npu(0).limit(60)
    assert "torch_npu" not in sys.modules


@pytest.mark.usefixtures("api")
def test_cuda_draws_and_computes_on_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []

    def rand(count: int, device: torch.device) -> torch.Tensor:
        drawn.append((count, device))
        return torch.zeros(count)

    monkeypatch.setattr(torch, "rand", rand)
    assert Cuda(1).draw_many(64).keys() == {"device"}
    assert drawn == [(64, torch.device("cuda", 1))]


@pytest.mark.usefixtures("api")
def test_versions() -> None:
    assert Cuda(0).versions()["nccl"] == "2.21.5"
    npu = {"torch_npu": "2.6.0", "cann": "8.2.RC1", "hccl": "8.2.RC1.0"}
    assert Npu(0).versions() == {"torch": TORCH, **npu}


@pytest.mark.usefixtures("api")
def test_a_torch_for_rocm_reports_hip_and_rccl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "hip", "6.4.43482-0f2d60242")
    assert Cuda(0).versions() == {"torch": TORCH, "hip": "6.4.43482-0f2d60242", "rccl": "2.21.5"}


def test_a_version_that_cannot_be_asked_is_left_out(api: Api) -> None:
    api.utils = SimpleNamespace()
    api.nccl = SimpleNamespace()
    assert Npu(0).versions() == {"torch": TORCH, "torch_npu": "2.6.0"}
    assert "nccl" not in Cuda(0).versions()


@pytest.mark.parametrize("timeout", [0.5, 15, 120, 121, 300, 1800, 7200, 1e6])
def test_time_limits_of_hccl_are_in_range_and_in_order(timeout: float) -> None:
    wanted = Npu(0).environment(timeout)
    connect, execute = int(wanted["HCCL_CONNECT_TIMEOUT"]), int(wanted["HCCL_EXEC_TIMEOUT"])
    assert 120 <= connect <= 7200
    assert connect >= min(math.ceil(timeout), 7200)
    assert connect + 20 < execute <= 17340
    assert execute % 68 == 0, "the first generation rounds down to a multiple of 68"
    assert int(wanted["HCCL_EVENT_TIMEOUT"]) > execute
    assert Npu(0).limit(timeout) > timedelta(seconds=execute)


@pytest.mark.usefixtures("api")
def test_no_backend_leaves_files_behind() -> None:
    assert Cuda(0).environment(60)["TORCH_NCCL_DUMP_ON_TIMEOUT"] == "0"
    npu = Npu(0).environment(60)
    assert npu["TORCH_HCCL_DUMP_ON_TIMEOUT"] == "0"
    assert npu["ASCEND_SLOG_PRINT_TO_STDOUT"] == npu["ASCEND_LOG_PRINT_TO_STDOUT"] == "1"


@pytest.mark.usefixtures("api")
def test_an_address_that_is_set_for_nccl_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    port = int(Cuda(0).environment(60)["NCCL_RAS_ADDR"].rpartition(":")[2])
    assert port != evidence.RAS_PORT, "that port may be another job's"
    monkeypatch.setenv("NCCL_RAS_ADDR", "localhost:12345")
    assert "NCCL_RAS_ADDR" not in Cuda(0).environment(60)


# NCCL's own account of its network, in memory of the rank.

SAID = """\
node1:7:7 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so.
node1:7:7 [0] misc/ibvwrap.cc:212 NCCL WARN Call to ibv_open_device failed
node1:7:7 [0] transport/net_ib.cc:148 NCCL WARN NET/IB : Unable to open device mlx5_0
node1:7:7 [0] NCCL INFO NET/IB : No device found.
node1:7:7 [0] NCCL INFO Using network Socket
node1:7:9 [0] NCCL INFO Channel 00/02 :    0   1
node1:7:9 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0
node1:7:9 [0] NCCL INFO Channel 01/0 : 1[0] -> 0[0] [receive] via NET/Socket/0
node1:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/AWS Libfabric/0/GDRDMA(PCI) comm 0x1
node1:7:9 [0] misc/socket.cc:57 NCCL WARN socketProgress: Connection closed by remote peer
"""


@pytest.mark.usefixtures("api")
def test_a_rank_hears_what_nccl_says_of_its_network(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("NCCL_DEBUG_FILE", "/var/log/nccl.%h"), ("NCCL_DEBUG", "TRACE")):
        monkeypatch.setenv(name, value)  # of the login: the rehearsal leaves that file alone
    wanted = Cuda(0).environment(60)
    assert wanted["NCCL_DEBUG"] == "INFO"
    assert {"INIT", "NET"} <= {*wanted["NCCL_DEBUG_SUBSYS"].split(",")}
    assert evidence.said() == []
    with open(wanted["NCCL_DEBUG_FILE"], "w") as file:  # as NCCL opens it
        file.write(SAID)
    warnings = [
        "WARN Call to ibv_open_device failed",
        "WARN NET/IB : Unable to open device mlx5_0",
        "WARN socketProgress: Connection closed by remote peer",
    ]
    assert evidence.said("NCCL WARN") == warnings
    assert [line for line in evidence.said() if line not in warnings] == [
        "NET/Plugin: Could not find: libnccl-net.so.",
        "NET/IB : No device found.",
        "Using network Socket",
        "via NET/Socket/0",
        "via NET/AWS Libfabric/0/GDRDMA(PCI)",
    ]
    monkeypatch.setattr(evidence, "ras", lambda: "")
    assert Cuda(0).evidence().startswith("NCCL:\n")
    many = "".join(f"node1:7:7 [0] x.cc:1 NCCL WARN {n} {'x' * 500}\n" for n in range(5000))
    with open(wanted["NCCL_DEBUG_FILE"], "w") as file:
        file.write(many)
    assert [len(line) for line in evidence.said()] == [200] * 64
    assert len(Cuda(0).evidence()) < 5000, "a report of a hang has its limit"


@pytest.mark.usefixtures("api")
def test_an_old_system_without_such_memory_hears_warnings_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    wanted = Cuda(0).environment(60)
    assert (wanted["NCCL_DEBUG"], "NCCL_DEBUG_FILE" in wanted) == ("WARN", False)
    assert evidence.said() == []


# Flight Recorder. The keys are those of FlightRecorder.hpp, version 2.10.


def entry(group: int, name: str, number: int, state: str) -> dict[str, Any]:
    return {
        "collective_seq_id": number,
        "pg_id": group,
        "process_group": [str(group), name],
        "profiling_name": "nccl:all_reduce",
        "input_sizes": [[37504]],
        "state": state,
    }


DUMP = from_cases(
    __file__,
    "DUMP",
    dict[
        str,
        str
        | dict[str, dict[str, str]]
        | dict[str, dict[str, int]]
        | list[dict[str, int | list[str] | str | list[list[int]]]],
    ],
    entry,
)


@pytest.mark.parametrize("form", [str, str.encode])
def test_the_recorder_says_how_far_each_group_got(form: Any) -> None:
    assert evidence.recorded(form(json.dumps(DUMP))).splitlines() == [
        "group 0 (default_pg): 3 collectives enqueued, 3 completed",
        "group 1 (dp): 9 collectives enqueued, 8 completed; the last is nccl:all_reduce [[37504]], started",
    ]


def test_the_record_of_this_torch_is_understood(tmp_path: Any) -> None:
    store = FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        torch.distributed.all_reduce(torch.ones(2))
        dump = torch._C._distributed_c10d._dump_fr_trace_json()  # type: ignore[attr-defined]
    finally:
        torch.distributed.destroy_process_group()
    assert "(default_pg): " in evidence.recorded(dump)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)
loose = st.fixed_dictionaries(
    {},
    optional={
        "pg_status": st.dictionaries(
            st.sampled_from(["0", "1", "x"]),
            values
            | st.fixed_dictionaries(
                {}, optional={"last_enqueued_collective": values, "last_completed_collective": values}
            ),
        ),
        "entries": st.lists(
            values
            | st.fixed_dictionaries({}, optional={"pg_id": values, "process_group": values, "state": values})
        ),
    },
)


@given(st.binary() | (values | loose).map(lambda value: json.dumps(value).encode()))
def test_any_dump_gives_a_short_printable_text(dump: bytes) -> None:
    said = evidence.recorded(dump)
    assert len(said) <= 4000
    assert all(line.isprintable() for line in said.split("\n"))


def test_a_dump_without_end_is_not_read() -> None:
    assert evidence.recorded(b"[" * 100_000) == ""
    assert evidence.recorded(b" " * ((64 << 20) + 1)) == ""


# NCCL RAS: a server that speaks its protocol, as in src/ras/client_support.cc.


class Ras:
    def __init__(self, *answers: bytes, closes: bool = True) -> None:
        self.heard = b""
        self._answers, self._closes = answers, closes
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = ("127.0.0.1", int(self._listener.getsockname()[1]))
        self._thread = threading.Thread(target=self._serve)
        self._over = threading.Event()
        self._thread.start()

    def _serve(self) -> None:
        wire, _ = self._listener.accept()
        with wire:
            self.heard = wire.recv(1000)
            try:
                for answer in self._answers:
                    wire.sendall(answer)
            except OSError:
                return
            if not self._closes:
                self._over.wait(20)

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._listener.close()


STATUS = (
    b"Job summary\n===========\n\n  Group     Comms    Status  Errors\n      0         1   RUNNING      OK\n"
)


def test_the_status_of_nccl_is_read_from_its_server() -> None:
    server = Ras(b"OK\n", STATUS)
    try:
        said = evidence.ras(server.address)
    finally:
        server.close()
    assert server.heard == b"timeout 4\nstatus\n"
    assert said.splitlines() == [
        "Job summary",
        "===========",
        "  Group     Comms    Status  Errors",
        "      0         1   RUNNING      OK",
    ]


def test_a_server_that_does_not_listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = ("127.0.0.1", int(listener.getsockname()[1]))
    assert evidence.ras(address, limit=1) == ""


def test_a_server_that_never_ends_is_left_after_the_limit_with_its_answer_so_far() -> None:
    server = Ras(b"OK\n", STATUS, closes=False)
    began = time.monotonic()
    try:
        said = evidence.ras(server.address, limit=0.5)
        took = time.monotonic() - began
    finally:
        server.close()
    assert "RUNNING" in said
    assert took < 15


def test_a_flood_of_output_is_cut() -> None:
    server = Ras(*[b"\x1b[31m" + b"x" * 100_000 + b"\n"] * 50)
    try:
        said = evidence.ras(server.address, limit=3)
    finally:
        server.close()
    assert 0 < len(said) <= 4000
    assert "\x1b" not in said


@cases
def test_the_address_where_nccl_answers(
    monkeypatch: pytest.MonkeyPatch, text: str | None, expected: tuple[str, int]
) -> None:
    monkeypatch.delenv("NCCL_RAS_ADDR", raising=False)
    if text is not None:
        monkeypatch.setenv("NCCL_RAS_ADDR", text)
    assert evidence.ras_address() == expected


# Evidence through the devices.


@pytest.mark.usefixtures("api")
def test_cuda_gives_both_kinds_of_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    c10d = torch._C._distributed_c10d
    monkeypatch.setattr(c10d, "_dump_nccl_trace_json", lambda: json.dumps(DUMP).encode(), raising=False)
    monkeypatch.setattr(evidence, "ras", lambda: "Job summary")
    said = Cuda(0).evidence()
    assert said.startswith("Flight Recorder:\ngroup 0 (default_pg)")
    assert said.endswith("NCCL RAS:\nJob summary")


@pytest.mark.usefixtures("api")
def test_the_npu_gives_the_record_of_torch_npu() -> None:
    c10d = SimpleNamespace(_dump_hccl_trace_json=lambda: json.dumps(DUMP).encode())
    sys.modules["torch_npu"]._C._distributed_c10d = c10d
    assert "group 1 (dp): 9 collectives enqueued, 8 completed" in Npu(0).evidence()


@pytest.mark.usefixtures("api")
@pytest.mark.parametrize("kind", [Cuda, Npu])
def test_a_torch_without_a_recorder_gives_none(monkeypatch: pytest.MonkeyPatch, kind: type[Torch]) -> None:
    monkeypatch.setattr(evidence, "ras", lambda: "")
    assert kind(0).evidence() == ""


@pytest.mark.usefixtures("api")
def test_the_ranks_of_one_run_agree_where_nccl_answers() -> None:
    assert Cuda(0).environment(60)["NCCL_RAS_ADDR"] == Cuda(5).environment(60)["NCCL_RAS_ADDR"]
    assert str(evidence.RAS_PORT + 1 + os.getppid() % 1000) in Cuda(0).environment(60)["NCCL_RAS_ADDR"]


@pytest.mark.parametrize("backend", ["nccl", "hccl"])
def test_a_torch_that_sees_no_device_says_so(backend: str, api: Api) -> None:
    api.there = False
    with pytest.raises(RuntimeError, match="this torch sees no"):
        framework_of(backend, 0, 0).set_up()
