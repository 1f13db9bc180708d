"""docs/install.md: the ways to install doctor that can be run here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
NEWER = [
    path
    for path in sorted(PYENV.glob("3.1[0-9].*/bin/python"))
    if path.parts[-3].split(".")[:2] != sys.version.split(".")[:2]
]
"""Other interpreters that doctor supports; that of the tests is in test_packaging.py."""


def run(*argv: object, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(a) for a in argv], cwd=cwd, capture_output=True, text=True, timeout=500, env=env
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def shows_a_culprit(doctor: Path, cwd: Path) -> None:
    assert run(doctor, "--version", cwd=cwd).startswith("cluster-doctor ")
    assert "The job waits for rank 5 on node3." in run(doctor, "demo", "loader", cwd=cwd)


@pytest.mark.long
@pytest.mark.parametrize("python", NEWER, ids=lambda path: path.parts[-3])
def test_pip_install_on_another_python(python: Path, tmp_path: Path) -> None:
    run(python, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    run(tmp_path / "venv/bin/pip", "install", "-q", ROOT, cwd=tmp_path)
    shows_a_culprit(tmp_path / "venv/bin/doctor", tmp_path)


def test_a_wheelhouse_needs_no_network(tmp_path: Path) -> None:
    """The wheels are fetched as for another machine; then pip has no index and no way out."""
    wheels = tmp_path / "wheels"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    platforms = [
        word
        for tag in ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
        for word in ("--platform", f"{tag}_{os.uname().machine}")
    ]
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", wheels, ROOT, cwd=tmp_path)
    (own,) = wheels.glob("*.whl")
    download = ("-m", "pip", "download", "-q", "-d", wheels, "--only-binary", ":all:")
    run(sys.executable, *download, "--python-version", version, *platforms, own, cwd=tmp_path)
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    install = ("install", "-q", "--no-index", "--find-links", wheels, "cluster-doctor")
    nowhere = {"PATH": os.environ["PATH"], "https_proxy": "http://127.0.0.1:9", "PIP_CONFIG_FILE": os.devnull}
    run(tmp_path / "venv/bin/pip", *install, cwd=tmp_path, env=nowhere)
    shows_a_culprit(tmp_path / "venv/bin/doctor", tmp_path)
