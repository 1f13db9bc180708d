"""How a process knows its place in the job: the rules of each launcher, and what stays unknown."""

import shlex
from collections.abc import Mapping
from dataclasses import replace

import pytest

from checks.launch import shared_options
from checks.launch_ranks import device_conflicts, missing_ranks
from doctor.job.launch.common import is_larger, spans_hosts
from doctor.job.launch.directory import Directory
from doctor.job.launch.launcher import Master
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.rank_env import (
    local_world_of,
    master_of,
    node_rank_of,
    nodes_of,
    rank_of,
    role_of,
    world_of,
)
from doctor.job.launch.ranks import counted
from tests.support.cases import cases
from tests.support.launches import table_rank, torch_rank, worker


def told(line: str = "", host: str | None = None, **env: str | int) -> ProcessEnv:
    return replace(one(env, host), command=tuple(shlex.split(line)))


def one(env: Mapping[str, str | int], host: str | None = None) -> ProcessEnv:
    return ProcessEnv("here", host, {name: str(value) for name, value in env.items()})


def a_launch(*who: ProcessEnv, complete: bool = True, live: bool = False) -> Launch:
    return Launch("job", who, complete, live)


@cases
def test_the_master_of_a_launcher(line: str, master: tuple[str, str, str] | None) -> None:
    found = master_of(told(line, MASTER_ADDR="ignored") if "mpirun" not in line else told(line))
    assert (found and (found.address, found.port, found.on)) == master


@pytest.mark.parametrize(
    ("env", "master"),
    [
        (torch_rank(3), Master("192.168.7.1", "29500", "MASTER_ADDR", "rank 0")),
        (torch_rank(3, TORCHELASTIC_RUN_ID="x"), Master("192.168.7.1", "29500", "MASTER_ADDR", "any host")),
        (worker(3), Master("192.168.7.1", "8118", "MS_SCHED_HOST", "scheduler")),
        (table_rank(3), None),
        ({"MASTER_ADDR": ""}, None),
    ],
)
def test_the_master_of_a_rank(env: dict[str, str | int], master: Master | None) -> None:
    assert master_of(one(env)) == master


def test_torchrun_reads_its_own_variables() -> None:
    agent = told("torchrun t.py", PET_NNODES="2", PET_MASTER_ADDR="a", PET_NODE_RANK="1")
    master, number = master_of(agent), node_rank_of(agent)
    assert (master and master.address, number and number.value, nodes_of(agent)) == ("a", 1, (2, 2))
    assert shared_options(agent)["--nnodes"] == "2"


@pytest.mark.parametrize(
    ("who", "role", "rank", "world", "local", "node", "nodes"),
    [
        (one(torch_rank(9)), "rank", 9, 16, 8, None, None),
        (one(table_rank(3)), "rank", 3, 8, None, None, None),
        (one(worker(3)), "rank", 3, 8, None, None, None),
        (one({**worker(7), "MS_ROLE": "MS_SCHED"}), "scheduler", 7, 8, None, None, None),
        (told(MS_ROLE="MS_PSERVER", MS_WORKER_NUM=4), "server", None, 4, None, None, None),
        (one({**worker(2), "RANK_ID": 5}), "rank", 2, 8, None, None, None),
        (told(OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE=4, OMPI_COMM_WORLD_LOCAL_SIZE=2),
         "rank", 1, 4, 2, None, None),
        (told(SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=4), "rank", 1, 4, None, None, None),
        (told(SLURM_PROCID=1, SLURM_STEP_NUM_TASKS=2, RANK=9, WORLD_SIZE=16),
         "rank", 9, 16, None, None, None),
        (told(SLURM_PROCID=0, MASTER_ADDR="a"), "rank", None, None, None, None, None),
        (told(RANK_ID="", RANK_SIZE=8), "rank", None, 8, None, None, None),
        (told(RANK="x", WORLD_SIZE="y"), "rank", None, None, None, None, None),
        (told(NODE_RANK=1, NNODES=2, WORLD_SIZE=16), "rank", None, 16, None, 1, (2, 2)),
        (told(NODE_RANK=0, LOCAL_RANK=1, WORLD_SIZE=3), "rank", None, 3, None, None, None),  # Lightning's
        (told("torchrun --nnodes=2 --nproc_per_node=8 --node_rank=1 t.py", RANK=1, WORLD_SIZE=2),
         "agent", None, 16, 8, 1, (2, 2)),
        (told("torchrun --nnodes=1:4 --nproc_per_node=gpu t.py"), "agent", None, None, None, None, (1, 4)),
        (told("torchrun t.py"), "agent", None, 1, 1, None, (1, 1)),
        (told("msrun --worker_num=16 --node_rank=1 net.py"), "agent", None, 16, 8, 1, None),
        (told("mpirun -np 16 python t.py"), "agent", None, 16, None, None, None),
        (told("composer --world_size 16 -n 8 --node_rank 1 t.py"), "agent", None, 16, 8, 1, None),
        (told("python -m paddle.distributed.launch --nnodes 2 --devices 0,1,2 t.py"),
         "agent", None, 6, 3, None, (2, 2)),
        (told("fleetrun --ips a,b,c --gpus 0,1 t.py"), "agent", None, 6, 2, None, (3, 3)),
        (told("accelerate launch --num_processes 16 --num_machines 2 --machine_rank 1 t.py"),
         "agent", None, 16, None, 1, (2, 2)),
    ],
)  # fmt: skip
def test_the_position_of_a_process_in_its_job(
    who: ProcessEnv,
    role: str,
    rank: int | None,
    world: int | None,
    local: int | None,
    node: int | None,
    nodes: tuple[int, int] | None,
) -> None:
    numbers = (rank_of(who), world_of(who), local_world_of(who), node_rank_of(who))
    assert role_of(who) == role
    assert tuple(number and number.value for number in numbers) == (rank, world, local, node)
    assert nodes_of(who) == nodes


