"""Launches as people write them, and their cluster: node1 and node2 with eight ranks each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from doctor.api import ASCEND, Backend, Check, JobPlan, Undecided
from doctor.facts.network import ResolvedNames
from doctor.facts.system import Devices, FoundDevices
from doctor.job.launch.files import read_launch_files
from doctor.job.launch.process_env import Launch
from doctor.job.launch.processes import JobProcess, launch_of_processes
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.judge.registry import find_checks
from doctor.model import Host, Problem, SourcedValue

CHECKS = {check.id: check for check in find_checks().checks}

LINES = (
    "torchrun --nnodes=2 --nproc_per_node 8 train.py --nnodes 9 --token k3y",
    "torchrun --nnode 2 --nproc=8 --max-restarts 3 -r 3 -m pkg.train k3y",
    "torchrun --rdzv_id 7 --rdzv 8 --log k3y --no-python ./run.sh k3y eval.py",
    "torchrun --new k3y ./run.sh",
    "torchrun --new train.py k3y",
    "torchrun --new",
    "torchrun -- ./run.sh k3y",
    "torchrun --standalone ./run.sh --api-key k3y",
    "python3 /usr/bin/torchrun --nnodes=2 t.py k3y",
    "python -u -m torch.distributed.run --nnodes=2 t.py k3y",
    "python -m torch_npu.distributed.run --master_addr a t.py k3y",
    "python3 -umtorch.distributed.launch --nnodes=2 --log_dir k3y t.py k3y",
    "python -X k3y -W ignore -mpkg.train k3y",
    "python -B train k3y",
    "python --check-hash-based-pycs t.py k3y",
    "python -c k3y",
    "python -uck3y",
    "python",
    "msrun --worker_num=16 --local_worker_num 8 --log_dir k3y --join True net.py k3y",
    "msrun --bind_core=True pytest -s k3y.py",
    "mpirun -np 16 --hostfile k3y -x A=k3y -mca btl k3y,self -genv A k3y python3 -u net.py k3y",
    "mpirun -n 8 -H a:4,b:4 --output-filename k3y ./all_reduce_perf -b k3y",
    "mpirun -np 2 numactl -N 0 env A=k3y python t.py k3y",
    "mpiexec.hydra -ppn 8 -n 16 torchrun --nnodes=2 t.py k3y",
    "horovodrun -np 8 -H a:4,b:4 --ssh-port k3y --verbose python t.py k3y",
    "srun -N2 -n16 -c8 --gres gpu:8 --export=ALL,A=k3y torchrun --nnodes 2 t.py k3y",
    "srun -n2 bash -c 'python t.py k3y'",
    "deepspeed --hostfile=k3y --master_addr a t.py --deepspeed k3y.json",
    "python -m deepspeed.launcher.launch --world_info=k3y --node_rank=1 t.py k3y",
    "accelerate launch --num_machines 2 --config_file k3y --multi_gpu t.py k3y",
    "accelerate config k3y",
    "./all_reduce_perf -b k3y",
    "'python: train --token k3y'",
)
"""Command lines of launchers; the part written as k3y must not leave the host."""

MINDSPORE_LOOP = """#!/bin/bash
# Starts eight ranks with a rank table, as the guide does.
set -e
RANK_SIZE=8
EXEC_PATH=$(pwd)
if [ ! -d "${EXEC_PATH}/data" ]; then
    unzip data.zip
fi
export DATA_PATH=${EXEC_PATH}/data/train/
export RANK_TABLE_FILE=${EXEC_PATH}/rank_table_8pcs.json
export RANK_SIZE=$RANK_SIZE
export HCCL_CONNECT_TIMEOUT=600

for((i=0;i<${RANK_SIZE};i++))
do
    rm -rf device$i
    mkdir device$i
    cp ./net.py ./device$i
    cd ./device$i
    export DEVICE_ID=$i
    export RANK_ID=$i
    echo "start training for device $i"
    env > env$i.log
    python ./net.py > train$i.log 2>&1 &
    cd ../
done
"""

DYNAMIC_CLUSTER = """#!/bin/bash
rm -rf device; mkdir device
for((i=0;i<4;i++));
do
    export MS_WORKER_NUM=8             # all hosts together
    export MS_SCHED_HOST=192.168.7.1
    export MS_SCHED_PORT=8118
    export MS_ROLE=MS_WORKER
    export MS_NODE_ID=$i
    python ./net.py > device/worker_$i.log 2>&1 &
