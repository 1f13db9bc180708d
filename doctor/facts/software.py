"""Software of a host: the job's Python and its packages, drivers, and the environment a job would inherit."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from doctor.api import Ask, Capture, Fact, NotUnderstood, Read, Run, files
from doctor.devices import EVERY_VISIBLE, VENDORS
from doctor.job.launch.variables import HOW_MANY_HERE, JOB_VARIABLES, PER_PROCESS, SECRET, is_kept
from doctor.text.interpreter import to_type


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

    @property
    def to_type(self) -> str:
        """As it may stand in a command."""
        return to_type(self.path)


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
    there = re.findall(r"^package (\S+) (\S+)$", capture.stdout, re.MULTILINE)
    packages = {name: version for name, version in reversed(there) if version != "?"}  # the first counts
    return Python(head[2], head[1], packages, frozenset(name for name, _ in there) - packages.keys())


PYTHON = Fact("python", Run(_ask_python), _python, timeout=10)


@dataclass(frozen=True, slots=True)
class Versions:
    """Drivers and toolkits, by name; what is not installed is not there.

    `firmware_range` is what the Ascend driver names as the firmware that it works with: first and last.
    """

    installed: Mapping[str, str]
    firmware_range: tuple[str, str] | None


_VERSION_FILES = {path: about for vendor in VENDORS for path, about in vendor.versions.items()}


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

_OF_ONE_HOST = re.compile("|".join(("HCCL_IF_IP|MS_WORKER_IP", HOW_MANY_HERE, *EVERY_VISIBLE)))


def of_one_host(name: str) -> bool:
    """Whether a variable is meant to differ from host to host."""
    return PER_PROCESS.fullmatch(name) is not None or _OF_ONE_HOST.fullmatch(name) is not None


def _environment(capture: Capture) -> Mapping[str, str]:
    pairs = (line.partition("=") for line in capture.stdout.splitlines())
    return {name: value for name, equals, value in pairs if equals and is_kept(name)}


ENVIRONMENT = Fact(
    "environment",
    Run(
        "exec awk 'BEGIN { for (name in ENVIRON) "
        f"if (name ~ /^({JOB_VARIABLES})$/ && name !~ /{SECRET}/) {{ split(ENVIRON[name], line, "
        '"\\n"); print name "=" line[1] } }\''
    ),
    _environment,
)
