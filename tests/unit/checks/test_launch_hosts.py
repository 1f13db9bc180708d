"""A launch for another number of hosts than the user named, or with the same ranks on each host."""

from pathlib import Path

import pytest

from doctor.exam.flags import apply_flags
from doctor.exam.request import JobFlags, Request
from doctor.job.launch.files import read_launch_files
from doctor.job.wishes import JobWishes
from doctor.model import Confidence, Severity, View
from tests.support.cases import cases
from tests.support.launches import (
    C10D,
    DYNAMIC_CLUSTER,
    HEALTHY,
    MSRUN,
    TORCHRUN,
    a_plan,
    judged,
    read,
    words,
    written,
)

CHECK = "launch-hosts"
MASTER = "--master_addr=node1 --nproc_per_node=8"
RANKS = "export WORLD_SIZE={world} MASTER_ADDR={master} MASTER_PORT=1\n"
LOOP = "for i in {{0..{last}}}; do RANK=$i LOCAL_RANK=$i python train.py & done\nwait\n"


def loop(world: int, last: int, master: str = "node1") -> str:
    return RANKS.format(world=world, master=master) + LOOP.format(last=last)


UNEVEN = "is not a multiple of the"
ALONE, NO_HOSTS, IN_VAIN, FIXED, SAME, OTHERS = (
    "each of them would train alone",
    "names no hosts and 2 were named: all its ranks start where it is started",
    "waits for the others in vain",
    "the script gives every host",
    "on every host",
    "is for hosts that were not named",
)
ARRAY = "#!/bin/bash\n#SBATCH --array=0-9\n"
WRONG = {
    "torchrun's default": ("torchrun --nproc_per_node=8 train.py\n", ALONE, "1 by the default of torchrun"),
    "nnodes=1": (f"NNODES=1\ntorchrun --nnodes $NNODES {MASTER} train.py\n", ALONE, "--nnodes=1"),
    "standalone": ("torchrun --standalone --nproc_per_node=8 train.py\n", ALONE, "--standalone"),
    "standalone under srun": ("srun torchrun --standalone train.py\n", ALONE, "--standalone"),
    "a world that is not made of hosts": (
        "msrun --worker_num=17 --local_worker_num=8 --master_addr=node1 --node_rank=$N net.py\n",
        UNEVEN,
        "--worker_num=17, --local_worker_num=8",
    ),
    "ranks of a loop that never make the world": (
        loop(5, 1).replace("RANK=$i ", "RANK=$((NODE_RANK * 2 + i)) ", 1),
        UNEVEN,
        "5 by WORLD_SIZE",
    ),
    "msrun for one host": ("msrun --worker_num=8 --local_worker_num=8 net.py\n", ALONE, "--worker_num=8"),
    "accelerate": ("accelerate launch --num_machines 1 t.py\n", ALONE, "--num_machines=1"),
    "mpirun for one host": ("mpirun -np 8 -npernode 8 $HOSTS python t.py\n", ALONE, "--n=8"),
    **{
        line: (f"{line}\n", NO_HOSTS, "no option of")
        for line in (
            "mpirun -n 8 python train.py",
            "mpirun python train.py --hostfile hosts",
            "mpirun -np 8 -npernode 8 python t.py",
            "mpiexec -n 16 -ppn 8 ./train -f hosts",
            "nohup $MPI_HOME/bin/mpirun -np $N -x NCCL_DEBUG=INFO --bind-to none $PYTHON t.py &",
            "orterun --map-by ppr:8:node -np 16 bash -c 'python t.py'",
            "ssh node1 'cd /job && mpiexec.hydra -n 8 numactl -N0 python t.py'",
            "horovodrun -np 8 python train.py",
            "deepspeed train.py --deepspeed d.json",
            "deepspeed --num_nodes 2 --num_gpus 8 train.py",
            "python -m deepspeed.launcher.runner --num_gpus=8 train.py",
        )
    },
    "ranks that meet at loopback": (loop(8, 7, "127.0.0.1"), ALONE, "WORLD_SIZE=8"),
    "an env file": ("NNODES=1\nMASTER_ADDR=node1\nNPROC_PER_NODE=8\n", ALONE, "NNODES=1"),
    "four hosts": (f"torchrun --nnodes=4 --node_rank=$R {MASTER} train.py\n", IN_VAIN, "--nnodes=4"),
    "three to four": ("torchrun --nnodes=3:4 --rdzv_backend=c10d t.py\n", IN_VAIN, "--nnodes=3:4"),
    "msrun for four": ("msrun --worker_num=32 --local_worker_num=8 net.py\n", IN_VAIN, "--worker_num=32"),
    "srun for four": ("srun -N4 -n32 python train.py\n", IN_VAIN, "=4"),
    "addresses of others": ("mpirun -np 16 -H 10.7.0.1:8,10.7.0.2:8 python t.py\n", OTHERS, "for 10.7.0.1"),
    "node rank 0": (TORCHRUN.format(node=0), FIXED, "--node_rank=0"),
    "msrun's node rank": (MSRUN.format(node=0), FIXED, "--node_rank=0"),
    "accelerate's machine rank": (
        "accelerate launch --num_machines 2 --machine_rank 1 --main_process_ip node1 t.py\n",
        FIXED,
        "--machine_rank=1",
    ),
    "ranks 0-7 of 16": (loop(16, 7), SAME, "ranks 8-15 nowhere"),
    "a job array of two nodes each": (
        f"{ARRAY}#SBATCH -N2\n{TORCHRUN.format(node=0)}",
        FIXED,
        "--node_rank=0",
    ),
    "rank 0 of 2": ("export RANK=0 WORLD_SIZE=2 MASTER_ADDR=node1\npython t.py\n", SAME, "rank 1 nowhere"),
    "workers 0-3 of 8": (DYNAMIC_CLUSTER, SAME, "ranks 4-7 nowhere"),
}


