"""Jobs that run beside the exam, in every state that a job can be in. None of them is a fault of its host."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.lab import Host
from tests.support.hang import dead_files
from tests.support.injob import environment
from tests.trials.node.situation import Group

JOBS = Group("Beside jobs")
RANK = str(Path(__file__).with_name("rank.py"))
FOLDER = "/tmp/node-trial"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run")
ALONE = (*TORCHRUN, "--standalone", "--nproc-per-node=2")
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", sys.executable)
PATIENCE = 90.0
Env = Mapping[str, str]


def start(host: Host, *argv: str, env: Env | None = None, user: str = "root", awaits: str = "there") -> None:
    host.do(f"mkdir -p {FOLDER}; chmod 1777 {FOLDER}")
    told = environment(FOLDER=FOLDER, **(env or {}))
    host.spawn(["env", "-C", "/", "-i", *(f"{key}={value}" for key, value in told.items()), *argv], user)
    folder = Path(f"/proc/{host.pid}/root{FOLDER}")
    host.await_that(lambda: any(folder.glob(f"{awaits}*")), f"sign of {argv}", PATIENCE)


def ranks(host: Host, *envs: Env, does: str = "sleeps", user: str = "root") -> None:
    """Ranks that nobody counted: each has the variables that somebody gave it."""
    for env in envs:
        start(host, sys.executable, RANK, does, env=env, user=user)


def _job(name: str, *argv: str, env: Env | None = None, user: str = "root") -> None:
    JOBS.on_host(name, lambda host: start(host, *argv, env=env, user=user))


def _ranks(name: str, *envs: Env, does: str = "sleeps", user: str = "root") -> None:
    JOBS.on_host(name, lambda host: ranks(host, *envs, does=does, user=user))


def world(size: int, **more: str) -> list[dict[str, str]]:
    plain = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    return [{**plain, "RANK": str(n), "LOCAL_RANK": str(n), **more} for n in range(size)]


def table(host: Host, text: str) -> None:
    host.write("/etc/rank_table.json", text)
    ranks(host, *world(2, RANK_TABLE_FILE="/etc/rank_table.json"))


def fills_shm(host: Host) -> None:
    host.shm("64m")
    ranks(host, world(1)[0], does="fills")


def orphans(host: Host) -> None:
    """Their launcher was killed."""
    start(host, *ALONE, RANK, "sleeps")
    host.do("pkill -KILL -f '[t]orch.distributed.run'")


def strangers_port(host: Host) -> None:
    for port in (22000, 29500, 12355, 8118, 60000):
        host.listen(port)


def leftovers(host: Host) -> None:
    host.do(
        "for n in $(seq 50); do echo x >/dev/shm/nccl-$n; echo x >/dev/shm/torch_${n}_1; "
        "mkdir /tmp/torchelastic_$n; done; fallocate -l 64m /dev/shm/psm2_shm.1; echo x >/dev/shm/sem.mp-1; "
        "mkdir -p /root/.cache/torch_extensions/lock; touch /tmp/.nccl-lock /tmp/core.4711"
    )
    ranks(host, *world(2), user="trainee")


def slow_files(host: Host) -> None:
    """A job on a file system that answers after seconds."""
    host.do(f"mkdir -p {FOLDER}/dead; [ -e /dev/fuse ] || mknod -m 666 /dev/fuse c 10 229")
    host.spawn([sys.executable, dead_files.__file__, f"{FOLDER}/dead", "for-all", "3"])
    mounts = Path(f"/proc/{host.pid}/mounts")
    host.await_that(lambda: f"{FOLDER}/dead" in mounts.read_text(), "slow file system")
    for _ in range(4):
        host.spawn(["sh", "-c", f"while :; do cat {FOLDER}/dead/shard >/dev/null; done"])


def stopped(host: Host) -> None:
    ranks(host, *world(4))
    host.do("pkill -STOP -f '[r]ank.py'")


def own_network(host: Host) -> None:
    """A job in a network of its own, whose loopback is down, and with a read-only /tmp."""
    ask = f"mount -o bind /tmp /tmp; mkdir -p {FOLDER}; mount -t tmpfs tmp {FOLDER}; exec sleep 500"
    host.spawn(["unshare", "-n", "-m", "sh", "-c", ask])
    host.spawn(["unshare", "-m", "sh", "-c", "mount -t tmpfs -o ro tmp /tmp; exec sleep 500"])


def titled(host: Host) -> None:
    """Processes whose names look like findings."""
    for title in (
        "FAIL tmp-not-writable /tmp cannot be written",
        "@ gpus stuck 18",
        "p 1 1 0\ne RANK=0",
        "\x1b[31mXid 79: GPU has fallen off the bus",
        "trap[1]: EDAC MC0: 1 UE memory read error",
    ):
        host.spawn([sys.executable, "-c", "import time; time.sleep(500)", title])
        host.spawn(["bash", "-c", 'exec -a "$1" sleep 500', "sh", title])


def mindspore(role: str) -> dict[str, str]:
    return {
        "MS_ROLE": role,
        "MS_WORKER_NUM": "8",
        "MS_SCHED_HOST": "127.0.0.1",
        "MS_SCHED_PORT": "8118",
        "MS_NODE_ID": "0",
        "DEVICE_ID": "11",
        "RANK_SIZE": "8",
        "RANK_ID": "0",
    }


BIG = {f"VERY_LONG_VARIABLE_{n}": f"{n} " * 20_000 for n in range(12)}
SLURM = {
    "SLURM_JOB_ID": "77",
    "SLURM_JOB_NODELIST": "other[1-64]",
    "SLURM_NNODES": "64",
    "SLURM_PROCID": "500",
    "SLURM_NTASKS": "512",
    "SLURMD_NODENAME": "other9",
}

_job("torchrun: it trains", *ALONE, RANK, "trains")
_job("torchrun: it starts, and rank 0 never comes", sys.executable, RANK, "waits", env=world(2)[1])
_job("torchrun: rank 0 saves, the others have ended", *ALONE, RANK, "saves")
_job("torchrun: it hangs", *ALONE, RANK, "hangs")
_job("torchrun: a rank crashed, its children are left", *ALONE, RANK, "crashes")
_job("torchrun: of another user", *ALONE, RANK, "trains", user="trainee")
JOBS.on_host(
    "torchrun: elastic, it waits for more hosts",
    lambda host: start(
        host,
        "sh",
        "-c",
        f'touch {FOLDER}/there; exec "$@"',
        "sh",
        *TORCHRUN,
        "--nnodes=2:4",
        "--rdzv-backend=c10d",
        "--rdzv-endpoint=127.0.0.1:29400",
        "--max-restarts=5",
        RANK,
        "sleeps",
    ),
)
JOBS.on_host("torchrun: it was killed, its ranks are left", orphans)
_job("mpirun: it trains", *MPIRUN, RANK, "sleeps")
_job("mpirun: rank 0 saves, the others have ended", *MPIRUN, RANK, "saves")
_ranks("a loop of eight ranks", *world(8))
_ranks("ranks of accelerate", *world(2, ACCELERATE_MIXED_PRECISION="bf16", ACCELERATE_USE_DEEPSPEED="true"))
_ranks("ranks of DeepSpeed", *world(2, CROSS_RANK="0", CROSS_SIZE="9", LOCAL_SIZE="2", DS_ACCELERATOR="cpu"))
_ranks("ranks of another user", *world(2), user="trainee")
_ranks("some ranks only", world(8)[0], world(8)[3], world(8)[7])
_ranks("ranks of four other hosts", *world(2, WORLD_SIZE="64", MASTER_ADDR="198.18.77.77"))
_ranks(
    "ranks that are no numbers",
    {"RANK": "-1", "WORLD_SIZE": "x"},
    {"RANK": "one", "LOCAL_RANK": ""},
    world(1)[0],
)
_ranks("a rank twice, and beyond the world", *world(2, RANK="7"), {"RANK": "7", "WORLD_SIZE": "2"})
_ranks("a world of 0", {"RANK": "0", "WORLD_SIZE": "0", "LOCAL_RANK": "0"})
_ranks(
    "an address that is no name", *world(2, MASTER_ADDR="nowhere.invalid"), world(1, MASTER_ADDR="$HEAD")[0]
)
_ranks("a port that is none", *world(2, MASTER_PORT="99999"), world(1, MASTER_PORT="0")[0])
_ranks(
    "interfaces and devices that do not exist",
    *world(2, NCCL_SOCKET_IFNAME="ib7", CUDA_VISIBLE_DEVICES="9,10"),
)
_ranks("a huge environment", {**world(1)[0], **BIG})
_ranks("variables of a Slurm job elsewhere", {**SLURM}, {**SLURM, "SLURM_PROCID": "501"})
_ranks("a worker of MindSpore", mindspore("MS_WORKER"))
_ranks("a scheduler of MindSpore without workers", mindspore("MS_SCHED"))
_ranks("200 zombies", world(1)[0], does="zombies")
_ranks("1,000 connections", world(1)[0], does="sockets")
_ranks("400 threads", world(1)[0], does="threads")
_ranks("data loaders that start again and again", *world(2), does="forks")
_ranks("a job in a deleted folder", *world(2), does="gone")
JOBS.on_host("a job that fills /dev/shm", fills_shm)
JOBS.on_host("stopped ranks", stopped)
JOBS.on_host("a rank table that is none", lambda host: table(host, "{ not json"))
JOBS.on_host(
    "a rank table of other hosts",
    lambda host: table(
        host,
        '{"version":"1.0","server_count":"1","server_list":[{"server_id":"10.9.9.9","device":[{"device_id":"0",'
        '"device_ip":"10.9.9.10","rank_id":"5"}]}],"status":"completed"}',
    ),
)
JOBS.on_host("a missing rank table", lambda host: ranks(host, *world(2, RANK_TABLE_FILE="/gone/table.json")))
JOBS.on_host("ports of launchers are taken", strangers_port)
JOBS.on_host("two jobs with the same port", lambda host: ranks(host, *world(2), *world(2)))
JOBS.on_host("leftovers of an earlier training", leftovers)
JOBS.on_host("readers of a slow file system", slow_files)
JOBS.on_host("jobs with networks and mounts of their own", own_network)
JOBS.on_host("processes with hostile names", titled)
