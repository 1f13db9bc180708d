"""Which source decides the plan: flags, --launch, the rank table, Slurm, the inventory, defaults."""

from dataclasses import replace
from pathlib import Path

import pytest

from doctor.errors import UsageError
from doctor.exam.flags import apply_flags
from doctor.exam.request import JobFlags, Request
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.processes import JobProcess, launch_of_processes
from doctor.job.plan import HostView, JobPlan, draft, settle
from doctor.job.ranktable import LiveDevice, LiveServer, make_table
from doctor.job.wishes import JobWishes
from doctor.model import Backend, Host, SourcedValue, TableFile
from doctor.targets.inventory import Targets, read_targets
from tests.support.cases import cases

FLAGGED = SourcedValue(2, "--ranks-per-host")
HOSTS = tuple(Host(f"node{n}", f"10.0.0.{n}") for n in (1, 2))


def told(**env: str) -> Launch:
    return Launch("env0.log", (ProcessEnv("env0.log", None, env),), complete=False)


def table(*ids: str, devices: int = 4) -> TableFile:
    servers = [
        LiveServer(id, id, tuple(LiveDevice(d, f"10.20.{n}.{d}", None, None) for d in range(devices)))
        for n, id in enumerate(ids)
    ]
    return TableFile("/job/hccl.json", make_table(servers, "1.0", "aarch64"), checksum="")


def plan(hosts: tuple[Host, ...] = HOSTS, **wishes: object) -> JobPlan:
    return draft(hosts, JobWishes(**wishes))  # type: ignore[arg-type]


def test_the_launch_overrides_the_inventory() -> None:
    said = plan(
        launch=told(MASTER_ADDR="10.0.0.2", MASTER_PORT="29611", HCCL_IF_BASE_PORT="50000"),
        head=SourcedValue("node1", "inventory a:1"),
        master_port=SourcedValue(29999, "inventory a:2"),
        env={"MASTER_PORT": "1", "GLOO_SOCKET_IFNAME": "eth0"},
    )
    assert said.head == SourcedValue("node2", "--launch MASTER_ADDR")
    assert said.master_port == SourcedValue(29611, "--launch MASTER_PORT")
    assert said.hccl_ports[0] == 50000
    assert said.env["GLOO_SOCKET_IFNAME"] == "eth0"


def test_the_launch_sets_the_ranks_of_a_host(tmp_path: Path) -> None:
    script = tmp_path / "launch.sh"
    script.write_text("torchrun --nnodes=2 --nproc_per_node=4 --master_addr=node2 train.py\n")
    said = draft(HOSTS, apply_flags(Request("check", job=JobFlags(launch=(str(script),))), JobWishes()))
    assert [host.ranks for host in said.hosts] == [SourcedValue(4, "--launch")] * 2
    assert said.head == SourcedValue("node2", "--launch MASTER_ADDR")
    assert plan(launch=told(LOCAL_WORLD_SIZE="2")).ranks == 4
    assert plan(launch=told(LOCAL_WORLD_SIZE="0")).ranks == 0
    assert plan(launch=told(LOCAL_WORLD_SIZE="2"), table=table("node1", "node2")).ranks == 4


def test_the_rank_table_overrides_the_inventory() -> None:
    said = plan(
        table=table("node2", "node1"),
        backend=SourcedValue(Backend.GLOO, "inventory a:1"),
        head=SourcedValue("node1", "inventory a:2"),
        env={"MASTER_ADDR": "node1"},
    )
    assert said.backend == SourcedValue(Backend.HCCL, "rank table")
    assert said.head == SourcedValue("node2", "rank table")
    assert settle(said, {}).head == said.head
    flagged = plan(table=table("node2"), backend=SourcedValue(Backend.GLOO, "--backend"))
    assert flagged.backend.value is Backend.GLOO


def test_the_head_of_the_inventory_overrides_its_variables() -> None:
    said = plan(head=SourcedValue("node2", "inventory a:2"), env={"MASTER_ADDR": "node1"})
    assert said.head == SourcedValue("node2", "inventory a:2")
    assert settle(said, {"node1": HostView(addresses={"eth0": ("10.0.0.1",)})}).head == said.head


