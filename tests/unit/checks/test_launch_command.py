"""Launches that their shell, scheduler or launcher does not read as they are meant; and their sound twins."""

from pathlib import Path

import pytest

from doctor.facts.limits import Limits
from doctor.facts.software import Environment
from doctor.job.launch.files import read_launch_files
from doctor.model import Problem, Severity
from tests.support.cases import cases
from tests.support.launches import a_plan, judged, read, the_facts, words


def problems(folder: Path, text: str, files: dict[str, str], hosts: int = 2) -> list[Problem]:
    for name, content in files.items():
        (folder / name).write_text(content)
    (folder / "run.sh").write_text(text)
    launch = read_launch_files([folder / "run.sh"])
    return judged("launch-command", [launch], a_plan("nccl", hosts))[0]


@cases
def test_what_is_not_read_as_it_is_meant(
    text: str, files: dict[str, str], says: str, line: str, typed: str, warns: bool, tmp_path: Path
) -> None:
    (found,) = problems(tmp_path, text, files)
    assert says in found.summary
    assert line in words(found)
    assert typed in "".join(found.commands)
    assert found.severity is (Severity.WARN if warns else None)
    assert found.hosts == ()


@cases
def test_what_is_read_as_it_is_meant(text: str, files: dict[str, str], tmp_path: Path) -> None:
    assert problems(tmp_path, text, files) == []


@pytest.mark.parametrize(
    ("number", "user", "strict", "blamed"),
    [
        (65536, "ann", True, [("node2",)]),
        (65536, "root", True, []),
        (65536, "ann", False, []),
        (4096, "ann", True, []),
        (1 << 30, "ann", True, [()]),
    ],
)
def test_a_limit_that_may_not_be_raised(
    number: int, user: str, strict: bool, blamed: list[tuple[str, ...]], tmp_path: Path
) -> None:
    """Without `set -e` the shell complains, and goes on; root may raise any limit."""
    text = (
        f"{'set -euo pipefail' if strict else ''}\nulimit -n {number}\ntorchrun --nproc_per_node=2 train.py\n"
    )
    (tmp_path / "run.sh").write_text(text)
    most = {"node1": 1 << 20, "node2": 4096}
    facts = {
        "environment": {host: Environment({}, user=(user, "1000")) for host in most},
        "limits": {host: Limits(1024, 1, 1, most_files=own) for host, own in most.items()},
    }
    found = judged("launch-command", [read_launch_files([tmp_path / "run.sh"])], a_plan("gloo", 2), facts)[0]
    assert [each.hosts for each in found] == blamed
    assert all("in line 2 of run.sh; the hard limit is 4096" in each.actual for each in found)


@pytest.mark.parametrize(
    ("words", "users", "told"),
    [
        ("-np 2 -x A", ("root", "root"), 1),
        ("-np 2 -x A", ("root", "ann"), 0),
        ("-np 2 -x A", (), 0),
        ("--allow-run-as-root -np 2 -x A", ("root",), 0),
        ("-n 2 -genv A 1", ("root",), 0),
    ],
)
def test_open_mpi_does_not_start_as_root(
    words: str, users: tuple[str, ...], told: int, tmp_path: Path
) -> None:
    """mpirun of MPICH does."""
    (tmp_path / "run.sh").write_text(f"mpirun {words} python train.py\n")
    logins = {f"node{n}": Environment({}, user=(user, "0")) for n, user in enumerate(users, 1)}
    launch = read_launch_files([tmp_path / "run.sh"])
    found = judged("launch-command", [launch], a_plan("gloo", 1), {"environment": logins})[0]
    assert len(found) == told


