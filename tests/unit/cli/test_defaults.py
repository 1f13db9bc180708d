"""A user's own defaults: what they set, what overrides them, and whose file is not trusted."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from doctor.cli import run
from doctor.cli.defaults import with_defaults
from doctor.cli.whichlanguage import CONFIG
from doctor.errors import InputErrors, UsageError
from doctor.exam.request import HostFlags, Request, WayFlags
from doctor.exam.way import way_of
from doctor.targets.inventory import read_targets
from tests.support.cases import cases, from_cases
from tests.support.recordings import recording
from tests.support.reports import NAMES, report, text

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes the file of a user whose home is a folder of this test."""
    path = tmp_path / ".config" / CONFIG
    path.parent.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)

    def written(content: str) -> Path:
        path.write_text(content)
        path.chmod(0o644)
        return path

    return written


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """The requests of the command lines that are run; nothing is carried out."""
    requests: list[Request] = []

    def keep(request: Request, **_: object) -> int:
        requests.append(request)
        return 0

    monkeypatch.setattr("doctor.exam.examination.run_and_report", keep)
    monkeypatch.setattr("doctor.exam.in_job.in_job", keep)
    return requests


EVERYTHING = from_cases(__file__, "EVERYTHING", str)


def test_checks_that_prove_what_a_log_says_use_them_too(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("user: root")
    seen: list[Request] = []

    def explain_logs(*_: object, check: Request, **__: object) -> int:
        seen.append(check)
        return 0

    monkeypatch.setattr("doctor.logs.explain.explain_logs", explain_logs)
    (tmp_path / "train.log").write_text("step 1\n")
    for name in ("--check", "--run"):
        assert run(["explain", str(tmp_path / "train.log"), name, "node[1-2]"]) == 0
        assert (
            "doctor: defaults from ~/.config/cluster-doctor/config.yaml: user root" in capsys.readouterr().err
        )
    assert [(each.who.hosts, each.way.user) for each in seen] == [(("node[1-2]",), "root")] * 2


def test_every_default_is_used_and_said(write: Write, asked: list[Request], tmp_path: Path) -> None:
    write(EVERYTHING)
    assert run(["check", "node[1-4]"]) == 0
    way = asked[0].way
    assert (way.user, way.jump, way.ssh_config) == ("root", "bastion:2222", f"{tmp_path}/.ssh/lab")
    assert way.identities == (f"{tmp_path}/.ssh/one", "/keys/two")
    assert (way.sudo, way.fanout, way.connect_timeout, way.timeout) == (True, 16, 3.0, 90.5)
    assert asked[0].smoke.python == "/opt/train/bin/python"
    targets = read_targets(("node[1-4]",), None, None, False, (), {}, None)
    shown = text(report(replace(recording(NAMES), way=way_of(asked[0], targets, "ssh"))), 200)
    assert "defaults from ~/.config/cluster-doctor/config.yaml: user root, identity" in shown
    assert shown.index("defaults from") < shown.index("Healthy")


def test_what_is_typed_wins_also_with_the_usual_value(write: Write, asked: list[Request]) -> None:
    write("user: root\nfanout: 16\npython: /a/python\n")
    assert run(["check", "node1", "--user", "me", "--fanout", "64", "--python", "python3"]) == 0
    assert (asked[0].way.user, asked[0].way.fanout, asked[0].smoke.python) == ("me", 64, "python3")
    assert asked[0].defaults == ""


@pytest.mark.usefixtures("asked")
def test_a_quiet_run_says_it_too(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write("user: root\n")
    run(["preflight", "node1", "-q"])
    assert (
        capsys.readouterr().err == "doctor: defaults from ~/.config/cluster-doctor/config.yaml: user root\n"
    )


@pytest.mark.parametrize("line", ["preflight --in-job", "check --replay x.json"])
def test_a_job_and_a_recording_do_not_depend_on_a_home(write: Write, asked: list[Request], line: str) -> None:
    write("user: root\nnonsense: 1\n")
    run(line.split())
    assert asked[0].way == WayFlags()


def test_they_do_not_choose_ssh(write: Write, asked: list[Request]) -> None:
    """A machine that is asked directly still is, and srun is still used."""
    write("user: root\njump: bastion\n")
    run(["check", "localhost"])
    assert asked[0].way.user == "root"
    assert not asked[0].way.logs_in
    assert not asked[0].way.asks_for_ssh()
    run(["check", "localhost", "--user", "root"])
    assert asked[1].way.logs_in


def test_the_folder_of_xdg_is_honoured(write: Write, tmp_path: Path) -> None:
    write("user: other\n")
    (tmp_path / "xdg" / "cluster-doctor").mkdir(parents=True)
    (tmp_path / "xdg" / CONFIG).write_text("user: mine\n")
    here = {"HOME": "/nonexistent", "XDG_CONFIG_HOME": f"{tmp_path}/xdg"}
    found = with_defaults(Request("check"), here)
    assert (found.way.user, found.defaults) == ("mine", f"{tmp_path}/xdg/{CONFIG}: user mine")
    relative = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": "xdg"}
    assert with_defaults(Request("check"), relative).way.user == "other"
    for nowhere in ({}, {"HOME": "/nonexistent"}):
        request = Request("check", HostFlags(local=True))
        assert with_defaults(request, nowhere) == request


@cases
def test_a_mistake_is_named_with_its_place(write: Write, content: str, message: str) -> None:
    path = write(content)
    with pytest.raises(InputErrors) as caught:
        with_defaults(Request("check"), {"HOME": os.environ["HOME"]})
    assert f"{path.parent}/{message}" in caught.value.message


def test_a_mistake_leaves_no_go_of_an_earlier_run(write: Write, tmp_path: Path) -> None:
    write("usr: root\n")
    go = tmp_path / "healthy"
    go.write_text("node1\n")
    assert run(["check", "--local", "--healthy-hosts", str(go)]) == 2
    assert go.read_text() == ""


@pytest.mark.parametrize("mode", [0o666, 0o664, 0o646])
def test_a_file_that_others_can_write_is_refused(write: Write, mode: int) -> None:
    path = write("user: root\n")
    path.chmod(mode)
    with pytest.raises(UsageError, match="others can write your defaults") as caught:
        with_defaults(Request("check"))
    assert caught.value.hint == f"chmod go-w {path}"


def test_a_file_of_somebody_else_is_refused(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("user: root\n")
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    real = os.fstat

    def of_another(handle: int) -> os.stat_result:
        values = list(real(handle))
        values[4] = 4711
        return os.stat_result(values)

    monkeypatch.setattr(os, "fstat", of_another)
    with pytest.raises(UsageError, match="owner uid 4711"):
        with_defaults(Request("check"))


def test_what_is_no_file_is_refused(write: Write) -> None:
    path = write("")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UsageError, match="not a regular file"):
        with_defaults(Request("check"))


def test_what_may_not_be_read_is_said_and_stops_nobody(
    write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after sudo to another user that keeps HOME."""
    path = write("user: root\n")
    real = os.open

    def refuse(name: object, *more: int) -> int:
        if str(name) == str(path):
            raise PermissionError(13, "Permission denied")
        return real(name, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)
    asked = Request("check")
    assert with_defaults(asked) == asked
    assert capsys.readouterr().err.endswith("config.yaml: cannot be read, so no defaults are used.\n")
