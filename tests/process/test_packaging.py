"""The built wheel, in a clean environment, is the same tool as the source tree."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.paths import ROOT


def run(*argv: object, cwd: Path) -> str:
    done = subprocess.run([str(a) for a in argv], cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def doctor(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command in a new environment that has only the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("clean")
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    run(folder / "venv/bin/python", "-m", "pip", "install", "-q", wheel, cwd=folder)
    return folder / "venv/bin/doctor"


def test_the_wheel_installs_only_the_package(wheel: Path) -> None:
    """Top-level folders called checks or playbooks would clash with those of other packages."""
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"doctor"}


def test_the_wheel_and_the_sources_list_the_same_checks(doctor: Path, tmp_path: Path) -> None:
    for words in (("list",), ("list", "schema")):
        of_wheel = run(doctor, *words, cwd=tmp_path)
        of_sources = run(sys.executable, "-m", "doctor", *words, cwd=ROOT)
        # newer versions of msgspec leave out how the lines of a docstring are indented
        assert of_wheel.replace("\\n    ", "\\n") == of_sources.replace("\\n    ", "\\n")


def test_the_wheel_has_the_chinese_pages(doctor: Path, tmp_path: Path) -> None:
    explain = ("explain", "swap-active", "--lang", "zh")
    page = run(doctor, *explain, cwd=tmp_path)
    assert "\n影响\n" in page
    assert page == run(sys.executable, "-m", "doctor", *explain, cwd=ROOT)


@pytest.mark.main
def test_the_wheel_examines_this_machine(doctor: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [doctor, "check", "--local", "--json", "-"], cwd=tmp_path, capture_output=True, timeout=60
    )
    assert done.returncode in (0, 1, 3), done.stderr
    assert b'"schema": 2' in done.stdout


def test_the_wheel_ships_its_demos(doctor: Path, tmp_path: Path) -> None:
    assert "smoke-hang" in run(doctor, "demo", "hang", cwd=tmp_path)


def test_a_plain_install_brings_py_spy(doctor: Path, tmp_path: Path) -> None:
    code = "import os; from doctor.live.pyspy import for_host; print(for_host(os.uname().machine)[1])"
    assert run(doctor.parent / "python", "-c", code, cwd=tmp_path) == "\n", "nothing is missing"


def test_the_wheel_ships_its_mesh_agents(doctor: Path, tmp_path: Path) -> None:
    python = doctor.parent / "python"
    code = "from doctor.mesh.run import mesh_script; print(len(mesh_script().stdin) > 1000)"
    assert run(python, "-c", code, cwd=tmp_path) == "True\n"
