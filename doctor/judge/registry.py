"""Finds checks: in the bundled folder, `--checks DIR`, and entry points of other distributions.

A check that was never loaded looks like one that passed. So a bundled file that cannot be loaded is a broken
installation, and one of `--checks` is a mistake in the input: both end the run before any host is asked. A
broken entry point is returned with the checks and counts in the verdict.
"""

from __future__ import annotations

import importlib.util
import os
import re
import stat
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import doctor
from doctor.errors import DoctorError, InputErrors, Mistake
from doctor.text.outfile import why_not_ours, why_others_can_change

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

    from doctor.api import Check

ENTRY_POINTS = "cluster_doctor.checks"
PACKAGE = Path(doctor.__file__).parent
NOTHING = "there is no check in it"
_DECLARED = re.compile(r"^@check\(\s*\"([a-z0-9-]+)\"", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class BrokenSource:
    """A source of checks that could not be loaded."""

    origin: str
    reason: str


@dataclass(frozen=True, slots=True)
class FoundChecks:
    checks: tuple[Check, ...]
    broken: tuple[BrokenSource, ...]


def bundled(name: str) -> Path:
    """The folder of that name in this installation: in the wheel, or next to the sources."""
    packed = PACKAGE / "_bundled" / name
    return packed if packed.is_dir() else PACKAGE.parent / name


def check_ids(folders: Sequence[Path] = ()) -> tuple[str, ...]:
    """The ids of all checks. If all are bundled, they are read from the source files, which is faster."""
    if folders or _entry_points():
        return tuple(check.id for check in find_checks(folders).checks)
    files = sorted(bundled("checks").glob("*.py"))
    return tuple(id for path in files for id in _DECLARED.findall(path.read_text(encoding="utf-8")))


def find_checks(folders: Iterable[Path] = ()) -> FoundChecks:
    """All checks, in the order of their files; if two entry points claim an id, the first one keeps it."""
    checks: dict[str, Check] = {}
    if broken := _take_folder(bundled("checks"), 0, checks):
        told = "; ".join(f"{each.origin} could not be loaded: {each.reason}" for each in broken)
        raise DoctorError(f"{told}.", "The installation is damaged: install cluster-doctor again.")
    for number, folder in enumerate(folders, 1):
        broken += _take_folder(folder, number, checks)
    if broken:
        raise InputErrors(
            [Mistake(f"--checks: {each.origin}", None, each.reason) for each in broken],
            "Fix it or leave it out: what cannot be loaded would not be examined.",
        )
    for entry in sorted(_entry_points(), key=lambda e: e.name):
        name = f"entry point {entry.name}"
        try:
            own = _checks_of(entry.load())
        except (Exception, SystemExit) as error:
            broken.append(BrokenSource(name, f"{type(error).__name__}: {error}"))
            continue
        broken += _take(own, name, checks) if own else [BrokenSource(name, NOTHING)]
    return FoundChecks(tuple(checks.values()), tuple(broken))


def _entry_points() -> EntryPoints:
    from importlib.metadata import entry_points  # with what reads e-mail

    return entry_points(group=ENTRY_POINTS)


@cache
def checks_in(file: str) -> tuple[Check, ...]:
    """The checks of one bundled file, without those of any other."""
    path = bundled("checks") / file
    return tuple(_checks_of(_load_bundled(path, f"_doctor_checks_0_{path.stem}", None)))


def _take_folder(folder: Path, number: int, checks: dict[str, Check]) -> list[BrokenSource]:
    """Returns what cannot be used. What others may exchange by name is not what the user asked for."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:  # also if it may not be read
        return [BrokenSource(str(folder), "it is not a folder")]
    try:
        if number and (why := _why_not_run(folder, os.fstat(handle))):
            return [BrokenSource(str(folder), why)]
        broken: list[BrokenSource] = []
        found = 0
        for name in sorted(each for each in os.listdir(handle) if each.endswith(".py")):
            path = folder / name
            try:
                source = _source(name, handle, path) if number else None
                load = _load if number else _load_bundled
                own = _checks_of(load(path, f"_doctor_checks_{number}_{path.stem}", source))
            except _NotOurs as error:
                broken.append(BrokenSource(str(path), str(error)))
                continue
            except (Exception, SystemExit) as error:  # a check file may fail in any way
                broken.append(BrokenSource(str(path), f"{type(error).__name__}: {error}"))
                continue
            found += len(own)
            broken += _take(own, str(path), checks)
        return broken if broken or found else [BrokenSource(str(folder), NOTHING)]
    finally:
        os.close(handle)


class _NotOurs(Exception):
    pass


def _source(name: str, folder: int, path: Path) -> bytes:
    """The text of a file. Raises _NotOurs if it is not a file, which might never end, or not ours alone."""
    with open(os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder), "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise _NotOurs("it is not a file")
        if why := why_not_ours(path) or why_others_can_change(about):
            raise _NotOurs(why)
        return file.read()


def _why_not_run(folder: Path, about: os.stat_result) -> str:
    """A sticky folder protects its files, but everybody can add more, including compiled ones."""
    return (
        why_not_ours(folder)
        or why_others_can_change(about)
        or ("others can add files to it" if about.st_mode & 0o022 and about.st_mode & stat.S_ISVTX else "")
    )


def _take(found: Iterable[Check], origin: str, checks: dict[str, Check]) -> list[BrokenSource]:
    broken = []
    for check in found:
        first = checks.setdefault(check.id, check)
        if first is not check:
            broken.append(BrokenSource(origin, f"check {check.id!r} exists already, in {first.origin}"))
    return broken


def _load(path: Path, name: str, source: bytes | None = None) -> ModuleType:
    """The module of a file; of its text, if that is given."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("it is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up by name
    if source is None:
        spec.loader.exec_module(module)
    else:
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    return module


_load_bundled = cache(_load)
"""Files of this installation do not change while we run."""


def _checks_of(loaded: object) -> list[Check]:
    """A check itself, or the checks of a module."""
    from doctor.api import Check  # with all that checks may use, which takes long

    if isinstance(loaded, Check):
        return [loaded]
    return [value for value in vars(loaded).values() if isinstance(value, Check)]
