"""What one line shows: its form, level, time and writer."""

from calendar import timegm
from datetime import datetime, timezone

import pytest

from doctor.logs.forms.line import said_of
from doctor.logs.forms.prefix import PrefixLayout, layout_of
from doctor.logs.forms.times import Clock
from doctor.logs.model import Form
from tests.support.cases import cases, from_cases

WRITTEN = float(timegm((2025, 11, 20, 12, 0, 0)))
CLOCK = Clock(WRITTEN)


def says(text: str, layout: PrefixLayout = PrefixLayout()) -> dict[str, object]:  # noqa: B008
    """The values that a line has."""
    said = said_of(text, layout, CLOCK)
    party = said.party
    values = {
        "form": said.form,
        "level": said.level,
        "at": said.at and datetime.fromtimestamp(said.at, timezone.utc).replace(tzinfo=None).isoformat(),
        "rank": party.rank,
        "host": party.host,
        "pid": party.pid,
        "device": party.device,
    }
    return {name: value for name, value in values.items() if value not in (None, "")}


PLOG = from_cases(__file__, "PLOG", list[str])


@pytest.mark.parametrize("line", PLOG)
def test_plog_in_all_its_variations(line: str) -> None:
    assert says(line) == {
        "form": Form.PLOG,
        "level": "ERROR",
        "at": "2025-10-23T21:05:09.859568",
        "pid": 1041081,
    }


def test_mindspore_looks_like_plog_but_is_not() -> None:
    line = "[CRITICAL] DEVICE(17381,ffff890145d0,python):2022-12-01-03:02:29.002.576 [mindspore/a.cc:1] Init]"
    assert says(line) == {
        "form": Form.MINDSPORE,
        "level": "ERROR",
        "at": "2022-12-01T03:02:29.002576",
        "pid": 17381,
    }
    gpu = "[ERROR] DEVICE [mindspore/ccsrc/runtime/device/gpu/cuda_driver.cc:245] SetDevice] failed"
    assert says(gpu) == {"form": Form.MINDSPORE, "level": "ERROR"}


@cases
def test_what_cann_prints_in_three_generations(line: str, pid: int | None, time: str | None) -> None:
    expected: dict[str, object] = {"form": Form.CANN, "level": "ERROR"}
    if pid:
        expected["pid"] = pid
    if time:
        expected["at"] = time
    assert says(line) == expected


def test_torch_npu_has_device_and_rank() -> None:
    line = "[ERROR] 2025-04-29-18:46:11 (PID:1066924, Device:1, RankID:-1) ERR00100 PTA call acl api failed"
    assert says(line) == {
        "form": Form.TORCH_NPU,
        "level": "ERROR",
        "at": "2025-04-29T18:46:11",
        "pid": 1066924,
        "device": 1,
    }
    assert says(line.replace("RankID:-1", "RankID:9"))["rank"] == 9


@cases
def test_c10d(line: str, expected: dict[str, object]) -> None:
    assert says(line) == {"form": Form.TORCH, **expected}


def test_the_watchdog_of_hccl_is_torch_npu() -> None:
    line = "[Rank 3] Watchdog caught collective operation timeout: WorkHCCL(SeqNum=57, OpType=ALLREDUCE)"
    assert says(line) == {"form": Form.TORCH_NPU, "rank": 3}


@cases
def test_elastic(line: str, expected: dict[str, object]) -> None:
    assert says(line) == {"form": Form.ELASTIC, **expected}


NCCL = {"form": Form.NCCL, "level": "WARN", "host": "node-1.x", "pid": 17, "device": 0}


@cases
def test_nccl_in_all_forms_of_its_prefix(line: str, more: dict[str, object]) -> None:
    assert says(line) == NCCL | more


def test_nccl_without_a_host() -> None:
    assert says("misc/ibvwrap.cc:284 NCCL WARN Call to ibv_modify_qp failed") == {
        "form": Form.NCCL,
        "level": "WARN",
    }
    assert says("ncclSystemError: System call failed") == {"form": Form.NCCL}


@cases
def test_slurm(line: str, expected: dict[str, object]) -> None:
    assert says(line) == {"form": Form.SLURM, **expected}


@cases
def test_mpi(line: str, expected: dict[str, object]) -> None:
    assert says(line) == {"form": Form.MPI, **expected}


OOM = "Out of memory: Killed process 6033 (python)"


@cases
def test_the_kernel(line: str, expected: dict[str, object]) -> None:
    assert says(line) == {"form": Form.KERNEL, **expected}


def test_a_print_of_the_same_words_is_not_the_kernels() -> None:
    assert says(f"my script says {OOM}") == {"form": Form.PLAIN}
    assert says(f"step 12: {OOM}") == {"form": Form.PLAIN}


@cases
def test_python(line: str, expected: dict[str, object]) -> None:
    assert says(line) == {"form": Form.PYTHON, **expected}


