"""Which processes are ranks, by process trees as launchers make them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from doctor.live.onhost import ranks as of_ranks
from doctor.live.onhost import recognise
from doctor.live.onhost.programs import is_doctor
from doctor.live.onhost.tree import Tree
from tests.support.cases import cases
from tests.support.hang.known import KNOWN


def candidates(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    return recognise.candidates(Tree(KNOWN, rows))


def members(
    rows: Sequence[Mapping[str, Any]], ports: Mapping[int, Sequence[int]] | None = None, **more: Any
) -> list[dict[str, Any]]:
    return of_ranks.members(Tree(KNOWN, rows, **more), ports)


def unseen(rows: Sequence[Mapping[str, Any]], users: Mapping[int, str], *found: Any) -> list[str]:
    return of_ranks.unseen(Tree(KNOWN, rows, users=users), *found)


def without_ranks(rows: Sequence[Mapping[str, Any]], users: Mapping[int, str], found: Any) -> list[str]:
    return of_ranks.without_ranks(Tree(KNOWN, rows, users=users), found)


TORCH = {"MASTER_ADDR": "node1", "MASTER_PORT": "29500", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}
TRAIN = "/opt/python train.py"


def row(pid: int, parent: int, command: str = TRAIN, state: str = "S", **env: str) -> dict[str, Any]:
    return {
        "pid": pid,
        "parent": parent,
        "state": state,
        "name": command.split()[0].rpartition("/")[2],
        "start": 1000,
        "uid": 0,
        "exe": "",
        "command": [] if state == "Z" else command.split(),
        "env": env,
        "hidden": False,
        "groups": False,
        "ours": False,
        "blocked": False,
        "typed": False,
    }


def torch_rank(pid: int, parent: int, rank: int, command: str = TRAIN, **more: str) -> dict[str, Any]:
    own = {"RANK": str(rank), "LOCAL_RANK": str(rank % 2), "TORCHELASTIC_RUN_ID": "none"}
    return row(pid, parent, command, **{**TORCH, **own, **more})


def shown(rows: Sequence[Mapping[str, Any]], **more: Any) -> list[tuple[int, int | None, int | None]]:
    """PID, rank, and the process that it helps."""
    return [(m["pid"], m["rank"], m.get("helps")) for m in members(rows, **more)]


TORCHRUN = row(10, 1, "/opt/python /opt/bin/torchrun --nnodes=2 train.py")


def test_ranks_of_torchrun_and_their_helpers() -> None:
    rows = [
        TORCHRUN,
        torch_rank(11, 10, 2),
        torch_rank(12, 10, 3),
        torch_rank(13, 12, 3, "/opt/python -c worker"),
        torch_rank(14, 13, 3, "/usr/bin/c++ x.cpp"),
    ]
    assert shown(rows) == [(11, 2, None), (12, 3, None), (13, None, 12), (14, None, 12)]
    first = members(rows)[0]
    assert (first["job"], first["world"], first["launcher"]) == ("node1:29500", 4, "torchrun")
    assert (first["master"], first["command"], first["parent"]) == ("node1:29500", TRAIN, 10)


def test_torchrun_inside_of_a_slurm_step() -> None:
    """Its own number is Slurm's, and may equal that of one of its ranks."""
    slurm = {"SLURM_PROCID": "1", "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "7", "SLURM_NTASKS": "2"}
    bash = row(9, 1, "/bin/bash run.sh", **slurm)
    agent = row(10, 9, "/opt/python -m torch.distributed.run train.py", **slurm)
    rows = [bash, agent, torch_rank(11, 10, 2, **slurm), torch_rank(12, 10, 3, **slurm)]
    assert shown(rows) == [(11, 2, None), (12, 3, None)]
    one = {**slurm, "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}
    mine = row(12, 11, **{**one, "RANK": "0", "WORLD_SIZE": "1", "TORCHELASTIC_RUN_ID": "x"})
    assert shown([row(11, 9, "/opt/python our_launcher.py", **one), mine]) == [(12, 0, None)]


def test_a_launcher_of_a_platform_that_is_told_a_rank_itself() -> None:
    """Some platforms number their containers by RANK, and torchrun in these containers numbers ranks."""
    pod = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "pod-0", "MASTER_PORT": "23456"}
    rows = [row(10, 1, "/opt/python start.py", **pod), torch_rank(11, 10, 2), torch_rank(12, 10, 3)]
    assert shown(rows) == [(11, 2, None), (12, 3, None)]


def test_a_process_with_groups_is_a_rank_whatever_is_below_it() -> None:
    """A script that forks the other ranks, and a rank whose child has its variables and groups of its own."""
    top = dict(row(11, 1), groups=True)
    forked = [dict(row(pid, 11), groups=True) for pid in (12, 13)]
    loader = row(14, 12)
    assert shown([top, *forked, loader]) == [
        (11, None, None),
        (12, None, None),
        (13, None, None),
        (14, None, 12),
    ]
    assert len({m["job"] for m in members([top, *forked, loader])}) == 1
    rank = dict(torch_rank(11, 1, 0), groups=True)
    other = dict(torch_rank(12, 11, 1), groups=True)
    assert shown([rank, other, torch_rank(13, 12, 1)]) == [(11, 0, None), (12, 1, None), (13, None, 12)]


def lightning(pid: int, parent: int, local: int, node: int = 0, world: int = 3) -> dict[str, Any]:
    """A rank as Lightning starts it: nothing gives its number but its place on its host."""
    env = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511", "WORLD_SIZE": str(world)}
    return row(pid, parent, LOCAL_RANK=str(local), NODE_RANK=str(node), **env)


@pytest.mark.parametrize("groups", [False, True])
def test_the_first_rank_starts_the_others_of_its_host(groups: bool) -> None:
    """Also before it has process groups, when nothing but its children shows that it is a rank."""
    first = dict(row(11, 1), groups=groups)
    rows = [first, lightning(12, 11, 1), lightning(13, 11, 2), row(14, 11), row(15, 13)]
    assert sorted(shown(rows)) == [
        (11, 0, None),
        (12, 1, None),
        (13, 2, None),
        (14, None, 11),
        (15, None, 13),
    ]
    assert {(m["job"], m["world"]) for m in members(rows)} == {("127.0.0.1:29511", 3)}
    second = [row(21, 1), lightning(22, 21, 1, node=1, world=4)]
    assert shown(second) == [(22, 3, None), (21, 2, None)]


def test_a_number_that_a_rank_sets_for_itself_makes_no_ranks_of_its_programs() -> None:
    """Notebooks and loops of mp.spawn set RANK in a process that runs already; what it starts inherits it."""
    kernel = "/opt/python -m ipykernel_launcher -f k.json"
    ranks = [dict(row(pid, 10, kernel), groups=True) for pid in (11, 12)]
    env = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": "1234"}
    service = row(13, 11, "/opt/python -m wandb.service", **env)
    assert sorted(shown([row(10, 1, kernel), *ranks, service])) == [
        (11, None, None),
        (12, None, None),
        (13, None, 11),
    ]


def test_a_shell_or_a_launcher_is_not_the_first_rank() -> None:
    """Somebody may start ranks with LOCAL_RANK by hand: one that is missing is missing."""
    for command in ("/bin/bash run.sh", "/opt/python /opt/bin/torchrun train.py"):
        rows = [row(10, 1, command), lightning(12, 10, 1), lightning(13, 10, 2)]
        assert shown(rows) == [(12, 1, None), (13, 2, None)]


def test_a_title_hides_no_rank() -> None:
    """Ray's actors and vLLM's workers have one: it takes the place of the command line and the variables."""
    actors = [
        dict(row(pid, 10, f"ray::Worker.train{pid}"), exe="python3.11", groups=True) for pid in (11, 12)
    ]
    assert shown([row(10, 1, "raylet"), *actors]) == [(11, None, None), (12, None, None)]


@pytest.mark.parametrize("wrapper", ["/bin/bash -c x", "/usr/bin/timeout 3600 python x", "nsys profile x"])
def test_a_shell_around_a_rank_is_none(wrapper: str) -> None:
    env = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_PORT": "1234"}
    rows = [row(10, 1, wrapper, **env), row(11, 10, **env), row(12, 10, "tee log", **env), row(13, 11, **env)]
    assert shown(rows) == [(11, 0, None), (13, None, 11)]
    assert shown(rows[:1]) == [], "it has not started anything"


def test_the_process_that_takes_part_is_the_rank() -> None:
    """An unknown program may start it."""
    top, inner = torch_rank(11, 1, 0, "/opt/python run_it.py"), torch_rank(12, 11, 0)
    assert shown([top, inner]) == [(11, 0, None), (12, None, 11)]
    assert shown([top, dict(inner, groups=True)]) == [(12, 0, None)]
    assert shown([dict(top, groups=True), inner]) == [(11, 0, None), (12, None, 11)]
    assert shown([torch_rank(11, 1, 0, "/opt/python /opt/bin/conda run x"), inner]) == [(12, 0, None)]


def test_ranks_of_mpirun_and_srun() -> None:
    mpi = {"OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "prterun-7"}
    rows = [
        row(10, 1, "mpirun -np 2 python train.py"),
        row(11, 10, OMPI_COMM_WORLD_RANK="0", **mpi),
        row(12, 10, OMPI_COMM_WORLD_RANK="1", **mpi),
        row(13, 12, OMPI_COMM_WORLD_RANK="1", **mpi, RANK="1", WORLD_SIZE="2"),
    ]
    assert shown(rows) == [(11, 0, None), (12, 1, None), (13, None, 12)]
    assert {(m["job"], m["launcher"]) for m in members(rows)} == {("mpi prterun-7", "mpirun")}
    slurm = {"SLURM_STEP_ID": "2", "SLURM_JOB_ID": "7", "SLURM_STEP_NUM_TASKS": "2"}
    rows = [row(20, 1, "slurmstepd:"), row(21, 20, SLURM_PROCID="0", **slurm)]
    assert [(m["rank"], m["world"], m["job"], m["launcher"]) for m in members(rows)] == [
        (0, 2, "slurm 7.2", "srun")
    ]
    batch = {"SLURM_PROCID": "0", "SLURM_JOB_ID": "7", "SLURM_NTASKS": "2"}
    assert shown([row(30, 1, **batch)]) == [], "a batch script has a number but is not a rank"


def test_ranks_of_msrun() -> None:
    told = {"MS_WORKER_NUM": "2", "MS_SCHED_HOST": "10.0.0.1", "MS_SCHED_PORT": "8118"}
    rows = [
        row(10, 1, "/opt/python /opt/bin/msrun train.py"),
        row(11, 10, MS_ROLE="MS_SCHED", **told),
        row(12, 10, MS_ROLE="MS_WORKER", MS_NODE_ID="0", **told),
        row(13, 10, MS_ROLE="MS_WORKER", MS_NODE_ID="1", RANK_ID="1", **told),
    ]
    assert shown(rows) == [(12, 0, None), (13, 1, None)]
    assert {(m["job"], m["launcher"]) for m in members(rows)} == {("10.0.0.1:8118", "msrun")}


def test_two_jobs_are_two() -> None:
    rows = [torch_rank(11, 1, 0), torch_rank(12, 1, 0, MASTER_PORT="29501")]
    rows.append(torch_rank(13, 1, 0, TORCHELASTIC_RUN_ID="again"))
    assert [m["job"] for m in members(rows)] == ["node1:29500", "node1:29501", "node1:29500 run again"]


def test_doctors_own_processes_are_none() -> None:
    rows = [
        torch_rank(11, 1, 0, "/opt/python -m doctor smoke --in-job"),
        torch_rank(12, 11, 0, "ssh node1"),
        torch_rank(13, 1, 1, "python3 -ISBc b=bytearray();begin(bytes(b[:9]),3,x) doctor.smoke.onhost.agent"),
        torch_rank(14, 1, 2),
        dict(torch_rank(15, 1, 3, "sed -n x"), ours=True),
    ]
    assert shown(rows, own=14) == []
    assert is_doctor(["/opt/bin/python", "/opt/bin/doctor", "check"])
    assert not is_doctor(["python", "train.py", "--doctor", "doctor"])


def test_what_doctor_run_starts_is_the_users_job() -> None:
    relay = "/opt/python -I -S -c import sys;from doctor.run.relay.main import main;main(3,4,5) /opt"
    rows = [
        row(10, 1, "/opt/python -m doctor run -- torchrun train.py"),
        row(11, 10, relay),
        row(12, 11, "/opt/bin/python /opt/bin/torchrun train.py"),
        torch_rank(13, 12, 0),
        torch_rank(14, 10, 1),
    ]
    assert shown(rows) == [(13, 0, None)]


def test_forked_ranks_are_known_by_their_threads_or_by_the_masters_port() -> None:
    """Ranks of mp.spawn: the variables of a process are those with which it was started."""
    parent = row(10, 1)
    rows = [parent, *(dict(row(pid, 10), groups=True) for pid in (11, 12)), row(13, 10)]
    assert shown(rows) == [(11, None, None), (12, None, None)]
    assert {m["job"] for m in members(rows)} == {"started by process 10"}
    told = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29501"}
    rows = [row(10, 1, **told), *(row(pid, 10, **told) for pid in (11, 12, 13))]
    assert candidates(rows) == [10, 11, 12, 13]
    ports = {11: [29501, 40000], 12: [29501], 13: [443]}
    assert shown(rows, ports=ports) == [(11, None, None), (12, None, None)]
    assert {m["job"] for m in members(rows, ports=ports)} == {"localhost:29501"}
    assert shown(rows) == []


def test_a_rank_that_has_ended_beside_others() -> None:
    rows = [TORCHRUN, torch_rank(11, 10, 2), row(12, 10, "python", state="Z")]
    assert shown(rows) == [(11, 2, None), (12, 3, None)]
    assert members(rows)[1]["job"] == "node1:29500"
    more = [*rows, row(13, 10, "python", state="Z")]
    assert shown(more)[1:] == [(12, None, None), (13, None, None)], "which is which is not known"


def test_a_rank_that_the_kernel_holds_is_found_beside_others() -> None:
    """Its variables cannot be read, but it has not ended."""
    held = dict(row(12, 10, "python", state="D"), blocked=True, command=[])
    assert shown([TORCHRUN, torch_rank(11, 10, 2), held]) == [(11, 2, None), (12, 3, None)]


def test_deepspeed_and_accelerate_are_called_by_their_names() -> None:
    for name, line in (
        ("deepspeed", "/opt/python -u -m deepspeed.launcher.launch --world_info=x train.py"),
        ("accelerate", "/opt/python /opt/bin/accelerate launch train.py"),
    ):
        assert KNOWN.of(line.split())
        assert [m["launcher"] for m in members([row(10, 1, line), torch_rank(11, 10, 0)])] == [name]
    assert not KNOWN.of(["python", "train.py", "--launcher", "torchrun"])


def test_processes_that_may_not_be_read_are_counted() -> None:
    rows = [dict(row(pid, 1), hidden=True, uid=1000) for pid in (5, 6)]
    assert unseen(rows, {1000: "ann"}) == [
        "2 Python processes of ann may be ranks: only this user and root may read their variables"
    ]


def test_age_and_user() -> None:
    (one,) = members([torch_rank(11, 1, 0)], ticks=100, uptime=25.5, users={0: "root"})
    assert (one["age"], one["user"]) == (15.5, "root")


def test_a_circle_of_parents_is_survived() -> None:
    """Rows are read one after another, and PIDs are reused."""
    assert shown([torch_rank(11, 12, 0), torch_rank(12, 11, 1)]) in ([], [(11, 0, None), (12, 1, None)])


def hidden(each: dict[str, Any], groups: bool = True) -> dict[str, Any]:
    return {**each, "hidden": True, "env": {}, "groups": groups}


def test_ranks_of_others_are_those_in_groups_and_those_of_a_launcher() -> None:
    alone = [hidden(row(11, 1)), hidden(row(12, 1)), hidden(row(13, 1), groups=False), row(14, 12)]
    assert shown(alone) == [(11, None, None), (12, None, None), (14, None, 12)]
    assert [m.get("hidden") for m in members(alone)] == [True, True, True]
    launched = [hidden(TORCHRUN, False), *(hidden(row(pid, 10), False) for pid in (11, 12))]
    ended = {**row(13, 10, state="Z"), "name": "python"}
    assert shown([*launched, ended]) == [(11, None, None), (12, None, None), (13, None, None)]
    assert members(launched)[0]["launcher"] == "torchrun"
    assert shown([hidden(TORCHRUN, False), hidden(row(11, 10), False)]) == [], "a single one may be anything"


@cases
def test_the_job_of_another_user_is_called_as_its_launcher_is_told(line: str, name: str, master: str) -> None:
    rows = [hidden(row(10, 1, "/opt/python " + line), False), hidden(row(11, 10)), hidden(row(12, 10))]
    assert {(m["job"], m["master"]) for m in members(rows)} == {(name, master)}


def test_or_as_the_daemon_of_slurm_says() -> None:
    daemon = {**row(10, 1), "command": ["slurmstepd: [4711.0]"]}
    rows = [daemon, hidden(row(11, 10)), hidden(row(12, 10))]
    assert {(m["job"], m["slurm_job"]) for m in members(rows)} == {("slurm 4711.0", "4711")}


def test_a_launcher_without_ranks_is_said() -> None:
    rows = [row(9, 1, "mpirun x"), TORCHRUN, row(11, 10, "/bin/sh run.sh")]
    (said,) = without_ranks(rows, {0: "root"}, ())
    assert said.startswith("torchrun (pid 10, root) has no rank here")
    assert without_ranks([*rows, torch_rank(12, 11, 0)], {}, {12}) == []
    assert without_ranks([*rows, hidden(row(12, 11), groups=False)], {}, ()) == [], "it may be a rank"


def test_who_is_seen_is_not_counted_as_unseen() -> None:
    rows = [hidden(TORCHRUN, False), hidden(row(11, 10)), hidden(row(12, 1, "/bin/python -c 1"), False)]
    found = {member["pid"] for member in members(rows)}
    assert found == {11}
    (said,) = unseen(rows, {0: "root"}, found)
    assert said.startswith("1 Python processes of root")


def test_tools_of_a_shell_with_a_stale_rank_are_no_ranks() -> None:
    shell = row(20, 1, "-bash", **TORCH, RANK="3")
    assert shown([shell, row(21, 20, "sleep 300", **TORCH, RANK="3")]) == []
    assert shown([shell, row(22, 20, "/opt/python train.py", **TORCH, RANK="3")]) == [(22, 3, None)]
    assert shown([shell, row(22, 20, "./train.mpi", **TORCH, RANK="3")]) == [(22, 3, None)]


@cases
def test_a_notebook_with_a_stale_rank_is_none(line: str) -> None:
    kernel = row(30, 1, line, **TORCH, RANK="0")
    assert shown([TORCHRUN, torch_rank(11, 10, 0), torch_rank(12, 10, 1), kernel]) == [
        (11, 0, None),
        (12, 1, None),
    ]
    assert shown([dict(kernel, groups=True)]) == [(30, 0, None)], "it takes part"


@pytest.mark.parametrize("line", ["/opt/python", "/opt/python -i -q", "/opt/python -"])
def test_a_python_in_which_somebody_types_is_none(line: str) -> None:
    prompt = row(30, 1, line, **TORCH, RANK="0")
    assert shown([dict(prompt, typed=True)]) == []
    assert shown([prompt]) == [(30, 0, None)], "a script on its stdin"
    assert shown([dict(row(30, 1, line + " train.py", **TORCH, RANK="0"), typed=True)]) == [(30, 0, None)]


def test_of_two_that_are_told_one_rank_the_one_that_takes_part_is_it() -> None:
    stale = row(30, 1, "/opt/python plot.py", **TORCH, RANK="0")
    ranks = [dict(torch_rank(pid, 10, pid - 11, TORCHELASTIC_RUN_ID=""), groups=True) for pid in (11, 12)]
    assert shown([*ranks, stale]) == [(11, 0, None), (12, 1, None)]
    twice = shown([TORCHRUN, *ranks, dict(stale, groups=True)])
    assert (30, 0, None) in twice, "another job of that name"


def test_what_is_above_a_rank_up_to_its_launcher() -> None:
    shell = row(11, 10, "/bin/sh run.sh", **TORCH)
    rows = [row(9, 1, "-bash"), row(10, 9, "/opt/python /opt/bin/torchrun x"), shell, torch_rank(12, 11, 0)]
    assert members(rows)[0]["above"] == [11, 10]
    assert members([row(9, 1, "-bash"), torch_rank(12, 9, 0)])[0]["above"] == [9]
    assert members([row(1, 0, "/sbin/init"), torch_rank(12, 1, 0)])[0]["above"] == [], "an orphan"
    assert members([{**TORCHRUN, "pid": 1, "parent": 0}, torch_rank(12, 1, 0)])[0]["above"] == [1], (
        "a container"
    )


def test_the_worker_of_a_rank_that_is_gone_is_no_rank() -> None:
    worker = {**torch_rank(13, 1, 3), "name": "pt_data_worker"}
    assert shown([worker]) == []
    assert shown([TORCHRUN, torch_rank(12, 10, 3), {**worker, "parent": 12}]) == [
        (12, 3, None),
        (13, None, 12),
    ]


def test_a_rank_yields_to_no_process_of_another_user() -> None:
    """That process claims the same number, and has threads of process groups."""
    own, other = torch_rank(11, 10, 2), dict(torch_rank(12, 1, 2), uid=65534, groups=True)
    found = {m["pid"]: m for m in members([TORCHRUN, own, other], users={0: "root"})}
    assert {pid: (m["user"], m["launched"], m["joins"]) for pid, m in found.items()} == {
        11: ("root", 10, False),
        12: ("uid 65534", None, True),
    }
    assert shown([TORCHRUN, own, dict(other, uid=0)]) == [(12, 2, None)], "of one user, who takes part is it"


def test_the_nearest_launcher_is_the_one_that_counts() -> None:
    outer = row(9, 1, "slurmstepd: [7.0]")
    rows = [outer, row(10, 9, "torchrun train.py"), row(13, 10, "setpriv python"), torch_rank(11, 13, 0)]
    assert [m["launched"] for m in members(rows)] == [10]


def test_a_long_chain_of_processes_above_ranks_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody can make one, and no job has a long one."""
    many, deep = 300, 1200
    chain = [row(pid, pid - 1, "sh", RANK="0", WORLD_SIZE="1") for pid in range(1, deep)]
    ranks = [torch_rank(pid, deep - 1, pid) for pid in range(deep, deep + many)]
    above: list[int] = []
    real = Tree.above

    def counted(tree: Tree, pid: int) -> Iterator[int]:
        for one in real(tree, pid):
            above.append(one)
            yield one

    monkeypatch.setattr(Tree, "above", counted)
    assert len(members([*chain, *ranks])) == many
    assert len(above) < 500 * many
