"""Makes the recordings that `doctor demo` shows: `python -m tests.lab record` writes them to doctor/demos/.

The hosts are those of the lab, and their devices are emulated; everything else is a real run of doctor over
SSH.
"""

import gzip
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .controller import REPOSITORY
from .gpus import fit_gpus
from .lab import Lab
from .npus import fit_npus

FOLDER = REPOSITORY / "doctor" / "demos"
LAB = "/srv/lab"
"""The path at which the recordings show the files of the lab's hosts."""
_CGROUP = re.compile(r"(/proc/(?:1|self)/cgroup:\d+:[\w,=.-]*:)/[^\\\n]+")
_BOOT = re.compile(r"(/boot_id:)([0-9a-f-]{36})")
TRAINING = ("preflight", "node[1-4]", "--ranks-per-host", "2", "--python", sys.executable)


def healthy(folder: Path) -> Path:
    with Lab(4) as lab:
        return _run(lab, folder / "healthy", 0, *TRAINING)


def hang(folder: Path) -> Path:
    with Lab(4) as lab:
        return _run(lab, folder / "hang", 1, *TRAINING, "--inject", "stuck@3:12")


def npus(folder: Path) -> Path:
    """An optical module that receives no light, and ports that are not reserved."""
    with Lab(8) as lab:
        rack = fit_npus(lab, "atlas-a2")
        dark = rack["node2"][3]
        dark.link_up = False
        for lane in range(4):
            dark.optical[f"Rx Power{lane}"] = "0.0001 mW"
        dark.optical["Rx Los Flag"] = "0xf"
        for name in ("node1", "node2", "node3", "node4", "node6"):
            lab[name].ask("echo >/proc/sys/net/ipv4/ip_local_reserved_ports")
        return _run(lab, folder / "npus", 1, "check", "node[1-8]", "--exam", "full")


def gpus(folder: Path) -> Path:
    """A lost GPU, NVLinks that are down, memory that could not be replaced, and a small /dev/shm."""
    with Lab(8) as lab:
        hosts = fit_gpus(lab)
        hosts["node2"][5].lost()
        hosts["node4"][1].links_down(4, 5)
        hosts["node7"][6].remap(failed=True)
        hosts["node7"][6].ecc(7)
        lab["node6"].shm("64m")
        return _run(lab, folder / "gpus", 1, "check", "node[1-8]", "--exam", "full")


DEMOS: Sequence[Callable[[Path], Path]] = (gpus, npus, hang, healthy)


def _run(lab: Lab, at: Path, code: int, *arguments: str) -> Path:
    raw = lab.directory / "run.json"
    done = lab.doctor(*arguments, "--save", str(raw), timeout=400, env={"COLUMNS": "110"})
    print(done.stdout, done.stderr, sep="\n", flush=True)
    if done.returncode != code:
        raise SystemExit(f"{at.name}: exit code {done.returncode} instead of {code}")
    text = without_this_machine(raw.read_text(), {str(lab.directory): LAB})
    packed = at.with_suffix(".run.json.gz")
    packed.write_bytes(gzip.compress(text.encode(), mtime=0))
    return packed


def without_this_machine(text: str, more: Mapping[str, str]) -> str:
    """Remove the machine's paths, which are in mounts and stacks, and its names, which are in control groups
    and boot ids.
    """
    packages = next(
        place for place in sys.path if place.endswith("site-packages") and Path(place, "torch").is_dir()
    )
    places = {
        **more,
        packages: "/opt/train/lib/python3/site-packages",
        sys.prefix: "/opt/train",
        sys.base_prefix: "/opt/python3",
        str(REPOSITORY): "/opt/cluster-doctor",
        f"/{REPOSITORY.parts[1]}": "/data",
    }
    for ours, shown in places.items():
        text = re.sub(rf"{re.escape(ours)}(?![\w.-])", shown, text)
    return without_names(text)


def without_names(text: str) -> str:
    """Hosts that shared one boot id still share one."""
    boots = {boot: number for number, boot in enumerate(dict.fromkeys(re.findall(_BOOT, text)), 1)}
    text = _BOOT.sub(lambda found: f"{found[1]}00000000-0000-4000-8000-{boots[found.groups()]:012}", text)
    return _CGROUP.sub(r"\1/", text)


def record(names: Sequence[str]) -> None:
    for make in DEMOS:
        if not names or make.__name__ in names:
            made = make(FOLDER)
            print(f"{made.name}: {made.stat().st_size} bytes")
