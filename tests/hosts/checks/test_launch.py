"""A launch that cannot work on healthy hosts: the launch is accused, and no host is."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from doctor.job.ranktable import LiveDevice, LiveServer, make_table
from tests.lab import Lab
from tests.lab.npus import Rack
from tests.support.cases import cases, from_cases
from tests.support.faults import ALONE, HCCL, Examiner, assert_consistent, assert_healthy, assert_only, replay
from tests.support.npu_faults import NpuExaminer

JOB = "export MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 WORLD_SIZE=8\n"
LOOP = "for i in %s; do RANK=$i LOCAL_RANK=$i python train.py & done\nwait\n"
MEET = "torchrun --nnodes=2 --nproc_per_node=2 --rdzv_backend=c10d --rdzv_endpoint"
RESERVED = (*HCCL, "--skip", "ports-not-reserved")
WRONG = from_cases(__file__, "WRONG", dict[str, tuple[str, str, tuple[str, ...]]])


@pytest.mark.parametrize("check", WRONG)
def test_only_the_launch_is_accused(check: str, examine: Examiner) -> None:
    script, hosts, more = WRONG[check]
    path = examine.folder / "run.sh"
    path.write_text(script)
    outcome = examine(*ALONE, *more, "--launch", str(path), hosts=hosts)
    assert {found["check"] for found in outcome.trouble} == {check}, outcome.text
    assert outcome.hosts("faulty") == set()
    assert outcome.code == (0 if check == "launch-timeouts" else 1)
    assert replay(outcome, "--strict")[0] == 1
    assert_consistent(outcome)


@cases
def test_a_launch_that_cannot_be_started_so(
    files: dict[str, str],
    wrong: str,
    sound: str,
    check: str,
    says: str,
    hosts: str,
    status: str,
    examine: Examiner,
) -> None:
    """`verify` is red as long as the launch is wrong, and the mended launch is sound."""
    for name, text in files.items():
        (examine.folder / name).write_text(text)
    path = examine.folder / "run.sh"
    path.write_text(f"{wrong}\n")
    outcome = examine(*ALONE, "--launch", str(path), hosts=hosts)
    (found,) = assert_only(outcome, check, [], status)
    assert says in found["summary"]
    assert outcome.code == (status == "fail")
    path.write_text(f"{sound}\n")
    outcome = examine(*ALONE, "--launch", str(path), hosts=hosts)
    assert (outcome.trouble, outcome.code) == ([], 0), outcome.text


STARTED = "torchrun --nnodes=2 --node_rank=$NODE_RANK --nproc_per_node=2 {} train.py\n"


@cases
def test_a_master_that_no_rank_would_meet(options: str, says: str, code: int, examine: Examiner) -> None:
    """An address that is only reachable through a router may be forwarded to a host, so it is a warning."""
    path = examine.folder / "run.sh"
    path.write_text(STARTED.format(options))
    outcome = examine(*ALONE, "--launch", str(path), hosts="node[1-2]")
    assert [found["check"] for found in outcome.trouble] == (["master-not-here"] if says else [])
    assert all(says in found["summary"] for found in outcome.trouble)
    assert outcome.code == code


def test_a_script_that_gives_every_host_the_address_of_one(examine: Examiner) -> None:
    path = examine.folder / "run.sh"
    line = STARTED.format("--master_addr=node1")
    path.write_text(f"export HCCL_IF_IP=198.18.0.11\n{line}")
    argv = (*ALONE, *RESERVED, "--launch", str(path))
    outcome = examine(*argv, hosts="node[1-2]")
    (found,) = assert_only(outcome, "launch-hosts", [])
    assert (outcome.hosts("faulty"), outcome.code) == (set(), 1)
    assert "of node1 and not of node2" in found["actual"]
    path.write_text(f"export HCCL_IF_IP=10.9.8.7\n{line}")
    outcome = examine(*argv, hosts="node[1-2]")
    (found,) = assert_only(outcome, "launch-hosts", [])
    assert (found["actual"], outcome.code) == ("HCCL_IF_IP=10.9.8.7, in run.sh:1", 1)
    path.write_text(f"export HCCL_IF_IP=$(hostname -i)\n{line}")
    outcome = examine(*argv, hosts="node[1-2]")
    assert (outcome.trouble, outcome.code) == ([], 0), outcome.text


def test_each_host_has_its_own_configuration_of_the_launcher(examine: Examiner) -> None:
    """Copied from the first host with its number; then with a number of its own."""
    path = examine.folder / "run.sh"
    path.write_text("accelerate launch --config_file ~/acc.yaml train.py\n")
    argv = (*ALONE, "--launch", str(path))
    config = (
        "distributed_type: MULTI_GPU\nmachine_rank: {}\nmain_process_ip: node1\nnum_machines: 2\n"
        "num_processes: 4\n"
    )
    for name in ("node1", "node2"):
        examine.lab[name].write("/root/acc.yaml", config.format(0))
    outcome = examine(*argv, hosts="node[1-2]")
    (found,) = assert_only(outcome, "launch-hosts", [])
    assert "~/acc.yaml has one machine_rank on several hosts" in found["summary"]
    assert (found["actual"], outcome.code) == ("machine_rank: 0, on node[1-2]", 1)
    examine.lab["node2"].write("/root/acc.yaml", config.format(1))
    outcome = examine(*argv, hosts="node[1-2]")
    assert (outcome.trouble, outcome.code) == ([], 0), outcome.text


def test_a_host_without_the_image(examine: Examiner) -> None:
    """The image is made on all hosts but one, and then there too, first empty."""
    path = examine.folder / "run.sh"
    line = STARTED.format("--master_addr=node1").replace("--nnodes=2", "--nnodes=3")
    path.write_text(f"singularity exec /images/train.sif {line}")
    for name in ("node1", "node3"):
        examine.lab[name].write("/images/train.sif", "image")
    argv = (*ALONE, "--launch", str(path))
    outcome = examine(*argv, hosts="node[1-3]")
    (found,) = assert_only(outcome, "launch-files-missing", ["node2"])
    assert (found["hosts"], outcome.code) == (["node2"], 1)
    examine.lab["node2"].write("/images/train.sif", "")
    (found,) = assert_only(examine(*argv, hosts="node[1-3]"), "launch-files-missing", ["node2"])
    assert found["actual"] == "empty on node2"
    examine.lab["node2"].write("/images/train.sif", "image")
    outcome = examine(*argv, hosts="node[1-3]")
    assert (outcome.trouble, outcome.code) == ([], 0), outcome.text


def test_a_host_with_another_program(examine: Examiner) -> None:
    """The host that missed a change is named, and nobody once it has the program of the others. Of two hosts
    nobody knows which is right.
    """
    path = examine.folder / "run.sh"
    line = STARTED.format("--master_addr=node1").replace("--nnodes=2", "--nnodes=3")
    path.write_text(line.replace("train.py", "/srv/train.py"))
    for name, layers in (("node1", 8), ("node2", 4), ("node3", 8)):
        examine.lab[name].write("/srv/train.py", f"LAYERS = {layers}\n")
    argv = (*ALONE, "--launch", str(path))
    outcome = examine(*argv, hosts="node[1-3]")
    (found,) = assert_only(outcome, "launch-files-differ", ["node2"], "warn")
    assert (found["subject"], outcome.code) == ("/srv/train.py", 0)
    verify = found["verify"].split()
    examine.lab["node2"].write("/srv/train.py", "LAYERS = 8\n")
    outcome = examine(*argv, hosts="node[1-3]")
    assert (outcome.trouble, outcome.code) == ([], 0), outcome.text
    assert "launch-files-differ" in verify
    path.write_text(path.read_text().replace("--nnodes=3", "--nnodes=2"))
    examine.lab["node2"].write("/srv/train.py", "LAYERS = 4\n")
    assert_only(examine(*argv, hosts="node[1-2]"), "launch-files-differ", ["node1", "node2"], "warn")


def test_a_program_that_one_host_cannot_start(examine: Examiner) -> None:
    """A helper that lacks its execute bit, and a file that Python takes for its own module, on one host."""
    path = examine.folder / "run.sh"
    line = STARTED.format("--master_addr=node1").strip().replace("train.py", "--no_python ./rank.sh")
    path.write_text(f"cd /srv/job\n{line}\n")
    for host in ("node1", "node2"):
        examine.lab[host].write("/srv/job/rank.sh", "#!/bin/sh\n")
        examine.lab[host].do("chmod 755 /srv/job/rank.sh")
    examine.lab["node2"].do("chmod 644 /srv/job/rank.sh")
    argv = (*ALONE, "--launch", str(path))
    outcome = examine(*argv, hosts="node[1-2]")
    (found,) = assert_only(outcome, "launch-files-missing", ["node2"])
    assert (found["actual"], outcome.code) == ("not executable on node2", 1)
    examine.lab["node2"].do("chmod +x /srv/job/rank.sh")
    assert (examine(*argv, hosts="node[1-2]").trouble) == []
    path.write_text(f"cd /srv/job\n{line.replace('--no_python ./rank.sh', 'train.py')}\n")
    for host in ("node1", "node2"):
        examine.lab[host].write("/srv/job/train.py", "import torch\n")
        examine.lab[host].write("/srv/job/data.py", "")
    examine.lab["node2"].write("/srv/job/random.py", "")
    outcome = examine(*argv, hosts="node[1-2]")
    (found,) = assert_only(outcome, "launch-files-missing", ["node2"])
    assert found["actual"] == "beside random.py, which hides Python's own module on node2"
    examine.lab["node2"].do("mv /srv/job/random.py /srv/job/draws.py")
    outcome = examine(*argv, hosts="node[1-2]")
    assert (outcome.trouble, outcome.code) == ([], 0), outcome.text


def test_a_library_that_one_host_finds_first(examine: Examiner) -> None:
    """A folder of PYTHONPATH brings another torch on one host; on all of them alike it is meant."""
    path = examine.folder / "run.sh"
    path.write_text(f"export PYTHONPATH=/opt/more:$PYTHONPATH\n{STARTED.format('--master_addr=node1')}")
    argv = (*ALONE, "--launch", str(path))
    examine.lab["node1"].write("/opt/more/plots.py", "")
    examine.lab["node2"].write("/opt/more/torch/__init__.py", "")
    outcome = examine(*argv, hosts="node[1-2]")
    (found,) = assert_only(outcome, "launch-files-missing", ["node2"], "warn")
    assert found["summary"] == "PYTHONPATH brings other libraries than on the other hosts"
    assert (found["hosts"], outcome.code) == (["node2"], 0)
    examine.lab["node1"].write("/opt/more/torch/__init__.py", "")
    outcome = examine(*argv, hosts="node[1-2]")
    assert (outcome.trouble, outcome.code) == ([], 0), outcome.text


@cases
def test_a_host_without_what_the_launch_names(
    line: str, files: list[str], lost: str, examine: Examiner
) -> None:
    path = examine.folder / "run.sh"
    path.write_text(line.replace("START", STARTED.format("--master_addr=node1").strip()) + "\n")
    argv = (*ALONE, "--launch", str(path))
    for name in ("node1", "node2"):
        for file in files:
            examine.lab[name].write(file, "x")
    outcome = examine(*argv, hosts="node[1-2]")
    assert (outcome.trouble, outcome.code) == ([], 0), outcome.text
    examine.lab["node2"].do('rm -r "$1"', lost)
    outcome = examine(*argv, hosts="node[1-2]")
    (found,) = assert_only(outcome, "launch-files-missing", ["node2"])
    assert (found["hosts"], found["actual"], outcome.code) == (["node2"], "missing on node2", 1)


def test_a_program_that_ssh_finds_on_one_host_alone(examine: Examiner) -> None:
    path = examine.folder / "run.sh"
    line = 'ssh $h "torchrun --nnodes=2 --node_rank=0 --nproc_per_node=2 --master_addr=node1 train.py"'
    path.write_text(f"for h in node1 node2; do\n  {line} &\ndone; wait\n")
    for name in ("node1", "node2"):
        examine.lab[name].write("/usr/local/bin/torchrun", "#!/bin/sh\n", 0o755)
    argv = (*ALONE, "--launch", str(path))
    healthy = examine(*argv, hosts="node[1-2]")
    assert not [each for each in healthy.trouble if each["check"] == "launch-files-missing"]
    examine.lab["node2"].do("mv /usr/local/bin/torchrun /opt/")
    outcome = examine(*argv, "--only", "launch-files-missing", hosts="node[1-2]")
    (found,) = assert_only(outcome, "launch-files-missing", ["node2"])
    assert (found["actual"], outcome.code) == ("missing on node2", 1)
    examine.lab["node2"].do("mv /opt/torchrun /usr/local/bin/")
    outcome = examine(*argv, "--only", "launch-files-missing", hosts="node[1-2]")
    assert (outcome.trouble, outcome.code) == ([], 0), outcome.text


@cases
def test_what_a_command_over_ssh_needs(
    line: str, both: str, lost: str, again: str, says: str, examine: Examiner
) -> None:
    path = examine.folder / "run.sh"
    path.write_text(f'i=0; for h in node1 node2; do\n  ssh $h "{line}" & i=$((i+1))\ndone; wait\n')
    argv = (*ALONE, "--launch", str(path), "--only", "launch-files-missing")
    for name in ("node1", "node2"):
        examine.lab[name].write("/job/start.sh", "#!/bin/sh\n", 0o755)
        examine.lab[name].do(both)
    outcome = examine(*argv, hosts="node[1-2]")
    assert (outcome.trouble, outcome.code) == ([], 0), outcome.text
    examine.lab["node2"].do(lost)
    outcome = examine(*argv, hosts="node[1-2]")
    (found,) = assert_only(outcome, "launch-files-missing", ["node2"])
    assert (found["actual"], outcome.code) == (says, 1)
    examine.lab["node2"].do(again)
    outcome = examine(*argv, hosts="node[1-2]")
    assert (outcome.trouble, outcome.code) == ([], 0), outcome.text


def test_a_file_by_which_ranks_met_is_left(examine: Examiner) -> None:
    path = examine.folder / "run.sh"
    words = "python train.py --dist-url file:///scratch/init --world-size 2 --rank"
    path.write_text(f"for r in 0 1; do\n  {words} $r &\ndone; wait\n")
    argv = (*ALONE, "--launch", str(path))
    for left in ("", "a store", ""):
        examine.lab["node1"].do("mkdir -p /scratch; rm -f /scratch/init")
        if left:
            examine.lab["node1"].write("/scratch/init", left)
        outcome = examine(*argv, hosts="node1")
        told = [each["actual"] for each in outcome.trouble]
        assert (told, outcome.code) == (["there already on node1"] * bool(left), 0)


@cases
def test_a_folder_to_which_ranks_cannot_write(
    options: str, at: str, size: str, says: str, code: int, examine: Examiner
) -> None:
    path = examine.folder / "run.sh"
    path.write_text(STARTED.format(f"--master_addr=node1 {options}"))
    argv = (*ALONE, "--launch", str(path))
    for name in ("node1", "node2"):
        examine.lab[name].do("mkdir -p /ckpt")
    for name in at.split():
        examine.lab[name].do(f"mount -t tmpfs -o size={size} tmpfs /ckpt")
    outcome = examine(*argv, hosts="node[1-2]")
    found = outcome.trouble
    assert ([each["actual"] for each in found], outcome.code) == ([says] if says else [], code), outcome.text
    for name in at.split() if says else ():
        examine.lab[name].do("umount /ckpt")
    outcome = examine(*argv, hosts="node[1-2]")
    assert (outcome.trouble, outcome.code) == ([], 0), outcome.text


@cases
def test_what_the_launch_makes_or_finds_elsewhere(line: str, files: list[str], examine: Examiner) -> None:
    """Only one host has it, and no host is accused."""
    path = examine.folder / "run.sh"
    path.write_text(line.replace("START", STARTED.format("--master_addr=node1").strip()) + "\n")
    for file in files:
        examine.lab["node1"].write(file, "x")
    outcome = examine(*ALONE, "--launch", str(path), hosts="node[1-2]")
    assert (outcome.trouble, outcome.code) == ([], 0), outcome.text


def test_a_host_that_takes_the_name_of_the_master_for_another_machine(examine: Examiner) -> None:
    path = examine.folder / "run.sh"
    path.write_text(STARTED.format("--master_addr=head").replace("--nnodes=2", "--nnodes=3"))
    argv = (*ALONE, "--launch", str(path))
    for name in ("node1", "node2", "node3"):
        examine.lab[name].names({"head": "198.18.0.99" if name == "node2" else "198.18.0.11"})
    outcome = examine(*argv, hosts="node[1-3]")
    (found,) = assert_only(outcome, "master-not-here", ["node2"])
    assert (found["hosts"], outcome.code) == (["node2"], 1)
    assert "198.18.0.99 on node2" in found["actual"]
    examine.lab["node2"].names({"head": "198.18.0.11"})
    outcome = examine(*argv, hosts="node[1-3]")
    assert (outcome.trouble, outcome.code) == ([], 0), outcome.text


def test_a_host_whose_login_says_another_master(examine: Examiner) -> None:
    path = examine.folder / "run.sh"
    path.write_text(STARTED.format("--master_addr=${MASTER_ADDR:-node1}"))
    argv = (*ALONE, "--skip", "env-drift", "--launch", str(path))
    examine.lab["node2"].write("/root/.bashrc", "export MASTER_ADDR=node2\n")
    outcome = examine(*argv, hosts="node[1-2]")
    (found,) = assert_only(outcome, "master-not-here", ["node2"])
    assert (found["hosts"], outcome.code) == (["node2"], 1)
    assert found["actual"] == "MASTER_ADDR is node1 on node1, node2 on node2"
    examine.lab["node2"].write("/root/.bashrc", "export MASTER_ADDR=198.18.0.11\n")
    outcome = examine(*argv, hosts="node[1-2]")
    assert (outcome.trouble, outcome.code) == ([], 0), outcome.text


@cases
def test_what_a_launch_takes_from_the_logins(
    script: str, wrong: list[str], sound: list[str], says: str, check: str, lost: str, examine: Examiner
) -> None:
    """`wrong` and `sound` are the start files of both hosts, or one for both."""
    path = examine.folder / "run.sh"
    path.write_text(f"{script}\n")
    argv = (*ALONE, "--skip", "env-drift", "--launch", str(path))
    for files in (wrong, sound):
        for name, text in zip(("node1", "node2"), files * 2, strict=False):
            examine.lab[name].write("/root/.bashrc", f"export {text}\n" if text else "")
        outcome = examine(*argv, hosts="node[1-2]")
        if files is wrong:
            (found,) = assert_only(outcome, check, [lost] if lost else [])
            assert says in found["summary"], found
            assert outcome.code == 1
        else:
            assert (outcome.trouble, outcome.code) == ([], 0), outcome.text


@pytest.mark.parametrize(("taken", "blamed"), [("node1", ["node1"]), ("node2", [])])
def test_a_port_that_the_logins_name_is_taken(taken: str, blamed: list[str], examine: Examiner) -> None:
    """The master listens on the first host alone."""
    path = examine.folder / "run.sh"
    path.write_text(STARTED.format("--master_addr=node1 --master_port=$MASTER_PORT"))
    for name in ("node1", "node2"):
        examine.lab[name].write("/root/.bashrc", "export MASTER_PORT=29511\n")
    examine.lab[taken].listen(29511)
    outcome = examine(*ALONE, "--launch", str(path), hosts="node[1-2]")
    assert [(each["check"], each["hosts"]) for each in outcome.trouble] == [
        ("port-in-use", [host]) for host in blamed
    ], outcome.text
    assert outcome.code == len(blamed)


def test_a_host_on_which_the_interpreter_of_the_launch_has_no_torch(examine: Examiner) -> None:
    path = examine.folder / "run.sh"
    launcher = "/opt/py/bin/python -m torch.distributed.run"
    path.write_text(STARTED.format("--master_addr=node1").replace("torchrun", launcher))
    argv = (*ALONE, "--skip", "version-drift", "--launch", str(path))
    for name, python in (("node1", sys.executable), ("node2", "/usr/bin/python3")):
        examine.lab[name].write("/opt/py/bin/python", f'#!/bin/sh\nexec {python} "$@"\n', 0o755)
    outcome = examine(*argv, hosts="node[1-2]")
    (found,) = assert_only(outcome, "torch-missing", ["node2"])
    assert (found["hosts"], outcome.code) == (["node2"], 1)
    examine.lab["node2"].write("/opt/py/bin/python", f'#!/bin/sh\nexec {sys.executable} "$@"\n', 0o755)
    outcome = examine(*argv, hosts="node[1-2]")
    assert (outcome.trouble, outcome.code) == ([], 0), outcome.text


def test_a_variable_of_one_login_that_the_launch_sets_for_all(examine: Examiner) -> None:
    path = examine.folder / "run.sh"
    path.write_text(STARTED.format("--master_addr=node1"))
    examine.lab["node2"].write("/root/.bashrc", "export OMP_NUM_THREADS=2\n")
    outcome = examine(*ALONE, "--launch", str(path), hosts="node[1-2]")
    assert [found["check"] for found in outcome.trouble] == ["env-drift"]
    path.write_text(f"export OMP_NUM_THREADS=4\n{path.read_text()}")
    outcome = examine(*ALONE, "--launch", str(path), hosts="node[1-2]")
    assert (outcome.trouble, outcome.code) == ([], 0), outcome.text


@pytest.mark.parametrize("how", [("node1",), ("--local", "--only", "master-not-here")])
def test_no_host_knows_the_master(how: tuple[str, ...], examine: Examiner) -> None:
    """What else is wrong on this machine depends on the tests that run beside this one."""
    path = examine.folder / "run.sh"
    path.write_text("torchrun --nproc_per_node=2 --master_addr=nobody.invalid train.py\n")
    outcome = examine(*ALONE, *how[1:], "--launch", str(path), hosts=how[0])
    (found,) = outcome.trouble
    assert found["check"] == "master-not-here", outcome.text
    # The controller may be a container, in which the name may be that of a service that comes with the job.
    assert outcome.code == {"fail": 1, "warn": 0}[found["status"]]
    assert found["status"] == "fail" or how[0] == "--local"


def test_the_port_of_the_master_is_none_of_hccls_own(examine: Examiner) -> None:
    path = examine.folder / "run.sh"
    for port, code in ((60003, 1), (29500, 0)):
        path.write_text(JOB.replace("29500", str(port)) + LOOP % "{0..7}")
        outcome = examine(*ALONE, *RESERVED, "--launch", str(path), hosts="node1")
        assert [found["check"] for found in outcome.trouble] == ["launch-values"] * code, outcome.text
        assert outcome.code == code


@pytest.mark.parametrize("line", ["torchrun", "scheduler", "jax"])
def test_the_master_is_tried_at_the_address_at_which_ranks_call_it(line: str, examine: Examiner) -> None:
    """A management network that only the master's own host has; the printed `verify` proves the repair."""
    path = examine.folder / "run.sh"
    lines = {
        "torchrun": f"{MEET}={{}}:29500 train.py\n",
        "scheduler": "export MS_SCHED_HOST={} MS_SCHED_PORT=8118 MS_WORKER_NUM=4\n"
        "MS_ROLE=MS_WORKER python train.py\n",
        "jax": "python t.py --coordinator_address={}:1234 --num_processes=2 --process_id=$N\n",
    }
    examine.lab["node1"].add_interface("mgmt0", "172.31.9.1/24")
    path.write_text(lines[line].format("172.31.9.1"))
    outcome = examine("--launch", str(path), hosts="node[1-2]")
    (found,) = assert_only(outcome, "master-not-here", [])
    assert "other hosts do not reach the master's address" in found["summary"]
    assert "none from node2 to 172.31.9.1 of node1" in found["actual"]
    path.write_text(lines[line].format(examine.lab["node1"].address))
    outcome = examine("--launch", str(path), hosts="node[1-2]")
    assert (outcome.trouble, outcome.code) == ([], 0), outcome.text


