"""Agents of `doctor hang` know the launchers of the table, each with everything that it starts."""

from collections.abc import Mapping

import pytest

from doctor.job.launch.launcher import Launcher
from doctor.job.launch.launchers import LAUNCHERS
from doctor.job.launch.launchers.mpirun import TRANSPORTS
from tests.support.cases import cases, from_cases
from tests.support.hang.known import KNOWN

PYTHON = "/opt/python"
ONCE = from_cases(__file__, "ONCE", str)


@pytest.mark.parametrize("launcher", [one for one in LAUNCHERS if one.commands], ids=lambda one: one.name)
def test_each_command_line_of_a_launcher(launcher: Launcher) -> None:
    then = [launcher.subcommand] if launcher.subcommand else []
    lines = [
        *([f"/opt/bin/{name}", *then] for name in launcher.commands),
        *([PYTHON, f"/opt/bin/{name}", *then] for name in launcher.commands),
        *([PYTHON, "-u", "-m", name] for name in launcher.modules),
        *([PYTHON, f"/lib/{name.replace('.', '/')}.py"] for name in launcher.modules),
    ]
    for line in lines:
        found = KNOWN.of([*line, "train.py"])
        assert found, line
        assert found["name"] == launcher.name
        assert KNOWN.starts_ranks_here([*line, "train.py"]) is not launcher.outer
    for name in launcher.programs:
        assert KNOWN.starts_ranks_here([name]), "what it has started on a host starts ranks there"


def test_those_that_are_known_by_name_alone() -> None:
    assert [name for name in ONCE.split() if not KNOWN.of([f"/usr/bin/{name}"])] == []
    for line in ("accelerate config", "python train.py -x torchrun", "python a.py -x torch.distributed.run"):
        assert KNOWN.of(line.split()) is None


@pytest.mark.parametrize("launcher", [one for one in LAUNCHERS if one.ranks], ids=lambda one: one.name)
def test_each_rank_of_a_launcher(launcher: Launcher) -> None:
    for ranks in launcher.ranks:
        for world in ranks.world:
            seat = KNOWN.seat_of({ranks.rank: "3", world: "8", **dict.fromkeys(ranks.only_with[:1], "1")})
            assert seat, ranks
            assert (seat.rank, seat.world) == (3, 8)
            assert seat.launcher == (launcher.name if launcher.commands else "")
        assert {*ranks.names(), *ranks.only_with} - {ranks.local_world} <= KNOWN.names


def test_no_secret_of_a_launcher_is_read() -> None:
    assert TRANSPORTS not in KNOWN.names


@cases
def test_what_is_not_a_rank(env: Mapping[str, str]) -> None:
    """A scheduler, a parameter server, the shell of salloc, a process with only a number."""
    assert KNOWN.seat_of(env) is None


def test_a_role_counts_before_the_number_of_a_container() -> None:
    pod = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "pod-0", "MASTER_PORT": "23456"}
    worker = {"MS_ROLE": "MS_WORKER", "MS_WORKER_NUM": "8", "MS_SCHED_HOST": "pod-0", "MS_SCHED_PORT": "8118"}
    seat = KNOWN.seat_of({**pod, **worker, "MS_NODE_ID": "node-a", "RANK_ID": "5"})
    assert seat
    assert (seat.rank, seat.world, seat.launcher) == (5, 8, "msrun")
    assert KNOWN.job_of({**pod, **worker}, 7) == "pod-0:8118"
    unnumbered = KNOWN.seat_of({**pod, **worker})
    assert unnumbered
    assert unnumbered.rank is None, "MindSpore deals out the numbers"


@cases
def test_where_ranks_meet_by_the_command_line_of_their_launcher(line: str, told: tuple[str, str]) -> None:
    assert KNOWN.master_by(line.split()) == told
