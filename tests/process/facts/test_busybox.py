"""A host with only busybox: a fact is the same as elsewhere, or missing with a reason, but never wrong."""

import os
import shutil
import subprocess
from typing import Any

import pytest

from doctor.judge.engine import Facts
from doctor.model import MissingFact
from tests.support.captures import every_fact
from tests.support.cases import from_cases
from tests.support.probing import TOKEN, ask

pytestmark = pytest.mark.skipif(shutil.which("busybox") is None, reason="needs busybox")
FACTS = every_fact()
CHANGES = from_cases(__file__, "CHANGES", set[str])
"""Facts that change from one moment to the next."""


def values(shell: str, env: dict[str, str]) -> dict[str, Any]:
    heard = ask(list(FACTS.values()), shell, env)
    assert heard.complete
    facts = Facts({"here": heard})
    return {name: facts.get("here", fact) for name, fact in FACTS.items()}


@pytest.fixture(scope="module")
def busybox(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All facts on a host on which every command is an applet; sbin is hidden by names that fail."""
    folder = tmp_path_factory.mktemp("applets")
    applets = subprocess.run(["busybox", "--list"], capture_output=True, text=True, check=True).stdout.split()
    for applet in applets:
        (folder / applet).symlink_to(str(shutil.which("busybox")))
    with subprocess.Popen(["true"]) as zombie:  # without a zombie, ps is not called
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        return values("busybox", {"PATH": str(folder)})


@pytest.fixture(scope="module")
def ordinary() -> dict[str, Any]:
    return values("dash", {"PATH": os.environ["PATH"]})


@pytest.mark.parametrize("name", FACTS)
def test_a_fact_on_busybox(name: str, busybox: dict[str, Any], ordinary: dict[str, Any]) -> None:
    found, expected = busybox[name], ordinary[name]
    if isinstance(found, MissingFact):
        assert found.reason
        assert "broke" not in found.reason
        assert "damaged" not in found.reason
    elif name == "spaces":
        places = [(place.path, place.mount, place.total, place.writable) for place in found.places]
        assert places == [(p.path, p.mount, p.total, p.writable) for p in expected.places]
    elif name not in CHANGES | {"python", "firewall"}:
        assert found == expected


def test_what_busybox_cannot_report_is_missing_with_a_reason(busybox: dict[str, Any]) -> None:
    missing = {name: value.reason for name, value in busybox.items() if isinstance(value, MissingFact)}
    assert missing["processes"] == "ps printed no process"
    assert missing["names"] == "its command is not installed there"


def test_what_busybox_can_report(busybox: dict[str, Any], ordinary: dict[str, Any]) -> None:
    for name in ("identity", "addresses", "ports", "limits", "routes", "links", "spaces", "clock", "memory"):
        assert not isinstance(busybox[name], MissingFact), name
    assert abs(busybox["clock"] - ordinary["clock"]) < 60
    assert busybox["memory"].total == ordinary["memory"].total


def test_the_token_is_not_in_what_is_read(ordinary: dict[str, Any]) -> None:
    assert TOKEN not in repr(ordinary)
