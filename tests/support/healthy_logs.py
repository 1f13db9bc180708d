"""Logs of healthy jobs, drawn from a seed, with many lines that healthy jobs print."""

import random
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

from tests.support.healthy_noise import EARLY, ELASTIC, NCCL, NOISE, NUMBERS

REPOSITORY = Path(__file__).resolve().parents[2]
JOBS = REPOSITORY / "tests/samples/logs/jobs"
SMOKE = REPOSITORY / "tests/golden"
Files = dict[str, str]
"""The text of each file of a job."""


class Drawn:
    """The size, the hosts and the clock of one job."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.stem = self.random.choice(("node", "gpu-", "worker", "c01-n", "ascend"))
        self.hosts = self.random.choice((1, 2, 4))
        self.each = self.random.choice((1, 2, 4, 8))
        self.length = self.random.choice((20, 50, 100))
        self.clock = datetime(2026, self.random.randrange(1, 12), self.random.randrange(1, 28), 9)

    def host(self, number: int) -> str:
        return f"{self.stem}{number + 1}"

    @property
    def world(self) -> int:
        return self.hosts * self.each

    @property
    def ranks(self) -> Iterator[tuple[int, str]]:
        for rank in range(self.world):
            yield rank, self.host(rank // self.each)

    def now(self) -> datetime:
        self.clock += timedelta(milliseconds=self.random.randrange(20, 4000))
        return self.clock

    def noise(self, rank: int, host: str, among: tuple[str, ...] = NOISE) -> str:
        now = self.now()
        return self.random.choice(among).format(
            rank=rank, host=host, world=self.world, pid=1000 + rank, loss=self.loss(), step=rank + 10,
            day=f"{now:%m%d}", time=f"{now:%H:%M:%S}.{now.microsecond:06d}", date=f"{now:%Y-%m-%d %H:%M:%S}",
        )  # fmt: skip

    def loss(self, step: int = 0, of: int = 1) -> str:
        return f"{8.0 * 0.5 ** (4 * step / of) + self.random.random() / 100:.4f}"

    def steps(self) -> Iterator[tuple[int, int]]:
        """The same number of steps for each rank, because they train together."""
        return ((step, self.length) for step in range(1, self.length + 1))


def torchrun(drawn: Drawn) -> Files:
    """The output of a real torchrun, with other hosts and another day, and lines that other versions and
    scripts print.
    """
    job = drawn.random.choice([each for each in sorted(JOBS.glob("healthy*")) if "mpirun" not in each.name])
    files = {}
    for path in sorted(path for path in job.rglob("*.*") if path.is_file()):
        text = re.sub(r"\bnode(\d)", lambda found: drawn.host(int(found[1]) - 1), path.read_text())
        day = f"{drawn.clock:%m%d}"
        lines = re.sub(r"\[([WIE])\d{4} ", rf"[\g<1>{day} ", text).splitlines()
        for _ in range(drawn.random.randrange(1, 6)):
            rank = drawn.random.randrange(4)
            lines.insert(drawn.random.randrange(len(lines) + 1), drawn.noise(rank, drawn.host(rank // 2)))
        if drawn.random.random() < 0.5 and path.name != "stdout.log":
            lines.insert(0, drawn.noise(0, drawn.host(0), EARLY))
        name = str(path.relative_to(job)).replace("node", drawn.stem)
        files[name] = "\n".join((drawn.noise(0, drawn.host(0), ELASTIC), *lines)) + "\n"
    return files


def nccl(drawn: Drawn) -> Files:
    """torch with NCCL_DEBUG=INFO, all ranks of a host in one file."""
    files: dict[str, list[str]] = {}
    for rank, host in drawn.ranks:
        lines = files.setdefault(f"{host}.log", [])
        device, pid = rank % drawn.each, 3000 + rank
        for line in NCCL:
            said = line.format(
                rank=rank, world=drawn.world, device=device, host=host, peer=(rank + 1) % drawn.world
            )
            lines.append(f"{host}:{pid}:{pid + 90} [{device}] NCCL INFO {said}")
        lines += [drawn.noise(rank, host, EARLY), drawn.noise(rank, host)]
        lines += [f"[rank{rank}] step {step} loss {drawn.loss(step, of)}" for step, of in drawn.steps()]
    return {name: "\n".join(lines) + "\n" for name, lines in files.items()}


def nccl_tests(drawn: Drawn) -> Files:
    lines = [
        f"# nThread 1 nGpus {drawn.world} minBytes 8 maxBytes 1048576 step: 2(factor) validation: 1",
        "#",
    ]
    lines += [f"#  Rank {rank:2} Group  0 Pid {900 + rank} on {host} device  0 [0x1b] NVIDIA H100 80GB HBM3"
              for rank, host in drawn.ranks]  # fmt: skip
    lines += ["#       size         count      type   redop    root     time   algbw   busbw #wrong"]
    for power in range(3, 21):
        lines.append(f"{2**power:12} {2**power // 4:12} float sum -1 {30 + power}.1 0.01 0.02      0")
    lines += ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 41.0321 ", "#"]
    return {f"{drawn.stem}-all_reduce_perf.log": "\n".join(lines) + "\n"}


def mindspore(drawn: Drawn) -> Files:
    """msrun's folder: a log for the scheduler and for each worker."""
    files = {}
    for rank, _ in drawn.ranks:
        lines = []
        for line in (
            "[mindspore/ccsrc/distributed/cluster/cluster_context.cc:324] BuildCluster] Cluster is ready.",
            "[mindspore/ccsrc/distributed/cluster/topology/compute_graph_node.cc:172] Register] "
            "Failed to connect to the meta server node url, retry. The node is still in process of starting.",
        )[: 1 + drawn.random.randrange(1)]:
            now = drawn.now()
            lines.append(
                f"[WARNING] DISTRIBUTED({2000 + rank},ffff8a2f,python):{now:%Y-%m-%d-%H:%M:%S}.101.202 {line}"
            )
        for step, of in drawn.steps():
            lines.append(f"epoch: 1 step: {step}, loss is {drawn.loss(step, of)}")
        lines += [f"Train epoch time: {drawn.random.randrange(900, 9000)}.123 ms, per step time: 41.2 ms"]
        files[f"msrun_log/worker_{rank}.log"] = "\n".join(lines) + "\n"
    said = "The cluster topology is in state INITIALIZED, all nodes are finalized. Scheduler exits."
    files["msrun_log/scheduler.log"] = (
        f"[WARNING] DISTRIBUTED(1999,ffff8a2f,python):{drawn.now():%Y-%m-%d-%H:%M:%S}.101.202 "
        f"[mindspore/ccsrc/distributed/cluster/topology/meta_server_node.cc:98] Finalize] {said}\n"
    )
    return files