@cases
def test_a_launch_is_understood_however_its_launcher_is_called(spelled: str, tmp_path: Path) -> None:
    (problem,), _ = judged(CHECK, [read(tmp_path, f"{spelled.replace('{}', '--nproc_per_node=8 t.py')}\n")])
    assert ALONE in problem.summary
    sound = f"--nnodes=2 --node_rank=$NODE {MASTER} t.py"
    assert judged(CHECK, [read(tmp_path, f"{spelled.replace('{}', sound)}\n")]) == ([], "")


@pytest.mark.parametrize("name", WRONG)
def test_a_launch_that_does_not_fit_two_hosts(name: str, tmp_path: Path) -> None:
    text, summary, actual = WRONG[name]
    (problem, *more), _ = judged(CHECK, [read(tmp_path, text)])
    assert more == []
    assert summary in problem.summary
    assert actual in problem.actual
    assert problem.severity is None
    assert problem.hosts == (), "no host is to blame for a launch"
    assert problem.evidence
    assert problem.commands


def test_a_launch_for_fewer_hosts_is_a_warning(tmp_path: Path) -> None:
    launch = read(tmp_path, "torchrun --nnodes=2 --rdzv_backend=c10d --rdzv_endpoint=node1 t.py\n")
    (problem,), _ = judged(CHECK, [launch], a_plan(hosts=4))
    assert problem.severity is Severity.WARN
    assert judged(CHECK, [launch], a_plan(hosts=4), {"needed-hosts": 2}) == ([], "")


def test_hosts_that_the_launch_names(tmp_path: Path) -> None:
    def found(hosts: str) -> tuple[list[Severity | None], str]:
        launch = read(tmp_path, f"mpirun -np 16 -H {hosts} python t.py\n")
        problems, doubt = judged(CHECK, [launch])
        return [problem.severity for problem in problems], doubt

    for same in ("node1:8,node2:8", "192.168.7.1:8,node2.cluster.local:8", "NODE1,node2"):
        assert found(same) == ([], "")
    assert found("node1:8,node3:8") == ([Severity.WARN], ""), "the other may be another name of node2"
    severities, doubt = found("a:8,b:8")
    assert severities == []
    assert "whether a, b in env0.log:1 are among these hosts is not known" in doubt
    severities, doubt = found("a:4,b:4,c:4,d:4")
    assert severities == [None], "there are too many, whatever they are"


