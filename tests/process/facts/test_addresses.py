"""Interfaces and their addresses without `ip`: the kernel says the same to Perl and to Python."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from doctor.api import Ask, Capture, Fact, Run
from doctor.facts.network import ADDRESSES, UNNAMED
from doctor.facts.routing import POLICY
from tests.support.probing import HERE

pytestmark = pytest.mark.skipif(shutil.which("ip") is None, reason="needs ip to compare with")
NEEDED = ("sh", "bash", "dash", "busybox", "awk", "hostname")
SPACE = """
    ip link set lo up; ip link add eth0 type veth peer name far0
    ip link add down0 type veth peer name bare0
    ip link set eth0 up; ip link set far0 up
    ip addr add 10.9.0.5/16 dev eth0; ip addr add 10.9.0.6/16 dev eth0 label eth0:1
    ip addr add 10.9.1.1/32 dev lo; ip addr add 10.8.0.7/24 dev down0
    ip addr add fd00::5/64 dev eth0 nodad; ip addr add fd00::6/64 dev eth0 nodad preferred_lft 0
"""
"""An address of lo in the network of eth0, one with a name, one of an interface that is down, an old one."""


def folder(place: Path, *more: str) -> str:
    """A PATH with a few programs, but without `ip`."""
    for name in (*NEEDED, *more):
        real = sys.executable if name == "python3" else shutil.which(name)
        if real:
            (place / name).symlink_to(os.path.realpath(real))
    return str(place)


def said(fact: Fact[Any], path: str, space: str = "", shell: str = "sh") -> Capture:
    """What the fact's command prints with this PATH, in a network namespace that `space` sets up."""
    assert isinstance(fact.command, Run)
    argv = [{"busybox": "busybox sh"}.get(shell, shell), "-c", fact.command.text(Ask("here"))]
    run = [*argv[0].split(), *argv[1:]]
    if space:
        run = ["unshare", "--net", "sh", "-ec", f'{space}\nPATH=$1; shift; exec "$@"', "sh", path, *run]
    done = subprocess.run(
        run,
        env=dict(os.environ, **({} if space else {"PATH": path})),
        capture_output=True,
        text=True,
        timeout=60,
    )
    return Capture(fact.name, done.returncode, done.stdout, done.stderr)


def addresses(path: str, space: str = "", shell: str = "sh") -> dict[str, tuple[str, ...]]:
    return dict(ADDRESSES.parse(said(ADDRESSES, path, space, shell)))


@pytest.mark.parametrize("language", ["perl", "python3"])
@pytest.mark.parametrize("shell", HERE)
def test_a_host_without_ip_tells_the_same_addresses(shell: str, language: str, tmp_path: Path) -> None:
    path = folder(tmp_path, language)
    found = addresses(path, shell=shell)
    assert "lo" in found
    assert found == addresses(path, shell=shell)
    expected = addresses(os.environ["PATH"])
    assert {name: sorted(own) for name, own in found.items()} == {
        name: sorted(own) for name, own in expected.items()
    }


def test_without_a_language_the_names_are_not_known(tmp_path: Path) -> None:
    asked = said(ADDRESSES, folder(tmp_path))
    assert asked.rc or set(ADDRESSES.parse(asked)) == {UNNAMED}


@pytest.mark.skipif(os.geteuid() != 0, reason="it makes a network namespace")
@pytest.mark.parametrize("lo", ["up", "down"])
@pytest.mark.parametrize("language", ["perl", "python3"])
def test_addresses_that_routes_would_lay_elsewhere(language: str, lo: str, tmp_path: Path) -> None:
    space = f"{SPACE}ip link set lo {lo}"
    found = addresses(folder(tmp_path, language), space)
    assert "10.9.1.1" in found["lo"]
    assert found["eth0:1"] == ("10.9.0.6",)
    assert found["down0"] == ("10.8.0.7",)
    assert "bare0" not in found
    assert "fd00::6" not in found["eth0"]
    expected = addresses(os.environ["PATH"], space)
    assert {name: [own for own in held if not own.startswith("fe80")] for name, held in found.items()} == {
        name: [own for own in held if not own.startswith("fe80")] for name, held in expected.items()
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="it makes a network namespace")
@pytest.mark.parametrize("language", ["perl", "python3"])
def test_a_host_without_any_address(language: str, tmp_path: Path) -> None:
    assert addresses(folder(tmp_path, language), "ip link set lo down") == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="it makes a network namespace")
def test_whether_there_may_be_rules_is_known_without_ip(tmp_path: Path) -> None:
    path = folder(tmp_path)
    none = said(POLICY, path, "ip link set lo up")
    assert (none.rc, none.stdout) == (0, "")
    assert said(POLICY, path, "ip link set lo up; ip rule add from 10.1.1.1 lookup 7").rc == 127
