"""Messages of CANN, MindSpore and Megatron with several lines: the headline has the device and the rank."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from doctor.logs.model import LogOutcome
from tests.support.cases import from_cases
from tests.support.fault_logs import accusations, written

EZ = from_cases(__file__, "EZ", str)
CORE = "there is an exception of fftsplus aicore error, core id is 12, error code = 0x20000"
OLD_VECTOR = from_cases(__file__, "OLD_VECTOR", str)
HEADER = "EE9999[PID: 43311] The error from device(chipId:5, dieId:0), serial number is 6."
SDMA = "there is a fftsplus sdma error, sdma channel is 2,"
HEARTBEAT = from_cases(__file__, "HEARTBEAT", tuple[str, ...])
SCHEDULER = from_cases(__file__, "SCHEDULER", tuple[str, ...])
NO_MEMORY = "RuntimeError: NPU out of memory. Tried to allocate 386.00 MiB (NPU 5; 60.97 GiB total capacity)"
ASKED = from_cases(__file__, "ASKED", str)
PORT = from_cases(__file__, "PORT", tuple[str, ...])
CALLED = "{} ERROR 07-01 08:38:50 [multiproc_executor.py:492] {}"
WORKER = "(EngineCore_1 pid=90) (VllmWorker rank=0 pid=114020)"
NOT_SET_UP = from_cases(__file__, "NOT_SET_UP", str)
CALL = "[ERROR] 2025-07-01-08:38:50 (PID:114020, Device:-1, RankID:5) ERR00100 PTA call acl api failed"
SHORT_OF = from_cases(__file__, "SHORT_OF", str)
LINK = from_cases(__file__, "LINK", str)
NAN = "AssertionError: Rank 13: found NaN in local grad norm in backwards pass. Device: 5, node: cn17"
RERUN = from_cases(__file__, "RERUN", tuple[str, ...])
RULE = "-" * 66
PIPELINE = (RULE, "- Dataset Pipeline Error Message: ", RULE)
USER_CODE = from_cases(__file__, "USER_CODE", tuple[str, ...])
FULL = from_cases(__file__, "FULL", tuple[str, ...])
CARD_IN_USE = from_cases(__file__, "CARD_IN_USE", tuple[str, ...])


@pytest.mark.parametrize(
    ("lines", "symptom", "words"),
    [
        ([EZ.format(7) + CORE], "acl-507015", "device 7"),
        ([OLD_VECTOR], "acl-507035", "device 6"),
        ([HEADER, SDMA, "irqStatus=0x0, cqeStatus=0x70000."], "hccl-ei0012", "device 5"),
        (HEARTBEAT, "acl-507010", "device 3"),
        (SCHEDULER, "acl-507013", "device 6"),
        ([NO_MEMORY], "torch-npu-out-of-memory", "device 5"),
        (
            [ASKED],
            "acl-107001",
            "device 1): a device id is beyond the devices that this process sees (visible: 4,7)",
        ),
        (["[ERROR]  acl set device 2 failed, errorCode = 507033"], "acl-507033", "device 2"),
        (PORT, "hccl-ej0003", "rank 0: an address and port of HCCP cannot be bound (port 60007)"),
        ([SHORT_OF, LINK.format(0), LINK.format(1)], "hccl-ei0007", "memory or of notify registers"),
        ([NAN], "megatron-nan", "rank 13 on cn17 (device 5)"),
        (RERUN, "megatron-rerun-same", "rank 13 on cn17 (device 5)"),
        (USER_CODE, "mindspore-dataset-failed", "(KeyError: 'shard 17', reader.py:11, in __getitem__)"),
        (
            [*PIPELINE, "[ERROR] Crop: height is too large."],
            "mindspore-dataset-failed",
            "(Crop: height is too large)",
        ),
        (FULL, "python-semaphore-no-space", "/dev/shm"),
        (CARD_IN_USE, "mindspore-device-memory", "device 2"),
    ],
    ids=lambda value: value if isinstance(value, str) and "-" in value and " " not in value else "",
)
def test_the_headline_has_what_the_message_says(
    lines: Sequence[str], symptom: str, words: str, tmp_path: Path
) -> None:
    said = written(tmp_path, *lines)
    (cause,) = accusations(said)
    assert (said.outcome, cause.symptom) == (LogOutcome.NAMED, symptom)
    assert words in cause.says


def test_lines_of_two_ranks_keep_their_headers(tmp_path: Path) -> None:
    """An indented line without a header shows nothing about the next line of another rank."""
    failed = (
        "        Aicpu kernel execute failed, device_id={}, stream_id=2[FUNC:Print][FILE:task.cc][LINE:1]"
    )
    lines = [
        "[rank0]: E39999: [PID: 77] 2025-11-10-09:25:12.000.000  Inner Error!",
        f"[rank1]:{failed.format(1)}",
        f"[rank0]:{failed.format(0)}",
    ]
    (cause,) = accusations(written(tmp_path, *lines))
    assert {(party.rank, party.pid) for party in cause.who} == {(0, 77), (1, None)}


def test_a_worker_of_another_engine_has_the_rank_that_torch_npu_says(tmp_path: Path) -> None:
    """Each engine of vLLM numbers its workers from 0."""
    lines = [CALLED.format(WORKER, NOT_SET_UP), CALLED.format(WORKER, CALL)]
    (cause,) = accusations(written(tmp_path, *lines))
    assert [party.rank for party in cause.who] == [5]
    (cause,) = accusations(written(tmp_path, lines[0]))
    assert [party.rank for party in cause.who] == [None]


def test_a_worker_of_the_only_engine_has_its_own_rank(tmp_path: Path) -> None:
    for before in ("", "(EngineCore_0 pid=90) "):
        line = CALLED.format(f"{before}(VllmWorker rank=3 pid=114020)", NOT_SET_UP)
        (cause,) = accusations(written(tmp_path, line))
        assert [party.rank for party in cause.who] == [3]


def test_hccl_numbers_the_rank_that_has_too_little_memory(tmp_path: Path) -> None:
    writer = "(VllmWorker rank=1 pid=50935)"
    lines = [CALLED.format(writer, each) for each in (SHORT_OF, LINK.format(0), LINK.format(1))]
    (cause,) = accusations(written(tmp_path, *lines))
    assert [party.rank for party in cause.who] == [9]


STEPS = [f"step {step} loss {3 - step / 1000:.4f}" for step in range(400)]


OPTIONAL = from_cases(__file__, "OPTIONAL", str)
TRANSIENT = from_cases(__file__, "TRANSIENT", str)
WARNED = ("loader WARNING - Error occurred during preprocess.", *PIPELINE, "[ERROR] No cast was found.")


@pytest.mark.parametrize("lines", [[OPTIONAL], WARNED, [TRANSIENT]], ids=["library", "pipeline", "transient"])
def test_what_the_job_overcame_is_not_accused(lines: Sequence[str], tmp_path: Path) -> None:
    assert not accusations(written(tmp_path, *lines, *STEPS))


def test_helpers_of_a_rank_that_ended_are_not_its_cause(tmp_path: Path) -> None:
    """Alone they show that a rank ended, and not why; below its exception they make it certain."""
    helpers = ["[ERROR] TBE Subprocess[task_distribute] raise error[], main process disappeared!"] * 2
    alone = written(tmp_path, *STEPS[:9], *helpers)
    assert alone.outcome is LogOutcome.UNKNOWN
    raised = [
        f"[rank1]: {line}"
        for line in (
            "Traceback (most recent call last):",
            '  File "/job/train.py", line 9, in <module>',
            "    x = y[z]",
            "KeyError: 'lr'",
        )
    ]
    (cause,) = accusations(written(tmp_path, *STEPS[:9], *raised, *helpers))
    assert [party.rank for party in cause.who] == [1]
