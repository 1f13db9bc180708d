"""`doctor smoke` on a command line: mistakes, help, what a terminal and a log show, and Ctrl-C."""

import importlib.util
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import psutil
import pytest

from doctor.report.files.json import CheckReport
from doctor.smoke.inject import KINDS
from tests.support.cases import cases
from tests.support.commands import DOCTOR, doctor, environment

NOT_HERE = "no torch in the interpreter of the tests"
with_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason=NOT_HERE)
TRAIN = ("smoke", "--local", "--python", sys.executable, "--ranks-per-host", "2")


@cases
def test_a_mistake_is_reported_with_a_next_step_before_any_host_is_asked(
    arguments: list[str], words: list[str], tmp_path: Path
) -> None:
    witness = tmp_path / "python"
    witness.write_text(f"#!/bin/sh\n: > {tmp_path}/asked\n")
    witness.chmod(0o755)
    python = [] if {"--python", "--replay"} & set(arguments) else ["--python", str(witness)]
    local = [] if "--replay" in arguments else ["--local"]
    ran = doctor("smoke", *local, *python, *arguments)
    assert (ran.returncode, ran.stdout) == (2, ""), ran.stderr
    for word in words:
        assert word in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("hosts", [["node1"], ["--hostfile", "hosts"], []])
