"""A job that trains over sockets where InfiniBand was asked for is slow: its steps are no proof of health. If
only some ranks do, they cannot reach the others.
"""

from pathlib import Path

import pytest

from doctor.logs.model import LogOutcome
from doctor.model import Confidence
from tests.support.cases import cases, from_cases
from tests.support.fault_logs import concluded, pasted

WANTED = "node1:100:100 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5_0\n"
SOCKETS = from_cases(__file__, "SOCKETS", str)
STEPS = "".join(f"step {step} loss {3 - step / 1000:.4f}\n" for step in range(300))


@pytest.mark.parametrize("steps", [STEPS, ""], ids=["trains", "starts"])
def test_it_is_told_if_infiniband_was_wanted(steps: str, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(WANTED + SOCKETS + steps)
    found = concluded(path)
    assert (found.outcome, found.charges[0].symptom) == (LogOutcome.NAMED, "nccl-sockets")
    assert found.charges[0].confidence is Confidence.SUSPECT
    path.write_text(SOCKETS + steps)
    assert concluded(path).outcome is LogOutcome.CLEAN


FABRIC = "".join(f"node1:{pid}:{pid} [{pid % 8}] NCCL INFO Using network {{}}\n" for pid in (200, 201))
NO_LIBRARY = "node2:100:100 [0] misc/ibvsymbols.cc:56 NCCL WARN Failed to open libibverbs.so[.1]\n"


@pytest.mark.parametrize("fabric", ["IB", "AWS Libfabric", "FasTrak", "GPUDirectTCPX_v7"])
@pytest.mark.parametrize(
    "others", [*SOCKETS.replace("node1", "node2").splitlines(keepends=True)[::2], NO_LIBRARY]
)
def test_it_is_told_if_only_some_ranks_use_sockets(fabric: str, others: str, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(FABRIC.format(fabric, fabric) + others)
    found = concluded(path)
    assert (found.outcome, found.charges[0].symptom) == (LogOutcome.NAMED, "nccl-network-differs")
    assert {each.host for each in found.charges[0].who} == {"node2"}
    path.write_text(path.read_text() + STEPS)
    assert concluded(path).outcome is LogOutcome.CLEAN  # ranks of one job that differ reach no step


@pytest.mark.parametrize("network", ["IB", "AWS Libfabric", "Socket"])
def test_ranks_that_agree_are_healthy(network: str, tmp_path: Path) -> None:
    assert pasted(tmp_path, FABRIC.format(network, network)).outcome is LogOutcome.CLEAN


TIMED_OUT = from_cases(__file__, "TIMED_OUT", str)


@pytest.mark.parametrize("silent", [None, 3])
@pytest.mark.parametrize("says", [("NET/IB : No device found.", "NET/IB : Using [0]mlx5_0:1/IB [RO]"),
                                  ("Using network Socket", "Using network IB")])  # fmt: skip
def test_the_rank_on_sockets_is_named_and_not_those_that_wait_for_it(
    says: tuple[str, str], silent: int | None, tmp_path: Path
) -> None:
    for rank in range(4):
        lines = [f"node{rank}:10{rank}:10{rank} [0] NCCL INFO {says[rank != 2]}"]
        lines += [] if rank == silent else [TIMED_OUT.format(rank)]
        (tmp_path / f"rank{rank}.log").write_text("".join(f"{each}\n" for each in lines))
    found = concluded(tmp_path)
    assert {each.rank for each in found.charges[0].who} == {2}


@pytest.mark.parametrize("first", ["NET/IB : Using [0]mlx5_0:1/IB", "NET/IB : No device found."])
@pytest.mark.parametrize("then", ["Socket", "AWS Libfabric"])
def test_ranks_that_say_the_same_two_things_agree(first: str, then: str, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    each = "node{0}:10{0}:10{0} [0] NCCL INFO "
    path.write_text("".join(f"{each}{first}\n{each}Using network {then}\n".format(rank) for rank in (1, 2)))
    assert concluded(path).outcome is LogOutcome.CLEAN


READY = "node{}:100:100 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 2 cudaDev 0 - Init COMPLETE\n"


@pytest.mark.parametrize("address", ["", "to 10.0.0.2<4123> "])
def test_retries_are_over_where_their_rank_has_connected(address: str, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    line = RETRY.replace("connect returned", f"connect {address}returned")
    retries = "".join(line.format("socketPollConnect", REASONS[1], n) for n in (1, 2, 3))
    path.write_text(retries + READY.format(1))
    assert concluded(path).outcome is LogOutcome.CLEAN
    for still in (READY.format(1) + retries, retries + READY.format(2)):
        path.write_text(still)
        assert concluded(path).charges[0].symptom == "nccl-connect-retrying"


@pytest.mark.parametrize("why", ["Network is unreachable", "Invalid argument"])
@pytest.mark.parametrize("function", ["socketStartConnect", "ncclOsSocketStartConnect"])
def test_a_connection_that_cannot_be_made_in_the_spelling_of_nccl_2_27(
    function: str, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "train.log"
    warns = "node1:100:100 [0] misc/socket.cc:484 NCCL WARN"
    path.write_text(f"{warns} {function}: connect to 10.0.0.2<4123> failed : {why}\n")
    found = concluded(path)
    assert found.charges[0].symptom == "nccl-no-route"
    assert "10.0.0.2" in found.charges[0].says


RETRY = "node1:100:100 [0] NCCL INFO {}: connect returned {}, retrying ({}/34)\n"
REASONS = ["Connection timed out", "Connection refused", "No route to host"]


@pytest.mark.parametrize("last", [1, 34])
@pytest.mark.parametrize("why", REASONS)
@pytest.mark.parametrize("function", ["socketStartConnect", "socketPollConnect", "ncclOsSocketPollConnect"])
def test_a_log_that_ends_while_nccl_still_connects(
    function: str, why: str, last: int, tmp_path: Path
) -> None:
    path = tmp_path / "train.log"
    path.write_text(SOCKETS + "".join(RETRY.format(function, why, n) for n in range(1, last + 1)))
    found = concluded(path)
    assert found.charges[0].symptom == "nccl-connect-retrying"
    assert "port-unreachable" in found.charges[0].checks
    path.write_text(path.read_text() + STEPS)
    assert concluded(path).outcome is LogOutcome.CLEAN


@cases
def test_a_connection_that_is_given_up_needs_no_address(line: str, symptom: str, tmp_path: Path) -> None:
    found = pasted(tmp_path, f"{SOCKETS}node1:100:100 [0] misc/socket.cc:544 NCCL WARN {line}\n")
    assert str(found.charges[0].symptom).endswith(symptom)