@pytest.mark.parametrize(
    "ranks",
    [
        "bash -c 'RANK=$OMPI_COMM_WORLD_RANK MASTER_ADDR=node1 exec python train.py'",
        "bash -c 'RANK=$OMPI_COMM_WORLD_RANK exec python train.py --dist-url tcp://node1:29511'",
        "bash -c '. /job/env.sh; RANK=$OMPI_COMM_WORLD_RANK exec python train.py'",
        "python train.py --note RANK=auto",
    ],
)
def test_ranks_of_mpirun_that_may_meet_without_its_variables_are_a_warning_at_most(
    ranks: str, tmp_path: Path
) -> None:
    text = f"export MASTER_ADDR=node1 MASTER_PORT=29511\nmpirun -np 4 -H node1:2,node2:2 {ranks}\n"
    assert all(each.severity is Severity.WARN for each in problems(tmp_path, text, {}))


@pytest.mark.parametrize(("variables", "told"), [({}, 1), ({"MASTER_ADDR": "node1"}, 0)])
def test_what_mpirun_keeps_for_itself_a_login_may_set(
    variables: dict[str, str], told: int, tmp_path: Path
) -> None:
    ranks = "bash -c 'RANK=$OMPI_COMM_WORLD_RANK exec python train.py'"
    text = f"export MASTER_ADDR=node1 MASTER_PORT=29511\nmpirun -np 4 -H node1:2,node2:2 {ranks}\n"
    (tmp_path / "run.sh").write_text(text)
    logins = {name: Environment(variables) for name in ("node1", "node2")}
    launch = read_launch_files([tmp_path / "run.sh"])
    found = judged("launch-command", [launch], a_plan("gloo", 2), {"environment": logins})[0]
    assert len(found) == told


@pytest.mark.parametrize(("characters", "told"), [(75, 0), (76, 1)])
def test_a_folder_whose_name_leaves_no_room_for_sockets(characters: int, told: int, tmp_path: Path) -> None:
    folder = f"/data/{'x' * (characters - 6)}"
    text = f"export TMPDIR={folder}\ntorchrun --nproc_per_node=2 train.py\n"
    assert [each.severity for each in problems(tmp_path, text, {})] == [Severity.WARN] * told


@cases
def test_what_matters_on_several_hosts_only(text: str, tmp_path: Path) -> None:
    assert len(problems(tmp_path, text, {})) == 1
    assert problems(tmp_path, text, {}, hosts=1) == []


def test_a_launch_that_is_meant_is_judged_as_it_is_meant(tmp_path: Path) -> None:
    """Neither a comment between its lines nor a dash of an editor hides the options behind it."""
    line = "torchrun --nnodes=2 \\\n  {}--node_rank=$1 \\\n  --master_addr=node1 train.py\n"
    for odd in ("# --max_restarts=3 \\\n  ", "–"):
        (tmp_path / "run.sh").write_text(line.format(odd))
        (told,) = read_launch_files([tmp_path / "run.sh"]).told
        assert "--master_addr=node1" in told.command


MANIFEST = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: trainer}}
spec:
  serviceName: meet
  replicas: 2
  template:
    spec:
      containers:
      - image: site/trainer-0.dev
        env: [{{name: MASTER_ADDR, value: {address}}}]
        command: [bash, -c]
        args: ["torchrun --nnodes=2 --node_rank=${{HOSTNAME##*-}} --master_addr=$MASTER_ADDR t.py"]