def test_loggers_of_scripts_have_times_and_levels() -> None:
    time = "2025-11-20T07:22:05.123000"
    assert says("2025-11-20 07:22:05,123 - trainer - ERROR - no") == {
        "form": Form.PLAIN,
        "level": "ERROR",
        "at": time,
    }
    assert says("[2025-11-20 07:22:05,123] [INFO] [config.py:3] yes") == {
        "form": Form.PLAIN,
        "level": "INFO",
        "at": time,
    }
    assert says("11/20/2025 07:22:05 - INFO - __main__ - yes")["at"] == "2025-11-20T07:22:05"


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("2026-11-20 10:00:00,123 [rank3] INFO loop: step 1", 3),
        ("2026-11-20 10:00:00,123 INFO [rank3] loop: step 1", 3),
        ("2026-11-20 10:00:00,123 INFO loop: sent to [rank3] again", None),
        (" [rank3] is one of the list", None),
    ],
)
def test_the_tag_of_a_rank_behind_a_time_or_a_level(line: str, rank: int | None) -> None:
    assert says(line).get("rank") == rank


def test_slurms_labels_are_known_by_the_whole_file() -> None:
    lines = [f"{rank}: [rank{rank}]: step {step}" for step in range(9) for rank in range(4)]
    layout = layout_of(lines)
    assert layout.label
    assert says("3: ValueError: no", layout) == {"form": Form.PYTHON, "level": "ERROR", "rank": 3}
    assert not layout_of([f"{number}: text" for number in range(1, 40)]).label, "line numbers"
    assert not layout_of(["3: [a]", "loss 3", "step 4", "step 5"]).label


def test_hosts_in_front_of_all_lines() -> None:
    layout = layout_of([f"node{number}: step {step}" for step in range(9) for number in (1, 2)])
    assert layout.hosts == {"node1", "node2"}
    assert says("node2: ValueError: no", layout)["host"] == "node2"
    of_slurm = [*(f"{rank}: step 1" for rank in range(8)), *["slurmstepd-node1: error: *** STEP 1.0 ***"] * 2]
    assert not layout_of(of_slurm).hosts, "labels of ranks, and a program of Slurm"
    assert not layout_of(["EZ9999: Inner Error!", *["EZ9999: [PID: 4711] an error of device 0"] * 4]).hosts
    assert layout_of(["ez-9999: Inner Error!"] * 5).hosts == {"ez-9999"}, "a host, not a code"


@cases
def test_labels_of_processes(labels: list[str], party: dict[str, object] | None) -> None:
    layout = layout_of([f"{label}step {step}" for step in range(9) for label in labels])
    said = says(f"{labels[-1]}ValueError: no", layout)
    assert said == {"form": Form.PYTHON, "level": "ERROR", **party} if party else not layout.hosts


def test_what_kubernetes_has_in_front() -> None:
    expected = {"form": Form.PYTHON, "level": "ERROR", "rank": 2}
    assert says("[pod/worker-3/pytorch] [rank2]: ValueError: no") == expected | {"host": "worker-3"}
    time = {"at": "2025-11-20T07:22:05.123456"}
    assert says("2025-11-20T07:22:05.123456Z stderr F [rank2]: ValueError: no") == expected | time
    assert says("2025-11-20T07:22:05.123456Z [rank2]: ValueError: no") == expected | time


def test_prefixes_nest() -> None:
    layout = layout_of([f"{rank}: text" for rank in range(8)])
    line = "3: [rank3]: node1:17:18 [2] NCCL WARN no"
    assert says(line, layout) == {
        "form": Form.NCCL,
        "level": "WARN",
        "rank": 3,
        "host": "node1",
        "pid": 17,
        "device": 2,
    }


@cases
def test_times_that_cannot_be_are_none(time: str) -> None:
    assert "at" not in says(time)


@pytest.mark.parametrize(
    "line", ["[" * 5000, "1: " * 3000, "[rank1]: " * 2000, "E" * 9000, ".a" * 4000, " " * 8000]
)
def test_hostile_lines_end(line: str) -> None:
    assert says(line)["form"] in (Form.PLAIN, Form.NCCL)


@cases
def test_a_rank_within_a_group_is_no_rank_of_the_job(group: str, rank: int | None) -> None:
    line = f"[E1121 10:10:00.000000000 ProcessGroupNCCL.cpp:607] {group} Watchdog caught collective operation"
    assert says(line).get("rank") == rank


def test_a_label_before_a_line_of_srun_itself_is_of_another_program() -> None:
    """ctest puts the number of a test before all that it prints."""
    of_ctest = [f"172: step {step}" for step in range(8)]
    assert layout_of(of_ctest).label
    assert not layout_of([*of_ctest, "172: srun: error: node1: task 0: Exited with exit code 1"]).label