done
export MS_ROLE=MS_SCHED
python ./net.py > device/scheduler.log 2>&1 &
"""

TORCHRUN = """#!/usr/bin/env bash
GPUS_PER_NODE=8
MASTER_ADDR=192.168.7.1
MASTER_PORT=29500
NNODES=2
NODE_RANK={node}
DISTRIBUTED_ARGS="
    --nproc_per_node $GPUS_PER_NODE \\
    --nnodes $NNODES \\
    --node_rank $NODE_RANK \\
    --master_addr $MASTER_ADDR \\
    --master_port $MASTER_PORT
"
MODEL_ARGS=(
    --num-layers 24   # small
    --lr "1e-4"
)
python prepare.py --out /data
torchrun $DISTRIBUTED_ARGS pretrain.py "${{MODEL_ARGS[@]}}" | tee log.txt
"""

C10D = """#!/bin/sh
export NCCL_SOCKET_IFNAME=eth0
torchrun --nnodes=1:2 --nproc-per-node=8 --max-restarts=3 --rdzv-id=job7 \\
    --rdzv-backend=c10d --rdzv-endpoint=node2:29400 train.py --lr 1
"""

TORCH_NPU_RUN = """
export HCCL_CONNECT_TIMEOUT=600
torch_npu_run --rdzv_backend=parallel --master_addr 192.168.7.1 --master_port 29501 --nnodes 2 \\
  --node_rank {node} --nproc_per_node 8 --enable_tiered_parallel_tcpstore=true train.py
"""

MSRUN = """
msrun --worker_num=16 --local_worker_num=8 --master_addr=192.168.7.1 --master_port=8118 --node_rank={node} \\
  --log_dir=msrun_log --join=True --cluster_time_out=300 net.py
"""

MPIRUN = """
export HCCL_CONNECT_TIMEOUT=600
mpirun --allow-run-as-root -np 16 -H node1:8,node2:8 -x MASTER_ADDR=node1 -x MASTER_PORT=29500 \\
  -mca btl_tcp_if_include eth0 --output-filename log_output python net.py
"""

SLURM = """#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=29500
srun --kill-on-bad-exit=0 -N2 -n16 --export=ALL,HCCL_BUFFSIZE=200 python -u train.py
"""

SPAWN = """
export MASTER_ADDR=192.168.7.1
export MASTER_PORT=29500
python -u main_spawn.py --nodes 2 --gpus 8
"""

BY_HAND = """
export MASTER_ADDR=192.168.7.1 MASTER_PORT=29500 WORLD_SIZE=2
RANK=0 python train.py --master &
RANK=1 python train.py
"""

ENV_FILE = """# for docker run --env-file
MASTER_ADDR=192.168.7.1
MASTER_PORT=29500
NODE_RANK={node}
NNODES=2
NPROC_PER_NODE=8
WORLD_SIZE=16
HCCL_CONNECT_TIMEOUT="600"
NOTE=two words here
"""

HEALTHY: dict[str, list[str]] = {
    "shell loop": [MINDSPORE_LOOP],
    "mp.spawn": [SPAWN],
    "python": [BY_HAND],
    "torchrun": [TORCHRUN.format(node=0), TORCHRUN.format(node=1)],
    "torchrun with c10d": [C10D],
    "torch_npu_run": [TORCH_NPU_RUN.format(node=0), TORCH_NPU_RUN.format(node=1)],
    "msrun": [MSRUN.format(node=0), MSRUN.format(node=1)],
    "dynamic cluster": [DYNAMIC_CLUSTER],
    "mpirun": [MPIRUN],
    "slurm": [SLURM],
    "env files": [ENV_FILE.format(node=0), ENV_FILE.format(node=1)],
}
"""Scripts; a pair if each of the two hosts has its own."""

REST_OF_A_DUMP = """SHELL=/bin/bash
PWD=/home/user/job
HOME=/home/user
LANG=C.UTF-8
BASH_FUNC_module%%=() {  local RANK=99;
RANK_ID=77
 eval `modulecmd bash $*`
}
LESSOPEN=| /usr/bin/lesspipe %s
USER=user
NOTES=first line
second line with = in it

SHLVL=2
PATH=/usr/local/bin:/usr/bin:/bin
_=/usr/bin/env
"""


def dump(env: Mapping[str, str | int], host: str | None = None) -> str:
    """What `env` prints in the process of a rank."""
    own = {**({"HOSTNAME": host} if host else {}), **env}
    return "".join(f"{name}={value}\n" for name, value in own.items()) + REST_OF_A_DUMP


def torch_rank(rank: int, **more: str | int) -> dict[str, str | int]:
    """The variables that torchrun sets for a rank of the two hosts."""
    return {
        "RANK": rank,
        "LOCAL_RANK": rank % 8,
        "GROUP_RANK": rank // 8,
        "WORLD_SIZE": 16,
        "LOCAL_WORLD_SIZE": 8,
        "MASTER_ADDR": "192.168.7.1",
        "MASTER_PORT": 29500,
        **more,
    }


def table_rank(rank: int, size: int = 8, **more: str | int) -> dict[str, str | int]:
    """The variables that the guide's loop sets for a rank."""
    return {
        "RANK_ID": rank,
        "DEVICE_ID": rank % 8,
        "RANK_SIZE": size,
        "RANK_TABLE_FILE": "/job/table.json",
        "HCCL_CONNECT_TIMEOUT": 600,
        **more,
    }


