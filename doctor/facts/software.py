"""Software of a host: the job's Python and its packages, drivers, and the environment that a job inherits."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from doctor.api import Ask, Capture, Fact, Read, Run, UnreadableOutput, files
from doctor.devices import EVERY_VISIBLE, VENDORS, Vendor
from doctor.facts.groups import LOOK, GroupLimit, group_limits
from doctor.job.launch.variables import GIVEN, HOW_MANY_HERE, JOB_VARIABLES, PER_PROCESS, SECRET, is_kept
from doctor.text.hostprogram import host_program
from doctor.text.interpreter import to_type
from doctor.text.printable import clean_line

MOST = 8
"""How many interpreters a host may report."""
JUDGED = ("torch", "torch-npu", "mindspore", "numpy")
MOST_OTHERS = 2000
MOST_OF_SOURCE = 100
"""Characters of a commit or a folder."""
PLAIN = ("python3", "python")


@dataclass(frozen=True, slots=True)
class Python:
    """The interpreter that a job on this host would use, and the packages that it would import. `version` is
    empty if there is no such program.

    `unversioned` packages are only known by their folder, which does not show a version.
    """

    path: str
    version: str
    packages: Mapping[str, str]
    unversioned: frozenset[str] = frozenset()
    hccl: bool | None = None
    """Whether it finds CANN's libraries; None without torch_npu, which would load them."""
    chosen: bool = False
    """Whether it was found by its framework: nobody named it, and it is not what the login calls python3."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Its other packages; the version of one that was not taken from an index says from where."""
    system: frozenset[str] | None = None
    """Those of them that came with the system, for tools of its own; older recordings do not say it."""
    unfit: Mapping[str, str] = field(default_factory=dict)
    """The frameworks that are compiled for other interpreters -> the file that shows it."""
    built: tuple[Vendor, str] | None = None
    """For whose devices its torch is built, and the version of their software."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """If this one was named and lacks what is wanted: other interpreters that have it -> its version."""
    asked: str = ""
    """The name by which it was asked, if one was named; older recordings do not say it."""
    libraries: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Each library that its ranks would load -> its number of bytes, or "folder", and its file."""

    @property
    def has_torch_npu(self) -> bool:
        return "torch-npu" in self.packages or "torch-npu" in self.unversioned

    @property
    def to_type(self) -> str:
        """The path as it may be typed in a command."""
        return to_type(self.path)

    @property
    def other(self) -> str:
        """Another interpreter of the host that has it, as it may be typed; empty if none is known."""
        return next((path for path in self.elsewhere if to_type(path) == path), "")


_LIBRARY = r"^library (\S{1,40}) (\d{1,15}|folder) (/.{1,400})$"


def _python(capture: Capture) -> Python:
    absent = re.match(r"absent (.*)\n?", capture.stdout)
    elsewhere = dict(re.findall(r"^elsewhere (\S+) (\S+)$", capture.stdout, re.MULTILINE)[:MOST])
    if absent:
        return Python(absent[1], "", {}, elsewhere=elsewhere)
    head = re.search(r"^python (\d+\.\d+\S*) (.*)$", capture.stdout, re.MULTILINE)
    if not head:
        raise UnreadableOutput("the interpreter did not print its version")
    there = re.findall(r"^package (\S+) (\S+)$", capture.stdout, re.MULTILINE)
    found = {name: version for name, version in reversed(there) if version != "?"}  # the first counts
    packages = {name: found.pop(name) for name in JUDGED if name in found}
    for name, source in reversed(re.findall(r"^source (\S+) (\S.*)$", capture.stdout, re.MULTILINE)):
        if name in found:
            found[name] = f"{found[name].partition(' ')[0]} ({clean_line(source)[:MOST_OF_SOURCE]})"
    built = dict(re.findall(r"^built (\w+) (\d[\w.+-]{0,30})$", capture.stdout, re.MULTILINE))
    hccl = re.search(r"^hccl (True|False)$", capture.stdout, re.MULTILINE)
    return Python(
        head[2],
        head[1],
        packages,
        frozenset(name for name, _ in there) - packages.keys() - found.keys(),
        hccl and hccl[1] == "True",
        re.search(r"^chosen$", capture.stdout, re.MULTILINE) is not None,
        dict(sorted(found.items())[:MOST_OTHERS]),
        frozenset(re.findall(r"^system (\S+)$", capture.stdout, re.MULTILINE)) & found.keys()
        if re.search(r"^distributions$", capture.stdout, re.MULTILINE)
        else None,
        dict(re.findall(r"^unfit (\S+) (.+)$", capture.stdout, re.MULTILINE)[:MOST]),
        next(((v, f"{v.torch} {built[v.torch]}") for v in VENDORS if v.torch in built), None),
        elsewhere,
        "".join(re.findall(r"^asked (\S+)$", capture.stdout, re.MULTILINE)[:1]),
        {
            name: (size, file)
            for name, size, file in re.findall(_LIBRARY, capture.stdout, re.MULTILINE)[:MOST]
        },
    )


