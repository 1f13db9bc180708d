"""Software of a host: the job's Python and its packages, drivers, and the environment a job would inherit."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from doctor.api import Ask, Capture, Fact, NotUnderstood, Read, Run, files

PACKAGES = ("torch", "torch-npu", "mindspore", "numpy")


@dataclass(frozen=True, slots=True)
class Python:
    """The interpreter that a job on this host would use, and the packages that it would import. Without a
    version there is no such program.

    Of those that are `unversioned` only the folder is there, which says no version.
    """

    path: str
    version: str
    packages: Mapping[str, str]
    unversioned: frozenset[str] = frozenset()


_LOOK = (
    "import os,sys;print('python',sys.version.split()[0],sys.executable);"
    "[print('package',a.replace('_','-'),v)"
    " for p in sys.path if os.path.isdir(p or '.')"
    " for n in sorted(os.listdir(p or '.'))"
    " for a,_,r in [n.partition('-')] if a in ('torch','torch_npu','mindspore','numpy')"
    " for v,_,k in [r.rpartition('.')] if v and k in ('dist-info','egg-info')];"
    "[print('package torch',v)"
    " for p in sys.path for d in [os.path.join(p or '.','torch')]"
    " if os.path.isfile(os.path.join(d,'__init__.py'))"
    " for f in [os.path.join(d,'version.py')]"
    " for t in [open(f,errors='replace').read(9999) if os.path.isfile(f) and os.access(f,4) else '']"
    " for v in [l[13:].strip(' \\'\"') for l in t.split('\\n') if l[:13]=='__version__ =']"
    " + ['?']]"
)
"""Without `re`, whose import costs half as much again as the interpreter's start. A torch that was built in
place or is on PYTHONPATH has no metadata: its folder is looked for, and its version is in a file of its own.
"""


def _ask_python(ask: Ask) -> str:
    """Finds packages by their metadata: importing torch would cost seconds. `-B`: nothing is written."""
    if ask.python:
        python = shlex.quote(ask.python)
        absent = f"{{ echo absent {python}; exit; }}"
        return f"command -v {python} >/dev/null || {absent}; exec {python} -B -c {shlex.quote(_LOOK)}"
    return (
        "for p in python3 python; do command -v $p >/dev/null && "
        f"exec $p -B -c {shlex.quote(_LOOK)}; done; echo absent python3"
    )


def _python(capture: Capture) -> Python:
    absent = re.fullmatch(r"absent (.*)\n?", capture.stdout)
    if absent:
        return Python(absent[1], "", {})
    head = re.search(r"^python (\d+\.\d+\S*) (.*)$", capture.stdout, re.MULTILINE)
    if not head:
        raise NotUnderstood("the interpreter did not say its version")
    packages: dict[str, str] = {}
    there: set[str] = set()
    for name, version in re.findall(r"^package (\S+) (\S+)$", capture.stdout, re.MULTILINE):
        there.add(name)
        if version != "?":
            packages.setdefault(name, version)
    return Python(head[2], head[1], packages, frozenset(there - packages.keys()))


PYTHON = Fact("python", Run(_ask_python), _python, timeout=10)


@dataclass(frozen=True, slots=True)
class Versions:
    """Drivers and toolkits, by name; what is not installed is not there.

    `firmware_range` is what the Ascend driver names as the firmware that it works with: first and last.
    """

    installed: Mapping[str, str]
    firmware_range: tuple[str, str] | None


_VERSION_FILES = {
    "/usr/local/Ascend/driver/version.info": ("driver", r"^[Vv]ersion=(\S+)"),
    "/usr/local/Ascend/firmware/version.info": ("firmware", r"^[Vv]ersion=(\S+)"),
    "/usr/local/Ascend/ascend-toolkit/latest/*-linux/ascend_toolkit_install.info": (
        "cann",
        r"^version=(\S+)",
    ),
    "/usr/local/Ascend/nnae/latest/ascend_nnae_install.info": ("nnae", r"^version=(\S+)"),
    "/proc/driver/nvidia/version": ("nvidia-driver", r"Module\s+(?:for \S+\s+)?(\d+\.\d+\S*)"),
    "/usr/local/cuda/version.json": ("cuda", r'"cuda"[^}]{0,200}?"version"\s*:\s*"([^"]+)"'),
}


def _versions(capture: Capture) -> Versions:
    found = files(capture)
    installed = {}
    for pattern, (name, form) in _VERSION_FILES.items():
        known = re.escape(pattern).replace(r"\*", "[^/]*")
        text = next((text for path, text in found.items() if re.fullmatch(known, path)), "")
        match = re.search(form, text, re.MULTILINE | re.DOTALL)
        if match:
            installed[name] = match[1]
    driver = found.get("/usr/local/Ascend/driver/version.info", "")
    span = re.search(r"^compatible_version_fw=\[([^,\]]+),([^,\]]+)\]", driver, re.MULTILINE)
    return Versions(installed, (span[1].strip(), span[2].strip()) if span else None)


VERSIONS = Fact("versions", Read(tuple(_VERSION_FILES)), _versions)

_MINDSPORE = (
    "MS_(ROLE|SCHED_HOST|SCHED_PORT|WORKER_NUM|SERVER_NUM|NODE_ID|WORKER_IP|(TOPO|NODE|RECEIVE_MSG)_TIMEOUT"
    "|RETRY_INTERVAL_(LOWER|UPPER)|DISABLE_HEARTBEAT|ENABLE_(RECOVERY|LCCL))"
)
"""Others begin with MS_, too."""
_JOB = (
    "(HCCL|NCCL|GLOO|ASCEND|TORCH|PYTORCH|TP|UCX|MINDSPORE|RANK)_[A-Z0-9_]+"
    f"|{_MINDSPORE}|MASTER_(ADDR|PORT)|WORLD_SIZE|OMP_NUM_THREADS|(CUDA|NPU)_VISIBLE_DEVICES"
    "|LD_LIBRARY_PATH|PYTHONPATH|PYTHONHASHSEED"
)
"""Variables that matter to a job, as an extended regular expression that awk and Python read alike."""
JOB_VARIABLES = re.compile(_JOB)


def _environment(capture: Capture) -> Mapping[str, str]:
    pairs = (line.partition("=") for line in capture.stdout.splitlines())
    return {name: value for name, equals, value in pairs if equals and JOB_VARIABLES.fullmatch(name)}


ENVIRONMENT = Fact(
    "environment",
    Run(
        "exec awk 'BEGIN { for (name in ENVIRON) "
        f"if (name ~ /^({_JOB})$/) {{ split(ENVIRON[name], line, "
        '"\\n"); print name "=" line[1] } }\''
    ),
    _environment,
)
