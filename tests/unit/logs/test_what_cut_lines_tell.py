"""Messages that other programs' words surround, or whose heading is missing, with their healthy twins."""

from pathlib import Path

from doctor.logs.judge.words import who
from doctor.logs.model import Conclusion, LogOutcome
from doctor.model import Confidence
from tests.support.cases import cases, from_cases
from tests.support.each import each
from tests.support.fault_logs import accusations, written

STEPS = [f"step {step} loss {3 - step / 1000:.4f}" for step in range(100)]
FRAMES = from_cases(__file__, "FRAMES", list[str])
STATE = from_cases(__file__, "STATE", list[str])
CUBLAS = from_cases(__file__, "CUBLAS", str)
POD = ["Name:         train-0", "Namespace:    default", "Node:         gpu-7/10.0.0.7", "Containers:"]
OOM = [*POD, "  main:", "    State:          Terminated", "      Reason:       OOMKilled"]
TIMEOUT = from_cases(__file__, "TIMEOUT", str)
AICORE = from_cases(__file__, "AICORE", str)
DEVICE = "[ERROR] 2026-05-28-13:42:55 (PID:285, Device:4, RankID:-1) ERR00100 PTA call acl api failed"
STUCK = from_cases(__file__, "STUCK", str)


def causes(said: Conclusion) -> list[tuple[str | None, str]]:
    return [(each.symptom, who(each.who)) for each in accusations(said)]


@each("before", [[], STEPS, ["start of training"]])
def test_frames_at_the_end_are_a_traceback_without_its_heading(before: list[str], tmp_path: Path) -> None:
    said = written(tmp_path, *before, *FRAMES)
    assert said.outcome is LogOutcome.UNKNOWN
    assert [each.number for each in said.odd] == [len(before) + 1]
    assert "(train.py:256)" in said.odd[0].text


@each("lines", [["Stack (most recent call last):", *FRAMES], FRAMES[:2], [*FRAMES, *STEPS]])
def test_a_stack_that_a_program_shows_is_no_complaint(lines: list[str], tmp_path: Path) -> None:
    assert written(tmp_path, "start of training", *lines).outcome is LogOutcome.CLEAN


@cases
def test_arguments_that_a_program_does_not_accept(line: str, tmp_path: Path) -> None:
    said = written(tmp_path, "usage: train.py [--fp16 FP16]", line)
    assert causes(said) == [("python-arguments", "a rank")]
    assert line.partition("error: ")[2] in accusations(said)[0].says


@each("lines", [[], ["train.py: error: argument --fp16: expected one of yes/no"]])
def test_usage_before_a_job_that_goes_on_is_healthy(lines: list[str], tmp_path: Path) -> None:
    said = written(tmp_path, "usage: train.py [--fp16 FP16]", *lines, *STEPS)
    assert said.outcome is LogOutcome.CLEAN


@cases
def test_a_process_that_hangs_in_the_kernel(lines: list[str], symptom: str, tmp_path: Path) -> None:
    said = written(tmp_path, *lines)
    assert causes(said) == [(symptom, "process 4037")]
    assert "nfs4_wait_clnt_recover" in accusations(said)[0].says


def test_a_trace_without_a_waiting_process_is_healthy(tmp_path: Path) -> None:
    running = [line.replace("state:D", "state:R") for line in STATE]
    assert written(tmp_path, *running).outcome is LogOutcome.CLEAN


@cases
def test_names_of_errors_in_the_lines_of_any_program(
    line: str, symptom: str, place: str, tmp_path: Path
) -> None:
    assert causes(written(tmp_path, "start of training", line)) == [(symptom, place)]


@each(
    "line",
    [CUBLAS, "failed to allocate 2.2G from device: CUDA_ERROR_OUT_OF_MEMORY", "hip: hipErrorLaunchFailure"],
)
def test_a_call_that_failed_before_the_job_went_on_is_healthy(line: str, tmp_path: Path) -> None:
    assert written(tmp_path, *STEPS[:5], line, *STEPS[5:]).outcome is LogOutcome.CLEAN


def test_a_call_that_failed_long_before_the_end_names_nobody(tmp_path: Path) -> None:
    assert causes(written(tmp_path, CUBLAS, *(["the next epoch begins"] * 300))) == []


def test_tensorflow_without_a_gpu_is_healthy(tmp_path: Path) -> None:
    line = "E cuda_driver.cc:318] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device"
    assert "cuda-call-failed" not in {symptom for symptom, _ in causes(written(tmp_path, line, *STEPS))}


@cases
def test_pod_node_and_container_of_the_heading(
    lines: list[str], symptom: str, says: tuple[str, ...], tmp_path: Path
) -> None:
    said = written(tmp_path, *lines)
    assert causes(said) == [(symptom, "gpu-7")]
    assert all(words in accusations(said)[0].says for words in says)


def test_the_heading_of_another_pod_is_not_that_of_the_event(tmp_path: Path) -> None:
    other = ["Name:         train-1", "Node:         gpu-8/10.0.0.8", "Containers:", "  other:"]
    said = written(tmp_path, *other, "      Reason:       Completed", *OOM)
    assert causes(said) == [("kubernetes-out-of-memory", "gpu-7")]
    assert not {"train-1", "other"} & {*accusations(said)[0].says.replace(",", " ").replace(")", " ").split()}


def test_a_pod_that_ended_well_is_healthy(tmp_path: Path) -> None:
    well = [line.replace("OOMKilled", "Completed") for line in OOM]
    assert written(tmp_path, *well).outcome is LogOutcome.CLEAN


def test_the_device_of_a_process_stands_in_another_of_its_lines(tmp_path: Path) -> None:
    assert causes(written(tmp_path, DEVICE, TIMEOUT)) == [("acl-507014", "process 285 (device 4)")]
    other = DEVICE.replace("PID:285", "PID:286")
    assert causes(written(tmp_path, other, TIMEOUT)) == [("acl-507014", "process 285")]


def test_a_timeout_of_an_operator_is_one_event(tmp_path: Path) -> None:
    assert [symptom for symptom, _ in causes(written(tmp_path, TIMEOUT, AICORE.format(285)))] == [
        "acl-507014"
    ]
    both = causes(written(tmp_path, TIMEOUT, AICORE.format(286)))
    assert {symptom for symptom, _ in both} == {"acl-507014", "acl-507015"}


@cases
def test_all_devices_of_a_list_are_named(between: list[str], sure: Confidence, tmp_path: Path) -> None:
    lines = [line for device in (0, 1, 7) for line in (STUCK.format(device), *between)]
    said = written(tmp_path, *lines)
    named = "device 0 of 10.0.1.3, device 1 of 10.0.1.3 and device 7 of 10.0.1.3"
    assert causes(said) == [("hccl-heartbeat-stuck", named)]
    assert accusations(said)[0].confidence is sure


def test_nobody_is_said_to_hold_the_port(tmp_path: Path) -> None:
    line = (
        "[W socket.cpp:401] [c10d] The server socket has failed to listen on [::]:47531 "
        "(errno: 98 - Address already in use)."
    )
    (cause,) = accusations(written(tmp_path, line))
    assert "another program" not in cause.says
    assert "47531" in cause.says
    assert any("started twice" in each for each in cause.causes)