def test_flags_override_the_launch() -> None:
    flagged = apply_flags(
        Request("check", job=JobFlags(master_port=29700)), JobWishes(launch=told(MASTER_PORT="29611"))
    )
    assert draft(HOSTS, flagged).master_port == SourcedValue(29700, "--master-port")


def test_variables_of_the_inventory_override_defaults() -> None:
    said = plan(env={"MS_SCHED_HOST": "node2", "MS_SCHED_PORT": "8118"})
    assert said.head == SourcedValue("node2", "inventory MS_SCHED_HOST")
    assert said.master_port == SourcedValue(8118, "inventory MS_SCHED_PORT")


@pytest.mark.parametrize("port", ["", "0", "70000", "x", "29500 "])
def test_an_invalid_port_is_ignored(port: str) -> None:
    assert plan(launch=told(MASTER_PORT=port)).master_port == SourcedValue(29500, "default")


def test_the_head_is_found_by_the_answers_of_the_hosts() -> None:
    said = plan(launch=told(MASTER_ADDR="train-head"))
    assert said.head == SourcedValue("node1", "first host")
    sights = {
        "node1": HostView(addresses={"eth0": ("10.0.0.1",)}, names={"train-head": ("10.9.0.2",)}),
        "node2": HostView(addresses={"eth0": ("10.0.0.2",), "eth1": ("10.9.0.2",)}),
    }
    assert settle(said, sights).head == SourcedValue("node2", "--launch MASTER_ADDR")


def starting(node: int, port: int = 29511, master: str = "10.0.0.2") -> JobProcess:
    words = ("--nnodes=2", f"--node-rank={node}", f"--master-addr={master}", f"--master-port={port}")
    return JobProcess(300 + node, 1, {}, ("torchrun", *words, "train.py"))


def beside(*jobs: tuple[JobProcess, ...], **wishes: object) -> JobPlan:
    sights = {host.name: HostView(addresses={"eth0": (host.address,)}) for host in HOSTS}
    running = launch_of_processes({host.name: job for host, job in zip(HOSTS, jobs, strict=True)})
    return settle(plan(HOSTS, **wishes), sights, running)


def test_a_job_that_runs_there_has_the_port_that_counts() -> None:
    found = beside((starting(0),), (starting(1),))
    assert (found.master_port, found.master_port_held) == (SourcedValue(29511, "the running job"), True)
    assert found.head == SourcedValue("node2", "the running job")
    assert not found.master_port_guessed


def test_nobody_guesses_between_jobs_ports_or_what_a_person_said() -> None:
    usual = SourcedValue(29500, "default")
    assert beside((starting(0),), (starting(1, 29512),)).master_port == usual
    assert beside((starting(0, master="127.0.0.1"),), ()).master_port == usual, "it concerns no other host"
    assert beside(
        (starting(0),), (starting(1),), master_port=SourcedValue(1234, "--master-port")
    ).head.value == ("node1")


def test_a_rank_table_sets_ranks_backend_and_head() -> None:
    said = plan(table=table("10.0.0.2", "node1"))
    assert said.backend == SourcedValue(Backend.HCCL, "rank table")
    assert said.head == SourcedValue("node2", "rank table")
    assert [host.ranks for host in said.hosts] == [SourcedValue(4, "rank table")] * 2
    assert [host.server.id for host in said.hosts if host.server] == ["node1", "10.0.0.2"]
    assert said.table_paths == ("/job/hccl.json",)


