"""Makes a situation: does to a host of the lab what `situations.yaml` says."""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.lab import Host
from tests.lab.amd import AmdHost
from tests.lab.container import Container, Memory
from tests.lab.errors import LabError
from tests.lab.gpus import GpuHost
from tests.lab.npus import NpuHost
from tests.lab.slurmjob import submit
from tests.support.cases import from_cases
from tests.support.hang.dead_mount import mount_dead
from tests.support.injob import environment
from tests.trials.node.situation import Ranks, Situation, Stage

RANK = str(Path(__file__).with_name("rank.py"))
FOLDER = "/tmp/node-trial"
PATIENCE = 90.0
LEAST = 600
"""Seconds that what keeps a host busy may live."""
TOOLS = from_cases(__file__, "TOOLS", str)
WORDS = {
    "torchrun": f"{sys.executable} -m torch.distributed.run",
    "mpirun": f"mpirun --allow-run-as-root --oversubscribe -n 2 {sys.executable}",
    "rank": RANK,
    "folder": FOLDER,
    "busybox": f"for t in {TOOLS}; do ln -sf /usr/bin/busybox /usr/local/bin/$t; done",
}
SOCKETS = from_cases(__file__, "SOCKETS", str)
BUSY: Mapping[str, Sequence[str]] = {
    "spin": ("sh", "-c", "while :; do :; done"),
    "writes": ("sh", "-c", "while :; do dd if=/dev/zero of=/var/big bs=1M count=200 conv=fsync 2>&-; done"),
    "processes": ("sh", "-c", "for i in $(seq 1000); do sleep 500 & done; wait"),
    "storm": ("sh", "-c", "n=0; while [ $n -lt 20000 ]; do /bin/true & /bin/true & wait; n=$((n+1)); done"),
    "connections": (sys.executable, "-IS", "-c", SOCKETS),
}
LOUD = from_cases(__file__, "LOUD", str)
STEP = "export FOLDER=$JOB/marks\nmkdir -p $FOLDER\nsrun --ntasks=2 {python} {rank} {does}\n"


def made(stage: Stage, situation: Situation) -> Container | None:
    """The container that the exam looks into, if there is one."""
    if situation.step:
        step(stage, situation.step)
    if situation.box:
        return box(stage, situation)
    devices, host = stage.devices(situation.kind), stage.lab[situation.node]
    for method, given in situation.call.items():
        call(devices if hasattr(devices, method) else host, method, given)
    for device in devices if situation.each else ():
        for method, given in situation.each.items():
            call(device, method, given)
    if situation.script:
        host.do(situation.script.format(**WORDS))
    if situation.log:
        logged(host, numbered(situation), situation.uptime)
    if situation.act == "full_cgroup":
        return full_cgroup(stage)
    if situation.act:
        ACTS[situation.act](devices)
    for what, times in situation.busy.items():
        for _ in range(times or 4 * (os.cpu_count() or 1)):
            host.spawn(["timeout", str(LEAST), *BUSY[what]])
    if situation.job:
        start(host, *situation.job.format(**WORDS).split(), user=situation.user)
    for env in (env for each in situation.ranks for env in each.envs()):
        start(host, sys.executable, RANK, situation.does, env=env, user=situation.user)
    if situation.then:
        host.do(situation.then)
    return None


def call(whose: Any, method: str, given: Any) -> None:
    if isinstance(given, dict):
        getattr(whose, method)(**given)
    else:
        getattr(whose, method)(*given)


def box(stage: Stage, situation: Situation) -> Container:
    assert situation.box
    container = stage.engine.run(situation.node, "train", shm=situation.box.shm, net=situation.box.net)
    said = container.ask(f"({situation.script or ':'}) >/dev/null && echo done")
    assert said == "done", (situation.name, said)
    return container


def full_cgroup(stage: Stage) -> Container | None:
    """In a cgroup of its own, so that the machine keeps its memory."""
    if not Memory.possible():
        return None
    container = stage.engine.run("node1", "train", memory=256 << 20, shm="1g")
    # What python and doctor need is left.
    container.ask("dd if=/dev/zero of=/dev/shm/held bs=1M count=100 2>/dev/null")
    return container


