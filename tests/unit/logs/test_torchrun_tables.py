"""torchrun's table names the rank that failed first on a host; the exception above it is that rank's."""

from pathlib import Path

from doctor.logs.model import Conclusion, LogOutcome
from doctor.model import Confidence
from tests.support.cases import from_cases
from tests.support.each import each
from tests.support.fault_logs import pasted

FRAMES = from_cases(__file__, "FRAMES", str)
TABLE = from_cases(__file__, "TABLE", str)


def culprits(found: Conclusion) -> list[set[int | None]]:
    return [{party.rank for party in each.who} for each in found.charges if each.because is None]


def test_the_exception_is_that_of_the_rank_in_the_table(tmp_path: Path) -> None:
    found = pasted(tmp_path, "step 10 loss 2.3\n", FRAMES, "KeyError: 'labels'\n", TABLE)
    assert (found.outcome, culprits(found)) == (LogOutcome.NAMED, [{2}])
    assert "KeyError: 'labels'" in found.charges[0].says
    assert found.charges[0].confidence is Confidence.STRONG


def test_a_known_cause_is_that_of_the_rank_in_the_table(tmp_path: Path) -> None:
    memory = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    found = pasted(tmp_path, FRAMES, memory, TABLE)
    assert (culprits(found), found.charges[0].symptom) == ([{2}], "torch-cuda-memory")


def test_the_task_of_slurm_that_is_a_torchrun_is_nobody(tmp_path: Path) -> None:
    ends = "srun: error: node3: task 0: Exited with exit code 1\n"
    assert culprits(pasted(tmp_path, FRAMES, "KeyError: 'labels'\n", TABLE, ends)) == [{2}]


def test_without_an_exception_the_table_is_the_answer(tmp_path: Path) -> None:
    found = pasted(tmp_path, TABLE[TABLE.index("=") :])
    assert (found.outcome, culprits(found)) == (LogOutcome.NAMED, [{2}])


def test_a_rank_that_others_left_alone_is_not_the_cause(tmp_path: Path) -> None:
    closed = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:44332\n"
    found = pasted(tmp_path, FRAMES, closed, TABLE)
    assert found.charges[0].symptom == "gloo-peer-closed"
    assert {each.confidence for each in found.charges if each.because is None} == {Confidence.SUSPECT}


def test_a_rank_whose_communicator_was_aborted_is_not_the_cause(tmp_path: Path) -> None:
    aborted = "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 2.\n"
    found = pasted(tmp_path, FRAMES, aborted, TABLE)
    assert found.charges[0].symptom == "torch-nccl-down"
    assert {each.confidence for each in found.charges if each.because is None} == {Confidence.SUSPECT}


def test_the_only_rank_with_an_exception_of_its_own_comes_first(tmp_path: Path) -> None:
    def of(rank: int, last: str) -> str:
        return "".join(f"[rank{rank}]: {line}\n" for line in (*FRAMES.splitlines(), last))

    aborted = [
        of(rank, f"DistBackendError: NCCL communicator was aborted on rank {rank}.") for rank in range(64)
    ]
    aborted[17] = of(17, "OSError: [Errno 5] Input/output error")
    found = pasted(tmp_path, *aborted)
    assert (found.outcome, culprits(found)) == (LogOutcome.NAMED, [{17}])


@each("later_first", [True, False])
def test_the_earliest_of_several_tables_counts_wherever_it_stands(later_first: bool, tmp_path: Path) -> None:
    later = TABLE[TABLE.index("=") :]
    for old, new in (("node7", "node9"), (":00:0", ":00:1"), ("rank      : ", "rank      : 1"), ("42", "52")):
        later = later.replace(old, new)
    found = pasted(tmp_path, *((later, TABLE) if later_first else (TABLE, later)))
    assert culprits(found)[0] == {2}
    how = [" ".join(each.how) for each in found.charges if {party.rank for party in each.who} == {12}]
    assert not any("no other rank" in text for text in how)


ALIKE = from_cases(__file__, "ALIKE", str)
OLD = from_cases(__file__, "OLD", str)
SPELLINGS = from_cases(__file__, "SPELLINGS", dict[str, str])
"""torchrun's line about a rank that failed, by version."""


