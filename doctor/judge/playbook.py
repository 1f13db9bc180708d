"""Exams and remedies: what to examine, and what to type against a fault. YAML data, loaded and validated.

playbooks/exams/NAME.yaml       one exam per file
playbooks/remedies/SUBJECT.yaml remedy id -> title (and `zh`) and commands; `{name}` is filled in, quoted;
                                `{name...}` turns many values into one loop instead of a line for each
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from doctor.errors import InputErrors, Mistake, UsageError, suggest
from doctor.expect import FIELDS
from doctor.judge.registry import bundled
from doctor.model import Remedy, Severity, Values
from doctor.text.speech import learn
from doctor.text.yamlfile import Document, convert, read_yaml, walk

if TYPE_CHECKING:
    from doctor.api import Check  # imports all that checks may use, which takes long

MeshMode = Literal["auto", "full", "ring", "none"]
ESSENTIAL = (
    *("host-unreachable", "probe-incomplete", "port-unreachable", "large-packets-lost", "shm-small"),
    *("device-missing", "gpu-missing", "smoke-*"),
)
"""Globs of the checks that must be decided in every exam that includes them; an exam can only add to them."""
NPU_NETWORK = ("device-ip-missing", "device-link-down")
"""Also essential if the job uses the network of NPUs, unless a smoke run over it passed."""


class Exam(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`checks` and `skip` are globs over ids; `essential` adds to those of every exam (ESSENTIAL)."""

    title: str
    checks: tuple[str, ...] = ("*",)
    skip: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    mesh: MeshMode = "auto"
    smoke: bool = False
    version: int | None = None
    """The number of a closed list of checks, which changes with each change of what may be a fault."""
    alone: bool = False
    """Each host is judged by itself, for whatever job may come: only what is certain is a fault, and no job
    has a say. What only a comparison with other hosts shows is a warning."""
    of_host: tuple[str, ...] = ()
    """Globs of checks whose findings in a container are about the container: there they are warnings."""
    severity: dict[str, Severity] = {}
    expect: dict[str, str | int | float] = {}


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A remedy as its file has it; `zh` is its title in Chinese."""

    title: str
    commands: tuple[str, ...]
    zh: str = ""
    mends: bool = False
    """Whether the fault is gone once the commands are typed as they are; others only show more of it."""
    devices: dict[str, tuple[str, ...]] = {}
    """Vendor -> additional commands if devices of that vendor were found."""

    def on(self, vendors: Container[str]) -> tuple[str, ...]:
        """The commands for a host with devices of these vendors."""
        return (*self.commands, *(c for name, own in self.devices.items() if name in vendors for c in own))


@dataclass(frozen=True, slots=True)
class Playbook:
    """All remedies by id."""

    recipes: Mapping[str, Recipe]

    def fill(self, name: str, values: Values, vendors: Container[str] = ()) -> Remedy | None:
        """The commands to type; one with unknown values is left out rather than shown with holes."""
        recipe = self.recipes.get(name)
        if recipe is None:
            return None
        found = tuple(dict.fromkeys(c for command in recipe.on(vendors) for c in _fill(command, values)))
        return Remedy(name, found) if found else None


_HOLE = re.compile(r"\{(\w+)(\.\.\.)?\}")
_INERT = re.compile(r"[A-Za-z0-9_.:,@%+-]+")
_FEW = 2
"""Up to this number, values get a line each even if a loop is allowed."""


def placeholders(command: str) -> list[str]:
    return [hole[1] for hole in _HOLE.finditer(command)]


def _fill(command: str, values: Values) -> Iterator[str]:
    """The command, once for each combination of values; one loop if `{name...}` has more than a few.

    Every value is quoted. Inside quotes of the command itself, quoting would end them: only values that
    mean nothing to a shell or sed are filled in there; for other values the command is left out. It is also
    left out if a line break in a value would end a comment.
    """
    names = list(dict.fromkeys(placeholders(command)))
    if not set(names) <= set(values):
        return
    choices = {name: v if isinstance(v := values[name], tuple) else (v,) for name in names}
    if "#" in command and not all(str(value).isprintable() for some in choices.values() for value in some):
        return
    loop = next((h[1] for h in _HOLE.finditer(command) if h[2] and len(choices[h[1]]) > _FEW), "")
    each = " ".join(shlex.quote(str(value)) for value in choices.pop(loop, ()))
    for chosen in product(*choices.values()):
        quoted = {name: shlex.quote(str(value)) for name, value in zip(choices, chosen, strict=True)}
        quoted[loop] = '"$n"'
        if not set("'\"") & set(command) or all(_INERT.fullmatch(str(value)) for value in chosen):
            line = _HOLE.sub(lambda hole, quoted=quoted: quoted[hole[1]], command)  # type: ignore[misc]
            yield f"for n in {each}; do {line}; done" if loop else line


def exams() -> dict[str, Path]:
    return {path.stem: path for path in sorted((bundled("playbooks") / "exams").glob("*.yaml"))}


def load_exam(name: str, checks: Sequence[Check]) -> Exam:
    """A bundled exam by name, or any exam by the path of its file."""
    known = exams()
    if name not in known and not re.search(r"[./]", name):
        raise UsageError(no_such("exam", name, known), "`doctor list` shows them.")
    path = known.get(name, Path(name))
    document = read_yaml(path)
    exam: Exam = convert(document, Exam, str(path))
    _validate(exam, document, str(path), checks)
    return exam


def _validate(exam: Exam, document: Document, file: str, checks: Sequence[Check]) -> None:
    """Every name in an exam must exist; a glob must match a check."""
    ids = [check.id for check in checks]
    lines = dict(walk(document.root))
    mistakes: list[Mistake] = []

    def unknown(path: str, name: str, what: str, known: Iterable[str]) -> None:
        near = suggest(name, known)
        text = f"{what} is called {name!r}" + (f"; {near}" if near else "")
        mistakes.append(Mistake(file, lines.get(path), text))

    for key in ("checks", "skip", "essential", "of_host"):
        for index, glob in enumerate(getattr(exam, key)):
            if not any(matches(id, [glob]) for id in ids):
                unknown(f"$.{key}[{index}]", glob, "no check", ids)
    for id in exam.severity:
        if id not in ids:
            unknown(f"$.severity.{id}", id, "no check", ids)
        elif exam.severity[id] is not Severity.FAIL and _fails(id, checks):
            where = lines.get(f"$.severity.{id}")
            mistakes.append(
                Mistake(file, where, f"{id} is essential to every exam: what it finds is a fault")
            )
    for key in exam.expect:
        if key not in FIELDS:
            unknown(f"$.expect.{key}", key, "nothing", FIELDS)
    if mistakes:
        raise InputErrors(mistakes)


def _fails(id: str, checks: Sequence[Check]) -> bool:
    """Whether it is an essential check whose findings are faults. A smoke run must pass in any case."""
    from doctor.facts.smoke import SMOKE

    (check,) = (check for check in checks if check.id == id)
    return matches(id, ESSENTIAL) and check.severity is Severity.FAIL and SMOKE not in check.needs


def no_such(what: str, name: str, known: Iterable[str]) -> str:
    """The message for an unknown name, with the names that may be meant."""
    near = suggest(name, known)
    return f"There is no {what} {name!r}" + (f"; {near}" if near else ".")


@cache
def load_remedies() -> Playbook:
    paths = sorted((bundled("playbooks") / "remedies").glob("*.yaml"))
    files = [convert(read_yaml(path), dict[str, Recipe], str(path)) for path in paths]
    recipes = {name: recipe for file in files for name, recipe in file.items()}
    for recipe in recipes.values():
        learn(recipe.title, recipe.zh)
    return Playbook(recipes)


def matches(id: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(id, glob) for glob in globs)


LEAST = 3
"""The least number of characters of a part of a name: shorter parts match too much."""


def by_part(word: str, names: Iterable[str]) -> list[str]:
    """The names with that part: `shm`, `firewall`; a part at the start of one of their words is preferred."""
    having = [name for name in names if word in name and len(word) >= LEAST]
    return [name for name in having if f"-{word}" in f"-{name}"] or having


def widened(option: str, globs: Sequence[str], ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """The globs, with each part of a name replaced by all checks that have it; and notes that say so."""
    taken: list[str] = []
    notes: list[str] = []
    for glob in globs:
        found = [] if set("*?[") & set(glob) or glob in ids else by_part(glob, ids)
        taken += found or [glob]
        notes += [f"{option} {glob} stands for {', '.join(found)}"] if found else []
    return taken, notes


def select(
    checks: Sequence[Check],
    exam: Exam,
    only: Sequence[str],
    skip: Sequence[str],
    *,
    mesh: bool = True,
    smoke: bool = True,
    lacking: Collection[object] = (),
) -> tuple[tuple[Check, ...], tuple[str, ...]]:
    """The checks to run, and the ids that the user left out. Without a mesh or a smoke run, the checks that
    need one are left out. A check that needs a run value
    of `lacking`, such as a baseline, is not one of this run.

    A glob that matches nothing is a mistake.
    """
    from doctor.facts.smoke import SMOKE

    ids = [check.id for check in checks]
    for glob in (*only, *skip):
        if not any(matches(id, [glob]) for id in ids):
            raise UsageError(no_such("check", glob, ids), "`doctor list` shows all.")

    there = [c for c in checks if not any(need in lacking for need in c.needs)]
    wanted = [c for c in there if matches(c.id, exam.checks) and not matches(c.id, exam.skip)]
    chosen = [
        c.id
        for c in wanted
        if (not only or matches(c.id, only))
        and not matches(c.id, skip)
        and (mesh or not meets(c))
        and (smoke or SMOKE not in c.needs)
    ]
    if not chosen:
        raise UsageError("No check is left to run.", "--only, --skip and --mesh none leave nothing.")
    kept = [c for c in checks if c.id in chosen or is_always_made(c)]
    return tuple(kept), tuple(check.id for check in wanted if check not in kept)


def is_always_made(check: Check) -> bool:
    """Whether it is one of the checks of every run: the host could be asked, and its answer is complete."""
    from doctor.facts.run import CUT_OFF, UNREACHED

    return bool({UNREACHED, CUT_OFF} & set(check.needs))


def meets(check: Check) -> bool:
    """Whether it needs hosts to reach each other, in the mesh or in a second round."""
    from doctor.api import Fact
    from doctor.facts.run import MESH

    return MESH in check.needs or any(isinstance(need, Fact) and need.later for need in check.needs)
