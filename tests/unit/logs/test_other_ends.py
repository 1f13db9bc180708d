"""Messages with several lines: the other end, the device and the rank around the first line."""

from pathlib import Path

from doctor.logs.model import LogOutcome
from tests.support.cases import cases, from_cases
from tests.support.fault_logs import pasted

DASHES = "-" * 74


def framed(*lines: str) -> str:
    return "\n".join([DASHES, *lines, DASHES, ""])


FIREWALL = from_cases(__file__, "FIREWALL", str)
NOT_STARTED = framed("ORTE was unable to reliably start one or more daemons.", "This usually is caused by:")
HYDRA = from_cases(__file__, "HYDRA", str)


@cases
def test_mpi_names_both_ends(text: str, symptom: str, words: str, tmp_path: Path) -> None:
    first = pasted(tmp_path, text).charges[0]
    assert (first.symptom, first.says[: len(words)]) == (symptom, words)


def test_nobody_is_process_0(tmp_path: Path) -> None:
    found = pasted(
        tmp_path, framed("mpirun noticed that process rank 4 with PID 0 on node node1 exited on signal 9.")
    )
    assert [each.pid for each in found.charges[0].who] == [None]


def test_the_values_of_the_next_message_are_not_taken(tmp_path: Path) -> None:
    cut = FIREWALL.replace("  Remote host:   node2\n", "")
    found = pasted(tmp_path, cut + framed("nobody knows this", "  Remote host:   node9"))
    assert "node9" not in found.charges[0].says


UCX = from_cases(__file__, "UCX", str)
ROCE = from_cases(__file__, "ROCE", str)
OLD = from_cases(__file__, "OLD", str)


def test_ucx_names_adapter_and_the_other_end(tmp_path: Path) -> None:
    one = pasted(tmp_path, UCX.format("node1", 11, 703) + UCX.format("node1", 12, 703)).charges[0]
    assert one.says.startswith("node1 had trouble with LID 703: ")
    assert "(mlx5_2:1/IB)" in one.says
    assert {each.pid for each in one.who} == {None}
    roce = pasted(tmp_path, ROCE).charges[0]
    assert roce.says.startswith("node1 had trouble with 10.0.0.9: ")
    assert "(roce0:1/RoCE)" in roce.says
    assert "(mlx5_3:1)" in pasted(tmp_path, OLD).charges[0].says


def test_the_end_that_two_hosts_cannot_reach_is_named(tmp_path: Path) -> None:
    found = pasted(tmp_path, UCX.format("node1", 11, 703) + UCX.format("node2", 12, 703)).charges[0]
    assert [each.address for each in found.who] == ["LID 703"]


def test_a_link_explains_the_rank_that_it_ended(tmp_path: Path) -> None:
    ended = framed(
        "mpirun noticed that process rank 5 with PID 11 on node node1 exited on signal 6 (Aborted)."
    )
    found = pasted(tmp_path, UCX.format("node1", 11, 703) + ended)
    assert [each.symptom for each in found.charges if each.because is None] == ["ucx-retry-exceeded"]


@cases
def test_what_healthy_jobs_print_accuses_nobody(line: str, tmp_path: Path) -> None:
    found = pasted(tmp_path, "\n".join([line, *(f"step {each} loss 0.5" for each in range(50))]))
    assert found.outcome is LogOutcome.CLEAN


SSH = "kex_exchange_identification: Connection closed by remote host\nConnection closed by 10.0.0.4 port 22\n"


def test_ssh_that_is_closed_explains_the_daemon(tmp_path: Path) -> None:
    found = pasted(tmp_path, SSH + NOT_STARTED)
    assert [each.symptom for each in found.charges if each.because is None] == ["mpi-ssh"]


def test_the_last_words_before_an_exit_code_are_shown(tmp_path: Path) -> None:
    ended = framed(
        "mpirun detected that one or more processes exited with non-zero status, thus causing",
        "the job to be terminated. The first process to do so was:",
        "",
        "  Process name: [[63697,1],2]",
        "  Exit code:    1",
    )
    first = pasted(tmp_path, "ERROR: this program needs a multiple of 6 ranks\n" + ended).charges[0]
    assert first.says.startswith("rank 2: ")
    assert any("a multiple of 6 ranks" in each for each in first.how)


REFUSED = from_cases(__file__, "REFUSED", str)


