"""Finds checks: the bundled folder, `--checks DIR`, and entry points of other distributions.

A broken file or plug-in stops nothing: it is returned with the checks, as a line for the report.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

import doctor
from doctor.api import Check
from doctor.errors import DoctorError

ENTRY_POINTS = "cluster_doctor.checks"
PACKAGE = Path(doctor.__file__).parent


@dataclass(frozen=True, slots=True)
class Broken:
    """A source of checks that could not be loaded."""

    origin: str
    reason: str


@dataclass(frozen=True, slots=True)
class FoundChecks:
    checks: tuple[Check, ...]
    broken: tuple[Broken, ...]


def bundled(name: str) -> Path:
    """The folder of that name that belongs to this installation: in the wheel, or next to the sources."""
    packed = PACKAGE / "_bundled" / name
    return packed if packed.is_dir() else PACKAGE.parent / name


def find_checks(folders: Iterable[Path] = ()) -> FoundChecks:
    """All checks, in the order of their files; an id that two files claim goes to the first."""
    checks: dict[str, Check] = {}
    broken: list[Broken] = []
    for number, folder in enumerate((bundled("checks"), *folders)):
        if not folder.is_dir():
            broken.append(Broken(str(folder), "is no folder"))
        for path in sorted(folder.glob("*.py")):
            try:
                module = _load(path, f"_doctor_checks_{number}_{path.stem}")
            except (Exception, SystemExit) as error:  # a plug-in may fail in any way
                broken.append(Broken(str(path), f"{type(error).__name__}: {error}"))
                continue
            _take(_checks_of(module), str(path), checks, broken)
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda e: e.name):
        try:
            loaded = entry.load()
        except (Exception, SystemExit) as error:
            broken.append(Broken(f"entry point {entry.name}", f"{type(error).__name__}: {error}"))
            continue
        found = [loaded] if isinstance(loaded, Check) else _checks_of(loaded)
        _take(found, f"entry point {entry.name}", checks, broken)
    if not checks:
        raise DoctorError(
            "No checks were found.", "The installation is damaged: install cluster-doctor again."
        )
    return FoundChecks(tuple(checks.values()), tuple(broken))


def _take(found: Iterable[Check], origin: str, checks: dict[str, Check], broken: list[Broken]) -> None:
    for check in found:
        if check.id in checks:
            first = checks[check.id].origin
            broken.append(
                Broken(origin, f"check {check.id!r} exists already, in {first}; this one is not used")
            )
        else:
            checks[check.id] = check


def _load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


def _checks_of(module: object) -> list[Check]:
    return [value for value in vars(module).values() if isinstance(value, Check)]