@each("table", [ALIKE, OLD])
def test_ranks_that_ended_alike_stand_beside_the_first(table: str, tmp_path: Path) -> None:
    found = pasted(tmp_path, table[table.index("\n") + 1 :])
    assert (found.outcome, culprits(found)) == (LogOutcome.NAMED, [{2}])
    assert "rank 1" in found.charges[0].says


def test_if_the_first_is_cut_off_no_rank_is_named_as_the_first(tmp_path: Path) -> None:
    cut = ALIKE[: ALIKE.index("-----\nRoot Cause")].replace(
        "[1]:\n",
        "[1]:\n  time      : 2026-11-20_10:00:02\n  host      : node7\n  rank      : 3 (local_rank: 3)\n"
        "  exitcode  : 1 (pid: 4251)\n  error_file: <N/A>\n[2]:\n",
    )
    found = pasted(tmp_path, cut[cut.index("=") :])
    assert culprits(found) == [{1, 3}]
    assert found.charges[0].confidence is Confidence.SUSPECT


def test_an_exception_of_all_ranks_is_told_of_all(tmp_path: Path) -> None:
    found = pasted(tmp_path, FRAMES, "KeyError: 'labels'\n", FRAMES, "KeyError: 'labels'\n", ALIKE)
    assert culprits(found) == [{2}]
    assert "KeyError" in found.charges[0].says
    assert "rank 1" in found.charges[0].says


@each("version", [*SPELLINGS])
def test_the_local_rank_is_named_in_every_version(version: str, tmp_path: Path) -> None:
    failed = SPELLINGS[version].format("failed (exitcode: 1) local_rank: 2 (pid: 4250)")
    launcher = FRAMES.replace("/work/train.py", "/opt/bin/accelerate")
    found = pasted(tmp_path, "loading\n", failed, "\n", launcher)
    assert found.outcome is LogOutcome.NAMED
    assert not found.beside
    assert "process 4250 (local rank 2) ended with exit code 1" in found.charges[0].says


def test_the_warning_of_torch_1_9_names_the_process(tmp_path: Path) -> None:
    header = "               CHILD PROCESS FAILED WITH NO ERROR_FILE                \n"
    found = pasted(
        tmp_path,
        header,
        "Child process 4250 (local_rank 2) FAILED (exitcode 1)\n",
        "Error msg: Process failed\n",
    )
    assert found.outcome is LogOutcome.NAMED
    assert "process 4250 (local rank 2)" in found.charges[0].says


@each("prefix", ["[gpu17:0]:", "trainer-1  | "])
def test_a_table_is_read_behind_a_prefix(prefix: str, tmp_path: Path) -> None:
    lines = (*FRAMES.splitlines(), "KeyError: 'labels'", *TABLE.splitlines())
    found = pasted(tmp_path, *(f"{prefix}{line}\n" for line in lines))
    assert "KeyError: 'labels'" in found.charges[0].says
    assert culprits(found)[0] == {2}


def test_an_exception_inside_the_table_is_that_of_its_rank(tmp_path: Path) -> None:
    """The decorator `record` puts it there."""
    inside = """  traceback : Traceback (most recent call last):
    File "/opt/venv/torch/distributed/elastic/multiprocessing/errors/__init__.py", line 355, in wrapper
      return f(*args, **kwargs)
    File "/work/train.py", line 77, in main
      raise {0}
  {0}
"""
    begin, end = TABLE.rsplit("  traceback : To enable", 1)
    tail = end.split("\n", 1)[1]
    for said in ("VocabError: 32001 is more than 32000", "torch.OutOfMemoryError: CUDA out of memory."):
        found = pasted(tmp_path, "step 10 loss 2.3\n", begin, inside.format(said), tail)
        assert (found.outcome, culprits(found)) == (LogOutcome.NAMED, [{2}])
        assert found.charges[0].says.endswith(
            f"{said} (/work/train.py:77, in main)" if "Vocab" in said else "sufficient"
        )
