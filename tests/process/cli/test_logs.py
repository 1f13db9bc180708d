"""`doctor logs` as it is typed: what it refuses, and what a killed run leaves behind."""

import gzip
import os
import shlex
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


def test_the_folder_that_doctor_is_called_in_may_have_any_name_or_none(tmp_path: Path) -> None:
    inside = tmp_path / "run[1]"
    inside.mkdir()
    (inside / "log1").write_text("CUDA out of memory\n")
    done = doctor("logs", "--local", "--since", "1m", cwd=inside)
    assert f"{inside}/log1" in "".join(done.stdout.split()), done.stdout + done.stderr
    gone = f"cd {shlex.quote(str(inside))} && rm -r ../run* && exec {sys.executable} -m doctor logs --local"
    ran = subprocess.run(["sh", "-c", gone], env=environment(), capture_output=True, text=True, check=False)
    assert "internal error" not in ran.stderr


def test_a_packed_log_is_not_cut_into_nonsense(tmp_path: Path) -> None:
    lines = (os.urandom(30).hex() for _ in range(40_000))
    (tmp_path / "a.log.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (tmp_path / "b.log").write_text("all is well\n")
    done = doctor("logs", "--local", "--path", f"{tmp_path}/*.log*", "--max-mb", "1")
    assert done.returncode == 3, done.stdout
    assert "is packed, so it was not cut" in " ".join(done.stdout.split())


def test_without_a_log_of_a_job_there_is_no_all_clear(tmp_path: Path) -> None:
    """Other files do not complain of anything either, also if they were named; a file with steps is a log of
    a job. The kernel of this machine may have killed something today, so it is not asked.
    """
    silent = tmp_path / "bin" / "dmesg"
    silent.parent.mkdir()
    silent.write_text("#!/bin/sh\n")
    silent.chmod(0o755)
    env = {"HOME": str(tmp_path), "PATH": f"{silent.parent}{os.pathsep}{os.environ['PATH']}"}
    (tmp_path / "setup.log").write_text("installed\n")
    done = doctor("logs", "--local", "-v", cwd=tmp_path, env=env)
    said = " ".join(done.stdout.split())
    assert done.returncode == 3, done.stdout
    assert "No log of a job was found" in said
    assert "~/ascend/log" in said
    assert "doctor logs --path '/data/run7/*.log' --local" in said
    assert "setup.log" in said.partition("What was read")[2].replace(" ", "")
    named = doctor("logs", "--local", "--path", f"{tmp_path}/*.log", env=env)
    assert named.returncode == 3, named.stdout
    assert "setup.log:1linenothingtherecomplains" in "".join(named.stdout.split()), "however folded"
    (tmp_path / "train.log").write_text("".join(f"step {n} loss {3 / n:.3f}\n" for n in range(1, 30)))
    assert doctor("logs", "--local", cwd=tmp_path, env=env).returncode == 0
