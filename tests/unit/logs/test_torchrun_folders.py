"""The folders that torchrun makes for its ranks: a folder whose lines give no rank has that of its place."""

from pathlib import Path

import pytest

from doctor.logs.model import Conclusion
from tests.support.fault_logs import accused, concluded

WAITED = (
    "[rank{rank}]: RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] "
    "Timed out waiting 60000ms for recv operation to complete\n"
)
IN_A_THREAD = """Exception in thread prefetch:
Traceback (most recent call last):
  File "/usr/lib/python3.11/threading.py", line 1045, in _bootstrap_inner
    self.run()
  File "/job/train.py", line 27, in encode
    text = record["caption"]
KeyError: 'caption'
"""


def read(folder: Path, hosts: dict[str, dict[int, str]]) -> Conclusion:
    for host, ranks in hosts.items():
        for local, text in ranks.items():
            of_rank = folder / host / f"4411_{host}" / "attempt_0" / str(local)
            of_rank.mkdir(parents=True)
            (of_rank / "stderr.log").write_text(text)
            (of_rank / "stdout.log").write_text("step 10 loss 0.04\nstep 20 loss 0.02\n")
    return concluded(folder)


def waits(*ranks: int) -> dict[int, str]:
    return {rank % 4: WAITED.format(rank=rank) for rank in ranks}


def test_a_folder_between_two_others_has_its_place(tmp_path: Path) -> None:
    said = read(tmp_path, {"gx07": waits(0, 1, 2, 3), "gx08": {**waits(4, 6, 7), 1: IN_A_THREAD}})
    assert [each.rank for each in said.charges[0].who] == [5]
    assert "KeyError: 'caption'" in said.charges[0].says
    assert not any("two jobs" in each for each in said.open)


@pytest.mark.parametrize(
    "others", [{1: WAITED.format(rank=7), 2: WAITED.format(rank=4)}, {}], ids=["disagree", "none"]
)
def test_without_neighbours_that_agree_the_rank_stays_unknown(tmp_path: Path, others: dict[int, str]) -> None:
    """Their ranks are not one after the other, so the folders are not those of one torchrun."""
    said = read(tmp_path, {"gx07": waits(0, 1, 2, 3), "gx08": {**others, 3: IN_A_THREAD}})
    assert {each.rank for each in accused(said)} <= {None}


def test_two_hosts_whose_ranks_are_the_same_may_still_be_two_jobs(tmp_path: Path) -> None:
    said = read(tmp_path, {"gx07": waits(0, 1, 2, 3), "gx08": waits(0, 1, 2, 3)})
    assert not accused(said)


FAILED_TO_CONNECT = """\
[rank3]: RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:152] \
timed out connecting: SO_ERROR: Connection timed out, remote=[198.18.0.13]:38784$3
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-26_19:59:26
  host      : cn24
  rank      : 3 (local_rank: 0)
  exitcode  : 1 (pid: 88)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""


def test_both_ends_of_a_connection_are_to_be_checked(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(FAILED_TO_CONNECT)
    said = concluded(log)
    assert said.hosts == ("cn24", "198.18.0.13")
    assert said.charges[0].says.startswith("rank 3 on cn24 could not reach 198.18.0.13: gloo could not")
    assert "undecided" in said.charges[0].says