@pytest.mark.parametrize(
    ("who", "most", "expected"),
    [
        ([told("torchrun --nnodes=2 t.py")], 0, True),
        ([told("torchrun --nnodes=1:2 t.py")], 0, True),
        ([told("torchrun --nnodes=1 t.py")], 8, False),
        ([told("torchrun --nproc_per_node=8 t.py")], 8, False),
        ([told("torchrun --standalone --nnodes=2 t.py")], 8, False),
        ([told("torchrun --nnodes='$N' t.py")], 8, True),
        ([told("torchrun --nnodes='$N' t.py")], 0, False),
        ([told("msrun --worker_num=8 --local_worker_num=8 net.py")], 8, False),
        ([told("msrun --worker_num=8 --local_worker_num=4 net.py")], 0, True),
        ([one(torch_rank(0))], 0, True),
        ([one(table_rank(0))], 8, False),
        ([one(table_rank(0, 16))], 8, True),
        ([told(MASTER_ADDR="127.0.0.1")], 8, True),
        ([told(MASTER_ADDR="127.0.0.1")], 0, False),
        ([told(host="a"), told(host="b")], 0, True),
        ([told(host="a", RANK=rank, WORLD_SIZE=2) for rank in (0, 1)], 1, False),
    ],
)
def test_whether_a_job_spans_several_hosts(who: list[ProcessEnv], most: int, expected: bool) -> None:
    assert spans_hosts(a_launch(*who), [each.host for each in who], most > 0, most) is expected


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        ([told("python3 -m deepspeed.launcher.launch --master_addr=127.0.0.1 t.py", "a"),
          *(one({"RANK": r, "WORLD_SIZE": 8, "MASTER_ADDR": "127.0.0.1"}, "a") for r in range(8))], False),
        ([told("python3 -m deepspeed.launcher.launch --master_addr=127.0.0.1 t.py", "a"),
          *(one({"RANK": r, "WORLD_SIZE": 16, "MASTER_ADDR": "127.0.0.1"}, "a") for r in range(8))], False),
        ([one({"RANK": r, "WORLD_SIZE": 16, "MASTER_ADDR": "::1"}, "ab"[r > 7]) for r in (0, 8)], True),
        ([one({"RANK": r, "WORLD_SIZE": 8, "MASTER_ADDR": "::1"}, "a") for r in range(2)], False),
        ([told("python3 -m deepspeed.launcher.launch --master_addr=127.0.0.1 t.py", "a")], False),
        ([told(MASTER_ADDR="localhost", host="a")], False),
        ([told(MASTER_ADDR="localhost", NODE_RANK=0, host="a")], False),
        ([told(MASTER_ADDR="localhost", NNODES=2, host="a")], True),
    ],
)  # fmt: skip
def test_a_job_that_is_complete_on_one_host(who: list[ProcessEnv], expected: bool) -> None:
    """Whatever number of ranks the plan gives a host, and how many of its ranks have ended."""
    launch = a_launch(*who, complete=False, live=True)
    assert spans_hosts(launch, [each.host for each in who], True, 2) is expected


def test_whether_a_job_has_more_hosts_than_were_examined() -> None:
    assert is_larger(a_launch(told("torchrun --nnodes=4 t.py")), 2)
    assert is_larger(a_launch(one(torch_rank(0))), 1)
    assert not is_larger(a_launch(one(torch_rank(0))), 2)
    assert not is_larger(a_launch(told(MASTER_ADDR="a")), 1)


