"""Which counters accuse, by what is added between two readings: in one exam, or since an earlier run."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.counters import (
    AMD_COUNTS,
    COUNTS,
    COUNTS_BEFORE,
    GPU_COUNTS,
    GPU_COUNTS_BEFORE,
    NPU_COUNTS,
    Counts,
    amd_errors_growing,
    errors_growing,
    folder_server_slow,
)
from doctor.api import Severity, Skip, Undecided
from doctor.errors import UnreadableOutput
from doctor.facts.gpus import Gpu, Gpus
from tests.support.captures import printed
from tests.support.cases import cases

GPUS = Gpus(tuple(Gpu(n, f"GPU-{n}", "NVIDIA H100", f"0000:{25 + 16 * n:02x}:00") for n in range(8)))


def counts(*readings: tuple[str, int, Mapping[str, int]]) -> tuple[Counts, ...]:
    """Boot, seconds since then, and the counters."""
    return tuple(Counts(boot, at, dict(named)) for boot, at, named in readings)


def told(problems: Any) -> list[str]:
    of = {Severity.FAIL: "fail", None: "warn"}
    return [f"{of[each.severity]} {each.subject}: {each.summary}; {each.actual}" for each in problems]


@cases
def test_what_grows(then: dict[str, int], now: dict[str, int], found: list[str]) -> None:
    own = counts(("a", 1000, then), ("a", 1008, now))
    assert told(errors_growing.run(own, None, None, None, GPUS)) == found


def test_no_earlier_run_is_nothing_that_could_not_be_read() -> None:
    assert printed(COUNTS_BEFORE, "") == printed(GPU_COUNTS_BEFORE, "") == ()


@cases
def test_an_earlier_run(before: list[Any], now: dict[str, int], found: list[str]) -> None:
    """Nothing grows in the exam itself."""
    own = counts(("a", 90_000, now), ("a", 90_008, now))
    earlier = counts(("a", 0, {"edac mc0": 0}), tuple(before))
    assert told(errors_growing.run(own, earlier, None, None, None)) == found


@cases
def test_file_servers(then: list[int], now: list[int], found: list[str]) -> None:
    words = ("asked", "resent", "unanswered", "waited")
    first, last = (
        {f"nfs srv:/data /data {word}": n for word, n in zip(words, own, strict=True)} for own in (then, now)
    )
    own = counts(("a", 1000, first), ("a", 1008, last))
    assert told(folder_server_slow.run(own, None)) == found


def test_one_that_answered_late_once_is_no_fault_of_today() -> None:
    now = {"nfs s m asked": 100_000, "nfs s m unanswered": 2, "nfs s m resent": 2, "nfs s m waited": 900}
    own = counts(("a", 90_000, now), ("a", 90_008, now))
    assert not [*folder_server_slow.run(own, counts(("a", 10, dict.fromkeys(now, 0))))]


def test_a_host_without_such_folders() -> None:
    with pytest.raises(Skip, match="NFS"):
        [*folder_server_slow.run(counts(("a", 1, {}), ("a", 9, {})), None)]


@pytest.mark.parametrize("first", [(), (("b", 900, {"edac mc0": 0}),), (("a", 1008, {"edac mc0": 0}),)])
def test_a_single_reading_tells_nothing(first: tuple[Any, ...]) -> None:
    own = counts(*first, ("a", 1008, {"edac mc0": 9000}))
    with pytest.raises(Undecided, match="only once"):
        [*errors_growing.run(own, None, None, None, None)]


def test_what_the_tool_of_gpus_prints() -> None:
    text = """boot a 1000
GPU 00000000:19:00.0
        Replays Since Reset               : 106
GPU 00000000:29:00.0
        Replays Since Reset               : N/A
@ replays 0
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-abc)
0 nvlink 0 Replay
7 nvlink 17 CRC
@ errors 0
"""
    (found,) = printed(GPU_COUNTS, text)
    assert found == Counts(
        "a", 1000, {"replay 0000:19:00": 106, "nvlink 0 0 Replay": 0, "nvlink 0 17 CRC": 7}
    )


def test_what_the_tool_of_amd_prints() -> None:
    text = """boot a 1000
{"gpu_data": [{"gpu": 0, "ecc": {"total_correctable_count": 7}, "pcie": {"replay_count": "N/A"}}]}
@ amd-smi 0
boot a 1010
[{"gpu": 0, "ecc": {"total_correctable_count": 9}, "pcie": {"replay_count": "5"}}]
@ again 0
"""
    assert printed(AMD_COUNTS, text) == (
        Counts("a", 1000, {"amd 0 corrected": 7}),
        Counts("a", 1010, {"amd 0 corrected": 9, "amd 0 replays": 5}),
    )
    assert len(printed(AMD_COUNTS, text[: text.rindex("[{")])) == 1
    for nothing in ("boot a 1000\n{}\n@ rocm-smi 0\n", "boot a 1000\n@ amd-smi hung 17\n", ""):
        with pytest.raises(UnreadableOutput, match="amd-smi shows no counters"):
            printed(AMD_COUNTS, nothing)


def test_what_the_tool_of_npus_prints() -> None:
    text = """devices 0 1
boot a 1000
packet statistics:
mac_rx_bad_pkt_num:5
mac_rx_mac_pause_num:900
@ 0 0
@ 1 hung 4
boot a 1010
packet statistics:
mac_rx_bad_pkt_num:7
@ 0 0
"""
    assert printed(NPU_COUNTS, text) == (
        Counts("a", 1000, {"npu 0 mac_rx_bad_pkt_num": 5}),
        Counts("a", 1010, {"npu 0 mac_rx_bad_pkt_num": 7}),
    )
    with pytest.raises(UnreadableOutput, match="hccn_tool shows no counters"):
        printed(NPU_COUNTS, "devices 0\nboot a 1000\n@ 0 unasked product\nboot a 1008\n@ 0 unasked product\n")


def test_a_tool_that_was_asked_once() -> None:
    with pytest.raises(Undecided, match="only once"):
        [*amd_errors_growing.run(counts(("a", 1008, {"amd 0 corrected": 9000})), None)]


@given(st.text(alphabet="boot a1\n 0edacmcnfsGPU:.", max_size=200))
def test_anything_may_be_printed(text: str) -> None:
    with suppress(UnreadableOutput):
        printed(COUNTS, text)