FITS = {
    "a script for each host": HEALTHY["torchrun"],
    "a range": ["torchrun --nnodes=1:4 --rdzv_backend=c10d --rdzv_endpoint=node1 train.py\n"],
    "c10d": [C10D],
    "node ranks of a loop over hosts": [
        f"for i in 0 1; do torchrun --nnodes=2 --node_rank=$i {MASTER} train.py & done\n"
    ],
    "a job on each host, in a loop": ["for h in node1 node2; do torchrun --standalone train.py & done\n"],
    "a job on each host, a script each": ["torchrun --standalone a.py\n", "torchrun --standalone a.py\n"],
    "a node rank by host": [
        f"if [ $HOSTNAME = node1 ]; then torchrun --nnodes=2 --node_rank=0 {MASTER} t.py\n"
        f"else torchrun --nnodes=2 --node_rank=1 {MASTER} t.py; fi\n"
    ],
    "a node rank chosen by host": [
        f"case $(hostname) in node1) R=0;; *) R=1;; esac\ntorchrun --nnodes=2 --node_rank=$R {MASTER} t.py\n"
    ],
    "a node rank from outside": [f"torchrun --nnodes=2 --node_rank=${{NODE_RANK:-0}} {MASTER} train.py\n"],
    "a node rank that is an argument": [f"R=${{1:-0}}\ntorchrun --nnodes=2 --node_rank=$R {MASTER} t.py\n"],
    "hosts from outside": [f"torchrun --nnodes=${{NNODES:-1}} --node_rank=$R {MASTER} train.py\n"],
    "a file that is not here may set them": [
        f"NNODES=1\nNODE_RANK=0\nsource cluster.env\n"
        f"torchrun --nnodes=$NNODES --node_rank=$NODE_RANK {MASTER} t.py\n"
    ],
    **{
        f"what {line.split()[0]} sets": [
            f"NODE_RANK=0\n{line}\ntorchrun --nnodes=2 --node_rank=$NODE_RANK {MASTER} t.py\n"
        ]
        for line in ("eval $(python rank.py)", "export $(xargs <rank.env)", "printf -v NODE_RANK %d $1")
    },
    "ranks counted from outside": [
        RANKS.format(world=16, master="node1")
        + "for i in {0..7}; do RANK=$((START+i)) LOCAL_RANK=$i python train.py & done\nwait\n"
    ],
    "a rank from outside": ["export RANK=${RANK:-0} WORLD_SIZE=2 MASTER_ADDR=node1\npython t.py\n"],
    "a rank by host": [
        "if [ $(hostname) = node1 ]; then RANK=0; else RANK=1; fi\nexport RANK WORLD_SIZE=2\npython t.py\n"
    ],
    "msrun that numbers by itself": [MSRUN.format(node=-1)],
    "mpirun": HEALTHY["mpirun"],
    **{
        text: [f"{text}\n"]
        for text in (
            "#SBATCH --nodes=2 --ntasks-per-node=8\nmpirun python t.py",
            "#PBS -l select=2\nmpirun -n 16 python t.py",
            "#BSUB -n 16\nhorovodrun -np 16 python t.py",
            "#$ -pe mpi 16\nmpirun -np $NSLOTS python t.py",
            "# sbatch -N2 run.sh\nmpirun -n 16 python t.py",
            "salloc -N2 mpirun -n 16 python t.py",
            "srun -N2 mpirun -n 16 python t.py",
            "cd $PBS_O_WORKDIR\nmpirun -n 16 python t.py",
            "kubectl exec launcher -- mpirun -n 16 python t.py",
            "mpirun -n 16 -H node1:8,node2:8 python t.py",
            "mpirun --host=$HOSTS -n 16 python t.py",
            "mpirun -n 16 --hostfile hosts python t.py",
            "mpirun -n 16 -machinefile hosts python t.py",
            "mpiexec -f hosts -n 16 -ppn 8 python t.py",
            "mpiexec -hosts node1,node2 -ppn 8 -n 16 python t.py",
            "mpirun -n 16 --rankfile ranks python t.py",
            "mpirun -n 16 -mca orte_default_hostfile hosts python t.py",
            "export OMPI_MCA_orte_default_hostfile=hosts\nmpirun -n 16 python t.py",
            "HYDRA_HOST_FILE=hosts mpiexec -n 16 python t.py",
            "cp hosts /etc/openmpi/openmpi-default-hostfile\nmpirun -n 16 python t.py",
            "mpirun -n 16 $OPTIONS python t.py",
            "mpirun -n 16 ${HOSTS:+--hostfile $HOSTS} python t.py",
            "mpirun -n 16 $OPTIONS -H node1,node2 python t.py",
            "mpirun -n 8 -host node1 python a.py : -n 8 -host node2 python a.py",
            "mpirun -n 1 hostname",
            "mpirun -n 8 nvidia-smi",
            "mpirun -n 1 python prepare.py",
            "mpirun --version",
            "for h in node1 node2; do ssh $h mpirun -n 8 python t.py & done",
            "horovodrun -np 16 -H node1:8,node2:8 python t.py",
            "horovodrun -np 16 --host-discovery-script hosts.sh python t.py",
            "deepspeed --hostfile=hosts train.py",
            "cp hosts /job/hostfile\ndeepspeed train.py",
            "deepspeed --include node1:0,1@node2:0,1 train.py",
            "python -m deepspeed.launcher.launch --world_info=e30= --node_rank=$R --master_addr=node1 t.py",
            "accelerate launch --num_machines $N train.py",
            "accelerate launch $OPTIONS train.py",
        )
    },
    "slurm": HEALTHY["slurm"],
    "a line for each host": [
        f"torchrun --nnodes=2 --node_rank=0 {MASTER} t.py\n# on node2:\n"
        f"torchrun --nnodes=2 --node_rank=1 {MASTER} t.py\n"
    ],
    "a line for each host, with variables": [
        "FORCE_TORCHRUN=1 NNODES=2 NODE_RANK=0 MASTER_ADDR=node1 llamafactory-cli train t.yaml\n"
        "FORCE_TORCHRUN=1 NNODES=2 NODE_RANK=1 MASTER_ADDR=node1 llamafactory-cli train t.yaml\n"
    ],
    "a node rank that pdsh fills in": [
        f'pdsh -w node1,node2 "cd /job; torchrun --nnodes=2 --node_rank=%n {MASTER} t.py"\n'
    ],
    "all ranks of both hosts": [loop(16, 15)],
    "a job array": [f"{ARRAY}#SBATCH --nodes=1\nsrun torchrun --standalone --nproc_per_node=8 t.py\n"],
    "a job array of srun's ranks": [f"{ARRAY}#SBATCH -N1 --ntasks-per-node=8\nsrun python t.py\n"],
}


