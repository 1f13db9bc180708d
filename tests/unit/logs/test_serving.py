"""vLLM and SGLang: the failed worker is named, not the engine that repeats its error."""

from pathlib import Path

from doctor.logs.model import LogOutcome
from tests.support.cases import from_cases
from tests.support.each import each
from tests.support.fault_logs import written

WORKER = "({who} pid=4301) ERROR 11-20 14:37:14 [multiproc_executor.py:470] "
ENGINE = "(EngineCore_DP0 pid=4200) ERROR 11-20 14:37:15 [core.py:708] "
FRAMES = from_cases(__file__, "FRAMES", tuple[str, ...])


def of(head: str, *lines: str) -> list[str]:
    return [head + line for line in lines]


@each("who", ["VllmWorker rank=1", "Worker_TP1", "VllmWorker TP1", "RayWorkerWrapper"])
def test_the_worker_is_named_and_not_the_engine(who: str, tmp_path: Path) -> None:
    found = written(
        tmp_path,
        *of(WORKER.replace("{who}", who), "WorkerProc hit an exception.", *FRAMES,
            "AttributeError: 'NoneType' object has no attribute 'shape'"),
        *of(ENGINE, "EngineCore encountered a fatal error.", *FRAMES,
            "RuntimeError: Worker failed with error 'no attribute', please check the stack trace above"),
    )  # fmt: skip
    assert found.charges[0].symptom in ("vllm-worker-failed", None)
    assert "4200" not in "".join(each.says for each in found.charges)
    assert any("AttributeError: 'NoneType'" in line.text for line in found.odd)
    assert not any("File" in line.text[:90] for line in found.odd)


def test_a_log_that_is_cut_at_both_ends_of_a_traceback_is_not_silent(tmp_path: Path) -> None:
    head = "vllm-1  | (RayWorkerWrapper pid=14379) ERROR 08-01 20:15:29 worker_base.py:382] "
    found = written(tmp_path, *of(head, *FRAMES[1:], *FRAMES[1:]))
    assert found.outcome is LogOutcome.UNKNOWN
    assert found.odd


def test_a_draft_model_without_profiled_tokens_goes_on(tmp_path: Path) -> None:
    line = "[2026-11-20 06:45:01] max_total_tokens=20480 is larger than the profiled value -89624."
    rest = (f"[2026-11-20 06:5{n // 10 % 10}:0{n % 10}] Prefill batch. #new-seq: {n}" for n in range(300))
    assert written(tmp_path, line, *rest).outcome is LogOutcome.CLEAN