"""


def of_manifest(check: str, folder: Path, address: str) -> tuple[list[Problem], str]:
    (folder / "job.yaml").write_text(MANIFEST.format(address=address))
    launch = read_launch_files([folder / "job.yaml"])
    return judged(check, [launch], a_plan("gloo", 2), the_facts(2, {address: ""}))


@pytest.mark.parametrize(
    "address",
    [
        "trainer-0.meet",
        "trainer-0.meet.default.svc.cluster.local",
        "trainer-0.default",  # a service of its own, and its namespace
        "trainer-0.other.svc",
        "other-0.trainer",
        "node1",
    ],
)
def test_a_name_that_pods_have(address: str, tmp_path: Path) -> None:
    assert of_manifest("launch-command", tmp_path, address)[0] == []


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("torchrun --nnodes=2 --rdzv_backend=c10d --rdzv_endpoint=trainer-0.old:29500 t.py", True),
        ("HEAD=trainer-0.old\ntorchrun --nnodes=2 --node_rank=$R --master_addr $HEAD t.py", True),
        ("python t.py --coordinator_address=trainer-0.old:1234", True),
        ("python t.py --coordinator_address=trainer-0.meet:1234", False),
        ("# --coordinator_address=trainer-0.old:1234\npython t.py --log trainer-0.log", False),
        ("# --master_addr=trainer-0.old\ntorchrun --nnodes=2 --node_rank=$R --master_addr=a t.py", False),
    ],
)
def test_where_a_command_says_who_is_the_master(line: str, told: bool, tmp_path: Path) -> None:
    begun, path = MANIFEST.format(address="trainer-0.meet").partition('["torchrun')[0], tmp_path / "job.yaml"
    path.write_text("\n          ".join((begun + "\n        - |", *line.split("\n"))))
    found = judged("launch-command", [read_launch_files([path])], a_plan("gloo", 2))[0]
    assert [each.evidence[0].source for each in found] == ["job.yaml:16"] * told


OTHERS = """
---
# trainer-0.old was its name once
apiVersion: v1
kind: ConfigMap
metadata: {name: x}
data:
  log: /logs/trainer-0.log
  resume: s3://ckpt/trainer-0.pt
  MASTER_HOST: trainer-0.old
"""


def test_what_is_no_master(tmp_path: Path) -> None:
    for more in (OTHERS, "\n---\napiVersion: v1\nkind: Service\nmetadata: {name: trainer-0}\n"):
        path = tmp_path / "job.yaml"
        master = "trainer-0.meet" if more is OTHERS else "trainer-0.team"
        path.write_text(MANIFEST.format(address=master) + more)
        assert judged("launch-command", [read_launch_files([path])], a_plan("gloo", 2))[0] == []


@pytest.mark.parametrize("nodes", ["-N", "--nodes"])
def test_numbers_that_no_cluster_has(nodes: str, tmp_path: Path) -> None:
    text = "#!/bin/bash\n#SBATCH {} {}\ntorchrun --nnodes={} --rdzv_backend=c10d --rdzv_endpoint=a:1 t.py\n"
    for asked, given in (("9" * 5000, "2"), ("1", "9" * 5000)):
        assert problems(tmp_path, text.format(nodes, asked, given), {}) == []


def test_a_name_below_the_service_of_others(tmp_path: Path) -> None:
    ((found,), _) = of_manifest("launch-command", tmp_path, "trainer-0.trainer")
    assert "no name like trainer-0.trainer" in found.summary
    assert "trainer-0.meet" in found.expected
    assert "in line 12 of job.yaml" in found.actual


def test_hosts_do_not_know_the_names_of_pods(tmp_path: Path) -> None:
    found, why = of_manifest("master-not-here", tmp_path, "trainer-0.meet")
    assert found == []
    assert why == "trainer-0.meet in job.yaml is a name that only pods know"


SIZES = """
apiVersion: kubeflow.org/v2beta1
kind: {kind}
metadata: {{name: a}}
spec:
  {more}
  {replicas}:
    Launcher: {{replicas: 1, template: {{spec: {{containers: [{first}]}}}}}}
    Worker: {{replicas: 2, template: {{spec: {{containers: [{other}]}}}}}}
