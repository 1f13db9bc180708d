"""Loads symptoms from the bundled files, `--symptoms DIR`, and entry points of other distributions.

A file of symptoms maps ids to entries (docs/writing-a-symptom.md). A mistake in a bundled file or in one of
`--symptoms` ends the run before any log is opened, and its place is named. Broken entry points are returned.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from doctor.errors import DoctorError, InputErrors, Mistake
from doctor.judge.registry import BrokenSource, bundled
from doctor.logs.model import Symptom
from doctor.logs.symptoms.entry import SymptomEntry, read_entry
from doctor.logs.symptoms.valid import mistakes_of
from doctor.text.yamlfile import YamlTable, read_yaml

ENTRY_POINTS = "cluster_doctor.symptoms"
"""Each entry point names a package (or a path) whose *.yaml files are read."""
MOST_FILES = 1000
NOTHING = "there is no file of symptoms (*.yaml) in it"


@dataclass(frozen=True, slots=True)
class FoundSymptoms:
    symptoms: tuple[Symptom, ...]
    """All of them, in the order of their files."""
    broken: tuple[BrokenSource, ...] = ()


def load_symptoms(
    folders: Iterable[Path] = (), checks: Iterable[str] | None = None, *, trust: bool = True
) -> FoundSymptoms:
    """All symptoms. Raises InputErrors with every mistake, each with its file and line.

    `checks` are the existing check ids; without them, names of checks are not examined. The names,
    patterns and examples of bundled files are examined only without `trust`, by a test.
    """
    known = None if checks is None else list(checks)
    own, wrong = _read_once(bundled("playbooks") / "symptoms")
    mistakes = [*wrong]
    entries = dict(own)
    if not own and not mistakes:
        raise DoctorError("No symptoms came with this installation.", "Install cluster-doctor again.")
    for folder in folders:
        paths = _files(folder)
        if not paths:
            reason = NOTHING if os.path.isdir(folder) else "it is not a folder"
            mistakes.append(Mistake(f"--symptoms: {folder}", None, reason))
            continue
        before = len(mistakes)
        added = _read(paths, entries, mistakes)
        if not added and len(mistakes) == before:
            mistakes.append(Mistake(f"--symptoms: {folder}", None, "there is no symptom in its files"))
        entries |= added
    tried = [entry for id, entry in entries.items() if not trust or id not in own]
    mistakes += mistakes_of(list(entries.values()), tried, known)
    if mistakes:
        raise InputErrors(mistakes)
    broken = _entry_points(entries, known)
    return FoundSymptoms(tuple(entry.symptom for entry in entries.values()), tuple(broken))


@cache
def _read_once(folder: Path) -> tuple[Mapping[str, SymptomEntry], tuple[Mistake, ...]]:
    """The entries of a folder that does not change while we run, and the mistakes in it."""
    mistakes: list[Mistake] = []
    return _read(_files(folder), {}, mistakes), tuple(mistakes)


def _files(folder: Path) -> list[Path]:
    found = (path for ending in ("*.yaml", "*.yml") for path in folder.glob(ending) if path.is_file())
    return sorted(found)[: MOST_FILES + 1]


def _read(
    paths: list[Path], before: dict[str, SymptomEntry], mistakes: list[Mistake]
) -> dict[str, SymptomEntry]:
    """The entries of the files; an id that already exists is a mistake."""
    found: dict[str, SymptomEntry] = {}
    if len(paths) > MOST_FILES:
        mistakes.append(Mistake(str(paths[0].parent), None, f"holds more than {MOST_FILES:,} files"))
        return found
    for path in paths:
        try:
            document = read_yaml(path)
        except InputErrors as error:
            mistakes += error.mistakes
            continue
        mistakes += document.mistakes
        if document.root is None:
            continue
        if not isinstance(document.root, YamlTable):
            mistakes.append(Mistake(str(path), document.root.line, "is not a mapping of ids to symptoms"))
            continue
        for key, node in document.root.rows:
            entry = read_entry(str(path), path.stem, key, node, mistakes)
            if entry is None:
                continue
            first = before.get(key.text) or found.setdefault(key.text, entry)
            if first is not entry:
                where = f"{first.symptom.origin}:{first.line}"
                mistakes.append(Mistake(str(path), key.line, f"{key.text} exists already, in {where}"))
    return found


def _entry_points(entries: dict[str, SymptomEntry], checks: list[str] | None) -> list[BrokenSource]:
    """Add the symptoms of other distributions to `entries`; returns those that cannot be used."""
    broken: list[BrokenSource] = []
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda each: each.name):
        name = f"entry point {point.name}"
        mistakes: list[Mistake] = []
        try:
            found = _read(_files(_folder(point.load())), entries, mistakes)
            mistakes += mistakes_of([*entries.values(), *found.values()], list(found.values()), checks)
        except (Exception, SystemExit) as error:  # a distribution may fail in any way
            broken.append(BrokenSource(name, f"{type(error).__name__}: {error}"))
            continue
        if mistakes or not found:
            broken.append(BrokenSource(name, "; ".join(map(str, mistakes[:5])) or NOTHING))
        else:
            entries |= found
    return broken


def _folder(loaded: object) -> Path:
    if isinstance(loaded, ModuleType):
        return Path(next(iter(getattr(loaded, "__path__", ())), None) or Path(str(loaded.__file__)).parent)
    return Path(str(loaded))
