"""`doctor check --again FILE` repeats exactly what failed, with the same options."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from doctor.cli import run
from doctor.exam.examination import judge_again
from doctor.exam.request import Request
from doctor.job.wishes import JobWishes
from doctor.model import Backend, MissingFact, SourcedValue, UnreachedHost, UnreachedKind
from doctor.recording import Recording, save
from doctor.transport.way import Way
from tests.support.cases import from_cases
from tests.support.recordings import heard, recording
from tests.support.reports import NAMES, SMALL_SHM, smoke_runs

pytestmark = pytest.mark.slow

QUEUE = from_cases(__file__, "QUEUE", dict[str, str])
WAY = from_cases(__file__, "WAY", Way)
EIGHT = JobWishes(ranks_per_host=SourcedValue(2, "--ranks-per-host"))
"""A job of 8 ranks: too many for the queue."""
SMALL = {"node2": heard(2, NAMES, spaces=SMALL_SHM)}
SHORT = {"node1": heard(1, NAMES, ports=QUEUE)}


def made(**more: Any) -> Recording:
    return recording(NAMES, **{"command": "check", "way": WAY, "wishes": EIGHT, **more})


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str
    asked: Request | None
    report: dict[str, Any]

    @property
    def again(self) -> list[str]:
        return [each["now"] for each in self.report["again"]]


Look = Callable[..., Ended]


@pytest.fixture
def look(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Look:
    """The failures in a recording, looked at again on hosts that now answer as in another recording."""

    def look(before: Recording, now: Recording, *options: str, as_json: bool = False) -> Ended:
        asked: list[Request] = []

        def ask(request: Request, **_: object) -> Any:
            asked.append(request)
            names = request.who.hosts[0]
            hosts = [host for host in now.hosts if names == "node[1-4]" or host.name in names.split(",")]
            left = {host.name for host in hosts}
            there = {name: answer for name, answer in now.heard.items() if name in left}
            lost = {name: why for name, why in now.unreached.items() if name in left}
            mesh = None if len(hosts) == 1 else now.mesh
            met = replace(now, hosts=tuple(hosts), heard=there, unreached=lost, mesh=mesh)
            return judge_again(request, met)

        monkeypatch.setattr("doctor.exam.again.run_and_judge", ask)
        file, then, report = tmp_path / "run.json", tmp_path / "then.json", tmp_path / "now.json"
        save(before, file)
        if as_json:
            run(["check", "--replay", str(file), "--json", str(then)])
            file = then
            capsys.readouterr()
        code = run(["check", "--again", str(file), "--json", str(report), *options])
        found = json.loads(report.read_bytes()) if report.exists() else {}
        return Ended(code, *capsys.readouterr(), asked[0] if asked else None, found)

    return look


def test_a_recording_of_checks_that_are_not_here(look: Look, tmp_path: Path) -> None:
    """Their findings are not in the new recording: without these checks it would look healthy."""
    way = Way(asked=(("--checks", str(tmp_path)),))
    seen = look(made(way=way), made())
    assert seen.code == 2
    assert "also ran the checks of" in seen.err
    assert "Name them with --checks" in seen.err


@pytest.mark.parametrize("as_json", [False, True], ids=["recording", "JSON"])
def test_what_failed_and_nothing_else_as_it_was_asked_for(look: Look, as_json: bool) -> None:
    seen = look(made(heard=SHORT), made(heard=SHORT), as_json=as_json)
    assert (seen.code, seen.again) == (1, ["still there"])
    assert seen.asked is not None
    assert seen.asked.what.only == ("somaxconn-low",)
    assert seen.asked.who.hosts == ("node[1-4]",), "it is judged against the ranks of all"
    assert (seen.asked.job.backend, seen.asked.job.master_port) == ("gloo", 29511)
    assert (seen.asked.way.user, seen.asked.way.sudo) == ("root", True)
    assert seen.asked.smoke.python == "/opt/bin/python"
    assert seen.asked.what.need_hosts is None, "three healthy hosts do not mend the fourth"
    assert "still there  node1: the queue for new connections" in seen.out
    assert "doctor check 'node[1-4]' --only somaxconn-low --backend gloo" in seen.err


def test_only_the_hosts_that_are_needed(look: Look) -> None:
    seen = look(made(heard=SMALL), made(heard=SMALL))
    assert seen.asked is not None
    assert (seen.asked.who.hosts, seen.asked.what.only) == (("node2",), ("shm-small",))
    both = look(made(heard=SMALL | SHORT), made())
    assert both.asked is not None
    assert both.asked.who.hosts == ("node[1-4]",)


def test_what_is_typed_now_counts(look: Look) -> None:
    seen = look(made(heard=SMALL), made(), "--user", "carol", "--timeout", "5")
    assert seen.asked is not None
    assert (seen.asked.way.user, seen.asked.way.timeout, seen.asked.way.sudo) == ("carol", 5, True)


@pytest.mark.parametrize("as_json", [False, True], ids=["recording", "JSON"])
def test_fixed(look: Look, as_json: bool) -> None:
    seen = look(made(heard=SMALL | SHORT), made(), as_json=as_json)
    assert (seen.code, seen.again, seen.report["verdict"]) == (0, ["fixed", "fixed"], "healthy")
    assert "Fixed: all 2 faults of" in seen.out


@pytest.mark.parametrize("as_json", [False, True], ids=["recording", "JSON"])
def test_of_the_kernel_s_log_only_what_is_newer_counts(look: Look, as_json: bool) -> None:
    def lost(age: float) -> Recording:
        log = f"uptime 90000.0\n[{90000 - age:.6f}] NVRM: Xid (PCI:0000:05:00): 79, pid=7, it is lost\n"
        nccl = replace(EIGHT, backend=SourcedValue(Backend.NCCL, "--backend"))
        way = replace(WAY, asked=(("--backend", "nccl"), ("--only", "gpu-xid")))
        return made(heard={"node2": heard(2, NAMES, kernel_log=log)}, wishes=nccl, way=way)

    seen = look(lost(3000.0), lost(3000.0), as_json=as_json)
    assert (seen.code, seen.again) == (0, ["fixed"]), seen.out
    seen = look(lost(3000.0), lost(60.0), as_json=as_json)
    assert (seen.code, seen.again) == (1, ["still there"]), seen.out


def test_one_fixed_and_one_still_there(look: Look) -> None:
    seen = look(made(heard=SMALL | SHORT), made(heard=SHORT))
    assert (seen.code, sorted(seen.again)) == (1, ["fixed", "still there"])
    assert "1 still there, 1 fixed, of 2 faults of run.json." in seen.out


def test_every_format_says_what_has_become_of_it(look: Look, tmp_path: Path) -> None:
    page, markdown, junit = (tmp_path / name for name in ("page.html", "page.md", "page.xml"))
    files = ("--html", str(page), "--markdown", str(markdown), "--junit", str(junit))
    look(made(heard=SMALL | SHORT), made(heard=SHORT), *files)
    for shown in (page.read_text(), markdown.read_text()):
        for said in ("Looked at again", "still there", "fixed", "1 still there, 1 fixed, of 2 faults"):
            assert said in shown, said
    assert "1 still there, 1 fixed, of 2 faults" in junit.read_text()


def test_a_host_that_does_not_answer_is_not_fixed(look: Look) -> None:
    lost = UnreachedHost("node2", UnreachedKind.REFUSED, "connection refused", "")
    there = made().heard
    gone = replace(made(), heard={n: a for n, a in there.items() if n != "node2"}, unreached={"node2": lost})
    seen = look(made(heard=SMALL), gone)
    assert (seen.again, seen.report["again"][0]["reason"]) == (["not decided"], "connection refused")
    assert seen.code == 1, "a host out of reach is a fault of its own"


def test_a_host_that_a_file_no_longer_names_is_not_fixed(look: Look) -> None:
    left = made()
    left = replace(left, hosts=left.hosts[2:], heard={n: left.heard[n] for n in NAMES[2:]}, mesh=None)
    seen = look(made(heard=SHORT), left)
    assert (seen.code, seen.report["again"][0]["reason"]) == (3, "it is no longer one of the hosts")


def test_what_cannot_be_decided_is_not_fixed(look: Look) -> None:
    unread = made(heard={"node2": heard(2, NAMES, spaces=MissingFact("spaces", "df hung"))})
    seen = look(made(heard=SMALL), unread)
    assert (seen.code, seen.again) == (3, ["not decided"])
    assert "df hung" in seen.report["again"][0]["reason"]


def test_another_fault_of_the_same_check_is_not_hidden(look: Look) -> None:
    seen = look(made(heard=SMALL | SHORT), made(heard={"node3": heard(3, NAMES, spaces=SMALL_SHM)}))
    assert (seen.code, seen.again) == (1, ["fixed", "fixed"])
    assert "New: node3 (memory)" in seen.out


def test_warnings_are_looked_at_if_they_count(look: Look) -> None:
    """On a host that is not the head, a short queue is a warning."""
    short = {"node3": heard(3, NAMES, ports=QUEUE)}
    plain = look(made(heard=short), made(heard=short))
    assert (plain.code, plain.asked) == (0, None)
    assert "nothing failed in" in plain.err
    strict = look(made(heard=short), made(heard=short), "--strict")
    assert (strict.code, strict.again) == (1, ["still there"])
    assert look(made(heard=short), made(), "--strict").code == 0


def test_what_was_left_out_then_is_left_out_now(look: Look) -> None:
    skipped = replace(WAY, asked=(("--skip", "somaxconn-low"),))
    seen = look(made(heard=SMALL | SHORT, way=skipped), made(heard=SHORT))
    assert (seen.code, seen.again) == (0, ["fixed"])


@pytest.mark.parametrize("as_json", [False, True], ids=["recording", "JSON"])
def test_a_run_in_which_nothing_failed(look: Look, as_json: bool) -> None:
    seen = look(made(), made(), as_json=as_json)
    assert (seen.code, seen.asked) == (0, None)


@pytest.mark.parametrize("as_json", [False, True], ids=["recording", "JSON"])
def test_what_was_not_decided_is_looked_at_again(look: Look, as_json: bool) -> None:
    chosen = replace(WAY, asked=(("--only", "shm-small"),))
    unread = made(heard={"node2": heard(2, NAMES, spaces=MissingFact("spaces", "df hung"))}, way=chosen)
    assert (look(unread, made(), as_json=as_json).code, look(unread, unread, as_json=as_json).code) == (0, 3)


def test_a_training_that_failed_is_made_again_as_a_whole(look: Look) -> None:
    hung = made(command="preflight", smoke_wanted=True, smoke=(smoke_runs()["hung"],))
    well = made(command="preflight", smoke_wanted=True, smoke=(smoke_runs()["passed"],))
    seen = look(hung, well)
    assert seen.asked is not None
    assert (seen.asked.command, seen.asked.what.only[-1]) == ("preflight", "smoke-*")
    assert "fixed" in seen.again
    told = {each["check"]: each["now"] for each in look(hung, hung).report["again"]}
    assert told["smoke-hang"] == "still there"


def test_what_cannot_be_looked_at_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("it asks the hosts")

    monkeypatch.setattr("doctor.exam.again.run_and_judge", never)

    def refused(path: Path, *options: str) -> str:
        assert run(["check", "--again", str(path), *options]) == 2
        return " ".join(capsys.readouterr().err.split())

    run_json, report, config = tmp_path / "run.json", tmp_path / "report.json", tmp_path / "config"
    save(made(heard=SMALL), run_json)
    assert "cannot be combined with HOSTS, --only" in refused(run_json, "node1", "--only", "shm-small")
    assert "--replay" in refused(run_json, "--replay", str(run_json))
    run(["check", "--replay", str(run_json), "--json", str(report)])
    capsys.readouterr()
    content = json.loads(report.read_bytes())
    report.write_text(json.dumps(content | {"run": content["run"] | {"command": "hang"}}))
    assert "--again reads reports of check, smoke, preflight only" in refused(report)
    report.write_text(json.dumps(content | {"hosts": []}))
    assert "is a damaged report" in refused(report)
    report.write_text("hosts: [node1]\n")
    assert "an inventory" in refused(report)
    run_json.chmod(0o666)
    assert "others can write to it" in refused(run_json)
    config.write_text("")
    config.chmod(0o666)
    theirs = tmp_path / "theirs.json"
    save(made(heard=SMALL, way=Way(reached=(("--ssh-config", str(config)),))), theirs)
    assert "it names --ssh-config" in refused(theirs)