def test_an_interpreter_on_hosts_needs_an_absolute_path(hosts: list[str], tmp_path: Path) -> None:
    """Hosts do not start in the folder where the command is typed."""
    ran = doctor("smoke", *hosts, "--python", "env/bin/python", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "--python env/bin/python: give the whole path, as it is on the hosts." in ran.stderr
    assert f"Here it is {tmp_path}/env/bin/python." in ran.stderr


@pytest.mark.parametrize("option", ["--inject", "--steps", "--tp", "--smoke-timeout", "--no-smoke"])
def test_check_refuses_options_of_the_smoke_run(option: str) -> None:
    ran = doctor("check", "--local", option, *([] if option == "--no-smoke" else ["1"]))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"No such option: {option}" in ran.stderr


@cases
def test_help_shows_what_a_command_takes(command: str, has: tuple[str, ...], lacks: tuple[str, ...]) -> None:
    shown = doctor(command, "--help").stdout
    options = set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", shown, re.MULTILINE))
    assert set(has) <= options
    assert not set(lacks) & options


@pytest.mark.parametrize("command", ["smoke", "preflight"])
def test_injectable_faults_are_listed_one_a_line(command: str) -> None:
    ran = doctor(command, "--inject", "help")
    assert (ran.returncode, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    for name, kind in KINDS.items():
        assert any(re.fullmatch(rf"  {name} +{re.escape(kind.title)}", line) for line in lines), name
    assert max(map(len, lines)) <= 100


@pytest.fixture
def without_smoke(tmp_path: Path) -> list[str]:
    """A preflight with an exam that this machine passes, and that has no smoke run."""
    (tmp_path / "mine.yaml").write_text("title: mine\nchecks: [nofile-low]\nexpect: {nofile: 1}\n")
    return ["preflight", "--local", "--exam", str(tmp_path / "mine.yaml")]


@pytest.mark.parametrize(
    ("options", "code"), [([], 3), (["--need-hosts", "1"], 1), (["--no-smoke"], 0)], ids=str
)
def test_a_preflight_without_a_smoke_run_is_a_go_only_where_none_is_wanted(
    options: list[str], code: int, without_smoke: list[str]
) -> None:
    ran = doctor(*without_smoke, *options, "-q", "--print", "launch=hostfile")
    assert (ran.returncode, bool(ran.stdout)) == (code, code == 0), ran.stderr
    assert ("mine.yaml has no smoke run: `smoke: true` in it adds one" in ran.stderr) is (code != 0)


def test_a_replay_says_too_that_there_was_no_smoke_run(without_smoke: list[str], tmp_path: Path) -> None:
    kept = tmp_path / "run.json"
    ran = doctor(*without_smoke, "--save", str(kept))
    assert ran.returncode == 3
    assert "Smoke  not made: the exam" in ran.stdout
    again = doctor("check", "--replay", str(kept), *without_smoke[2:])
    assert (again.returncode, again.stdout) == (3, ran.stdout)


def test_options_that_leave_nothing_of_the_smoke_run_are_no_go() -> None:
    ran = doctor("preflight", "--local", "--only", "nofile-low", "--expect", "nofile=1")
    assert ran.returncode == 3, ran.stdout
    assert "Smoke  not made: none of its checks is left; --no-smoke does without" in ran.stdout


def test_a_missing_torch_is_reported_before_anything_is_started() -> None:
    ran = doctor("smoke", "--local", "--python", _bare_python(), "--json", "-")
    report = json.loads(ran.stdout)
    assert ran.returncode == 1
    (found,) = [each for each in report["findings"] if each["status"] != "unknown"]
    assert found["check"] == "torch-missing"
    assert (report["smoke"]["status"], report["smoke"]["reason"]) == ("skipped", "no host passed the checks")
    assert "--python" in ran.stderr
    assert "Traceback" not in ran.stderr


def _bare_python() -> str:
    """An interpreter for which no package is installed."""
    for path in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if Path(path).exists() and subprocess.run([path, "-c", "import torch"], stderr=-3).returncode:
            return path
    pytest.skip("every interpreter here has torch")


@with_torch
def test_a_job_that_is_to_have_gpus_does_not_train_on_processors(tmp_path: Path) -> None:
    """In an allocation of eight GPUs of which none is there."""
    line = ["env", "SLURM_GPUS_ON_NODE=8", *DOCTOR, *TRAIN, "--json", str(tmp_path / "report.json")]
    ran = subprocess.run(line, capture_output=True, text=True, check=False, env=environment())
    shown = " ".join(ran.stdout.split())
    assert ran.returncode == 1, shown
    assert "backend nccl (SLURM_GPUS_ON_NODE=8)" in shown
    assert "This torch sees no cuda device" in shown
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert {each["check"] for each in report["findings"] if each["status"] == "fail"} == {"smoke-crash"}


@with_torch
@cases
def test_options_that_do_not_fit_the_ranks_of_the_run(arguments: list[str], words: list[str]) -> None:
    ran = doctor(*TRAIN, *arguments)
    assert (ran.returncode, ran.stdout) == (2, ""), ran.stderr
    for word in words:
        assert word in ran.stderr


@dataclass(frozen=True, slots=True)
class Kept:
    """A run that was made once, and its recording, which can be replayed any number of times."""

    ran: subprocess.CompletedProcess[str]
    report: bytes
    recording: Path

    def again(self, *arguments: str, columns: int = 100) -> str:
        """The output in a log file."""
        ran = doctor("smoke", "--replay", str(self.recording), *arguments, env={"COLUMNS": str(columns)})
        go = "doctor: go: " if "-q" in arguments and not ran.returncode else ""
        assert ran.stderr[:12] == go
        assert ran.returncode == self.ran.returncode
        return ran.stdout


def _keep(folder: Path, *arguments: str) -> Kept:
    report, recording = folder / "report.json", folder / "run.json"
    ran = doctor(*TRAIN, *arguments, "--json", str(report), "--save", str(recording))
    assert report.exists(), ran.stdout + ran.stderr
    return Kept(ran, report.read_bytes(), recording)


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return _keep(tmp_path_factory.mktemp("well"))


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return _keep(tmp_path_factory.mktemp("hung"), "--inject", "stuck@1:3")


@with_torch
def test_a_healthy_run(well: Kept) -> None:
    assert well.ran.returncode == 0, well.ran.stdout
    progress = [line.startswith("doctor: smoke  ") for line in well.ran.stderr.splitlines()]
    assert all(progress), well.ran.stderr  # on a busy machine it takes long enough to say where it is
    document = msgspec.json.decode(well.report, type=CheckReport, strict=True)
    assert (document.verdict, document.run.command, document.run.exam) == ("healthy", "smoke", "smoke")
    smoke = document.smoke
    assert smoke is not None
    assert (smoke.status, smoke.reason, smoke.runs) == ("pass", None, ())
    assert [rank.rank for rank in smoke.ranks] == [0, 1]
    assert [phase.name for phase in smoke.phases] == ["start", "join", "collectives", "train", "audit"]
    assert {phase.status for phase in smoke.phases} == {"pass"}
    assert smoke.loss is not None
    assert smoke.loss.steps == 30
    assert re.search(
        r"Smoke  2 ranks \(one host\), torch \S+ over gloo, dp 2 × tp 1: 30 steps", well.again(columns=200)
    )
    assert well.again() == well.ran.stdout


@with_torch
def test_an_interpreter_of_this_machine_may_be_named_from_here() -> None:
    interpreter = Path(sys.executable)
    python = f"{interpreter.parent.name}/{interpreter.name}"
    arguments = ("--local", "--python", python, "--ranks-per-host", "1", "--steps", "1")
    ran = doctor("smoke", *arguments, cwd=interpreter.parent.parent)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 host · 1 rank (1 a host" in ran.stdout
    assert re.search(r"Smoke  1 rank \(one host\), torch \S+ over gloo", ran.stdout)


@with_torch
def test_quiet_prints_one_line_when_all_is_healthy(well: Kept) -> None:
    assert well.again("-q") == ""
    assert "Healthy: " in well.again(columns=200)


@with_torch
def test_a_run_that_hangs(hung: Kept) -> None:
    said = [line for line in hung.ran.stderr.splitlines() if not line.startswith("doctor: smoke ")]
    assert (hung.ran.returncode, said) == (1, []), hung.ran.stdout
    document = msgspec.json.decode(hung.report, type=CheckReport, strict=True)
    (found,) = [each for each in document.findings if each.status != "unknown"]
    assert (found.check, [place.rank for place in found.where]) == ("smoke-hang", [1])
    assert document.smoke is not None
    assert (document.smoke.status, document.smoke.injected) == ("fail", "stuck@1:3")
    assert document.smoke.latency is not None
    assert "injected on purpose: stuck@1:3" in hung.again(columns=200)
    assert hung.again().endswith("More: doctor explain smoke-hang\n")
    assert "smoke-hang" in hung.again("-q")
    assert hung.again() == hung.ran.stdout


@with_torch
@pytest.mark.parametrize("name", ["well", "hung"])
@pytest.mark.parametrize("columns", [60, 80, 200])
@pytest.mark.parametrize("more", [(), ("-v",)])
def test_a_log_gets_plain_lines(
    name: str, columns: int, more: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    """No colour, no blanks at line ends, and no lines that are too wide, except commands to copy."""
    kept: Kept = request.getfixturevalue(name)
    lines = kept.again(*more, columns=columns).splitlines()
    commands = {row for found in json.loads(kept.report)["findings"] for row in _commands(found)}
    assert not [line for line in lines if "\x1b" in line or line != line.rstrip()]
    copied = {line.strip().removeprefix("verify").strip() for line in lines if line.strip()[:7] == "verify "}
    assert all(command.startswith("doctor ") for command in copied)
    wide = [line for line in lines if len(line) > columns]
    assert not [line for line in wide if line.strip().removeprefix("verify").strip() not in commands | copied]


def _commands(found: dict[str, dict[str, list[str]] | None]) -> list[str]:
    remedy = found["remedy"]
    return remedy["commands"] if remedy else []


@dataclass(frozen=True, slots=True)
class Running:
    process: subprocess.Popen[str]
    below: list[psutil.Process] = field(default_factory=list)

    def await_word(self, word: str) -> None:
        """Wait until `-v` prints a line with this word."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if re.search(word, line):
                return
        raise AssertionError(f"it ended before {word!r}: {self.process.communicate()}")

    def end(self) -> tuple[str, str]:
        shown, errors = self.process.communicate(timeout=20)
        _, left = psutil.wait_procs(self.below, timeout=15)
        assert not left, "left behind"
        assert "Traceback" not in shown + errors
        return shown, errors


@pytest.fixture
def training(tmp_path: Path) -> Iterator[Callable[[], Running]]:
    """A run in the middle of its training."""
    with subprocess.Popen(
        [*DOCTOR, *TRAIN, "--steps", "1000", "-v", "--json", str(tmp_path / "report.json")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:

        def start() -> Running:
            running = Running(process)
            running.await_word("^doctor: smoke  train ")
            running.below.extend(psutil.Process(process.pid).children(recursive=True))
            assert running.below
            return running

        yield start
        process.kill()


@with_torch
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_training_shows_what_is_known(
    number: signal.Signals, training: Callable[[], Running], tmp_path: Path
) -> None:
    running = training()
    running.process.send_signal(number)
    shown, _ = running.end()
    assert running.process.returncode == 128 + number
    assert "interrupted in the train phase" in " ".join(shown.split())
    assert "Interrupted. Not proved healthy: " in shown
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert (report["smoke"]["status"], report["smoke"]["reason"]) == (
        "skipped",
        "interrupted in the train phase",
    )
    assert {each["status"] for each in report["findings"]} == {"unknown"}, "nobody is to blame"


@with_torch
@pytest.mark.parametrize(
    ("number", "between"), [(signal.SIGINT, 0.0), (signal.SIGINT, 0.3), (signal.SIGTERM, 0.3)]
)
def test_a_second_signal_at_any_time(
    number: signal.Signals, between: float, training: Callable[[], Running]
) -> None:
    """The second signal may come at any time: the exit code stays, a message is printed, nothing is left."""
    running = training()
    running.process.send_signal(number)
    time.sleep(between)
    running.process.send_signal(number)
    shown, errors = running.end()
    # A signal after the report ends the interpreter itself; a shell reports both as 128 + number.
    assert running.process.returncode in (128 + number, -number)
    assert ("Interrupted." in shown) or ("doctor: interrupted before the report was made." in errors)
