"""The single file of a release: it runs on each Python at hand, from a folder that nobody can write to."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
PYTHONS = [Path(sys.executable).resolve(), *sorted(PYENV.glob("3.1[0-4].*/bin/python3"))]
TOO_OLD = sorted(PYENV.glob("3.[6-9].*/bin/python3"))
EXIT_BROKEN = 70
DAMAGED = "this file is cut short or damaged, and nothing was run. Copy it again."


@pytest.fixture(scope="module")
def one_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file, alone in a folder without the right to write."""
    subprocess.run(["make", "-s", ".venv-release/.installed"], cwd=ROOT, check=True, timeout=500)
    python, folder = ROOT / ".venv-release/bin/python", tmp_path_factory.mktemp("one")
    build = (python, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder)
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=500)
    (wheel,) = folder.glob("*.whl")
    file = folder / "alone" / "doctor.pyz"
    file.parent.mkdir()
    made = (python, ROOT / "scripts/onefile/build.py", wheel, os.uname().machine, file)
    subprocess.run(made, check=True, timeout=500)
    file.parent.chmod(0o555)
    return file


def typed(python: Path, file: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command in an environment that has nothing but a home."""
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [python, file, *words], cwd=home, env=env, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.parts[-3])
def test_it_names_a_culprit_on_each_python(python: Path, one_file: Path, tmp_path: Path) -> None:
    done = typed(python, one_file, tmp_path, "demo", "loader")
    assert "The job waits for rank 5 on node3." in done.stdout, done.stderr
    looked = typed(python, one_file, tmp_path, "check", "--local", "--json", "-")
    assert looked.returncode in (0, 1, 3), looked.stderr
    assert '"schema": 2' in looked.stdout
    (cache,) = tmp_path.glob(".cache/*")
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


def test_it_brings_py_spy_and_the_relay_of_run(one_file: Path, tmp_path: Path) -> None:
    assert typed(PYTHONS[0], one_file, tmp_path, "--version").returncode == 0
    (site,) = tmp_path.glob(".cache/*/*/site-packages")
    code = f"import os, site; site.addsitedir({str(site)!r}); from doctor.live.pyspy import for_host; "
    said = subprocess.run(
        [PYTHONS[0], "-I", "-S", "-c", f"{code} print(for_host(os.uname().machine)[1])"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert said.stdout == "\n", f"py-spy is missing: {said.stdout}{said.stderr}"
    done = typed(PYTHONS[0], one_file, tmp_path, "run", "--no-preflight", "--", "sh", "-c", "exit 7")
    assert done.returncode == 7, done.stderr


@pytest.mark.parametrize("python", TOO_OLD, ids=lambda path: path.parts[-3])
def test_an_old_python_is_told(python: Path, one_file: Path, tmp_path: Path) -> None:
    done = typed(python, one_file, tmp_path, "--version")
    assert (done.returncode, done.stdout) == (EXIT_BROKEN, "")
    assert "Python 3.10 to 3.14 is needed" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_damaged_file_runs_nothing_and_leaves_nothing(one_file: Path, tmp_path: Path) -> None:
    bad = tmp_path / "doctor.pyz"
    shutil.copy(one_file, bad)
    with bad.open("r+b") as file:
        file.seek(bad.stat().st_size // 2)
        file.write(b"x" * 64)
    done = typed(PYTHONS[0], bad, tmp_path, "--version")
    assert (done.returncode, done.stdout) == (EXIT_BROKEN, "")
    assert done.stderr == f"doctor: {DAMAGED}\n"
    assert not (tmp_path / ".cache").exists()


@pytest.mark.parametrize("less", [1, 20, 1000, 10_000_000])
def test_a_cut_file_says_so_and_runs_nothing(less: int, one_file: Path, tmp_path: Path) -> None:
    bad = tmp_path / "doctor.pyz"
    bad.write_bytes(one_file.read_bytes()[:-less])
    done = typed(Path("/bin/sh"), bad, tmp_path, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (EXIT_BROKEN, "", f"doctor: {DAMAGED}\n")
    for python in {*PYTHONS, *TOO_OLD}:
        done = typed(python, bad, tmp_path, "--version")
        assert (done.returncode, done.stdout) == (1, "")
        assert DAMAGED in done.stderr


def test_a_longer_file_runs_nothing(one_file: Path, tmp_path: Path) -> None:
    bad = tmp_path / "doctor.pyz"
    bad.write_bytes(one_file.read_bytes() + b"\n")
    done = typed(PYTHONS[0], bad, tmp_path, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (EXIT_BROKEN, "", f"doctor: {DAMAGED}\n")


def test_it_starts_by_its_name(one_file: Path, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PATH": f"{PYTHONS[0].parent}:/usr/bin:/bin"}
    done = subprocess.run([one_file, "--version"], env=env, capture_output=True, text=True, timeout=300)
    assert done.stdout.startswith("cluster-doctor "), done.stderr


def test_it_does_not_unpack_where_others_can_write(one_file: Path, tmp_path: Path) -> None:
    cache = tmp_path / ".cache/cluster-doctor"
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    done = typed(PYTHONS[0], one_file, tmp_path, "--version")
    assert (done.returncode, done.stdout) == (EXIT_BROKEN, "")
    assert "others can write there. SHIV_ROOT names another folder." in done.stderr