def test_a_second_network_that_joins_all_hosts_is_as_good_for_the_master(
    make_lab: Callable[..., Lab], tmp_path: Path
) -> None:
    lab, path = make_lab(2, data=True), tmp_path / "run.sh"
    for address in (lab["node1"].address, lab["node1"].data_address):
        path.write_text(f"{MEET}={address}:29500 train.py\n")
        assert_healthy(Examiner(lab, tmp_path)("--launch", str(path), hosts="node[1-2]"))


@cases
def test_ranks_that_wait_for_a_master_of_nobody(master: str, says: str, examine: Examiner) -> None:
    """The job cannot start, but its hosts are sound. The launch is known only from the running processes."""
    for rank, name in enumerate(("node1", "node2")):
        host = examine.lab[name]
        host.write("/job/train.py", "import time; time.sleep(60)\n")
        env = (f"RANK={rank}", "WORLD_SIZE=2", f"MASTER_ADDR={master}", "MASTER_PORT=29611")
        host.spawn(["env", *env, sys.executable, "/job/train.py"])
    outcome = examine(*ALONE, hosts="node[1-2]")
    assert not outcome.trouble, "nobody named this job"
    assert "a job runs on node[1-2]" in outcome.text
    outcome = examine(*ALONE, "--launch", "live", hosts="node[1-2]")
    (found,) = assert_only(outcome, "master-not-here", [])
    assert says in found["summary"]


