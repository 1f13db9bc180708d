"""The GPU proof names what a machine lacks and then writes nothing; over gloo, it runs without a GPU."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu_proof.__main__ import HOST_OF_ITS_OWN
from tests.support.cases import cases, from_cases

ROOT = Path(__file__).parents[3]
SMI = from_cases(__file__, "SMI", str)
TORCH = from_cases(__file__, "TORCH", str)


def prove(folder: Path, *args: str, path: str = "/usr/bin:/bin") -> subprocess.CompletedProcess[str]:
    """`folder/bin` comes first on the PATH, `folder/modules` holds the packages of the interpreter."""
    return subprocess.run(
        [sys.executable, "-m", "tests.gpu_proof", "--out", str(folder / "page.md"), *args],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{folder / 'bin'}:{path}", "PYTHONPATH": str(folder / "modules")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def fit(folder: Path, smi: str, torch: str) -> None:
    (folder / "bin").mkdir()
    (folder / "bin" / "nvidia-smi").write_text(smi)
    (folder / "bin" / "nvidia-smi").chmod(0o755)
    (folder / "modules").mkdir()
    (folder / "modules" / "torch.py").write_text(torch)


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="this machine has an NVIDIA driver")
def test_without_a_gpu_it_says_so_and_writes_nothing(tmp_path: Path) -> None:
    done = prove(tmp_path)
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr == (
        "No proof: there is no nvidia-smi here; run this on a machine with an NVIDIA GPU and its driver.\n"
    )
    assert list(tmp_path.iterdir()) == []


@cases
def test_what_is_missing_is_said_in_one_sentence(smi: str, torch: str, says: str, tmp_path: Path) -> None:
    fit(tmp_path, smi, torch)
    done = prove(tmp_path, "--python", sys.executable)
    assert done.returncode == 3, done.stderr
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"bin", "modules"}


def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path) -> None:
    fit(tmp_path, SMI, "")
    done = prove(tmp_path, "--python", "/opt/none/python")
    assert done.returncode == 3
    assert done.stderr.startswith("No proof: there is no interpreter /opt/none/python; name an interpreter")


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_over_gloo_it_proves_the_same_without_a_gpu(tmp_path: Path) -> None:
    done = prove(
        tmp_path,
        "--backend",
        "gloo",
        "--python",
        sys.executable,
        "--faults",
        "kill",
        "frozen",
        "--ranks-per-gpu",
        "2",
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "page.md").read_text()
    assert "As expected: 4 of 4 that were tried." in text
    assert (
        "| --inject kill@1 | smoke-crash, rank 1, nobody else | fail smoke-crash this machine rank 1:" in text
    )
    assert json.loads((tmp_path / "page.json").read_bytes())["smoke"]


def test_ranks_that_share_a_gpu_are_hosts_of_their_own_for_nccl(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HOST_OF_ITS_OWN)
    ask = "import os\nos.fork() and os.wait()\nprint(os.environ.get('NCCL_HOSTID'), os.getpid())"
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", ask], env=env, capture_output=True, text=True, check=True)
    child, parent = map(str.split, done.stdout.splitlines())
    assert child[0] == f"process-{child[1]}"
    assert parent[0] == "None", "the first process starts no rank itself"