@cache
def _look() -> str:
    """The arguments with which an interpreter runs look.py; `-B` keeps it from writing files."""
    return f"-B -c {shlex.quote(Path(__file__).with_name('look.py').read_text(encoding='utf-8'))}"


def _ask_python(ask: Ask) -> str:
    """Ask the named interpreter, or the first that has what is wanted; it replaces others by exec."""
    if ask.python:
        python = shlex.quote(ask.python)
        others = shlex.join((ask.framework or "any", *(ask.pythons or ())))
        absent = (
            f"{{ echo absent {python}; {_first(PLAIN, f'absent {others}')}; exit; }}; echo asked {python}"
        )
        return f"command -v {python} >/dev/null || {absent}; exec {python} {_look()} list {others}"
    wanted = ask.framework or "any"
    mode = f"plain {wanted}" if ask.pythons is None else f'search {wanted} "$@"'
    return f"{_first((*(ask.pythons or ()), *PLAIN), mode)}; echo absent python3"


def _first(names: tuple[str, ...], words: str) -> str:
    """Run the first of the names that exists; "$@" are those after it."""
    each = f'p=$1; shift; command -v "$p" >/dev/null && exec "$p" {_look()} {words}'
    return f"set -- {' '.join(map(shlex.quote, names))}; while [ $# != 0 ]; do {each}; done"


PYTHON = Fact("python", Run(_ask_python), _python, timeout=10)


@dataclass(frozen=True, slots=True)
class Versions:
    """Those not installed are missing. `firmware_range`: what the Ascend driver works with."""

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


def cann_version(versions: Versions | None) -> tuple[int, int] | None:
    """The first two numbers of the version of the toolkit or of the engine; the later one if both exist."""
    said = [versions.installed.get(name, "") for name in ("cann", "nnae")] if versions else []
    numbers = (re.match(r"(\d{1,4})\.(\d{1,4})", text) for text in said)
    return max(((int(found[1]), int(found[2])) for found in numbers if found), default=None)


_OF_ONE_HOST = re.compile("|".join(("HCCL_IF_IP|MS_WORKER_IP", HOW_MANY_HERE, GIVEN, *EVERY_VISIBLE)))


def of_one_host(name: str) -> bool:
    """Whether a variable is meant to differ from host to host."""
    return PER_PROCESS.fullmatch(name) is not None or _OF_ONE_HOST.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Environment:
    """A login: `absent`: what it names and the host lacks. `groups`: its limits. `user`: name, number."""

    variables: Mapping[str, str]
    absent: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: tuple[GroupLimit, ...] = ()
    user: tuple[str, str] | None = None


def _environment(capture: Capture) -> Environment:
    pairs = (line.partition("=") for line in capture.stdout.splitlines())
    absent: dict[str, tuple[str, ...]] = {}
    for name, path in re.findall(r"^absent (\w{2,40}) (.+)$", capture.stdout, re.MULTILINE):
        absent[name] = (*absent.get(name, ()), path)
    kept = {name: value for name, equals, value in pairs if equals and is_kept(name)}
    user = re.search(r"^uid (\d{1,10}) (\S{1,64})$", capture.stdout, re.MULTILINE)
    return Environment(kept, absent, group_limits(capture.stdout), (user[2], user[1]) if user else None)


_LOOK_FOR = host_program(__file__, "software_environment.sh", job=JOB_VARIABLES, secret=SECRET, groups=LOOK)
"""A zone with a digit may be a rule ("CST-8"), and /etc/localtime counts without TZ, too. Libraries without a
slash are searched for in many places.
"""
ENVIRONMENT = Fact("environment", Run(_LOOK_FOR), _environment)
