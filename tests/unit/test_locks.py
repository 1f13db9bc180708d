"""What `make` installs is locked: each version has hashes, and lies within the ranges that users get."""

import importlib
import re
import sys
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name as canonical

from tests.support.paths import ROOT

TOML = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
PROJECT = TOML.loads((ROOT / "pyproject.toml").read_text())
NEEDED = PROJECT["project"]["dependencies"]
EXTRAS = PROJECT["project"]["optional-dependencies"]
BUILD = [*PROJECT["build-system"]["requires"], "editables"]
PINNED = Requirement(re.sub(r"#.*\n", "", (ROOT / "constraints.txt").read_text()).strip())
PYTHONS = ("3.10.13", "3.11.7", "3.12.1", "3.13.0")


def locked(name: str) -> list[Requirement]:
    """The entries of the lock; each has at least one hash."""
    entries = re.split(r"\n(?=\w)", (ROOT / name).read_text().partition("\n")[2].strip())
    for entry in entries:
        assert "    --hash=sha256:" in entry, entry
    return [Requirement(entry.partition("\\")[0].strip()) for entry in entries]


def versions(name: str, python: str) -> dict[str, str]:
    """The versions that it installs for a Python on Linux."""
    here = {
        "python_full_version": python,
        "python_version": python.rpartition(".")[0],
        "sys_platform": "linux",
        "os_name": "posix",
        "platform_machine": "x86_64",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
    found = [each for each in locked(name) if each.marker is None or each.marker.evaluate(here)]
    made: dict[str, str] = {canonical(each.name): str(each.specifier).removeprefix("==") for each in found}
    assert len(made) == len(found), "two versions of one package"
    return made


def wanted(requirements: list[str], python: str = "3.10.13") -> Iterator[Requirement]:
    """Those of others, for a Python on Linux."""
    version = {"python_version": python.rpartition(".")[0], "sys_platform": "linux"}
    for each in map(Requirement, requirements):
        here = each.marker is None or each.marker.evaluate({**version, "platform_machine": "x86_64"})
        if each.name != PROJECT["project"]["name"] and here:
            yield each


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(
    ("lock", "requirements"),
    [
        ("requirements.lock", [*NEEDED, *BUILD]),
        ("requirements-dev.lock", [*NEEDED, *BUILD, *EXTRAS["test"], *EXTRAS["dev"], *EXTRAS["hang"]]),
    ],
)
def test_a_lock_has_what_is_asked_for(lock: str, requirements: list[str], python: str) -> None:
    found = {**versions(lock, python), PINNED.name: str(PINNED.specifier).removeprefix("==")}
    outside = [
        str(each)
        for each in wanted(requirements, python)
        if found[canonical(each.name)] not in each.specifier
    ]
    assert outside == []


@pytest.mark.parametrize("python", PYTHONS)
def test_the_two_locks_agree(python: str) -> None:
    few, all_of_them = versions("requirements.lock", python), versions("requirements-dev.lock", python)
    assert few.items() <= all_of_them.items()


def test_every_range_ends_before_a_version_that_nobody_tried() -> None:
    ranges = [
        *NEEDED,
        *PROJECT["build-system"]["requires"],
        *(each for some in EXTRAS.values() for each in some),
    ]
    assert [each.name for each in wanted(ranges) if "<" not in str(each.specifier)] == []
