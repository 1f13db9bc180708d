"""Files and words that a person gives: inventories, hostfiles, node sets, launches, rank tables, settings."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from doctor.errors import UsageError
from doctor.job.launch.files import read_launch_files
from doctor.job.ranktable import judge as judge_table
from doctor.job.ranktable import read_table
from doctor.job.wishes import JobWishes
from doctor.judge.playbook import load_exam
from doctor.model import Host, TableFile
from doctor.recording import Recording
from doctor.targets.hostfile import read_hostfile
from doctor.targets.inventory import read_targets
from doctor.text.nodeset import fold, unfold, unfold_users
from doctor.transport.ssh.config import SshConfig
from doctor.transport.ssh.settings import SshSettings
from tests.support.launches import HEALTHY
from tests.support.recordings import recording
from tests.trials.fuzz.recordings import checks, judged, refuse_broken, show
from tests.trials.fuzz.target import Find, refuse_unsafe, samples

INVENTORY = b"""\
hosts:                          # in rank order
  node1: {address: 198.18.0.11, data: 198.18.0.11, ranks: 8, expect: {nofile: 1024, devices: 8}}
  node[2-4]: {port: 22, user: root, jump: 'me@gate:2222', enter: docker exec -i train, enter_from: controller}
groups:
  train: "node[1-3]"
  all: "@train,node4"
defaults:
  user: root
  python: /opt/python3
backend: gloo
head: node1
master_port: 29500
launch:
  GLOO_SOCKET_IFNAME: eth0
  HCCL_IF_BASE_PORT: 60000
plan:
  dp: 4
  tp: 2
expect: {nofile: 1024, clock_skew_s: 0.5}
"""
HOSTFILES = (
    b"node1 slots=8\nnode2 slots=8 max_slots=9\n# a comment\nme@node[3-4] slots=4\n",
    b"node1:8\nnode2:8\n10.0.0.3:2\n[fe80::1]:4\n",
    b"node1\n\nnode[2-3] slots=8  # eight\nnode4\n",
)
NODESETS = (
    *(b"node[1-4,7]", b"n[01-16]-ib[0-1] gpu7", b"node1..4", b"node[1-3],10.0.0.[1-8]"),
    *(b"@train", b"node[1-9/2]", b"fe80::1", b"a-[001-100]-b-[1-3]", b"cn[1-2][3-4]"),
)
SSH_CONFIG = b"""\
Host node* !node9
    HostName %h.cluster
    User trainee
    Port 2222
    IdentityFile ~/.ssh/id_%n
    ProxyJump gate,me@inner:2200
Match host node3 user root
    ProxyCommand ssh -W %h:%p gate
    ConnectTimeout 3
Match originalhost node4 final
    UserKnownHostsFile /dev/null "~/.ssh/known hosts"
    StrictHostKeyChecking accept-new
Host=gate
    HostKeyAlias the-gate
    CertificateFile ~/.ssh/id-cert.pub
    IdentityAgent none
Include config.d/*
Host *
    ServerAliveInterval 5
"""
ENV = b"""\
RANK=3
LOCAL_RANK=3
WORLD_SIZE=16
LOCAL_WORLD_SIZE=8
MASTER_ADDR=node1
MASTER_PORT=29500
RANK_TABLE_FILE=/root/hccl.json
HCCL_CONNECT_TIMEOUT=600
OMPI_COMM_WORLD_RANK=3
SLURM_NODELIST=node[1-2]
"""
SCRIPT = b"""\
#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=8
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=${PORT:-$((29500 + SLURM_JOB_ID % 100))}
cd "$(dirname "$0")" && source ./env.sh
for i in {0..7}; do
  if [ "$i" -lt 4 ]; then
    export ASCEND_RT_VISIBLE_DEVICES=$i RANK_ID=$i
  fi
  case $i in 0|1) LOG=a;; *) LOG=b;; esac
  mpirun -np 16 -H node1:8,node2:8 -x MASTER_ADDR --mca btl tcp \\
    bash -c "python train.py --tp 2 > $LOG/$i.log 2>&1" &
done
start() { torchrun --nnodes=2 --node_rank="$1" --nproc-per-node 8 --rdzv-endpoint node1:$MASTER_PORT t.py; }
start 0; srun --mpi=pmix python -m torch.distributed.run --standalone --nproc_per_node=gpu train.py
msrun --worker_num=16 --local_worker_num=8 --master_addr=node1 --join=True train.py <<EOF
no words
EOF
wait
"""
EXAM = b"""\
title: mine
checks: ["*"]
skip: [clock-skew, "smoke-*"]
essential: [nofile-low]
mesh: ring
smoke: true
severity: {nofile-low: fail, mtu-mismatch: warn}
expect: {nofile: 65536, clock_skew_s: 0.5}
"""
HOSTS = ["node1", "node2"]


def _in_a_file(case: bytes, read: Callable[[Path], object], name: str = "given") -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(case)
        read(path)


@cache
def healthy() -> Recording:
    return recording(HOSTS)


def _judge(wished: Recording) -> None:
    _, report = judged(wished, "check")
    refuse_broken(report)
    show(report)


def read_inventory(case: bytes) -> None:
    def read(path: Path) -> None:
        found = read_targets((), None, path, False, ("node2",), {})
        assert found.hosts
        _judge(replace(healthy(), wishes=found.wishes, expect=found.wishes.expect))

    _in_a_file(case, read)


def read_hosts(case: bytes) -> None:
    _in_a_file(case, read_hostfile)


def read_nodeset(case: bytes) -> None:
    """An unfolded node set is folded again, and unfolds to the same."""
    text = case.decode("utf-8", "replace")
    groups = {"train": ["node1", "node2"]}
    with suppress(UsageError):
        unfold_users(f"me@{text}", groups)
    names = unfold(text, groups)
    again = fold(names)
    refuse_unsafe(again)
    if sorted(unfold(again)) != sorted(names):
        raise Find(f"{text[:80]!r} folds to {again[:80]!r}, which means other hosts")


def read_ssh_config(case: bytes) -> None:
    if b"exec" in case.lower():  # ssh would run it as well
        return

    def read(path: Path) -> None:
        config = SshConfig(SshSettings(config_file=str(path)))
        try:
            for name in ("node1", "node3", "node4", "gate", "10.0.0.1"):
                config.of(Host(name, name))
            config.jump("me@gate:2200")
        finally:
            config.close()

    _in_a_file(case, read)


def launches() -> Sequence[bytes]:
    of_others = [line.encode() for group in HEALTHY.values() for line in group]
    return [*samples("launches/*.sh")(), *of_others, ENV, b"A=1\n" + ENV.replace(b"=", b"=$A"), SCRIPT]


def read_launch(case: bytes) -> None:
    def read(path: Path) -> None:
        _judge(replace(healthy(), wishes=JobWishes(launch=read_launch_files([path]))))

    _in_a_file(case, read, "run.sh")


def read_rank_table(case: bytes) -> None:
    text = case.decode("utf-8", "replace")
    table, _ = read_table(text)
    if table is not None:
        judge_table(table, "atlas-a2")
    _judge(replace(healthy(), wishes=JobWishes(table=TableFile("/root/hccl.json", text, "1"))))


def read_exam(case: bytes) -> None:
    _in_a_file(case, lambda path: load_exam(str(path), checks(()).checks), "exam.yaml")
