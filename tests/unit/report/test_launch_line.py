"""Which hosts are started, on which port, and the line that starts them, in the form of each launcher."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from doctor.errors import UsageError
from doctor.job.launch.forms import Go, LaunchParts
from doctor.job.launch.process_env import ProcessEnv
from doctor.job.launch.rank_env import local_world_of, master_of, node_rank_of, nodes_of, world_of
from doctor.job.parallel import read_layout
from doctor.job.plan import draft
from doctor.job.ranktable import LiveDevice, LiveServer, make_table
from doctor.job.wishes import JobWishes
from doctor.judge.verdict import Report
from doctor.model import Backend, Host, SourcedValue, TableFile
from doctor.report.out.file_names import job_id
from doctor.report.start.go import chosen, decide_go, table_note
from doctor.report.start.launch_line import (
    FORMS,
    form_for,
    launch_lines,
    launch_notes,
    read_form,
    tasks_on_a_node,
)
from doctor.targets.hostfile import read_hostfile
from tests.support.cases import cases
from tests.support.recordings import HEALTHY, heard, recording, report
from tests.support.reports import text

NAMES = [f"node{n}" for n in range(1, 5)]
SMALL_SHM = HEALTHY["spaces"].replace("tmpfs 12342040 0 12342040", "shm 65536 0 65536")


def judged(
    sick: Sequence[str] = (),
    need: int | None = None,
    ranks: Mapping[str, int] | None = None,
    names: Sequence[str] = NAMES,
    **wishes: Any,
) -> Report:
    """A report of hosts; those in `sick` have a small /dev/shm."""
    broken = {name: heard(names.index(name) + 1, names, spaces=SMALL_SHM) for name in sick}
    made = recording(names, heard=broken, wishes=JobWishes(**wishes))
    hosts = [replace(host, ranks=(ranks or {}).get(host.name)) for host in made.hosts]
    return report(replace(made, hosts=tuple(hosts)), need_hosts=need)


def starting(of: Report, bound: Mapping[str, set[int]] | None = None, **more: Any) -> LaunchParts:
    found = decide_go(of, bound or {}, more.pop("order", ()))
    assert found is not None
    more.setdefault("tasks", tasks_on_a_node(found, of.plan, {}))
    return LaunchParts(found, **more)


def line(form: str, start: LaunchParts) -> str:
    text = launch_lines(start, form)
    assert text.endswith("\n")
    assert text.count("\n") == 1
    return text[:-1]


@cases
def test_as_many_hosts_as_needed_are_started_in_rank_order(
    sick: tuple[str, ...], need: int | None, hosts: list[str], spares: list[str], left_out: list[str]
) -> None:
    found = starting(judged(sick, need)).going
    assert (list(found.hosts), list(found.spares), list(found.left_out)) == (hosts, spares, left_out)
    assert found.address == f"10.0.0.{found.head[-1]}"
    assert (found.port, found.each, found.world) == (29500, 2, 2 * len(hosts))
    moved = [f"the head is {found.head} in place of node1"] if "node1" in sick else []
    assert list(found.notes) == moved


@pytest.mark.parametrize(("sick", "need"), [(("node2",), None), (("node2",), 4), (tuple(NAMES), 1)])
def test_no_host_is_started_on_a_no_go(sick: tuple[str, ...], need: int | None) -> None:
    of = judged(sick, need)
    assert of.exit_code == 1
    assert decide_go(of, {}) is None
    assert chosen(of) == ()


def test_no_host_is_started_when_a_run_was_interrupted() -> None:
    assert decide_go(report(recording(NAMES), stopped_by=15, need_hosts=1), {}) is None


def test_a_healthy_head_is_started_and_comes_first() -> None:
    head = SourcedValue("node4", "inventory")
    assert starting(judged((), 2, head=head)).going.hosts == ("node4", "node1")
    assert starting(judged((), None, head=head)).going.hosts == ("node4", "node1", "node2", "node3")
    without = starting(judged(("node4",), 2, head=head)).going
    assert without.hosts == ("node1", "node2")
    assert without.notes == ("the head is node1 in place of node4",)


@cases
def test_a_port_that_is_taken_on_the_head_is_not_offered(
    wish: int, bound: dict[str, set[int]], port: int
) -> None:
    of = judged()
    ascend = replace(
        of.plan, master_port=SourcedValue(wish, "default"), backend=SourcedValue(Backend.HCCL, "--backend")
    )
    found = decide_go(replace(of, plan=ascend), bound)
    assert found is not None
    assert found.port == port
    told = f"port {wish} is taken on node1: {port} is in its place"
    assert (told in found.notes) is (port != wish)


def test_torchrun_parses_its_line_as_intended() -> None:
    start = starting(judged(("node1",), 2), {"node2": {29500}})
    text = line("torchrun", start)
    assert text == (
        "torchrun --nnodes=2 --nproc-per-node=2 --node-rank=$NODE_RANK"
        " --master-addr=10.0.0.2 --master-port=29501"
    )
    told = ProcessEnv("a line", None, {}, tuple(shlex.split(text.replace("$NODE_RANK", "1") + " train.py")))
    master, rank, world, each = master_of(told), node_rank_of(told), world_of(told), local_world_of(told)
    assert master is not None
    assert (master.address, master.port, nodes_of(told)) == ("10.0.0.2", "29501", (2, 2))
    assert rank is not None
    assert world is not None
    assert each is not None
    assert (rank.value, world.value, each.value) == (1, 4, 2)
    assert "the line is for every host: NODE_RANK is 0 on node2, 1 on node3" in launch_notes(
        start, "torchrun"
    )
    assert "--node-rank=0 " in line("torchrun", starting(judged(names=["node1"])))


def test_the_rendezvous_has_an_endpoint_and_is_the_same_line_everywhere() -> None:
    text = line("rdzv", starting(judged(("node1",), 3), id="4711"))
    assert text == (
        "torchrun --nnodes=3 --nproc-per-node=2 --rdzv-backend=c10d --rdzv-id=4711"
        " --rdzv-endpoint=10.0.0.2:29500"
    )
    told = ProcessEnv("a line", None, {}, tuple(shlex.split(text)))
    master = master_of(told)
    assert master is not None
    assert (master.address, master.port) == ("10.0.0.2", "29500")


def test_msrun() -> None:
    text = line("msrun", starting(judged(("node2",), 3)))
    assert text == (
        "msrun --worker_num=6 --local_worker_num=2 --master_addr=10.0.0.1 --master_port=29500"
        " --node_rank=$NODE_RANK --join=True"
    )
    told = ProcessEnv("a line", None, {}, tuple(shlex.split(text.replace("$NODE_RANK", "2") + " train.py")))
    world, each = world_of(told), local_world_of(told)
    assert world is not None
    assert each is not None
    assert (world.value, each.value) == (6, 2)


def test_srun_takes_the_head_that_slurm_will_take() -> None:
    """The first host in the order of the allocation is node 0 of the step, whatever the plan says."""
    start = starting(judged(("node2",), 2, head=SourcedValue("node4", "inventory")), order=NAMES)
    assert line("srun", start) == (
        "srun --nodelist=node1,node4 --nodes=2 --ntasks=2 --ntasks-per-node=1"
        " --export=ALL,MASTER_ADDR=10.0.0.1,MASTER_PORT=29500"
    )
    tasks = judged((), 3, ranks_per_host=SourcedValue(8, "slurm"))
    assert "--nodes=3 --ntasks=24 --ntasks-per-node=8 " in line("srun", starting(tasks))
    named = starting(judged(("node2",), 3))  # the user named the hosts, in an allocation with other tasks
    assert "--ntasks=6 --ntasks-per-node=2 " in line("srun", replace(named, tasks=2))
    assert "--ntasks=3 --ntasks-per-node=1 " in line("srun", replace(named, tasks=8))


def test_mpirun_with_a_hostfile_and_without() -> None:
    of = judged(("node1",), 2, ranks={"node2": 4, "node3": 1})
    environment = "-np 5 -x MASTER_ADDR=10.0.0.2 -x MASTER_PORT=29500"
    assert line("mpirun", starting(of)) == f"mpirun --host node2:4,node3:1 {environment}"
    kept = starting(of, hostfile=Path("/my runs/it.hosts"))
    assert line("mpirun", kept) == f"mpirun --hostfile '/my runs/it.hosts' {environment}"


def test_a_hostfile_reads_back_as_intended(tmp_path: Path) -> None:
    start = starting(judged(("node2",), 3, ranks={"node1": 8, "node3": 4, "node4": 8}))
    file = tmp_path / "hosts"
    file.write_text(launch_lines(start, "hostfile"))
    assert file.read_text() == "node1 slots=8\nnode3 slots=4\nnode4 slots=8\n"
    assert [(host.name, host.ranks) for host in read_hostfile(file)] == [
        ("node1", 8),
        ("node3", 4),
        ("node4", 8),
    ]


def test_env_lines_can_be_evaluated_by_a_shell() -> None:
    start = starting(judged(("node1",), 3))
    assert launch_lines(start, "env").splitlines() == [
        "MASTER_ADDR=10.0.0.2",
        "MASTER_PORT=29500",
        "NNODES=3",
        "WORLD_SIZE=6",
        "NPROC_PER_NODE=2",
        "HOSTS='node2 node3 node4'",
    ]


def test_hosts_with_different_numbers_of_ranks() -> None:
    start = starting(judged(ranks={"node1": 8, "node2": 4, "node3": 8, "node4": 8}))
    assert "--nproc-per-node=$NPROC_PER_NODE " in line("torchrun", start)
    assert "--worker_num=28 --local_worker_num=$NPROC_PER_NODE " in line("msrun", start)
    words = "hosts have different numbers of ranks: NPROC_PER_NODE is 8 on node1, 4 on node2"
    for form in ("torchrun", "rdzv", "msrun", "env"):
        assert any(note.startswith(words) for note in launch_notes(start, form))
    assert "--ntasks=4 --ntasks-per-node=1 " in line("srun", start), "one a node, each starts its own ranks"


@pytest.mark.parametrize("form", FORMS)
def test_nothing_that_a_host_is_called_is_run_by_a_shell(form: str) -> None:
    hostile = ["a$(reboot)", "b;reboot", "c`reboot`"]
    found = Go(tuple(hostile), (), (), dict.fromkeys(hostile, 2), "10.0.0.1;reboot", 29500, ())
    start = LaunchParts(found, "$(reboot)", Path("/tmp/$(reboot)"))
    if form != "hostfile":  # a shell cannot read this
        for shown in launch_lines(start, form).splitlines():
            words = shlex.split(shown)
            assert not any(word in ("reboot", ";", "`reboot`") for word in words)
            bare = shown.replace("'", "\0").split("\0")[::2]  # the part outside quotes
            assert not any(sign in part for part in bare for sign in ";`()")


@cases
def test_the_default_form_fits_the_job(
    environ: dict[str, str], plan: str | None, backend: Backend, form: str
) -> None:
    layout = SourcedValue(read_layout([plan]), "--plan") if plan else None
    job = judged(backend=SourcedValue(backend, "--backend"), layout=layout).plan
    assert form_for(NAMES, job, environ) == form


@cases
def test_forms_are_read_from_the_option(text: str, form: str) -> None:
    assert read_form(text) == form


@cases
def test_an_unknown_form_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_form(text)
    assert words in caught.value.message
    assert "launch" in caught.value.message + caught.value.hint


@cases
def test_the_name_of_a_file_contains_the_job(environ: dict[str, str], name: str) -> None:
    assert job_id(environ) == name


def table(*names: str) -> TableFile:
    servers = [LiveServer(name, name, (LiveDevice(0, f"10.9.{n}.1"),)) for n, name in enumerate(names, 1)]
    return TableFile("/job/hccl.json", make_table(servers, "1.0", "aarch64"), checksum="")


def test_a_rank_table_with_more_hosts_than_started_must_be_made_again() -> None:
    wishes = JobWishes(table=table(*NAMES))
    with_table = draft([Host(name, name) for name in NAMES], wishes)
    fewer = replace(judged(need=3), plan=with_table)
    (note,) = table_note(fewer)
    assert note == (
        "the rank table covers all hosts, but node4 will not take part: "
        "make a new one with doctor ranktable make 'node[1-3]'"
    )
    assert note in starting(fewer).going.notes
    (other,) = table_note(fewer, ("node3", "node1", "node2"))
    assert other.endswith("doctor ranktable make node3 node1 node2"), "its first host has rank 0"
    assert note[1:] in " ".join(text(fewer, 100).split())
    on_hosts = replace(judged(need=3).plan, table_paths=("/job/hccl.json",))
    assert table_note(replace(judged(need=3), plan=on_hosts)) == (note,)
    assert table_note(replace(judged(need=4), plan=with_table)) == ()
    assert table_note(judged(need=3)) == (), "there is no rank table"
    assert "rank table" not in text(judged(need=3), 100)
    of_three = draft([Host(name, name) for name in NAMES], JobWishes(table=table(*NAMES[:3])))
    assert table_note(replace(judged(need=3), plan=of_three)) == (), "node4 is not in it"
