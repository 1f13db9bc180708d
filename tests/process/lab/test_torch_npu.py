"""What the emulated torch_npu refuses, as the real one would, and what it accepts."""

import json
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.lab.device_os import DeviceOs
from tests.lab.npu_python import TorchNpu
from tests.support.cases import cases, from_cases
from tests.support.smoke.npu_ranks import run

PAIR = [("a", 0), ("a", 1)]

COLLECTIVES = from_cases(__file__, "COLLECTIVES", str)


@pytest.mark.parametrize("product", ["atlas-training", "atlas-a2", "atlas-a3"])
def test_every_product_has_the_collectives_of_the_smoke_run(product: str, tmp_path: Path) -> None:
    for rank, said in enumerate(run(tmp_path, product, PAIR, COLLECTIVES)):
        assert "error" not in said, said
        assert (said["sum"], said["max"], said["broadcast"]) == ([3.0] * 4, [3.0] * 4, [1.0] * 4)
        assert (said["gathered"], said["part"]) == ([[5.0], [6.0]], [2.0 * (rank + 1)])
        assert (said["all"], said["received"]) == ([float(rank), 10.0 + rank], [1.0 - rank])
        assert said["where"] == f"npu:{rank}"
        assert "No backend type associated with device type cpu" in said["on the CPU"]
        assert said["gradient"] == [[8.0] * 3] * 2


TYPES = from_cases(__file__, "TYPES", str)


def test_the_first_product_reduces_neither_bfloat16_nor_int16(tmp_path: Path) -> None:
    """The call itself returns; then the queue is broken. Operators without a data type report that
    themselves.
    """
    for said in run(tmp_path, "atlas-training", PAIR, TYPES):
        assert "EZ1001" in said["cast"]
        assert "not implemented for DT_BFLOAT16" in said["cast"]
        assert "Expected all tensors to be on the same device" in said["mixed"]
        assert "Unsupported data type" in said["byte"]
        assert said["float16"] == said["int64"] == [2, 2]
        assert (said["last"], said["call"]) == ("int16", "")
        assert "the current working operator name is HcclAllreduce" in said["error"]


def test_a_broken_queue_stays_broken(tmp_path: Path) -> None:
    body = """
x, y = torch.ones(2, dtype=torch.int16).to(device), torch.ones(2, device=device)
dist.all_reduce(x)
say("all", [refused(call) for call in (npu.synchronize, lambda: y + y, lambda: dist.all_reduce(y), y.cpu)])
"""
    for said in run(tmp_path, "atlas-training", PAIR, body):
        assert all("The process exits for this inner error" in error for error in said["all"]), said


@pytest.mark.parametrize("product", ["atlas-a2", "atlas-a3"])
def test_the_later_products_reduce_both(product: str, tmp_path: Path) -> None:
    for said in run(tmp_path, product, PAIR, TYPES):
        assert "error" not in said, said
        assert said["cast"] == ""
        assert said["bfloat16"] == said["int16"] == [2, 2]


FORM = "dist.all_reduce(torch.ones(1, device=device))"


def test_a_group_across_the_rings_is_refused_when_it_is_used(tmp_path: Path) -> None:
    seats = [("a", 0), ("a", 4)]
    for said in run(tmp_path, "atlas-training", seats, f"say('there', True)\n{FORM}"):
        assert said["there"]
        assert "error code is 5" in said["error"]
        assert "ERR02200 DIST call hccl api failed." in said["error"]
    assert not any("error" in said for said in run(tmp_path, "atlas-a2", seats, FORM))
    apart = [("a", 0), ("b", 4)]
    assert not any("error" in said for said in run(tmp_path, "atlas-training", apart, FORM))


def test_a_device_has_one_process_and_is_taken_for_a_while_after_it(tmp_path: Path) -> None:
    shown: list[tuple[int, bool]] = []
    device_os = DeviceOs(tmp_path / "os", 0.3, lambda *change: shown.append(change))

    with ExitStack() as wires:

        def start(device: int) -> tuple[socket.socket, bytes]:
            wire = wires.enter_context(socket.socket(socket.AF_UNIX))
            wire.connect(str(tmp_path / "os"))
            wire.sendall(json.dumps({"device": device}).encode() + b"\n")
            return wire, wire.recv(100)

        wires.callback(device_os.close)
        first, answer = start(0)
        assert answer == b"started\n"
        assert start(0)[1] == b"EJ0001\n"
        assert start(1)[1] == b"started\n"
        first.close()
        closed = time.monotonic()
        while 0 in device_os.taken:
            assert time.monotonic() < closed + 20
            time.sleep(0.01)
        assert time.monotonic() > closed + 0.25
        assert start(0)[1] == b"started\n"
    assert device_os.started == [0, 1, 0]
    assert device_os.refused == [0]
    assert (shown[0], shown.count((0, True))) == ((0, True), 2)
    assert (0, False) in shown


def test_a_second_process_on_a_device_is_told_of_the_first(tmp_path: Path) -> None:
    device_os = DeviceOs(tmp_path / "os")
    try:
        twice = run(tmp_path, "atlas-a2", [("a", 2)], FORM)
        device_os.lingers = 60
        twice += run(tmp_path, "atlas-a2", [("a", 2)], FORM)
        twice += run(tmp_path, "atlas-a2", [("a", 2)], FORM)
    finally:
        device_os.close()
    assert ["error" in one for one in twice] == [False, False, True]
    assert "error code is 7" in twice[2]["error"]
    assert "EJ0001" in twice[2]["error"]
    assert "Maybe the last training process is running" in twice[2]["error"]


WAVER = from_cases(__file__, "WAVER", str)
WAVERING = {
    ("", False, "false"): [False, False, False],
    ("default", False, "false"): [True, True, True],
    ("default", False, "true"): [True, True, False],
    ("default", True, "false"): [False, False, False],
    ("always", True, "true"): [True, True, True],
}
"""How the device wavers, what is switched on, and whether a product, an embedding's gradient and a sum over
the ranks differ from time to time.
"""


def test_sums_in_any_order(tmp_path: Path) -> None:
    """Only on request; the ranks of a group always get the same bits of one sum."""
    seats = [("a", number) for number in range(4)]
    every = run(tmp_path, "atlas-a2", seats, WAVER.replace("CASES", repr(list(WAVERING))))
    for said in every:
        assert "error" not in said, said
        for case, expected in WAVERING.items():
            found, last = said[str(case)]
            assert found == expected, case
            assert last == every[0][str(case)][1], case


@cases
def test_one_that_cannot_be_loaded(way: TorchNpu, error: str, tmp_path: Path) -> None:
    (said,) = run(tmp_path, "atlas-a2", [("a", 0)], "", way)
    with pytest.raises(ImportError, match=error):
        raise ImportError(said["error"])


def test_visible_devices_are_numbered_from_zero(tmp_path: Path) -> None:
    device_os = DeviceOs(tmp_path / "os")
    try:
        said = run(tmp_path, "atlas-a2", PAIR, FORM, ASCEND_RT_VISIBLE_DEVICES="4,6")
        none = run(tmp_path, "atlas-a2", [("a", 2)], FORM, ASCEND_RT_VISIBLE_DEVICES="4,6")
    finally:
        device_os.close()
    assert not any("error" in one for one in said)
    assert sorted(device_os.started) == [4, 6]
    assert "valid device range is [0, 2)" in none[0]["error"]
