"""Which rank a process is, by the variables of torchrun, mpirun, msrun, srun and torch_npu_run."""

import pytest

from doctor.errors import UsageError
from doctor.exam.in_job.rank_env import FIRST_PORT, LAST_PORT, OWN, is_scheduler, read_job_rank
from tests.support.cases import cases, from_cases

TORCHRUN = from_cases(__file__, "TORCHRUN", dict[str, str])
OPENMPI = from_cases(__file__, "OPENMPI", dict[str, str])
FIRST = {"OMPI_COMM_WORLD_RANK": "0"}
MSRUN = from_cases(__file__, "MSRUN", dict[str, str])
SRUN = from_cases(__file__, "SRUN", dict[str, str])


@pytest.mark.parametrize(
    ("environ", "rank", "world", "heads"),
    [
        (TORCHRUN, 5, 8, ("node1",)),
        (OPENMPI, 3, 4, ("198.18.0.11", "10.0.0.1", "fd00:c612::b", "login", "node1", "node2", "node7")),
        ({**OPENMPI, "MASTER_ADDR": "node9"}, 3, 4, ("node9",)),
        (MSRUN, 2, 8, ("10.0.0.1",)),
        (SRUN, 1, 2, ("node08",)),
        ({"PMI_RANK": "0", "PMI_SIZE": "2", "MASTER_ADDR": "::1"}, 0, 2, ("::1",)),
        ({"RANK": "0", "WORLD_SIZE": "1"}, 0, 1, ()),
    ],
)
def test_each_launcher_is_understood(
    environ: dict[str, str], rank: int, world: int, heads: tuple[str, ...]
) -> None:
    seat = read_job_rank(environ)
    assert (seat.rank, seat.world, seat.heads) == (rank, world, heads)


def test_the_innermost_launcher_counts() -> None:
    """torchrun is started by mpirun or srun, and passes their variables on."""
    assert read_job_rank({**SRUN, **OPENMPI, **TORCHRUN}).rank == 5
    assert read_job_rank({**SRUN, **OPENMPI, "RANK": "9", "WORLD_SIZE": "10"}).rank == 3


def test_ranks_of_one_job_agree_and_jobs_do_not() -> None:
    one, other = read_job_rank(TORCHRUN), read_job_rank({**TORCHRUN, "RANK": "0", "LOCAL_RANK": "0"})
    assert (one.token, one.ports) == (other.token, other.ports)
    for name, value in (("MASTER_PORT", "29501"), ("TORCHELASTIC_RUN_ID", "x"), ("DOCTOR_JOB_KEY", "secret")):
        assert read_job_rank({**TORCHRUN, name: value}).token != one.token
    again = read_job_rank({**OPENMPI, "OMPI_MCA_orte_precondition_transports": "0-1"})
    assert again.token != read_job_rank(OPENMPI).token


def test_the_ports_of_the_job_itself_are_never_used() -> None:
    ports = read_job_rank(TORCHRUN).ports
    assert len(ports) > 1
    assert all(FIRST_PORT <= port <= LAST_PORT for port in ports)
    seat = read_job_rank({**MSRUN, "MASTER_PORT": str(read_job_rank(MSRUN).ports[0])})
    assert read_job_rank(MSRUN).ports[0] not in seat.ports


@cases
def test_an_environment_without_a_job_is_a_mistake_with_a_next_step(
    environ: dict[str, str], says: str
) -> None:
    with pytest.raises(UsageError, match=says) as found:
        read_job_rank(environ)
    assert found.value.hint or "not a rank of WORLD" in found.value.message


@pytest.mark.parametrize(
    "text",
    ["", "@", "[", "node[9:1-999999999]@0", "node[1:9-1]", "a" * 9000, "node[1:1-", ";tcp://:", "\x00"],
)
def test_nonsense_from_mpirun_is_not_an_address(text: str) -> None:
    environ = {**OPENMPI, "OMPI_MCA_orte_node_regex": text, "OMPI_MCA_orte_hnp_uri": text, "MASTER_ADDR": "x"}
    assert read_job_rank(environ).heads == ("x",)
    assert (
        len(read_job_rank({**environ, "MASTER_ADDR": "", "OMPI_COMM_WORLD_SIZE": "1", **FIRST}).heads) <= 16
    )


def test_a_part_that_is_cut_off_takes_no_other_node_with_it() -> None:
    environ = {**OPENMPI, "OMPI_MCA_orte_node_regex": "node[1:7,9],n[1:3", "MASTER_ADDR": ""}
    assert {"node7", "node9"} <= {*read_job_rank(environ | {"OMPI_COMM_WORLD_SIZE": "4"} | FIRST).heads}


def test_the_scheduler_of_mindspore_is_not_a_rank() -> None:
    assert is_scheduler({**MSRUN, "MS_ROLE": "MS_SCHED"})
    assert not is_scheduler(MSRUN)


def test_variables_of_a_rank_are_not_passed_on() -> None:
    for name in (*TORCHRUN, *OPENMPI, *MSRUN, "SLURM_PROCID", "DOCTOR_JOB_KEY", "PMI_RANK"):
        assert OWN.fullmatch(name), name
    for name in ("PATH", "HCCL_IF_IP", "NCCL_DEBUG", "GLOO_SOCKET_IFNAME", "CUDA_VISIBLE_DEVICES"):
        assert not OWN.fullmatch(name), name
