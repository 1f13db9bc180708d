"""The interpreter that has torch is found on the host, in one process."""

import json
import os
import subprocess
import sys
import venv
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from doctor.api import AMD, NVIDIA, Ask, Run, Vendor
from doctor.facts.software import PYTHON, Python
from tests.support.captures import printed
from tests.support.cases import cases_with, from_cases

LOG = "import os, sys\nopen({!r}, 'a').write(str(os.getpid()) + ' ' + sys.executable + '\\n')\n"


@dataclass(frozen=True, slots=True)
class Found:
    python: Python
    started: list[str]
    """The interpreters that ran, in order."""


class Machine:
    """A home with environments, and a PATH with a python3 that has no torch."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.plain = self.environment("plain")
        self._log = home / "log"

    def environment(self, name: str, torch: str = "") -> Path:
        """An environment at this place in the home, with or without a torch."""
        folder = self.home / name
        venv.create(folder, with_pip=False, symlinks=True)
        (site,) = folder.glob("lib/python3*/site-packages")
        if torch:
            (site / f"torch-{torch}.dist-info").mkdir()
        return folder / "bin" / "python"

    def look(self, python: str | None = None, pythons: tuple[str, ...] | None = ()) -> Found:
        assert isinstance(PYTHON.command, Run)
        shell = PYTHON.command.text(Ask("a", python=python, pythons=pythons))
        watch = self.home / "watch"
        watch.mkdir(exist_ok=True)
        (watch / "sitecustomize.py").write_text(LOG.format(str(self._log)))
        self._log.unlink(missing_ok=True)
        env = {"PATH": f"{self.plain.parent}:/usr/bin:/bin", "HOME": str(self.home), "PYTHONPATH": str(watch)}
        with subprocess.Popen(["sh", "-c", shell], env=env, stdout=subprocess.PIPE, text=True) as ran:
            assert ran.stdout is not None
            said = ran.stdout.read()
        starts = [line.split() for line in self._log.read_text().splitlines()]
        assert {pid for pid, _ in starts} == {str(ran.pid)}, "a second process"
        return Found(printed(PYTHON, said), [path for _, path in starts])


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_callers_environment_is_taken_if_it_has_torch(machine: Machine) -> None:
    own = str(machine.environment("own", "2.7.0"))
    found = machine.look(pythons=("/nowhere/bin/python", own))
    assert (found.python.path, found.python.packages, found.python.chosen) == (own, {"torch": "2.7.0"}, True)
    assert found.started == [own], "the first that has torch is the only one that runs"


VERSION_PY = from_cases(__file__, "VERSION_PY", str)


@cases_with(NVIDIA=NVIDIA, AMD=AMD)
def test_what_its_torch_is_built_for(
    machine: Machine, version: str, cuda: str | None, hip: str | None, built: tuple[Vendor, str] | None
) -> None:
    """Wheels of PyPI and conda do not say so in their metadata."""
    own = machine.environment("own", "2.5.1")
    (site,) = own.parent.parent.glob("lib/python3*/site-packages")
    (site / "torch").mkdir()
    (site / "torch/__init__.py").touch()
    (site / "torch/version.py").write_text(VERSION_PY.format(version=version, cuda=cuda, hip=hip))
    assert machine.look(pythons=(str(own),)).python.built == built


def test_the_libraries_that_its_ranks_would_load(machine: Machine) -> None:
    """Those of torch's packages come first, as their wheels say; a library of 32 bits is passed over."""
    own = machine.environment("own", "2.5.1")
    (site,) = own.parent.parent.glob("lib/python3*/site-packages")
    for folder in ("nvidia/nccl/lib", "nvidia/cuda_runtime/lib/libcudart.so.12", "torch/lib"):
        (site / folder).mkdir(parents=True)
    (site / "nvidia/nccl/lib/libnccl.so.2").touch()
    (site / "torch/lib/librccl.so.1").write_bytes(b"\x7fELF\x01")
    assert machine.look(pythons=(str(own),)).python.libraries == {
        "libnccl.so.2": ("0", str(site / "nvidia/nccl/lib/libnccl.so.2")),
        "libcudart.so.12": ("folder", str(site / "nvidia/cuda_runtime/lib/libcudart.so.12")),
        **{
            name: said
            for name, said in machine.look(pythons=(str(own),)).python.libraries.items()
            if name.startswith("libcudart.so.13")
        },
    }


def test_one_without_torch_gives_way_to_python3(machine: Machine) -> None:
    doctors = str(machine.environment("doctors"))
    found = machine.look(pythons=(doctors,))
    assert (found.python.path, found.python.chosen) == (str(machine.plain) + "3", False)
    assert found.started == [doctors, str(machine.plain) + "3"]