@cases
def test_a_launch_that_stays_on_one_of_two_hosts(line: str, says: str, code: int, examine: Examiner) -> None:
    path = examine.folder / "run.sh"
    path.write_text(f"{line}\n")
    outcome = examine(*ALONE, "--launch", str(path), hosts="node[1-2]")
    assert [found["check"] for found in outcome.trouble] == (["launch-hosts"] if says else [])
    assert all(says in found["summary"] for found in outcome.trouble)
    assert outcome.hosts("faulty") == set()
    assert outcome.code == code


def test_a_launch_with_spare_hosts(examine: Examiner) -> None:
    path = examine.folder / "run.sh"
    path.write_text("torchrun --nproc_per_node=2 train.py\n")
    outcome = examine(*ALONE, "--need-hosts", "1", "--launch", str(path), hosts="node[1-2]")
    assert not outcome.trouble
    assert outcome.code == 0


def test_a_rank_table_takes_devices_that_do_not_train_together(
    make_rack: Callable[..., Rack], tmp_path: Path
) -> None:
    rack = make_rack("atlas-training", hosts=1)
    (host,) = rack
    three = tuple(LiveDevice(npu.device, npu.address) for npu in [*host][:3])
    path = tmp_path / "hccl.json"
    path.write_text(make_table([LiveServer("node1", "node1", three)], "1.0"))
    outcome = NpuExaminer(rack, tmp_path)(*ALONE, "--rank-table", str(path), hosts="")
    assert {found["check"] for found in outcome.trouble} == {"rank-table-grouping", "plan-invalid"}
    assert_consistent(outcome)