def test_a_server_may_go_by_an_address_that_only_its_host_knows() -> None:
    said = plan(hosts=(Host("a", "a"), Host("b", "b")), table=table("172.16.0.9", "172.16.0.8"))
    assert [host.server for host in said.hosts] == [None, None]
    sights = {
        "a": HostView(addresses={"eth1": ("172.16.0.8",)}),
        "b": HostView(addresses={"eth0": ("10.0.0.2",), "eth1": ("172.16.0.9",)}),
    }
    settled = settle(said, sights)
    assert [host.server.id for host in settled.hosts if host.server] == ["172.16.0.8", "172.16.0.9"]
    assert [host.ranks for host in settled.hosts] == [SourcedValue(4, "rank table")] * 2
    assert settled.head == SourcedValue("b", "rank table")
    assert settled.data_address("b") == "172.16.0.9"
    flagged = settle(replace(said, hosts=tuple(replace(h, ranks=FLAGGED) for h in said.hosts)), sights)
    assert {host.ranks for host in flagged.hosts} == {FLAGGED}


def test_the_path_of_the_table_in_the_launch_comes_first() -> None:
    said = plan(table=table("node1"), launch=told(RANK_TABLE_FILE="/data/hccl.json"))
    assert said.table_paths == ("/data/hccl.json", "/job/hccl.json")
    assert plan(launch=told(RANK_TABLE_FILE="hccl.json")).table_paths == (), "relative to what?"


def targets(path: Path, *, hosts: tuple[str, ...] = (), inventory: Path | None = None) -> Targets:
    return read_targets(hosts, None, inventory, False, (), {}, path)


def test_a_rank_table_names_the_hosts_in_rank_order(tmp_path: Path) -> None:
    path = tmp_path / "hccl.json"
    path.write_text(table("10.0.0.2", "10.0.0.1").text)
    found = targets(path)
    assert [host.name for host in found.hosts] == ["10.0.0.2", "10.0.0.1"]
    assert found.source == f"rank table {path}"
    assert targets(path, hosts=("node[1-2]",)).source == "the command line"


def test_the_inventory_knows_the_servers_by_their_names(tmp_path: Path) -> None:
    path, inventory = tmp_path / "hccl.json", tmp_path / "inventory.yaml"
    path.write_text(table("10.0.0.2", "192.168.0.1", "10.0.0.9").text)
    inventory.write_text(
        "hosts:\n  node1: {address: 10.0.0.1, data: 192.168.0.1, user: root}\n  node2: {address: 10.0.0.2}\n"
    )
    found = targets(path, inventory=inventory)
    assert [host.name for host in found.hosts] == ["node2", "node1", "10.0.0.9"]
    assert found.hosts[1].user == "root"


def test_a_table_with_a_syntax_error_still_names_its_hosts(tmp_path: Path) -> None:
    path = tmp_path / "hccl.json"
    path.write_text(table("node1", "node2").text.replace('"completed"', '"completed", // done'))
    assert [host.name for host in targets(path).hosts] == ["node1", "node2"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "hccl.json:1"),
        ('{"version": "1.0", "server_count": "0", "server_list": [], "status": "completed"}', "hccl.json"),
        (table("a b").text, "is not a host name"),
    ],
)
def test_a_table_that_names_no_host(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "hccl.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=says):
        targets(path)


@cases
def test_slurm_sets_the_ranks(tasks: str, ranks: SourcedValue[int] | None) -> None:
    environ = {"SLURM_JOB_NODELIST": "node[1-2]", "SLURM_TASKS_PER_NODE": tasks, "SLURM_NTASKS": "16"}
    found = read_targets((), None, None, False, (), environ)
    assert [host.ranks for host in draft(found.hosts, found.wishes).hosts] == [ranks] * 2
    elsewhere = read_targets(("node[1-2]",), None, None, False, (), environ)
    assert elsewhere.wishes.ranks_per_host is None, "the job of these hosts is another"
    del environ["SLURM_NTASKS"]  # as with salloc --exclusive: these are CPUs
    assert read_targets((), None, None, False, (), environ).wishes.ranks_per_host is None


def test_the_plan_of_a_flag_overrides_the_inventory() -> None:
    wishes = apply_flags(Request("check", job=JobFlags(plan=("dp=4,tp=2",))), JobWishes())
    layout = draft(HOSTS, wishes).layout
    assert layout is not None
    assert (layout.source, layout.value.dp, layout.value.tp) == ("--plan", 4, 2)