def test_python3_with_torch_is_taken_as_ever(machine: Machine) -> None:
    machine.plain = machine.environment("whole", "2.6.0")
    machine.environment("miniconda3", "2.7.0")
    found = machine.look()
    assert (found.python.packages, found.python.chosen) == ({"torch": "2.6.0"}, False)
    assert len(found.started) == 1


@pytest.mark.parametrize("place", ["miniconda3", "miniconda3/envs/train", ".venv"])
def test_usual_places_are_looked_at_last(machine: Machine, place: str) -> None:
    if "/envs/" in place:
        machine.environment("miniconda3")
    usual = str(machine.environment(place, "2.7.0"))
    found = machine.look()
    assert (found.python.path, found.python.packages) == (usual, {"torch": "2.7.0"})
    assert found.python.chosen
    assert found.started == [str(machine.plain) + "3", usual]


def test_a_broken_one_is_passed_by(machine: Machine) -> None:
    usual = machine.environment("miniconda3", "2.7.0")
    usual.unlink()
    usual.write_bytes(b"\x7fELF of another machine")
    usual.chmod(0o755)
    found = machine.look()
    assert (found.python.path, found.python.packages) == (str(machine.plain) + "3", {})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_one_that_somebody_else_put_there_is_not_run(machine: Machine) -> None:
    usual = machine.environment("miniconda3", "2.7.0")
    for owner, mode in ((4711, 0o755), (0, 0o777)):
        os.chown(usual.parent, owner, owner)
        usual.parent.chmod(mode)
        assert machine.look().started == [str(machine.plain) + "3"]


def test_where_none_is_to_be_looked_for_python3_is_taken(machine: Machine) -> None:
    machine.environment("miniconda3", "2.7.0")
    found = machine.look(pythons=None)
    assert (found.python.path, found.python.elsewhere) == (str(machine.plain) + "3", {})


@pytest.mark.parametrize("named", ["the plain one", "/nowhere/bin/python"])
def test_one_that_was_named_stays_and_the_others_are_told(machine: Machine, named: str) -> None:
    first = str(machine.environment("miniconda3", "2.7.0"))
    own = str(machine.environment("own", "2.6.0"))
    path = str(machine.plain) if named == "the plain one" else named
    found = machine.look(python=path, pythons=(own,))
    assert found.python.path == path
    assert found.python.elsewhere == {own: "2.6.0", first: "2.7.0"}
    assert len(found.started) == 1


def test_with_torch_nothing_else_is_told(machine: Machine) -> None:
    machine.environment("miniconda3", "2.7.0")
    own = str(machine.environment("own", "2.6.0"))
    expected = Python(own, sys.version.split()[0], {"torch": "2.6.0"}, system=frozenset(), asked=own)
    assert replace(machine.look(python=own).python, libraries={}) == expected


def test_a_package_that_was_not_taken_from_an_index_says_from_where(machine: Machine) -> None:
    (site,) = (machine.home / "plain").glob("lib/python3*/site-packages")
    clone, packed, plain = (machine.home / name for name in ("clone", "packed", "no-clone"))
    for folder, files in (
        (clone, {"HEAD": "ref: refs/heads/main\n", "refs/heads/main": f"{'c' * 40}\n"}),
        (packed, {"HEAD": "ref: refs/heads/x\n", "packed-refs": f"# pack\n{'d' * 40} refs/heads/x\n"}),
    ):
        for name, text in files.items():
            (folder / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / ".git" / name).write_text(text)
    sources = {
        "index": None,
        "pinned": {"url": "https://u:secret@h/x.git", "vcs_info": {"vcs": "git", "commit_id": "e" * 40}},
        "own": {"url": f"file://{clone}", "dir_info": {"editable": True}},
        "old": {"url": f"file://{packed}", "dir_info": {"editable": True}},
        "bare": {"url": f"file://{plain}", "dir_info": {"editable": True}},
        "copied": {"url": f"file://{clone}", "dir_info": {}},
    }
    for name, source in sources.items():
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        if source:
            (info / "direct_url.json").write_text(json.dumps(source))
    others = machine.look("python3").python.others
    assert {name: others[name] for name in sources} == {
        "index": "1.0",
        "pinned": f"1.0 ({'e' * 40})",
        "own": f"1.0 ({'c' * 40})",
        "old": f"1.0 ({'d' * 40})",
        "bare": f"1.0 ({plain})",
        "copied": "1.0",
    }
