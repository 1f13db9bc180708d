"""Standard streams that are closed or on a full disk: all other output is written, and the exit code is one
of ours.
"""

import itertools
import json
import os
import subprocess
from pathlib import Path

import pytest

from doctor.recording import load, save
from tests.support.cases import cases
from tests.support.commands import DOCTOR, environment
from tests.support.recordings import recording
from tests.support.reports import NAMES

CLOSED = [which for n in range(4) for which in itertools.combinations((0, 1, 2), n)]


@pytest.fixture
def run(tmp_path: Path) -> list[str]:
    """A healthy run that writes every kind of file."""
    save(recording(NAMES), tmp_path / "in.json")
    files = {name: str(tmp_path / name) for name in ("json", "save", "healthy-hosts", "faulty-hosts")}
    options = [word for name, file in files.items() for word in (f"--{name}", file)]
    return [*DOCTOR, "check", "--replay", str(tmp_path / "in.json"), *options]


def assert_written(folder: Path) -> None:
    assert json.loads((folder / "json").read_bytes())["verdict"] == "healthy"
    assert load(folder / "save") == recording(NAMES)
    assert (folder / "healthy-hosts").read_text().split() == list(NAMES)
    assert (folder / "faulty-hosts").read_bytes() == b""


@pytest.mark.parametrize("verbose", [(), ("-v",), ("-q",)])
def test_closed_streams_lose_no_other_output(
    verbose: tuple[str, ...], run: list[str], tmp_path: Path
) -> None:
    assert closing((0, 1, 2), [*run, *verbose]).returncode == 0
    assert_written(tmp_path)


@pytest.mark.parametrize("closed", CLOSED)
def test_a_host_is_examined_with_any_streams_closed(closed: tuple[int, ...], tmp_path: Path) -> None:
    """No socket or file may get the number of a standard stream, and with it that stream's output."""
    ran = closing(
        closed, [*DOCTOR, "check", "--local", "--only", "shm-small,host-*", "--json", str(tmp_path / "json")]
    )
    assert ran.returncode == 0
    assert json.loads((tmp_path / "json").read_bytes())["verdict"] == "healthy"
    assert ("Healthy: " in ran.stdout) is (1 not in closed)
    assert ran.stderr == ""


@pytest.mark.parametrize("command", [["check", "--nonsense"], ["check", "--expect", "nofile"]])
def test_a_mistake_is_code_2_without_stderr(command: list[str]) -> None:
    assert closing((2,), [*DOCTOR, *command]).returncode == 2
    with open("/dev/full", "w") as full:
        ran = subprocess.run([*DOCTOR, *command], stderr=full, stdout=subprocess.PIPE, check=False)
    assert (ran.returncode, ran.stdout) == (2, b"")


def closing(closed: tuple[int, ...], command: list[str]) -> subprocess.CompletedProcess[str]:
    closes = " ".join(f"{number}>&-" for number in closed)
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {closes}', "sh", *command],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=environment(),
        check=False,
        timeout=60,
    )


@cases
def test_a_full_stdout_is_code_70_and_loses_only_itself(
    options: list[str], lost: str, run: list[str], tmp_path: Path
) -> None:
    if options[:1] == ["--json"]:
        at = run.index("--json")
        run = [*run[:at], *run[at + 2 :]]
    ran = full([*run, *options])
    assert ran.stderr.endswith(f"doctor: {lost}\n        The verdict was: healthy.\n")
    assert ("Healthy: " in ran.stderr) is bool(options), "the terminal report, where it goes to stderr"
    assert ran.returncode == 70
    if options[:1] == ["--json"]:
        (tmp_path / "json").write_text('{"verdict": "healthy"}')
    assert_written(tmp_path)


@pytest.mark.parametrize("command", [["check", "-h"], ["--version"], ["list"]])
def test_a_full_stdout_of_every_command(command: list[str]) -> None:
    ran = full([*DOCTOR, *command])
    assert ran.stderr == "doctor: stdout could not be written: No space left on device.\n"
    assert ran.returncode == 70


def test_stdout_and_stderr_both_full(run: list[str], tmp_path: Path) -> None:
    with open("/dev/full", "w") as disk:
        ran = subprocess.run([*run, "-v"], stdout=disk, stderr=disk, env=environment(), check=False)
    assert ran.returncode == 70
    assert_written(tmp_path)


def full(command: list[str]) -> subprocess.CompletedProcess[str]:
    with open("/dev/full", "w") as disk:
        return subprocess.run(
            command,
            stdout=disk,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            check=False,
            timeout=60,
        )


def test_a_reader_that_has_seen_enough_is_no_fault() -> None:
    ear, mouth = os.pipe()
    os.close(ear)
    ran = subprocess.run([*DOCTOR, "list"], stdout=mouth, stderr=subprocess.PIPE, check=False)
    os.close(mouth)
    assert (ran.returncode, ran.stderr) == (0, b"")
