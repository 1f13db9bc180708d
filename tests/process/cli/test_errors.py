"""A user's mistake is reported in a sentence or two with exit code 2; an internal error is 70, never a
traceback.
"""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from doctor.recording import save
from tests.support.cases import cases, from_cases
from tests.support.commands import doctor, environment
from tests.support.recordings import recording

INVENTORY = from_cases(__file__, "INVENTORY", str)


def refused(arguments: list[str], *words: str, lines: int = 2) -> str:
    ran = doctor(*arguments)
    assert ran.returncode == 2, ran.stderr
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr
    assert ran.stderr.count("\n") <= lines
    for word in words:
        assert word in ran.stderr
    return ran.stderr


@cases
def test_mistakes_with_a_local_run(arguments: list[str], words: list[str]) -> None:
    refused(["check", "--local", *arguments], *words)


@cases
def test_mistakes_of_a_command_line(arguments: list[str], words: list[str]) -> None:
    refused(["check", *arguments], *words, lines=4)


@cases
def test_a_list_of_hosts_that_came_out_empty(arguments: list[str], tmp_path: Path) -> None:
    """As in `doctor check $HOSTS -q`, with HOSTS unset."""
    ran = doctor(*arguments, cwd=tmp_path, env={"SLURM_JOB_ID": ""})
    assert (ran.returncode, ran.stdout) == (2, ""), ran.stderr
    assert "No hosts are named." in ran.stderr
    for way in ("'node[1-4]'", "node1..4", "-F", "--inventory", "--rank-table", "--local", "PBS_NODEFILE"):
        assert way in ran.stderr


def test_a_job_whose_node_list_was_lost() -> None:
    ran = doctor("check", "--exam", "host", "-q", env={"SLURM_JOB_ID": "123", "SLURM_NNODES": "4"})
    assert (ran.returncode, ran.stdout) == (2, ""), ran.stderr
    assert "SLURM_JOB_NODELIST is not set" in ran.stderr


def test_a_person_is_shown_that_only_this_machine_is_examined() -> None:
    options = ("--only", "nofile-low", "--expect", "nofile=1")
    ran = doctor("check", *options, env={"SLURM_JOB_ID": ""})
    assert ran.returncode == 0, ran.stdout
    assert ran.stderr.startswith("doctor: no hosts are named: only this machine, ")
    assert ran.stdout.startswith("this machine only, ")
    assert doctor("check", "--local", *options, "-q").stderr.startswith("doctor: go: ")


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1", socket.gethostname()])
def test_this_machine_by_name(name: str) -> None:
    """There is no login: an SSH server is not needed, and the report says what was examined."""
    ran = doctor("check", name, "--only", "nofile-low", "--expect", "nofile=1")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.startswith(f"this machine only, {name} · 1 host · ")
    by_ssh = ("--port", "1", "--connect-timeout", "5")
    assert doctor("check", name, *by_ssh).returncode == 1, "a port is one of SSH"


def test_the_hosts_of_a_job_of_pbs(tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text("a.invalid\na.invalid\nb.invalid\n")
    ran = doctor("preflight", "--no-smoke", "-v", env={"PBS_NODEFILE": str(tmp_path / "nodes")})
    assert ran.returncode == 1, "neither of them has an address"
    assert ran.stdout.startswith("a.invalid,b.invalid (PBS_NODEFILE) · 2 hosts · 4 ranks (2 a host, default)")


@pytest.mark.parametrize("command", [["check", "node1", "--checks", "more"], ["list", "--checks", "more"]])
def test_checks_that_cannot_be_loaded(command: list[str], tmp_path: Path) -> None:
    ran = doctor(*command, cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (
        2,
        "doctor: --checks: more: it is not a folder\n"
        "        Fix it or leave it out: what cannot be loaded would not be examined.\n",
    )


def test_all_mistakes_of_an_inventory_at_once(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(INVENTORY)
    said = refused(["check", "--inventory", str(file)], lines=6)
    assert [f"{file}:{line}: " in said for line in (1, 5, 6)] == [True] * 3


@pytest.mark.parametrize("content", ["hello", "", "{}", '{"schema": 99}', '{"schema": 1}', "[1, 2"])
def test_a_file_that_is_not_a_recording(tmp_path: Path, content: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(content)
    refused(["check", "--replay", str(file)], str(file), "recording")


def test_a_truncated_recording(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    save(recording(["node1", "node2"]), file)
    file.write_bytes(file.read_bytes()[:-20])
    refused(["check", "--replay", str(file)], str(file), "recording")


@pytest.mark.parametrize("extra", [["node1"], ["--local"], ["-F", "hosts"], ["--exclude", "node1"]])
def test_options_that_reach_hosts_are_refused_with_a_replay(tmp_path: Path, extra: list[str]) -> None:
    file = tmp_path / "x.json"
    save(recording(["node1", "node2"]), file)
    refused(
        ["check", "--replay", str(file), *extra],
        "--replay cannot be combined with",
        ": it judges what was recorded.",
    )


@cases
def test_explaining_what_does_not_exist(id: str, words: list[str]) -> None:
    refused(["explain", id], *words)


@cases
def test_a_command_that_does_not_exist(command: str, word: str) -> None:
    said = refused([command], word)
    assert "\x1b" not in said


@pytest.mark.parametrize("module", ["typer", "msgspec", "ClusterShell"])
def test_a_library_that_is_broken(module: str, tmp_path: Path) -> None:
    (tmp_path / f"{module}.py").write_text("raise RuntimeError('half installed')")
    ran = doctor("check", "--local", env={"PYTHONPATH": str(tmp_path)})
    assert ran.returncode == 70
    assert "doctor: internal error (RuntimeError: half installed)" in ran.stderr
    assert "Traceback" not in ran.stderr
    loud = doctor("check", "--local", env={"PYTHONPATH": str(tmp_path), "DOCTOR_TRACEBACK": "1"})
    assert (loud.returncode, "Traceback" in loud.stderr) == (70, True)


@cases
def test_an_internal_error(broken: str, code: int, word: str) -> None:
    program = (
        "import doctor.exam.examination, sys\n"
        "from doctor.errors import DoctorError\n"
        "from doctor.__main__ import main\n"
        f"def conduct(request):\n    {broken}\n"
        "doctor.exam.examination.run_and_report = conduct; sys.argv[1:] = ['check', '--local']; main()"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(), check=False
    )
    assert ran.returncode == code
    assert word in ran.stderr
    assert "Traceback" not in ran.stderr