def step(stage: Stage, does: str) -> None:
    """Of a real Slurm."""
    script = STEP.format(python=sys.executable, rank=RANK, does=does)
    job = submit(stage.slurm(), script, "--nodelist=node1", "--ntasks=2", nodes=1)
    end = time.monotonic() + PATIENCE
    while not [*job.folder.glob("marks/there*")]:
        if time.monotonic() > end:
            raise LabError(f"the step did not start: {job.output}")
        time.sleep(0.1)


def start(host: Host, *argv: str, env: Mapping[str, str] | None = None, user: str = "root") -> None:
    """A program of a job, until it says that it is there."""
    host.do(f"mkdir -p {FOLDER}; chmod 1777 {FOLDER}")
    told = environment(FOLDER=FOLDER, **(env or {}))
    host.spawn(["env", "-C", "/", "-i", *(f"{key}={value}" for key, value in told.items()), *argv], user)
    folder = Path(f"/proc/{host.pid}/root{FOLDER}")
    host.await_that(lambda: any(folder.glob("there*")), f"sign of {argv}", PATIENCE)


def numbered(situation: Situation) -> str:
    lines = enumerate(situation.log, situation.log_at)
    return "".join(f"[{at}.1] {line}\n" for at, line in lines)


def logged(host: Host, text: str, uptime: int = 90_000) -> None:
    """Emulated: a kernel log, and how many seconds ago the host was started."""
    host.shadow("/proc/uptime", f"{uptime}.00 9.00\n")
    host.kernel_log(text)


def long_log(host: Host) -> None:
    logged(host, "[89000.1] audit: type=1400 segfault\n" * 40_000)


def huge_environment(host: Host) -> None:
    (env,) = Ranks(1).envs()
    big = {f"VERY_LONG_VARIABLE_{n}": f"{n} " * 20_000 for n in range(12)}
    start(host, sys.executable, RANK, "sleeps", env=env | big)


def ports_taken(host: Host) -> None:
    for port in (22000, 29500, 12355, 8118, 60000):
        host.listen(port)


def remote(host: Host) -> None:
    """As clients of many remote file systems do, it answers after some seconds."""
    mount_dead(host, "/data", "1")


def slow_files(host: Host) -> None:
    """A job on a file system that answers after seconds."""
    mount_dead(host, f"{FOLDER}/dead", "3")
    for _ in range(4):
        host.spawn(["sh", "-c", f"while :; do cat {FOLDER}/dead/shard >/dev/null; done"])


def own_network(host: Host) -> None:
    """A job in a network of its own, whose loopback is down, and with a read-only /tmp."""
    ask = f"mount -o bind /tmp /tmp; mkdir -p {FOLDER}; mount -t tmpfs tmp {FOLDER}; exec sleep 500"
    host.spawn(["unshare", "-n", "-m", "sh", "-c", ask])
    host.spawn(["unshare", "-m", "sh", "-c", "mount -t tmpfs -o ro tmp /tmp; exec sleep 500"])


def hostile_names(host: Host) -> None:
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


def noisy_profiles(host: Host) -> None:
    for name in (".bashrc", ".profile", ".bash_profile", ".zshrc"):
        host.write(f"/root/{name}", LOUD)
    host.write("/etc/profile.d/loud.sh", LOUD)


def gpus_used(host: GpuHost) -> None:
    for gpu in host:
        gpu.works()
        gpu.processes(("python", 4711 + gpu.index, 70_000))


def mig(host: GpuHost) -> None:
    host[0]["mig.mode.current"] = "Enabled"


def corrected(host: GpuHost) -> None:
    for gpu in host:
        for field in gpu.values:
            if "corrected" in field and "uncorrected" not in field:
                gpu.values[field] = "12"
    host.tell()


def no_cable(host: NpuHost) -> None:
    for npu in host:
        npu.link_up = False
        npu.without_module()


def npus_used(host: NpuHost) -> None:
    for npu in host:
        npu.processes(("python", 4711 + npu.device, 50_000))


def amd_used(host: AmdHost) -> None:
    for index in range(host.count):
        host.runs(index, ("python", 4711 + index, 90_000))


ACTS: Mapping[str, Callable[[Any], None]] = {
    act.__name__: act
    for act in (
        *(long_log, huge_environment, ports_taken, remote, slow_files, own_network, hostile_names),
        *(noisy_profiles, gpus_used, mig, corrected, no_cable, npus_used, amd_used),
    )
}