def worker(rank: int, size: int = 8, **more: str | int) -> dict[str, str | int]:
    """The variables that the guide sets for a worker of a dynamic cluster."""
    return {
        "MS_ROLE": "MS_WORKER",
        "MS_NODE_ID": rank,
        "MS_WORKER_NUM": size,
        "MS_SCHED_HOST": "192.168.7.1",
        "MS_SCHED_PORT": 8118,
        **more,
    }


def read(folder: Path, *texts: str) -> Launch:
    """The launch that files with these texts describe."""
    return read_launch_files(written(folder, *texts))


def written(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"env{number}.log" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


def process(pid: int, env: Mapping[str, str | int], *words: str, parent: int = 1, **more: Any) -> JobProcess:
    return JobProcess(
        pid, parent, {n: str(v) for n, v in env.items()}, words or ("python3", "/job/train.py"), **more
    )


def running(**by_host: Sequence[JobProcess]) -> tuple[Launch, ...]:
    return launch_of_processes(by_host)


def torch_job(**more: str | int) -> dict[str, list[JobProcess]]:
    """Sixteen ranks on two hosts and their agents."""
    agents = {
        node: process(
            99,
            {},
            *("python3", "/usr/bin/torchrun", "--nnodes=2", f"--node_rank={node}", "--nproc_per_node=8"),
            *("--master_addr=192.168.7.1", "--master_port=29500", "/job/train.py"),
        )
        for node in (0, 1)
    }
    return {
        f"node{node + 1}": [
            agents[node],
            *(
                process(100 + r, torch_rank(r, TORCHELASTIC_RUN_ID="none", **more), parent=99)
                for r in range(node * 8, node * 8 + 8)
            ),
        ]
        for node in (0, 1)
    }


def a_plan(backend: str = "hccl", hosts: int = 2, ranks: int = 8) -> JobPlan:
    wishes = JobWishes(
        backend=SourcedValue(Backend(backend), "test"), ranks_per_host=SourcedValue(ranks, "--ranks-per-host")
    )
    plan = draft([Host(f"node{n}", f"node{n}") for n in range(1, hosts + 1)], wishes)
    return replace(plan, vendor=ASCEND if plan.backend.value is Backend.HCCL else None)


def the_facts(hosts: int = 2, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The facts of the hosts: addresses, names, devices."""
    known: dict[str, tuple[str, ...]] = {f"node{n}": (f"192.168.7.{n}",) for n in range(1, hosts + 1)}
    known.update({name: (address,) if address else () for name, address in (names or {}).items()})
    every = [f"node{n}" for n in range(1, hosts + 1)]
    return {
        "addresses": {h: {"lo": ("127.0.0.1", "::1"), "eth0": (f"192.168.7.{h[4:]}",)} for h in every},
        "names": {host: ResolvedNames(known, host) for host in every},
        "identity": {host: f"{host}.cluster.local" for host in every},
        "devices": {
            host: Devices({ASCEND.name: FoundDevices(tuple(range(8)), 8)}, "atlas-a2") for host in every
        },
        "job-processes": dict.fromkeys(every, ()),
    }


def judged(
    id: str,
    launches: Sequence[Launch],
    plan: JobPlan | None = None,
    facts: Mapping[str, Any] | None = None,
) -> tuple[list[Problem], str]:
    """The problems that a check finds, and the reason why it cannot decide."""
    check: Check = CHECKS[id]
    plan = plan or a_plan()
    given = {"plan": plan, "launches": tuple(launches), "needed-hosts": len(plan.hosts)}
    known = {**the_facts(), **given, **(facts or {})}
    needs: list[Any] = [getattr(need, "need", need) for need in check.needs]
    problems: list[Problem] = []
    doubt = ""
    try:
        for problem in check.run(*(known.get(need.name) for need in needs)):
            problems.append(problem)  # noqa: PERF402
    except Undecided as undecided:
        doubt = str(undecided)
    return problems, doubt


def words(problem: Problem) -> str:
    """The whole text of a problem."""
    seen = " ".join(f"{e.source}: {e.text}" for e in problem.evidence)
    parts = (problem.summary, problem.expected, problem.actual, problem.subject or "", seen)
    return " | ".join((*parts, " ; ".join(problem.commands)))
