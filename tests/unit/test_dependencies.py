"""docs/dependencies.md names what comes with an installation, with the licence that each package states."""

import importlib.metadata
import re
from typing import Any

from packaging.utils import canonicalize_name as canonical

from tests.support.paths import ROOT

BUILD = {"editables", "hatchling", "packaging", "pathspec", "pluggy", "tomlkit", "trove-classifiers"}
"""They make the wheel, and are in the lock for `make`."""
ELSEWHERE = {"colorama"}
"""On Windows only."""
STATED = {
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
    "ISC License": "ISC",
    "LGPLv2+": "LGPL-2.1-or-later",
}


def installed() -> set[str]:
    return {canonical(each.name) for each in importlib.metadata.distributions()}


def table() -> dict[str, str]:
    """Package -> its licence."""
    page = (ROOT / "docs/dependencies.md").read_text()
    rows = re.findall(r"^\| ([\w, -]+) \| ([\w. -]+) \|", page, re.M)
    return {name: licence for names, licence in rows if names != "package" for name in names.split(", ")}


def stated(name: str) -> str:
    about: Any = importlib.metadata.metadata(name)
    classes = [each.rpartition(" :: ")[2] for each in about.get_all("Classifier") or ()]
    said = about.get("License-Expression") or about.get("License") or next(c for c in classes if "MIT" in c)
    return STATED.get(said, str(said))


def test_each_package_is_named_with_its_licence() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    locked = {canonical(name) for name in re.findall(r"^([A-Za-z][\w-]*)==", lock, re.M)}
    named = table()
    assert locked - BUILD - ELSEWHERE == named.keys()
    here = sorted(named.keys() & installed())
    assert len(here) > 15
    assert {name: stated(name) for name in here} == {name: named[name] for name in here}


def test_those_that_are_used_if_they_are_there_state_the_same() -> None:
    """torch names the licences of all that it has in itself."""
    (sentence,) = re.findall(
        r"^Not installed, (.+?)\.$", (ROOT / "docs/dependencies.md").read_text(), re.M | re.S
    )
    named = dict(re.findall(r"(\w+) \(([\w., -]+?)(?: and others)?\)", sentence))
    assert named.keys() == {"torch", "torch_npu", "MindSpore", "kubernetes"}
    for name in {"torch", "kubernetes"} & installed():
        assert named[name] in re.split(r" AND |[()]", stated(name)), name