@cases
def test_a_call_of_mpi_that_failed_is_no_end_without_a_word(
    text: str, symptom: str, words: str, tmp_path: Path
) -> None:
    causes = [each for each in pasted(tmp_path, text).charges if each.because is None]
    assert [(each.symptom, each.says[: len(words)]) for each in causes] == [(symptom, words)]


def test_a_rank_that_was_killed_explains_the_calls_of_the_others(tmp_path: Path) -> None:
    killed = framed(
        "mpirun noticed that process rank 2 with PID 12 on node node1 exited on signal 9 (Killed)."
    )
    causes = [each for each in pasted(tmp_path, REFUSED + killed).charges if each.because is None]
    assert [each.symptom for each in causes] == ["mpi-rank-signal"]


def test_each_process_that_ended_badly_is_told(tmp_path: Path) -> None:
    found = pasted(tmp_path, HYDRA + HYDRA.replace("RANK 3 PID 5318", "RANK 1 PID 5316"))
    assert {party.rank for each in found.charges for party in each.who} == {1, 3}


def test_mpirun_that_passes_a_signal_on_kills_nobody(tmp_path: Path) -> None:
    assert pasted(tmp_path, "mpiexec: Forwarding signal 20 to job").outcome is LogOutcome.CLEAN


def test_who_brings_the_news_is_not_accused(tmp_path: Path) -> None:
    start = "[head:04289] Warning: could not find environment variable PS1\nbash: orted: command not found\n"
    first = pasted(tmp_path, start + NOT_STARTED).charges[0]
    assert (first.symptom, first.who) == ("mpi-daemon-missing", ())
    unknown = "[node3:00000] *** An error occurred in MPI_Init\n"
    assert 0 not in {each.pid for each in pasted(tmp_path, unknown).charges[0].who}


def test_the_host_whose_address_all_others_name_is_told(tmp_path: Path) -> None:
    """The ranks of two hosts name its address, each another port, and its own ranks name theirs."""
    line = "{0}:57{1}:5902 [{1}] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer "
    line += "10.2.0.{2}<3309{1}> with error 12, opcode 0, len 0, vendor err 129 (Recv)\n"
    each = {name: number for number, name in enumerate(("ib-a", "ib-b", "ib-c"), 4)}
    said = [line.format(name, rank, each["ib-b"]) for name in ("ib-a", "ib-c") for rank in (0, 1)]
    own = [line.format("ib-b", rank, each[name]) for rank, name in enumerate(("ib-a", "ib-c"))]
    found = pasted(tmp_path, *said, *own).charges[0]
    assert [(party.host, party.address) for party in found.who] == [("ib-b", "10.2.0.5")]
    assert found.says.startswith("ib-b (10.2.0.5): ib-a and ib-c had trouble with it: ")
    assert pasted(tmp_path, *said).charges[0].who[0].address == "10.2.0.5<33090>"
    all_names = [
        line.format(one, rank, each[other]) for one in each for rank, other in enumerate(each) if other != one
    ]
    assert "undecided which of them" in pasted(tmp_path, *all_names).charges[0].says
    assert "undecided which of them" in pasted(tmp_path, *own).charges[0].says


EXECVP = (
    "[8] [proxy:1:1@node2] HYD_spawn (hydra_spawn.c:117): execvp error on file bin/ep_server"
    " (No such file or directory)\n"
)
KILLED = "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK 2 PID 362 RUNNING AT node2\n"
KILLED += "=   KILLED BY SIGNAL: 9 (Killed)\n"


def test_a_rank_that_is_killed_after_a_failed_launch_is_not_the_cause(tmp_path: Path) -> None:
    first = pasted(tmp_path, EXECVP + KILLED).charges[0]
    assert (first.symptom, [each.host for each in first.who]) == ("mpi-executable", ["node2"])
    assert "bin/ep_server" in first.says
    assert pasted(tmp_path, KILLED).charges[0].symptom == "mpi-bad-termination"


OVER = "distributed.nanny - WARNING - Worker exceeded 95% memory budget. Restarting\n"
ENDED = "distributed.nanny - INFO - Worker process 4242 {}\n"


def test_a_worker_of_dask_that_uses_up_its_memory(tmp_path: Path) -> None:
    found = pasted(tmp_path, OVER + ENDED.format("was killed by signal 15"))
    assert found.charges[0].symptom == "dask-worker-memory"
    assert not pasted(tmp_path, OVER + "step 30 loss 2.1\nstep 31 loss 2.0\n").charges, "it went on"
    assert not pasted(tmp_path, ENDED.format("exited with status 0")).charges, "an end without an error"
