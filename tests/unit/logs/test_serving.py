"""vLLM and SGLang: the failed worker is named, not the engine that repeats its error."""

from pathlib import Path

import pytest

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


def test_a_known_error_that_the_engine_repeats_is_nobodys(tmp_path: Path) -> None:
    found = written(
        tmp_path,
        *of(ENGINE, *FRAMES, "RuntimeError: Worker failed with error 'ACL stream synchronize failed, error "
            "code:507035', please check the stack trace above for the root cause"),
    )  # fmt: skip
    assert (found.outcome, found.charges[0].symptom) == (LogOutcome.NAMED, "acl-507035")
    assert "process" not in found.charges[0].says


def test_too_little_memory_for_the_cache(tmp_path: Path) -> None:
    found = written(
        tmp_path,
        *of(WORKER.replace("{who}", "Worker_TP3"), "WorkerProc failed to start.", *FRAMES,
            "ValueError: Free memory on device cuda:3 (12.18/23.56 GiB) on startup is less than desired GPU "
            "memory utilization (0.92, 21.67 GiB). Decrease GPU memory utilization."),
        *of(ENGINE, "EngineCore failed to start."),
    )  # fmt: skip
    assert (found.outcome, found.charges[0].symptom) == (LogOutcome.NAMED, "vllm-no-cache")
    assert "cuda:3" in found.charges[0].says


def test_a_log_that_is_cut_at_both_ends_of_a_traceback_is_not_silent(tmp_path: Path) -> None:
    head = "vllm-1  | (RayWorkerWrapper pid=14379) ERROR 08-01 20:15:29 worker_base.py:382] "
    found = written(tmp_path, *of(head, *FRAMES[1:], *FRAMES[1:]))
    assert found.outcome is LogOutcome.UNKNOWN
    assert found.odd


def test_containers_of_compose_are_read(tmp_path: Path) -> None:
    lines = ("Traceback (most recent call last):", '  File "/app/a.py", line 3, in f', "    import absent",
             "ModuleNotFoundError: No module named 'absent'")  # fmt: skip
    found = written(tmp_path, *of("vllm-1  | ", "INFO starting", *lines))
    assert found.charges[0].symptom == "python-module-missing"


def test_the_watchdog_of_all_ranks_accuses_none(tmp_path: Path) -> None:
    lines = [
        f"[2026-11-20 00:57:1{n % 2} TP{n}] {word}atchdog timeout (self.watchdog_timeout=300{soft})"
        for n, (word, soft) in enumerate([("W", ""), ("W", ""), ("Scheduler w", ", self.soft=False")])
    ]
    killed = "[2026-11-20 00:57:20] Received sigquit from a child process. It usually means the child failed."
    found = written(tmp_path, *lines, killed, "Killed")
    assert found.charges[0].symptom == "sglang-watchdog"
    assert all(f"TP{n}" in found.charges[0].says for n in range(3))
    assert not found.charges[0].who


def test_the_exception_of_a_scheduler_is_named_and_the_signal_is_not(tmp_path: Path) -> None:
    found = written(
        tmp_path,
        "[2026-11-20 03:53:36] Received sigquit from a child proces. It usually means the child failed.",
        "[2026-11-20 03:53:36 TP3] Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/sgl/scheduler.py", line 3130, in run_scheduler_process',
    )
    assert found.charges[0].says == "a process of SGLang failed (TP3)"
    assert found.outcome is LogOutcome.UNKNOWN


@pytest.mark.parametrize(("left", "named"), [(-561981, True), (50756, False)])
def test_no_memory_is_left_for_the_cache(left: int, named: bool, tmp_path: Path) -> None:
    line = "[2026-11-20 07:41:59 DP0 TP{0}] max_total_tokens=131072 is larger than the profiled value {1}."
    found = written(tmp_path, *(line.format(rank, left) for rank in range(8)))
    assert [each.symptom for each in found.charges] == ["sglang-cache-negative"] * named


def test_a_draft_model_without_profiled_tokens_goes_on(tmp_path: Path) -> None:
    line = "[2026-11-20 06:45:01] max_total_tokens=20480 is larger than the profiled value -89624."
    rest = (f"[2026-11-20 06:5{n // 10 % 10}:0{n % 10}] Prefill batch. #new-seq: {n}" for n in range(300))
    assert written(tmp_path, line, *rest).outcome is LogOutcome.CLEAN


def test_a_bad_request_is_no_failure_of_the_server(tmp_path: Path) -> None:
    head = "(APIServer pid=100) ERROR 11-20 14:38:13 [serving_chat.py:200] "
    found = written(
        tmp_path,
        *of(head, "Error in preprocessing prompt inputs", *FRAMES, "ValueError: the context length is 4096."),
        '(APIServer pid=100) INFO:     10.0.0.1:1234 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request',
        "(Worker_TP0 pid=210) INFO 11-20 14:40:13 [multiproc_executor.py:520] Parent process exited, ending",
    )
    assert found.outcome is LogOutcome.CLEAN


def test_an_engine_that_died_is_no_bad_request(tmp_path: Path) -> None:
    """The file of the server that reports bad requests tells of it too, below the frames of a request."""
    head = "ERROR 06-23 13:46:28 [serving_chat.py:911]"
    frames = f'{head}   File "/opt/vllm/engine/client.py", line 596, in _process\n{head}     raise output\n'
    bad = f"{frames}{head} ValueError: This model's maximum context length is 4096 tokens.\n"
    dead = f"{frames}{head} vllm.engine.multiprocessing.MQEngineDeadError: Engine loop is not running.\n"
    for text, outcome in ((bad, LogOutcome.CLEAN), (dead, LogOutcome.NAMED)):
        assert written(tmp_path, text).outcome is outcome
