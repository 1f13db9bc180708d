"""`doctor logs` as it is typed: what it refuses, and what a killed run leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from doctor.logs.fetch.private import PREFIX
from tests.support.commands import doctor, environment

HOLD = (
    "from doctor.logs.fetch.private import private_folder as p\nwith p() as f: print(f, flush=True); input()"
)


@pytest.mark.parametrize("file", ["/dev/zero", "/nonexistent"])
def test_a_launch_file_that_is_none_is_refused(file: str) -> None:
    done = doctor("logs", "--local", "--launch", file, "--since", "1m")
    assert done.returncode == 2, done.stderr
    assert f"{file}: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("permissions", "owner", "why"),
    [
        (0o777, None, "others can write to it"),
        pytest.param(
            *(0o700, 65534, "it belongs to another user ("),
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder away"),
        ),
    ],
)
def test_logs_are_kept_in_no_folder_of_others(
    permissions: int, owner: int | None, why: str, tmp_path: Path
) -> None:
    saved = tmp_path / "saved"
    saved.mkdir()
    saved.chmod(permissions)
    if owner is not None:
        os.chown(saved, owner, -1)
    done = doctor("logs", "--local", "--path", f"{tmp_path}/*.log", "--save", str(saved))
    assert done.returncode == 2, done.stderr
    assert f"--save: {saved}: {why}" in " ".join(done.stderr.split())


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    env = {**environment(), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as run:
        assert run.stdout
        left = Path(run.stdout.readline().decode().strip())
        assert left.name.startswith(PREFIX)
        run.kill()
    assert left.exists()
    done = doctor("logs", "--local", "--path", f"{tmp_path}/none/*.log", env=env)
    assert done.returncode == 3, done.stderr
    assert not list(tmp_path.iterdir())