def plog(drawn: Drawn) -> Files:
    files = {}
    for rank, _ in drawn.ranks:
        pid = 162000 + rank
        said = (
            f"[op_base.cc:1293] [{pid}]Entry-HcclCommInitRootInfoInner:ranks[{drawn.world}], rank[{rank}], "
            "rootinfo: host ip[198.18.0.11] port[60000] nicDeploy[1]",
            f"[externalinput.cc:598] [{pid}][HCCL_ENV] HCCL_CONNECT_TIMEOUT set by default to [120]s",
            f"[externalinput.cc:558] [{pid}][HCCL_ENV] HCCL_EXEC_TIMEOUT set by default to [1836]s",
            f"[op_base.cc:1350] [{pid}]HcclCommInitRootInfoInner success, take time [{rank + 100}]us, ret[0]",
        )
        lines = [f"[INFO] HCCL({pid},python):{drawn.now():%Y-%m-%d-%H:%M:%S}.716.583 {line}" for line in said]
        files[f"log/run/plog/plog-{pid}_20261120115956716.log"] = "\n".join(lines) + "\n"
    return files


def mpirun(drawn: Drawn) -> Files:
    """One output for all ranks, tagged."""
    lines = [f"[1,{rank}]<stdout>:{host} rank {rank} of {drawn.world} ready" for rank, host in drawn.ranks]
    lines += [
        f"[1,0]<stdout>:step {step} loss {drawn.loss(step, of)} grad_norm 0.4" for step, of in drawn.steps()
    ]
    for rank, host in drawn.ranks:
        said = drawn.noise(rank, host).splitlines()
        lines[drawn.world : drawn.world] = [f"[1,{rank}]<stderr>:{line}" for line in said]
    return {"mpirun.log": "\n".join(lines) + "\n"}


def srun(drawn: Drawn) -> Files:
    lines = [f"{rank}: {line}" for rank, host in drawn.ranks for line in drawn.noise(rank, host).splitlines()]
    lines += [f"0: iteration {step}/{of} | lm loss: {drawn.loss(step, of)}E+00" for step, of in drawn.steps()]
    return {f"slurm-{drawn.random.randrange(1000, 99999)}.out": "\n".join(lines) + "\n"}


def trainer(drawn: Drawn) -> Files:
    """The progress lines of Megatron, the Trainer and a plain script."""
    form = drawn.random.choice(
        (
            " [{date}] iteration {step:8}/{of:8} | consumed samples: 512 | "
            "elapsed time per iteration (ms): 412.7 | learning rate: 1.0E-04 | global batch size: 64 | "
            "lm loss: {loss} | loss scale: 1.0 | grad norm: 0.912 | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |",
            "{{'loss': {loss}, 'grad_norm': 0.71, 'learning_rate': 5e-05, 'epoch': 0.{step:03}}}",
            "step {step}/{of} loss {loss} err {err} error_rate 0.1 failed 0 dropped=0",
        )
    )
    lines = [drawn.noise(0, drawn.host(0))]
    lines += [
        form.format(
            step=step, of=of, loss=drawn.loss(step, of), err=drawn.loss(step, of), date=f"{drawn.now():%F %T}"
        )
        for step, of in drawn.steps()
    ]
    return {"train.log": "\n".join([*lines, drawn.noise(0, drawn.host(0), NUMBERS)]) + "\n"}


def smoke(drawn: Drawn) -> Files:
    """The output of this program after a run that passed."""
    golden = drawn.random.choice(sorted(SMOKE.glob("smoke-passed.0.*.txt")))
    return {"smoke.log": golden.read_text().replace("node", drawn.stem)}


def kernel(drawn: Drawn) -> Files:
    now, lines = float(drawn.random.randrange(10, 9000)), []
    for said in (
        "IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready",
        "mlx5_core 0000:1b:00.0 ens1f0np0: Link up",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024",
        "EXT4-fs (sda1): mounted filesystem with ordered data mode. Opts: errors=remount-ro.",
        "systemd[1]: Started OpenBSD Secure Shell server.",
        "EDAC MC0: Giving out device to module skx_edac controller Skylake Socket#0 IMC#0: DEV 0000:3a:0a.0",
    ):
        now += drawn.random.random() * 20
        lines.append(f"[{now:12.6f}] {said}")
    return {f"{drawn.host(0)}.dmesg": "\n".join(lines) + "\n"}


KINDS: tuple[Callable[[Drawn], Files], ...] = (
    torchrun, torchrun, torchrun, nccl, nccl, nccl_tests, mindspore, plog,
    mpirun, srun, trainer, trainer, smoke, kernel,
)  # fmt: skip


def healthy(seed: int) -> Files:
    return KINDS[seed % len(KINDS)](Drawn(seed))
