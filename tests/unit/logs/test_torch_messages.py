"""Messages of torch, NCCL and Lightning as their versions spell them, and healthy logs that look similar."""

from collections.abc import Sequence
from pathlib import Path

from doctor.logs.model import LogOutcome
from tests.support.cases import cases, from_cases
from tests.support.each import each
from tests.support.fault_logs import written

GAI = "[W socket.cpp:601] [c10d] The {} network addresses of ({}, 29500) cannot be retrieved (gai error: {})."
UNKNOWN = from_cases(__file__, "UNKNOWN", tuple[str, ...])


def traceback(*frames: str, last: str) -> list[str]:
    return ["Traceback (most recent call last):", *(f'  File "{each}\n    call()' for each in frames), last]


LOADER = "DataLoader worker (pid 4711) is killed by"
OWN = '/work/train.py", line 12, in main'


@cases
def test_what_it_says_is_named(lines: Sequence[str], symptom: str, says: str, tmp_path: Path) -> None:
    found = written(tmp_path, *lines)
    assert found.outcome is LogOutcome.NAMED
    assert found.charges[0].symptom == symptom
    assert says in found.charges[0].says


def test_a_loader_that_was_killed_is_the_cause_and_not_that_it_ended(tmp_path: Path) -> None:
    """The second traceback, which ends the job, only says that it is gone."""
    killed = traceback(OWN, last=f"RuntimeError: {LOADER} signal: Killed. ")
    chained = ["", "The above exception was the direct cause of the following exception:", ""]
    ended = traceback(OWN, last="RuntimeError: DataLoader worker (pid(s) 4711) exited unexpectedly")
    found = written(tmp_path, *killed, *chained, *ended)
    told = [(each.symptom, each.because) for each in found.charges]
    assert told == [("torch-loader-killed", None), ("torch-loader-ended", 0)]


MEETS = [f"initializing distributed: GLOBAL_RANK: {rank}, MEMBER: {rank + 1}/2" for rank in range(2)]


@each("more", [[], ["-" * 60, "distributed_backend=nccl"]])
def test_a_log_that_ends_where_ranks_meet_is_unknown(more: list[str], tmp_path: Path) -> None:
    found = written(tmp_path, "GPU available: True, used: True", *MEETS, *more[:1])
    assert found.outcome is LogOutcome.UNKNOWN
    assert all(not charge.who for charge in found.charges)


SOUND = ("step 1 loss 2.3", "step 2 loss 2.2", "step 3 loss 2.1", "step 4 loss 2.0")


@each(
    "line",
    [
        GAI.format("IPv6", "10.0.0.1", "-9 - Address family for hostname not supported"),
        GAI.format("IPv6", "head", "-5 - No address associated with hostname"),
        GAI.format("IPv6", "head", "8 - nodename nor servname provided, or not known"),
        "Error parsing the options at line 3 in file settings.c",
        "Warning: host not found in the cache, using the default",
    ],
)
def test_what_sound_jobs_print_as_well_accuses_nobody(line: str, tmp_path: Path) -> None:
    assert written(tmp_path, line, *SOUND).outcome is LogOutcome.CLEAN


CAUGHT = (
    "| WARNING: ran out of memory with exception: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 0);"
)


def test_memory_that_lacked_for_a_batch_that_is_left_out_ends_nobody(tmp_path: Path) -> None:
    assert written(tmp_path, CAUGHT, " Skipping batch").outcome is LogOutcome.CLEAN
    raised = "RuntimeError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 0; 15 GiB total capacity)"
    found = written(tmp_path, CAUGHT, " Skipping batch", raised)
    assert (found.outcome, found.charges[0].symptom) == (LogOutcome.NAMED, "torch-cuda-memory")


def test_who_only_saw_the_signal_of_another_did_not_wait(tmp_path: Path) -> None:
    line = "[rank{0}]:[E1120 10:15:44.123 Process.cpp:1870] [PG ID 0 PG GUID 0(default_pg) Rank {0}] {1}"
    own = "Received a dump signal due to a collective timeout from this local rank and we will try our best."
    other = "Observed flight recorder dump signal from another rank via TCPStore."
    lines = [line.format(rank, other if rank == 2 else own) for rank in range(3)]
    first = written(tmp_path, *lines).charges[0]
    assert first.symptom == "torch-nccl-dump-timeout"
    assert first.says.startswith("unknown who: ranks 0-1 waited for others")


def test_the_rank_that_caught_the_timeout_of_a_collective_is_no_cause(tmp_path: Path) -> None:
    caught = (
        "RuntimeError: [Rank 1] Caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE) ran for 9 ms."
    )
    child = "[ERROR] api: failed (exitcode: 1) local_rank: 1 (pid: 429) of binary: python"
    first = written(tmp_path, caught, child).charges[0]
    assert first.says.startswith("unknown who: rank 1 waited for others")