"""
POD = "{{name: a, image: b, command: [{}], resources: {{limits: {{{}: {}}}}}}}"


@pytest.mark.parametrize(
    ("kind", "more", "command", "devices", "says"),
    [
        ("MPIJob", "slotsPerWorker: 8", "mpirun, -np, '32', python, t.py", 8, "than its workers have slots"),
        ("MPIJob", "slotsPerWorker: 8", "mpirun, -np, '16', python, t.py", 8, ""),
        ("MPIJob", "slotsPerWorker: 8", "mpirun, --oversubscribe, -np, '32', python, t.py", 8, ""),
        ("MPIJob", "mpiImplementation: Intel", "mpirun, -np, '32', python, t.py", 8, ""),
        ("PyTorchJob", "nprocPerNode: '8'", "torchrun, t.py", 4, "than it gives it devices"),
        ("PyTorchJob", "nprocPerNode: '8'", "torchrun, t.py", 8, ""),
        ("PyTorchJob", "nprocPerNode: auto", "torchrun, t.py", 4, ""),
        ("PyTorchJob", "a: b", "torchrun, --nproc_per_node=8, t.py", 4, "than it gives it devices"),
        ("PyTorchJob", "a: b", "torchrun, --nnodes=2, t.py", 4, "another number of pods"),
        ("PyTorchJob", "a: b", "torchrun, --nnodes=4, t.py", 4, "another number of pods"),
        ("PyTorchJob", "a: b", "torchrun, --nnodes=3, t.py", 4, ""),
        ("PyTorchJob", "a: b", "torchrun, '--nnodes=1:4', t.py", 4, ""),
        ("PyTorchJob", "elasticPolicy: {minReplicas: 1}", "torchrun, --nnodes=2, t.py", 4, ""),
    ],
)
def test_sizes_of_a_manifest(
    kind: str, more: str, command: str, devices: int, says: str, tmp_path: Path
) -> None:
    replicas = "mpiReplicaSpecs" if kind == "MPIJob" else "pytorchReplicaSpecs"
    pod = POD.format(command, "nvidia.com/gpu", devices)
    other = POD.format("sleep, inf", "nvidia.com/gpu", devices) if kind == "MPIJob" else pod
    path = tmp_path / "job.yaml"
    path.write_text(SIZES.format(kind=kind, more=more, replicas=replicas, first=pod, other=other))
    found = judged("launch-command", [read_launch_files([path])], a_plan("gloo", 2))[0]
    assert [says in each.summary for each in found] == [True] * bool(says)


def test_a_pod_that_starts_no_launcher_is_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    own, worker = (
        POD.format(each, "nvidia.com/gpu", 8) for each in ("python, s.py", "torchrun, --nnodes=2, t.py")
    )
    for first, told in ((own, 0), (worker, 1)):
        path.write_text(
            SIZES.format(
                kind="PyTorchJob", more="a: b", replicas="pytorchReplicaSpecs", first=first, other=worker
            )
        )
        assert len(judged("launch-command", [read_launch_files([path])], a_plan("gloo", 2))[0]) == told


JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: a}
spec:
  completions: 2
  MODE
  template:
    spec:
      containers:
      - name: a
        image: b
        args: ["torchrun --nnodes=2 --node_rank=$JOB_COMPLETION_INDEX --master_addr=a-0.a t.py"]
        command: [bash, -c]
"""


def test_a_job_that_runs_its_pods_one_after_another(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    for mode, times in (("parallelism: 1", 1), ("completions: 2", 1), ("parallelism: 2", 0)):
        path.write_text(JOB.replace("MODE", f"completionMode: Indexed\n  {mode}"))
        found = judged("launch-command", [read_launch_files([path])], a_plan("gloo", 2))[0]
        assert ["fewer pods at a time" in each.summary for each in found] == [True] * times


def test_a_line_that_deepspeed_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("node1 slots=8\nnode2 slots=8\n")
    line = "deepspeed --hostfile hosts --master_addr node1 t.py\n"
    for said, times in (("# a comment\nA=1\n", 1), ("A=1\n\nB=2\n", 1), ("A=1\nB=a=b\n", 0)):
        (tmp_path / ".deepspeed_env").write_text(said)
        found = judged("launch-command", [read(tmp_path, line)], a_plan("gloo", 2))[0]
        assert [".deepspeed_env that sets nothing" in each.summary for each in found] == [True] * times


def test_pods_of_a_job_without_numbers(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    for mode, times in (("parallelism: 2", 1), ("completionMode: Indexed\n  parallelism: 2", 0)):
        path.write_text(JOB.replace("MODE", mode))
        found = judged("launch-command", [read_launch_files([path])], a_plan("gloo", 2))[0]
        assert ["JOB_COMPLETION_INDEX is empty" in each.summary for each in found] == [True] * times
