"""`python -m benchmarks.smoke`: the smoke run against torchrun, which starts as many ranks and judges none.

Both start their ranks on this machine, in turns. torchrun runs the least possible: import torch, join the
process group, one all-reduce. The smoke run adds collectives, a training of 30 steps, its audit and a
verdict. With `--framework mindspore --python PATH` it does the same against MindSpore's msrun.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks.meter import Timed, timed
from benchmarks.table import MEGA, machine, rows

BARE = """
import os, time
import torch
import torch.distributed as dist
imported = time.time()
torch.set_num_threads(1)
dist.init_process_group("gloo")
joined = time.time()
x = torch.ones(1000)
dist.all_reduce(x)
assert x[0].item() == dist.get_world_size()
if dist.get_rank() == 0:
    print("times", imported, joined, time.time(), flush=True)
dist.destroy_process_group()
"""
BARE_MINDSPORE = """
import time
import mindspore
imported = time.time()
from mindspore import Tensor, ops
from mindspore.communication import get_group_size, get_rank, init
mindspore.set_device("CPU")
init()
joined = time.time()
x = ops.AllReduce()(Tensor([1.0] * 1000, mindspore.float32)).asnumpy()
assert x[0] == get_group_size()
if get_rank() == 0:
    print("times", imported, joined, time.time(), flush=True)
"""
LAUNCHERS = {"torch": "torchrun", "mindspore": "msrun"}
OWN_LIMIT = {
    "torch": "… with torchrun alone: gloo's own timeout, not waited for",
    "mindspore": "… with msrun alone: MCCL's own timeout, not waited for",
}
OWN_SECONDS = {"torch": "1800 s", "mindspore": "30 s"}
TIMEOUT = 180
LOGS = "logs"
TARGET = 1.2


@dataclass(frozen=True, slots=True)
class Taken(Timed):
    report: Mapping[str, Any] | None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.smoke", description=__doc__)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--framework", choices=tuple(LAUNCHERS), default="torch")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has it")
    args = parser.parse_args()
    print(_conditions(args), end="\n\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="bench-smoke-") as folder:
        bare, smoke = _launcher(Path(folder), args), _smoke(args)
        taken: dict[str, list[Taken]] = {"bare": [], "smoke": []}
        for round_number in range(args.rounds + 1):
            for name, argv in (("bare", bare), ("smoke", smoke)):
                sample = _take(argv, Path(folder), python=args.python)
                if round_number:  # the first finds the files cold
                    taken[name].append(sample)
        stuck = [
            _take([*smoke, "--inject", f"stuck@{args.ranks - 1}:10"], Path(folder), 1, args.python)
            for _ in range(3)
        ]
        memory = {
            name: _memory(argv, args.python) / args.ranks for name, argv in (("bare", bare), ("smoke", smoke))
        }
    print(_table(args.framework, taken, stuck, memory), end="\n\n")
    print(_split(LAUNCHERS[args.framework], taken))
    return 0


def _launcher(folder: Path, args: argparse.Namespace) -> list[str]:
    """The framework's own launcher, with a script that only joins."""
    script, ranks = folder / "bare.py", str(args.ranks)
    if args.framework == "torch":
        script.write_text(BARE)
        launcher = [args.python, "-m", "torch.distributed.run", "--standalone"]
        return [*launcher, "--nproc-per-node", ranks, str(script)]
    script.write_text(BARE_MINDSPORE)
    msrun = str(Path(args.python).with_name("msrun"))
    count = [f"--worker_num={ranks}", f"--local_worker_num={ranks}"]
    where = ["--master_addr=127.0.0.1", "--master_port=18118", "--join=True", f"--log_dir={folder / LOGS}"]
    return [msrun, *count, *where, str(script)]


def _smoke(args: argparse.Namespace) -> list[str]:
    where = ["--local", "--python", args.python, "--ranks-per-host", str(args.ranks)]
    return [sys.executable, "-m", "doctor", "smoke", *where, "--framework", args.framework]


