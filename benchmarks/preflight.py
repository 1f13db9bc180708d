"""`python -m benchmarks.preflight`: how the time of a healthy `doctor preflight` splits, for 1 to 8 hosts.

It is what a job script waits for when nothing is wrong. The lab's hosts share the machine's cores: on hosts
with cores of their own, importing torch and training take as long as on one host.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median

from benchmarks.meter import measure
from benchmarks.split import MARK
from benchmarks.table import columns, machine
from tests.lab import Lab, missing

SIZES = (1, 2, 4, 8)
STEPS = ("connect", "probe", "mesh", "torch import", "smoke", "rest")
TIMEOUT = 600


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.preflight", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", type=int, nargs="+", default=list(SIZES), metavar="N")
    args = parser.parse_args()
    if reason := missing():
        print(f"No benchmark: {reason}.", file=sys.stderr)
        return 2
    taken: dict[int, list[Mapping[str, float]]] = {}
    with Lab(max(args.hosts)) as lab:
        print(_conditions(), end="\n\n", flush=True)
        _preflight(lab, max(args.hosts))  # the first run reads the files into the cache
        for _ in range(args.rounds):
            for hosts in args.hosts:
                taken.setdefault(hosts, []).append(_preflight(lab, hosts))
    print(_table(taken))
    return 0


def _preflight(lab: Lab, hosts: int) -> Mapping[str, float]:
    """Seconds of each step of one run over the first hosts, and of all of them."""
    recording, report = lab.directory / "recording.json", lab.directory / "report.json"
    nodeset = f"node[1-{hosts}]" if hosts > 1 else "node1"
    files = ("--save", str(recording), "--json", str(report))
    _, _, *arguments = lab.doctor_argv("preflight", nodeset, "--python", sys.executable, *files)
    argv = [sys.executable, "-m", "benchmarks.split", *arguments[1:]]
    sample = measure(lab, argv, lab.hosts[:hosts], timeout=TIMEOUT)
    line = next((line for line in sample.output.splitlines() if line.startswith(MARK)), None)
    if sample.rc != 0 or line is None:
        raise SystemExit(f"{' '.join(argv)} ended with {sample.rc}:\n{sample.output[-2000:]}")
    spent: dict[str, float] = json.loads(line.removeprefix(MARK))
    imported = _imported(recording)
    parts = {
        "connect": spent["connect"],
        "probe": spent["probe"],
        "mesh": spent["mesh"],
        "torch import": imported,
        "smoke": spent["smoke"] - imported,
    }
    return {**parts, "rest": sample.wall - sum(parts.values()), "wall": sample.wall}


def _imported(recording: Path) -> float:
    """The time that importing torch took on the slowest host."""
    runs = json.loads(recording.read_bytes())["smoke"]
    if len(runs) != 1:
        raise SystemExit(f"there were {len(runs)} smoke runs, so this is not a healthy preflight")
    return max(host["imported"] or 0.0 for host in runs[0]["hosts"])


def _table(taken: Mapping[int, Sequence[Mapping[str, float]]]) -> str:
    """The median of each step: the medians need not add up to the median of the whole run."""
    lines = [
        [
            "1 host" if hosts == 1 else f"{hosts} hosts",
            *(f"{median(run[step] for run in runs):.2f} s" for step in (*STEPS, "wall")),
            f"{min(run['wall'] for run in runs):.2f}-{max(run['wall'] for run in runs):.2f}",
            str(len(runs)),
        ]
        for hosts, runs in taken.items()
    ]
    return columns(["doctor preflight", *STEPS, "wall", "range", "runs"], lines)


def _conditions() -> str:
    hosts = "Hosts (namespaces, each with its own sshd, 2 ranks each) and the controller, gloo."
    return f"{hosts} {machine('torch ' + version('torch'))}"


if __name__ == "__main__":
    sys.exit(main())
