"""Messages of torch, NCCL and Lightning as their versions spell them, and healthy logs that look similar."""

from collections.abc import Sequence
from pathlib import Path

from doctor.logs.model import LogOutcome
from doctor.model import Confidence
from tests.support.cases import cases, from_cases
from tests.support.each import each
from tests.support.fault_logs import written

N = "node1:100:200 [0]"
GAI = "[W socket.cpp:601] [c10d] The {} network addresses of ({}, 29500) cannot be retrieved (gai error: {})."
MISUSED = "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:825, invalid usage, NCCL version 2.7.8"
UNKNOWN = from_cases(__file__, "UNKNOWN", tuple[str, ...])
TIMED_OUT = from_cases(__file__, "TIMED_OUT", str)
STORE = from_cases(__file__, "STORE", str)


def traceback(*frames: str, last: str) -> list[str]:
    return ["Traceback (most recent call last):", *(f'  File "{each}\n    call()' for each in frames), last]


PACKAGES = "/opt/lib/python3.7/site-packages"
SPAWN = f'{PACKAGES}/torch/multiprocessing/spawn.py", line 118, in join'
IO = "Input/output error"
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


def test_its_own_warning_explains_a_wrong_use_of_nccl(tmp_path: Path) -> None:
    twice = "Duplicate GPU detected : rank 2 and rank 0 both on CUDA device 4000"
    found = written(
        tmp_path, *traceback(OWN, last=MISUSED), "ncclInvalidUsage: This usually …", "Last error:", twice
    )
    assert found.charges[0].symptom == "nccl-gpu-shared"
    assert {party.rank for party in found.charges[0].who} == {0, 2}


VETH = f"{N} NCCL INFO Bootstrap : Using [0]eth0:10.0.0.1<0> [1]veth25f2:fe80::1%veth25f2<0>"
NO_IB = f"{N} NCCL INFO NET/IB : No device found."
RETRY = f"{N} NCCL INFO Call to connect returned Connection timed out, retrying"


def test_a_virtual_interface_is_named_where_nccl_reaches_nobody(tmp_path: Path) -> None:
    found = written(tmp_path, VETH, NO_IB, RETRY, RETRY)
    assert found.charges[0].symptom == "nccl-virtual-interface"
    assert "veth25f2" in found.charges[0].says
    assert found.charges[0].confidence is Confidence.SUSPECT


def test_a_host_without_infiniband_and_with_a_virtual_interface_is_sound(tmp_path: Path) -> None:
    assert (
        written(tmp_path, VETH, NO_IB, f"{N} NCCL INFO comm 0x1 rank 0 nranks 2 - Init COMPLETE").charges
        == ()
    )


def test_the_address_that_torchrun_was_told_is_the_other_end(tmp_path: Path) -> None:
    told = ("Starting elastic_operator with launch configs:", "  rdzv_endpoint    : 10.0.0.9:29400")
    lost = (
        "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store"
    )
    found = written(tmp_path, *told, f"{lost} has failed. See inner exception for details.")
    assert "10.0.0.9" in found.charges[0].says
    assert written(tmp_path, *told, "ready").outcome is LogOutcome.CLEAN


MEETS = [f"initializing distributed: GLOBAL_RANK: {rank}, MEMBER: {rank + 1}/2" for rank in range(2)]


@each("more", [[], ["-" * 60, "distributed_backend=nccl"]])
def test_a_log_that_ends_where_ranks_meet_is_unknown(more: list[str], tmp_path: Path) -> None:
    found = written(tmp_path, "GPU available: True, used: True", *MEETS, *more[:1])
    assert found.outcome is LogOutcome.UNKNOWN
    assert all(not charge.who for charge in found.charges)


def test_ranks_that_met_are_sound(tmp_path: Path) -> None:
    found = written(
        tmp_path, *MEETS, *(f"Epoch 0: step {step} loss {3 / (step + 1):.3f}" for step in range(9))
    )
    assert (found.outcome, found.open) == (LogOutcome.CLEAN, ())


def test_the_traceback_of_mp_spawn_is_that_of_its_process(tmp_path: Path) -> None:
    parent = traceback(SPAWN, last="Exception: ")
    child = traceback(OWN, last=f"OSError: [Errno 5] {IO}")
    found = written(tmp_path, *parent, "", "-- Process 3 terminated with the following error:", *child)
    assert found.charges[0].symptom == "python-io-error"
    assert found.charges[0].who[0].device == 3


def test_slurm_learns_late_that_a_host_is_gone(tmp_path: Path) -> None:
    found = written(tmp_path, *UNKNOWN, "srun: error: Node failure on gpu17")
    assert found.charges[0].symptom == "slurm-node-failure"


def test_ranks_of_two_groups_are_not_compared(tmp_path: Path) -> None:
    found = written(tmp_path, TIMED_OUT.format(0, 96117), TIMED_OUT.format(7, 64088))
    assert found.charges[0].symptom == "torch-nccl-watchdog"
    near = written(tmp_path, TIMED_OUT.format(0, 96117), TIMED_OUT.format(7, 96110))
    assert "behind" in near.charges[0].says


def test_an_unmarked_line_is_not_that_of_the_only_rank_that_torch_marks(tmp_path: Path) -> None:
    found = written(tmp_path, "Last error:", "Bootstrap : no socket interface found", STORE)
    assert found.charges[0].symptom == "nccl-no-interface"
    assert not any(party.rank for party in found.charges[0].who)


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