def _take(argv: Sequence[str], folder: Path, code: int = 0, python: str = sys.executable) -> Taken:
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    shutil.rmtree(folder / LOGS, ignore_errors=True)
    ours = [*argv, "--json", str(report)] if "doctor" in argv else list(argv)
    ran = timed(["timeout", "-k", "1", str(TIMEOUT), *ours], _environment(python))
    said = ran.output
    if (log := folder / LOGS / "worker_0.log").exists():  # msrun prints nothing that its ranks print
        said += log.read_text(errors="replace")
    if ran.rc != code:
        raise SystemExit(f"{' '.join(ours)} ended with {ran.rc}:\n{said[-2000:]}")
    told = json.loads(report.read_bytes()) if report.exists() else None
    return Taken(**{**asdict(ran), "output": said}, report=told)


def _environment(python: str) -> dict[str, str]:
    """One thread a rank, as the smoke run has it; msrun starts `python`."""
    path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "OMP_NUM_THREADS": "1", "PATH": path}


def _memory(argv: Sequence[str], python: str) -> float:
    """The peak memory of a run in bytes: all its processes together, with shared pages counted once."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_environment(python),
    )
    whole, most = psutil.Process(process.pid), 0
    while process.poll() is None:
        most = max(most, sum(map(_proportional, (whole, *whole.children(recursive=True)))))
        time.sleep(0.1)
    return most


def _proportional(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(process.memory_full_info().pss)
    return 0


def _table(
    framework: str,
    taken: Mapping[str, Sequence[Taken]],
    stuck: Sequence[Taken],
    memory: Mapping[str, float],
) -> str:
    launcher = LAUNCHERS[framework]
    wall = {name: median(each.wall for each in runs) for name, runs in taken.items()}
    cpu = {name: median(each.cpu for each in runs) for name, runs in taken.items()}
    ratios = [ours.wall / bare.wall for bare, ours in zip(taken["bare"], taken["smoke"], strict=True)]
    lines = [
        (f"{launcher}, one all-reduce", f"{wall['bare']:.2f} s", ""),
        ("doctor smoke, the whole run", f"{wall['smoke']:.2f} s", ""),
        (
            f"smoke beside {launcher} ({min(ratios):.2f}-{max(ratios):.2f} in {len(ratios)} rounds)",
            f"{median(ratios):.2f} ×",
            f"{TARGET} ×" if framework == "torch" else "",
        ),
        (f"CPU beside {launcher}", f"{cpu['smoke'] / cpu['bare']:.2f} ×", ""),
        (
            f"memory a rank, everything shared out: {memory['smoke'] / MEGA:.0f} MB "
            f"of {memory['bare'] / MEGA:.0f} MB",
            f"{memory['smoke'] / memory['bare']:.2f} ×",
            "1 ×",
        ),
        ("a stuck rank: from the fault to the decision", _latency(stuck), ""),
        (OWN_LIMIT[framework], OWN_SECONDS[framework], ""),
    ]
    return rows("the smoke run", lines)


def _latency(stuck: Sequence[Taken]) -> str:
    seen = [each.report["smoke"].get("latency") for each in stuck if each.report is not None]
    known = [each for each in seen if each is not None]
    return f"{median(known):.2f} s (worst {max(known):.2f})" if known else "not told"


def _split(launcher: str, taken: Mapping[str, Sequence[Taken]]) -> str:
    """Where the time goes. A phase of the smoke run takes as long as its slowest rank."""
    seen: dict[str, list[float]] = {}
    for each in taken["smoke"]:
        assert each.report is not None
        phases = {phase["name"]: phase["seconds"] for phase in each.report["smoke"]["phases"]}
        for name, seconds in {**phases, "the rest": each.wall - sum(phases.values())}.items():
            seen.setdefault(f"smoke: {name}", []).append(seconds)
    for each in taken["bare"]:
        marks = re.search(r"times ([\d.]+) ([\d.]+) ([\d.]+)", each.output)
        assert marks is not None, each.output
        moments = [each.began, *map(float, marks.groups()), each.began + each.wall]
        names = ("start and import", "join", "one all-reduce", "end")
        for name, before, after in zip(names, moments, moments[1:], strict=False):
            seen.setdefault(f"{launcher}: {name}", []).append(after - before)
    return rows("step by step", [(name, f"{median(times):.2f} s", "") for name, times in seen.items()])


def _conditions(args: argparse.Namespace) -> str:
    ask = f"import importlib.metadata as m; print(m.version({args.framework!r}))"
    version = subprocess.run([args.python, "-c", ask], check=True, capture_output=True, text=True).stdout
    return f"{args.ranks} ranks and the controller. {machine(f'{args.framework} {version.strip()}')}"


if __name__ == "__main__":
    sys.exit(main())