@cases
def test_devices_that_contradict_the_table(
    said: dict[int, int], table: dict[int, int], clashes: list[tuple[int, int, int]]
) -> None:
    launch = a_launch(*(told(RANK_ID=rank, DEVICE_ID=device) for rank, device in said.items()))
    assert [clash[1:] for clash in device_conflicts(launch, table)] == clashes


def test_visible_devices_are_numbered_differently_from_the_table() -> None:
    who = told(RANK_ID=0, DEVICE_ID=0, ASCEND_RT_VISIBLE_DEVICES="4,5")
    assert list(device_conflicts(a_launch(who), {0: 4})) == []


HOSTS = ("a", "b")


@pytest.mark.parametrize(
    ("who", "missing", "doubt"),
    [
        ([one(torch_rank(r), "ab"[r // 8]) for r in range(16)], [], ""),
        ([one(torch_rank(r), "ab"[r // 8]) for r in range(16) if r != 5], [((5,), ("a",))], ""),
        ([one(torch_rank(r), "a") for r in range(8)], [], "ranks 8-15 of 16"),
        ([one(torch_rank(r, WORLD_SIZE=32), "ab"[r // 8]) for r in range(16)], [], "ranks 16-31 of 32"),
        ([one(table_rank(r), "a") for r in range(8) if r != 7], [((7,), ())], ""),
        ([one(worker(r, 4), "ab"[r // 2]) for r in range(4)], [], ""),
        ([told(MASTER_ADDR="a", WORLD_SIZE=16, host="a")], [], ""),
        ([told(RANK=0, WORLD_SIZE=2, host="a")], [], "rank 1 of 2"),
        ([told(RANK=0, WORLD_SIZE=10**9, host="a")], [], ""),
        ([told(RANK=0, WORLD_SIZE=2, host="a"), told(RANK=1, WORLD_SIZE=3, host="a")], [], ""),
    ],
)  # fmt: skip
def test_missing_ranks(
    who: list[ProcessEnv], missing: list[tuple[tuple[int, ...], tuple[str, ...]]], doubt: str
) -> None:
    found, why = missing_ranks(a_launch(*who), HOSTS)
    assert [(absent.ranks, absent.hosts) for absent in found] == missing
    assert doubt in why
    assert bool(why) == bool(doubt)
    ranks_that_run = a_launch(*who, complete=False, live=True)
    assert missing_ranks(ranks_that_run, HOSTS) == ([], ""), "those that are not there may have ended"


@pytest.mark.parametrize(
    ("ranks", "size", "missing", "doubt"),
    [
        (range(8), 8, [], ""),
        ([0, 1, 2, 4, 5, 6, 7], 8, [(3,)], ""),
        (range(8), 16, [], "ranks 8-15 of 16"),
        (range(8, 16), 16, [], "ranks 0-7 of 16"),
        (range(7), 16, [tuple(range(7, 16))], ""),
    ],
)
def test_missing_ranks_among_dumps(
    ranks: range, size: int, missing: list[tuple[int, ...]], doubt: str
) -> None:
    found, why = missing_ranks(a_launch(*(one(table_rank(r, size)) for r in ranks)), HOSTS)
    assert ([absent.ranks for absent in found], bool(why)) == (missing, bool(doubt))
    assert doubt in why


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([3], "rank 3"), ([2, 0, 1, 5], "ranks 0-2, 5"), ([1, 1], "rank 1"), (range(0, 40, 2), "and 8 more")],
)
def test_ranks_are_listed_in_words(numbers: list[int], text: str) -> None:
    assert counted(numbers).endswith(text)


BOOK = Directory(
    ("node1", "node2"),
    {
        "node1": frozenset({"10.9.9.1", "worker-1.cluster.local"}),
        "node2": frozenset({"worker-2.cluster.local"}),
    },
    {"node1": frozenset({"10.0.0.1", "127.0.0.1", "::1"}), "node2": frozenset({"10.0.0.2", "127.0.0.1"})},
    {"node1": {"head": ("127.0.1.1",)}, "node2": {"head": ("10.0.0.1",), "gone": ()}},
)


@cases
def test_the_owners_of_an_address(where: str, owners: set[str]) -> None:
    assert BOOK.owners(where) == owners


def test_a_name_that_several_hosts_have_is_ambiguous() -> None:
    twins = Directory(("a", "b"), {"a": frozenset({"twin.x.org"}), "b": frozenset({"twin.y.org"})}, {}, {})
    assert (twins.host("twin"), twins.host("twin.x.org"), twins.host("A")) == (None, "a", "a")
    assert Directory(("10",), {}, {}, {}).host("10.0.0.2") is None, "an address has no short form"


def test_two_ways_to_write_one_host() -> None:
    assert BOOK.alike("head", "worker-1")
    assert not BOOK.alike("head", "10.0.0.2")
    assert not BOOK.alike("10.0.0.8", "10.0.0.9")