@pytest.mark.parametrize("name", FITS)
def test_a_launch_that_fits_two_hosts(name: str, tmp_path: Path) -> None:
    problems, doubt = judged(CHECK, [read(tmp_path, *FITS[name])])
    assert [words(problem) for problem in problems] == []
    assert doubt == ""


def test_hosts_in_a_file_that_the_script_sources(tmp_path: Path) -> None:
    (tmp_path / "cluster.sh").write_text("export OMPI_MCA_orte_default_hostfile=$HOME/hosts\n")
    launch = read(tmp_path, "source cluster.sh\nmpirun -n 16 python t.py\n")
    assert judged(CHECK, [launch]) == ([], "")


def test_the_hosts_of_an_allocation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is started in a job of a scheduler is given its hosts by it."""
    scripts = map(str, written(tmp_path, "mpirun -n 16 python t.py\n"))
    request = Request("check", job=JobFlags(launch=tuple(scripts)))
    for name in ("SLURM_JOB_NODELIST", "PBS_NODEFILE", "LSB_DJOB_HOSTFILE"):
        monkeypatch.delenv(name, raising=False)
        launch = apply_flags(request, JobWishes()).launch
        assert launch is not None
        assert [each.hostless for each in launch.told] == [True]
        with monkeypatch.context() as inside:
            inside.setenv(name, "node[1-2]")
            assert judged(CHECK, [apply_flags(request, JobWishes()).launch]) == ([], "")  # type: ignore[list-item]


def test_an_operator_of_pods_gives_the_hosts(tmp_path: Path) -> None:
    container = "containers: [{name: a, command: [mpirun, -n, '16', python, t.py]}]"
    spec = f"{{mpiReplicaSpecs: {{Launcher: {{template: {{spec: {{{container}}}}}}}}}}}"
    path = tmp_path / "job.yaml"
    path.write_text(f"apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nspec: {spec}\n")
    assert judged(CHECK, [read_launch_files([path])]) == ([], "")


@pytest.mark.parametrize("options", ["", "--num_processes 16 ", "--main_process_ip node1 --machine_rank $R "])
def test_what_is_configured_on_the_hosts_is_a_risk(options: str, tmp_path: Path) -> None:
    """`accelerate config` stores the number of hosts in a file of the user."""
    (problem,), _ = judged(CHECK, [read(tmp_path, f"accelerate launch {options}train.py\n")])
    assert (problem.severity, problem.confidence) == (Severity.WARN, Confidence.SUSPECT)
    assert "may be for one host and 2 were named" in problem.summary
    assert "--num_machines is not given, and a configuration file on the hosts was not read" in problem.actual
    (tmp_path / "a.yaml").write_text("compute_environment: x\nnum_machines: 2\nnum_processes: 16\n")
    named = read(tmp_path, f"accelerate launch --config_file a.yaml {options}train.py\n")
    assert judged(CHECK, [named])[0] == []


def test_hosts_beyond_a_range_wait_to_step_in(tmp_path: Path) -> None:
    assert judged(CHECK, [read(tmp_path, C10D)], a_plan(hosts=4)) == ([], "")


FOR_ONE = [text for text, summary, _ in WRONG.values() if "--nnodes=1" in text or summary is NO_HOSTS]


@pytest.mark.parametrize("text", [*FOR_ONE, C10D])
def test_a_launch_for_one_of_the_hosts_with_spare_ones(text: str, tmp_path: Path) -> None:
    assert judged(CHECK, [read(tmp_path, text)], facts={"needed-hosts": 1}) == ([], "")


def test_one_host_of_a_larger_job_decides_nothing(tmp_path: Path) -> None:
    problems, doubt = judged(CHECK, [read(tmp_path, TORCHRUN.format(node=0))], a_plan(hosts=1))
    assert problems == []
    assert "is for 2 hosts, and one was examined" in doubt


def test_pods_may_say_what_the_script_does_not(tmp_path: Path) -> None:
    """PET_NNODES, which operators set, replaces --nnodes."""
    pods = {"view": {"node1": View.CONTAINER, "node2": View.CONTAINER}}
    problems, doubt = judged(CHECK, [read(tmp_path, "torchrun train.py\n")], facts=pods)
    assert problems == []
    assert "its pods may" in doubt
    problems, _ = judged(CHECK, [read(tmp_path, "torchrun --nnodes=1 train.py\n")], facts=pods)
    assert len(problems) == 1
    problems, doubt = judged(CHECK, [read(tmp_path, "mpirun -n 16 python t.py\n")], facts=pods)
    assert problems == []
    assert "its pods may" in doubt


def test_a_second_job_of_the_script_may_be_for_one_host(tmp_path: Path) -> None:
    train = f"torchrun --nnodes=2 --node_rank=$R {MASTER} train.py\n"
    both = read(tmp_path, f"{train}torchrun --standalone --nproc_per_node=8 eval.py\n")
    assert judged(CHECK, [both])[0] == []


def test_an_env_file_of_one_host_decides_nothing(tmp_path: Path) -> None:
    text = "NNODES=2\nNODE_RANK=0\nMASTER_ADDR=node1\n"
    problems, doubt = judged(CHECK, [read(tmp_path, text)])
    assert problems == []
    assert "NODE_RANK=0, which is right on one host only" in doubt
