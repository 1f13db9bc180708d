"""What the commands print, where they print it, and how they end."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from doctor import __version__
from doctor.judge.playbook import exams
from doctor.judge.registry import find_checks
from doctor.recording import Recording, save
from tests.support.cases import cases, from_cases
from tests.support.commands import DOCTOR, doctor, environment
from tests.support.headlines import headline
from tests.support.paths import ROOT
from tests.support.recordings import heard, recording
from tests.support.reports import NAMES, SMALL_SHM

IDS = [check.id for check in find_checks().checks]
SICK = recording(NAMES, heard={"node2": heard(2, NAMES, spaces=SMALL_SHM)})
PLUGIN = from_cases(__file__, "PLUGIN", str)


@pytest.fixture
def replay(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(of: Recording, *arguments: str) -> subprocess.CompletedProcess[str]:
        save(of, tmp_path / "run.json")
        return doctor("check", "--replay", str(tmp_path / "run.json"), *arguments)

    return run


def test_version_and_help() -> None:
    assert doctor("--version").stdout == f"cluster-doctor {__version__}\n"
    for arguments in (
        ["--help"],
        ["check", "-h"],
        ["preflight", "--help"],
        ["list", "-h"],
        ["explain", "-h"],
    ):
        ran = doctor(*arguments)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ran.stdout.startswith("Usage: doctor")


def test_list_names_every_check_and_exam() -> None:
    shown = doctor("list").stdout
    for name in (*IDS, *exams()):
        assert re.search(rf"^  {name} +\S", shown, re.MULTILINE)


def test_json_has_stdout_to_itself(replay: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    ran = replay(SICK, "--json", "-")
    report = json.loads(ran.stdout)
    assert (ran.returncode, report["verdict"]) == (1, "faulty")
    assert "shm-small" in ran.stderr, "the text goes to stderr then"


def test_files_are_written(replay: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("json", "healthy-hosts", "faulty-hosts", "save")}
    ran = replay(SICK, *(word for name, file in files.items() for word in (f"--{name}", str(file))))
    assert ran.returncode == 1
    assert json.loads(files["json"].read_bytes())["summary"]["faulty"] == 1
    assert files["healthy-hosts"].read_text() == "node1\nnode3\nnode4\n"
    assert files["faulty-hosts"].read_text() == "node2\n"
    again = replay(SICK, "--replay", str(files["save"]))
    assert again.stdout == ran.stdout


@cases
def test_exit_codes_of_a_replay(
    replay: Callable[..., subprocess.CompletedProcess[str]], arguments: list[str], code: int
) -> None:
    assert replay(SICK, *arguments).returncode == code


@cases
def test_a_reader_that_closes_the_pipe_early(arguments: list[str], tmp_path: Path) -> None:
    """As in `doctor list | head -1`, if the reader ends before the first word."""
    file = tmp_path / "x.json"
    save(recording(NAMES), file)
    arguments = [str(file) if word == "X" else word for word in arguments]
    ear, mouth = os.pipe()
    os.close(ear)
    ran = subprocess.run(
        [*DOCTOR, *arguments], stdout=mouth, stderr=subprocess.PIPE, text=True, env=environment(), check=False
    )
    os.close(mouth)
    assert ("Healthy: " in ran.stderr) is ("--json" in arguments), "the terminal report then goes to stderr"
    assert "Error" not in ran.stderr
    assert ran.returncode == 0, "healthy, whoever reads it"


@pytest.mark.parametrize("option", ["--json", "--save", "--healthy-hosts"])
def test_a_file_on_a_full_disk_loses_no_other_output(
    option: str, replay: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    ran = replay(SICK, option, "/dev/full")
    assert headline(ran.stdout, "FAIL  node2", "shm-small")
    assert "/dev/full could not be written: No space left on device." in ran.stderr
    assert "The verdict was: faulty." in ran.stderr
    assert (ran.returncode, "report this" in ran.stderr) == (70, False)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_lacks_our_characters(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    save(SICK, file)
    env = environment() | {"PYTHONIOENCODING": encoding}
    for arguments in (["check", "--replay", str(file)], ["explain", "grow-shm"], ["list"]):
        ran = subprocess.run([*DOCTOR, *arguments], capture_output=True, env=env, check=False)
        assert ran.returncode in (0, 1), ran.stderr
        assert ran.stderr == b""


def test_one_file_for_two_outputs_is_refused(tmp_path: Path) -> None:
    both = str(tmp_path / "x")
    ran = doctor("check", "--local", "--json", both, "--save", both)
    assert (ran.returncode, "name the same file" in ran.stderr) == (2, True)


def test_a_pipe_gets_no_escapes(replay: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    ran = replay(SICK)
    assert "\x1b" not in ran.stdout
    assert ran.stderr == ""


def test_files_of_checks_that_cannot_be_used(tmp_path: Path) -> None:
    """All of them are reported at once, and no host is asked."""
    save(SICK, tmp_path / "x.json")
    more = tmp_path / "more"
    more.mkdir()
    (more / "syntax.py").write_text("def oops(:\n")
    (more / "imports.py").write_text("import no_such_module_of_ours\n")
    (more / "leaves.py").write_text("raise SystemExit(5)\n")
    (more / "good.py").write_text(PLUGIN.format(command="echo", body="raise ValueError('of theirs')"))
    (more / "twice.py").write_text(PLUGIN.format(command="echo", body="pass"))
    ran = doctor(
        "check", "--replay", str(tmp_path / "x.json"), "-q", "--checks", str(more), "--checks", "/no/such"
    )
    for line in (
        "syntax.py: SyntaxError",
        "imports.py: ModuleNotFoundError: No module named 'no_such_module_of_ours'",
        "leaves.py: SystemExit: 5",
        "twice.py: check 'plug-in' exists already",
        "/no/such: it is not a folder",
    ):
        assert line in ran.stderr
    assert (ran.returncode, ran.stdout) == (2, "")


@pytest.mark.parametrize("options", [[], ["-q"], ["-q", "--strict"]], ids=" ".join)
def test_a_broken_entry_point_is_never_kept_quiet(options: list[str], tmp_path: Path) -> None:
    save(recording(NAMES), tmp_path / "x.json")
    about = tmp_path / "site_checks-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: site-checks\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[cluster_doctor.checks]\nsite = no_such_module_of_ours\n")
    ran = doctor(
        "check", "--replay", str(tmp_path / "x.json"), *options, env={"PYTHONPATH": f"{ROOT}:{tmp_path}"}
    )
    assert "BROKEN  entry point site: its checks could not be loaded: ModuleNotFoundError" in ran.stdout
    assert (ran.returncode, "Inconclusive: a check broke." in ran.stdout) == (3, True)


def test_a_plug_in_that_crashes_is_named(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(PLUGIN.format(command="echo", body="raise ValueError('of theirs')"))
    ran = doctor("check", "--local", "--checks", str(tmp_path), "--only", "plug-in", "--json", "-")
    (found,) = json.loads(ran.stdout)["findings"]
    assert (found["status"], found["summary"]) == ("crash", "ValueError: of theirs (good.py:8)")
    assert ran.returncode == 3, "what is asked for by name is essential"


def test_checks_of_the_working_directory_are_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "evil.py").write_text(
        "open('ran', 'w').close()\n" + PLUGIN.format(command="", body="pass")
    )
    ran = doctor("list", cwd=tmp_path)
    assert ran.returncode == 0
    assert "plug-in" not in ran.stdout
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_run_with_what_is_known(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(PLUGIN.format(command=f"sleep 310.{number}", body="pass"))
    arguments = ["check", "--local", "--checks", str(tmp_path), "--only", "plug-in"]
    with subprocess.Popen(
        [*DOCTOR, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        deadline = time.monotonic() + 60
        while not sleepers(number) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert sleepers(number), "the probe runs"
        process.send_signal(number)
        shown, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Interrupted. Not proved healthy: " in shown
    assert "Traceback" not in errors
    deadline = time.monotonic() + 60
    while sleepers(number) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not sleepers(number), "nothing stays behind"


def sleepers(number: int) -> list[psutil.Process]:
    """Processes of the slow plug-in."""
    every = psutil.process_iter(["cmdline"])
    return [process for process in every if process.info["cmdline"] == ["sleep", f"310.{number}"]]


def test_explain_names_the_file_of_the_check() -> None:
    plain, verbose = doctor("explain", "swap-active").stdout, doctor("explain", "swap-active", "-v").stdout
    named = verbose.removeprefix(plain).removeprefix("\nWritten in ").rstrip("\n")
    assert re.search(r'@check\(\s*"swap-active"', Path(named).read_text())
