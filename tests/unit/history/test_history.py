"""`doctor history`: who was faulty when, who is a usual suspect, who is none, and which files are no runs."""

import contextlib
import fcntl
import io
import json
import os
import random
import threading
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from doctor import cli
from doctor.exam import notify
from doctor.history import changes
from doctor.history.envelope import Machine
from doctor.history.fleet import Fleet
from doctor.history.kept import KeptReport
from doctor.history.suspects import suspect
from tests.support.cases import cases
from tests.support.envelopes import wrong

ACCUSING = ("gpu-xid", "gpu-missing")
ALL = (*ACCUSING, "shm-small")
BEGIN = datetime(2026, 1, 1)
Faults = Mapping[str, str]
"""Host -> the check that fails there."""


def run(
    number: float,
    hosts: Iterable[str],
    faults: Faults,
    looked: Iterable[str] = ALL,
    serials: Mapping[str, str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The report of a run, so many days after the first one."""
    names = [*hosts]
    findings = [
        {"id": f"f{n}", "check": check, "status": "fail", "hosts": [host], "headline": f"{host}: {check}"}
        for n, (host, check) in enumerate(faults.items(), 1)
    ]
    passed = [
        {"check": check, "status": "pass", "hosts": [host for host in names if faults.get(host) != check]}
        for check in looked
    ]
    status = {host: "faulty" if host in faults else "healthy" for host in names}
    return {
        "schema": 2,
        "run": {
            "command": "check",
            "exam": "node",
            "started": f"{BEGIN + timedelta(days=number):%Y-%m-%dT%H:%M:%SZ}",
        },
        "hosts": [{"name": n, "status": status[n], "serial": (serials or {}).get(n)} for n in names],
        "findings": findings,
        "results": passed,
        **more,
    }


def fleet(runs: Iterable[dict[str, Any]]) -> Fleet:
    made = Fleet(frozenset(ACCUSING))
    for each in runs:
        made.add(msgspec.convert(each, KeptReport, strict=False))
    suspect(made.machines)
    return made


def suspects(made: Fleet) -> list[str]:
    return [each.name for each in made.machines if each.suspect]


def one(runs: Iterable[dict[str, Any]], name: str = "a") -> Machine:
    return next(each for each in fleet(runs).machines if each.name == name)


def year(seed: int, lemons: Collection[str] = ()) -> Fleet:
    """A year of one run a day of 200 hosts; every host fails once in 200 runs, a lemon in 12."""
    draw = random.Random(seed)
    hosts = [f"node{n}" for n in range(200)]
    days = (
        {host: draw.choice(ACCUSING) for host in hosts if draw.random() < (0.08 if host in lemons else 0.005)}
        for _ in range(365)
    )
    return fleet(run(number, hosts, faults) for number, faults in enumerate(days))


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 10))])
def test_a_lemon_among_200_hosts_is_named_and_nobody_without_one(seed: int) -> None:
    lemon = f"node{seed * 21}"
    assert suspects(year(seed, [lemon])) == [lemon]
    assert suspects(year(seed + 100)) == []


def test_in_200_histories_of_even_chance_nobody_is_named() -> None:
    draw = random.Random(5)
    for _ in range(200):
        days, rate = draw.choice([30, 365]), draw.choice([0.001, 0.01, 0.1])
        falls = [sum(draw.random() < rate for _ in range(days)) for _ in range(40)]
        machines = [
            Machine(name=str(n), names=[], fell={"x": fell} if fell else {}, looked={"x": days})
            for n, fell in enumerate(falls)
        ]
        suspect(machines)
        assert not [each.name for each in machines if each.suspect]


def test_sound_fleets_that_look_like_one_with_a_lemon() -> None:
    hosts = [f"n{n}" for n in range(50)]
    long_broken = [run(day, hosts, {"n1": "gpu-xid"} if day > 3 else {}) for day in range(100)]
    assert not suspects(fleet(long_broken)), "one fault that nobody repaired"
    tries = [run(5 + n / 100, ["n1"], {"n1": "gpu-xid"} if n % 2 else {}) for n in range(40)]
    assert not suspects(fleet([run(0, hosts, {}), *tries])), "one repair that took many tries on one day"
    gpus = [run(day, hosts[:4], {hosts[day % 4]: "gpu-xid"} if day % 3 == 0 else {}) for day in range(120)]
    others = [run(day, hosts[4:], {}, looked=["shm-small"]) for day in range(120)]
    assert not suspects(fleet([each for two in zip(gpus, others, strict=True) for each in two])), (
        "few have GPUs"
    )
    job = [run(day, hosts, {"n1": "shm-small"} if day % 2 else {}) for day in range(100)]
    assert not suspects(fleet(job)), "what a job asks for accuses no machine"
    both = [run(day, hosts, dict.fromkeys(hosts, "gpu-xid") if day % 9 == 0 else {}) for day in range(100)]
    assert not suspects(fleet(both)), "what strikes all is nobody's"


def test_a_run_decides_only_what_it_looked_at() -> None:
    runs = [run(0, ["a"], {"a": "gpu-xid"}), run(1, ["a"], {}, looked=["shm-small"])]
    assert (one(runs).runs, one(runs).undecided) == (1, 1)
    later = one([*runs, run(2, ["a"], {})])
    assert (later.runs, later.faulty, later.checks["gpu-xid"].returns) == (2, 1, 0)
    assert later.days == {"2026-01-01": True, "2026-01-03": False}


def test_a_host_that_did_not_answer_and_a_consequence_are_no_faults() -> None:
    silent = run(0, ["a"], {"a": "host-unreachable"})
    silent["hosts"][0]["status"] = "unexamined"
    assert (one([silent]).faulty, one([silent]).undecided) == (0, 1)
    victim = run(0, ["a", "b"], {"b": "gpu-xid", "a": "gpu-missing"})
    victim["findings"][1]["because"] = "f1"
    assert (one([victim]).faulty, one([victim], "b").faulty) == (0, 1)


def test_a_waived_fault_is_none_and_was_not_repaired() -> None:
    def waived(day: float) -> dict[str, Any]:
        made = run(day, ["a", "b"], {}, looked=["shm-small"])
        made["results"].append({"check": "gpu-xid", "status": "waived", "hosts": ["a"]})
        return made

    assert (one([waived(0)]).runs, one([waived(0)]).faulty) == (1, 0)
    days = range(12)
    both = [each for day in days for each in (run(day, ["a", "b"], {"a": "gpu-xid"}), waived(day + 0.5))]
    found = one(both)
    assert (found.faulty, found.undecided, found.fell) == (12, 12, {"gpu-xid": 1})
    assert found.checks["gpu-xid"].returns == 0


def test_a_machine_keeps_its_history_under_a_new_name() -> None:
    number = {"a": "S1", "b": "S2"}
    moved = [
        run(0, ["a"], {"a": "gpu-xid"}),
        run(1, ["a", "b"], {"a": "gpu-xid"}, serials=number),
        run(2, ["a", "b"], {}, serials={"a": "S3", "b": "S1"}),
    ]
    made = {each.serial: each for each in fleet(moved).machines}
    assert (made["S1"].name, made["S1"].names, made["S1"].faulty) == ("b", ["a", "b"], 2)
    assert (made["S3"].name, made["S3"].faulty) == ("a", 0)
    twins = fleet([run(0, ["a", "b"], {}, serials={"a": "Default", "b": "Default"})]).machines
    assert [each.serial for each in twins] == [None, None]


@cases
def test_what_is_no_serial_number_makes_no_two_hosts_one(serial: str, machines: int) -> None:
    runs = [run(day, [host], {}, serials={host: serial}) for day, host in enumerate("abab")]
    assert len(fleet(runs).machines) == machines


def kept(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def history(*words: str) -> tuple[int, str, dict[str, Any]]:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = cli.run(["history", *words, "--json", "-"])
    if not out.getvalue():
        return code, err.getvalue(), {}
    said: dict[str, Any] = json.loads(out.getvalue())
    assert wrong(said) == []
    assert said["exit_code"] == code
    return code, err.getvalue(), said


def test_folders_are_read_whatever_their_order(tmp_path: Path) -> None:
    for day in (3, 1, 2):
        kept(
            tmp_path,
            f"{'cab'[day - 1]}/r{day}.json",
            run(day, ["a", "b"], {"a": "gpu-xid"} if day > 1 else {}),
        )
    kept(tmp_path, "copy.json", run(1, ["a", "b"], {}))
    ended = {"id": "f1", "status": "fail", "hosts": ["b"], "headline": "b: died", "cause": "oom"}
    why = run(9, [], {}, findings=[ended])
    kept(tmp_path, "doctor-1/why.json", {**why, "run": {**why["run"], "command": "logs"}})
    code, text, said = history(str(tmp_path))
    found = said["history"]
    assert (code, found["runs"], found["jobs"]) == (0, 3, 1)
    assert (found["first"], found["last"]) == ("2026-01-02T00:00:00Z", "2026-01-10T00:00:00Z")
    assert [(each["name"], each["faulty"], each["ended"]) for each in found["machines"]] == [
        ("a", 2, {}),
        ("b", 0, {"oom": 1}),
    ]
    assert "gpu-xid (2)" in text


@cases
def test_what_is_no_run_is_named_and_passed_over(tmp_path: Path, text: str, why: str) -> None:
    kept(tmp_path, "good.json", run(0, ["a"], {}))
    whole = json.dumps(run(0, ["a"], {"a": "gpu-xid"}))
    bad = kept(tmp_path, "bad.json", text.replace("WHOLE", whole[:-1]).replace("HEAD", whole[:100]))
    said = history(str(tmp_path))[2]["history"]
    assert said["runs"] == 1
    assert why in said["passed_over"][str(bad)]


def warned(made: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The run, and a check that warns on `a`."""
    own = {"check": "swap-active", "status": "warn", "hosts": ["a"]}
    rows = {"findings": [*made["findings"], {"id": "w", **own}], "results": [*made["results"], own]}
    return {**made, **rows, "run": {**made["run"], **more}}


def test_a_strict_run_that_warns_hides_no_later_fault() -> None:
    days = [run(day, ["a", "b"], {"a": "gpu-xid"} if day % 4 == 0 else {}) for day in range(1, 20)]
    found = one([warned(run(0, ["a", "b"], {}), strict=True), *map(warned, days)])
    assert (found.undecided, found.faulty, found.fell) == (0, 5, {"gpu-xid": 4})
    open_still = [run(0, ["a"], {"a": "shm-small"}), run(1, ["a"], {"a": "gpu-xid"}, looked=ACCUSING)]
    assert one(open_still).fell == {"gpu-xid": 1}


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = kept(tmp_path, "closed/run.json", run(0, ["a"], {})).parent
    scan = os.scandir

    def refusing(path: str) -> Any:
        if str(path) == str(closed):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    said = history(str(tmp_path))[2]["history"]
    assert said["passed_over"] == {str(closed): "cannot be read: Permission denied"}


def test_a_day_that_no_calendar_has_and_a_name_that_is_no_text(tmp_path: Path) -> None:
    kept(tmp_path, "good.json", run(0, ["a"], {}))
    kept(tmp_path, "day.json", json.dumps(run(0, ["a"], {})).replace("2026-01-01T", "2026-13-45T"))
    kept(tmp_path, os.fsdecode(b"bad\xff.json"), "{}")
    code, _, said = history(str(tmp_path))
    assert (code, said["history"]["runs"]) == (0, 1)
    assert {*said["history"]["passed_over"]} == {f"{tmp_path}/day.json", f"{tmp_path}/bad\\xff.json"}


@cases
def test_a_name_or_a_check_that_no_host_and_no_doctor_has(tmp_path: Path, name: str, check: str) -> None:
    bad = kept(tmp_path, "bad.json", run(0, [name], {name: check}))
    code, text, said = history(str(tmp_path))
    assert (code, said["history"]["runs"]) == (3, 0)
    assert str(bad) in said["history"]["passed_over"]
    assert "\x1b" not in text


def test_no_link_is_followed_and_strangers_are_named(tmp_path: Path) -> None:
    outside = kept(tmp_path, "outside/run.json", run(0, ["a"], {"a": "gpu-xid"}))
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "link.json").symlink_to(outside)
    (folder / "links").symlink_to(outside.parent)
    os.mkfifo(folder / "pipe.json")
    folder.chmod(0o777)
    code, text, said = history(str(folder))
    assert code == 3
    assert said["history"]["runs"] == 0
    assert said["history"]["passed_over"][str(folder / "link.json")] == "is a link"
    assert "others can write to it; its runs are those of " in " ".join(text.split())


def test_what_is_no_folder_ends_with_2(tmp_path: Path) -> None:
    code, text, _ = history(str(tmp_path / "none"))
    assert code == 2
    assert "is not a folder" in text


def test_the_page_shows_hosts_by_day_and_the_suspects(tmp_path: Path) -> None:
    hosts = [f"n{n}" for n in range(30)]
    for day in range(60):
        kept(tmp_path, f"{day}.json", run(day, hosts, {"n7": "gpu-xid"} if day % 6 == 0 else {}))
    code, text, said = history(str(tmp_path), "--html", str(tmp_path / "page.html"))
    assert code == 0
    assert [each["name"] for each in said["history"]["machines"] if each["suspect"]] == ["n7"]
    assert "SUSPECT  n7" in text
    assert "became faulty on 10 days; chance gives it 0.3" in text
    page = (tmp_path / "page.html").read_text()
    assert "2026-01-01" in page
    assert page.index("2026-03-01") < page.index("2026-01-01"), "the newest day is first"
    assert page.count("✗") >= 10


def test_a_check_that_comes_and_goes_flaps(tmp_path: Path) -> None:
    for day in range(6):
        kept(tmp_path, f"{day}.json", run(day, ["a"], {"a": "shm-small"} if day % 2 else {}))
    _, text, said = history(str(tmp_path))
    assert said["history"]["machines"][0]["checks"]["shm-small"]["returns"] == 2
    assert "Checks that flap" in text


@cases
def test_what_a_machine_is_called_after_runs_in_a_row(
    runs: str, called: str | None, checks: tuple[str, ...]
) -> None:
    """A letter is a run. x, m: two faults of machines; s: what a job asks for; o: sound; w: the fault is
    waived; u: nothing that was wrong was looked at; -: the host did not answer.
    """
    faults = {"x": {"a": "gpu-xid"}, "m": {"a": "gpu-missing"}, "s": {"a": "shm-small"}}
    made = [
        run(day, ["a", "b"], faults.get(letter, {}), looked=["shm-small"] if letter in "wu-" else ALL)
        for day, letter in enumerate(runs)
    ]
    for letter, each in zip(runs, made, strict=True):
        if letter == "-":
            each["hosts"][0]["status"] = "unexamined"
        if letter == "w":
            each["results"].append({"check": "gpu-xid", "status": "waived", "hosts": ["a"]})
    found = one(made).called
    assert (found and f"{'faulty' if found.faulty else 'cleared'} {found.since[8:10]}") == called
    assert (found.checks if found else ()) == checks
    assert one(made, "b").called is None


@cases
def test_the_words_of_a_scheduler(tmp_path: Path, words: str, lines: str) -> None:
    """n1 is faulty, n2 was repaired, n3 failed once."""
    faults = [
        {"n1": "gpu-xid", "n2": "gpu-xid"},
        {"n1": "gpu-xid", "n2": "gpu-xid"},
        *[{"n1": "gpu-xid"}] * 2,
    ]
    for day, found in enumerate([*faults, {"n1": "gpu-missing", "n3": "gpu-xid"}]):
        kept(tmp_path, f"{day}.json", run(day, ["n1", "n2", "n3"], found))
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        assert cli.run(["history", str(tmp_path), "--as", *words.split()]) == 0
    assert (out.getvalue(), err.getvalue()) == (lines, "")


def test_what_a_job_found_drains_nothing() -> None:
    """A pod that was given no GPUs says nothing about its node."""
    asked = [run(day, ["a"], {"a": "gpu-missing"}) for day in range(4)]
    for each in asked:
        each["run"] |= {"command": "preflight", "exam": "preflight"}
    assert one(asked).called is None
    assert one([*asked, *(run(day, ["a"], {"a": "gpu-missing"}) for day in (4, 5))]).called is not None


@pytest.mark.parametrize("below", [False, True])
def test_whoever_may_add_runs_would_decide_what_is_drained(tmp_path: Path, below: bool) -> None:
    for day in range(3):
        kept(tmp_path, f"{day}.json", run(day, ["a"], {"a": "gpu-xid"}))
    if below:  # a folder of somebody else inside
        kept(tmp_path, "below/run.json", run(3, ["a"], {"a": "gpu-xid"})).parent.chmod(0o777)
    else:
        tmp_path.chmod(0o777)
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        assert cli.run(["history", str(tmp_path), "--as", "slurm"]) == 2
    assert out.getvalue() == ""
    assert "others can write to it" in " ".join(err.getvalue().split())
    assert history(str(tmp_path))[0] == 0, "the page says whose runs they are"


def test_a_change_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, ...]] = []
    monkeypatch.setattr(notify, "notified", lambda *words: told.append(words))
    for day, letter in enumerate("xxxoooo"):
        kept(tmp_path, f"{day}.json", run(day, ["a", "b"], {"a": "gpu-xid"} if letter == "x" else {}))
        assert history(str(tmp_path), "--notify", "mail ops")[0] == 0
    assert [each[:2] for each in told] == [("mail ops", "a called faulty"), ("mail ops", "a cleared")]
    assert "Called faulty after 2 faulty runs in a row" in told[0][2]


def test_only_what_is_there_now_is_drained_or_resumed(tmp_path: Path) -> None:
    def lines(*runs: dict[str, Any]) -> list[str]:
        for old in tmp_path.glob("*.json"):
            old.unlink()
        for number, each in enumerate(runs):
            kept(tmp_path, f"{number}.json", each)
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
            cli.run(["history", str(tmp_path), "--as", "plain", "--most-drained", "1%"])
        return [line.rsplit(" ", 2)[0] for line in out.getvalue().splitlines()]

    sick = [run(day, ["a", "b"], {"a": "gpu-xid"}, serials={"a": "S1", "b": "S2"}) for day in (0, 1)]
    assert lines(*sick) == ["a faulty"], "a percentage is rounded up"
    swapped = [run(day, ["a", "b"], {}, serials={"a": "S3", "b": "S2"}) for day in (2, 3)]
    assert lines(*sick, *swapped) == [], "another machine has the name now"
    left = [run(day, ["b"], {"b": "gpu-xid"} if day > 10 else {}) for day in range(2, 13)]
    assert lines(*sick, *left) == ["b faulty"], "one that left uses up no budget"
    again = [run(2 + day, ["a", "b"], {"a": "gpu-xid"} if day == 3 else {}) for day in range(4)]
    assert lines(*sick, *again[:3]) == ["a cleared"]
    assert lines(*sick, *again) == [], "found faulty again: it is not resumed"


def test_no_more_are_listed_than_the_budget_lets(tmp_path: Path) -> None:
    hosts = [f"n{number}" for number in range(40)]
    for day in range(4):
        sick = hosts[: 3 if day else 1]
        kept(tmp_path, f"{day}.json", run(day, hosts, dict.fromkeys(sick, "gpu-xid")))
    code, text, said = history(str(tmp_path), "--most-drained", "5%")
    assert (code, said["history"]["withheld"]) == (1, ["n2"])
    assert "called faulty: 3; --most-drained lets 2 be drained: n2 not listed." in text
    assert history(str(tmp_path), "--most-drained", "3")[0] == 0
    for wrong_number in ("x", "101%", "-1", "5 %", ""):
        code, text, _ = history(str(tmp_path), "--most-drained", wrong_number)
        assert (code, "neither a number of machines nor a percentage" in text) == (2, True)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_runs() -> None:
    few, many = (
        fleet(run(n / 500, ["a", "b"], {"a": "gpu-xid"}) for n in range(number)) for number in (400, 4000)
    )
    sizes = [len(msgspec.json.encode(made.machines)) for made in (few, many)]
    assert sizes[1] < sizes[0] * 3


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The news that a command of --notify would get."""
    said: list[str] = []
    monkeypatch.setattr(changes, "notified", lambda *words: said.append(words[1]))
    return said


def keep(folder: Path, made: dict[str, Any]) -> None:
    changes.kept_and_told("mail", folder, "doctor-1", {".json": json.dumps(made).encode(), ".txt": b"page"})


@cases
def test_a_run_tells_what_it_changed(tmp_path: Path, told: list[str], runs: str, news: list[str]) -> None:
    """A letter is a run, as above; k: the whole run is at fault; c: the fault is a consequence."""
    faults = {"x": {"a": "gpu-xid"}, "m": {"a": "gpu-missing"}, "c": {"b": "gpu-missing", "a": "gpu-xid"}}
    for day, letter in enumerate(runs):
        looked = ["shm-small"] if letter in "wu-" else ALL
        made = run(day, ["a", "b"], faults.get(letter, {}), looked)
        if letter == "k":
            made["findings"] = [{"id": "f1", "check": "shm-small", "status": "fail", "hosts": []}]
            made["results"] = [row for row in made["results"] if row["check"] != "shm-small"]
        if letter == "c":
            made["findings"][1]["because"] = "f1"
        if letter == "w":
            made["results"].append({"check": "gpu-xid", "status": "waived", "hosts": ["a"]})
        before = len(told)
        keep(tmp_path, made)
        told[before:] = [f"{day + 1} {each}" for each in told[before:]]
    assert told == news


def test_what_others_found_or_a_clock_that_was_wrong_is_not_the_run_before(
    tmp_path: Path, told: list[str]
) -> None:
    sick = {"a": "gpu-xid"}
    asked = run(0, ["a"], sick)
    asked["run"]["command"] = "preflight"
    kept(tmp_path, "asked.json", asked)
    kept(tmp_path, "broken.json", json.dumps(run(1, ["a"], sick))[:-9])
    kept(tmp_path, "others/run.json", run(1, ["a"], sick))
    kept(tmp_path, "ahead.json", run(900, ["a"], {"a": "gpu-missing"}))
    for day in (2, 3, 4, 5):
        keep(tmp_path, run(day, ["a"], sick if day < 4 else {}))
    assert told == ["a: gpu-xid", "no longer a: gpu-xid"]


def test_two_runs_that_end_at_once_tell_it_once(tmp_path: Path, told: list[str]) -> None:
    both = [
        threading.Thread(target=keep, args=(tmp_path, run(n / 9, ["a"], {"a": "gpu-xid"}))) for n in (2, 1)
    ]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert told == ["a: gpu-xid"]
    assert len([*tmp_path.iterdir()]) == 4, "the files of both, and nothing else"


def test_neither_a_full_disk_nor_somebody_who_holds_the_folder_hides_the_news(
    tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "PATIENCE", 0.1)
    held = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)

    def full(*_: object) -> dict[str, Path]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(changes, "add_files", full)
    with pytest.raises(OSError, match="No space"):
        keep(tmp_path, run(0, ["a"], {"a": "gpu-xid"}))
    os.close(held)
    assert told == ["a: gpu-xid"]


def test_news_needs_a_folder_of_earlier_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["check", "--local", "--notify", "mail"]) == 2
    assert "the earlier runs of --report-dir" in capsys.readouterr().err
    assert cli.run(["hang", "--notify", "mail"]) == 2
    assert "Type --watch too" in capsys.readouterr().err


@cases
def test_what_a_gate_in_the_shadow_would_have_drained(
    tmp_path: Path, runs: str, drained: int, wrong: int, checks: dict[str, int]
) -> None:
    """A letter is a run. x, m: two faults of the host; o: sound; u: undecided; -: it did not answer."""
    faults = {"x": "gpu-xid", "m": "gpu-missing", "-": "host-unreachable"}
    lines = [
        {
            "shadow": 1,
            "time": f"2026-01-{day:02}T00:00:00Z",
            "hosts": "node[1-2]",
            "exit_code": 3 if letter == "u" else int(letter in faults),
            "failed": [{"check": faults[letter], "hosts": "node1"}] if letter in faults else [],
        }
        for day, letter in enumerate(runs, 1)
    ]
    (tmp_path / "gate.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in lines) + '{"shadow": 1')
    code, text, said = history(str(tmp_path))
    assert code == 0
    own = {
        each["name"]: (each["drained"], each["wrong"], each["checks"]) for each in said["history"]["shadow"]
    }
    assert own == {"node1": (drained, wrong, checks), "node2": (0, 0, {})}
    assert f"drained hosts {drained} times; {wrong} of these times" in " ".join(text.split())
    assert [*said["history"]["passed_over"]] == [f"{tmp_path}/gate.jsonl:{len(lines) + 1}"]


@cases
def test_what_is_no_line_of_a_shadow_drains_nobody(tmp_path: Path, line: str) -> None:
    (tmp_path / "gate.jsonl").write_text(f"{line}\n")
    code, text, said = history(str(tmp_path))
    assert (code, said["history"]["shadow"]) == (3, [])
    assert [*said["history"]["passed_over"]] == [f"{tmp_path}/gate.jsonl:1"]
    assert "\x1b" not in text


def test_no_link_to_a_shadow_is_followed(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "gate.jsonl").symlink_to("/dev/zero")
    assert history(str(tmp_path / "runs"))[2]["history"]["passed_over"] == {
        f"{tmp_path}/runs/gate.jsonl": "is a link"
    }


@pytest.mark.parametrize("line", ["\n", "[]\n", '{"loss": 3.0, "step": 1}\n'])
def test_lines_of_other_programs_are_not_read_to_their_end(tmp_path: Path, line: str) -> None:
    (tmp_path / "metrics.jsonl").write_text(line)
    os.truncate(tmp_path / "metrics.jsonl", 1 << 27)  # a hole: only its beginning is written
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / ".hidden.jsonl").write_text(line)
    code, _, said = history(str(tmp_path))
    assert (code, said["history"]["shadow"]) == (3, [])
    assert said["history"]["passed_over"] == {f"{tmp_path}/metrics.jsonl": "is not a report of doctor"}


def test_a_shadow_that_two_folders_hold_counts_once_and_its_times_are_in_order(tmp_path: Path) -> None:
    for folder, days in (("a", (21, 22)), ("b", (3, 4)), ("c", (11, 12))):
        (tmp_path / folder).mkdir()
        lines = [
            f'{{"shadow": 1, "time": "2026-01-{day:02}T00:00:00Z", "hosts": "node1", "exit_code": {code},'
            f' "failed": [{failed}]}}\n'
            for day, code, failed in zip(days, (1, 0), ('{"check": "x", "hosts": "node1"}', ""), strict=True)
        ]
        (tmp_path / folder / "gate.jsonl").write_text("".join(lines))
    (found,) = history(str(tmp_path), str(tmp_path), str(tmp_path / "b"))[2]["history"]["shadow"]
    assert (found["runs"], found["drained"], found["wrong"]) == (6, 3, 3)
    assert (found["first"], found["last"]) == ("2026-01-03T00:00:00Z", "2026-01-22T00:00:00Z")


def test_a_hole_in_a_shadow_ends_its_reading(tmp_path: Path) -> None:
    """A forged file may be as long as it likes, and take no room on its disk."""
    line = '{"shadow": 1, "time": "2026-01-01T00:00:00Z", "hosts": "node1", "exit_code": 0, "failed": []}\n'
    path = tmp_path / "gate.jsonl"
    path.write_text(line)
    with path.open("r+b") as file:
        file.truncate(1 << 34)
    said = history(str(tmp_path))[2]["history"]
    assert [each["runs"] for each in said["shadow"]] == [1]
    assert said["passed_over"] == {f"{path}:2": "is too long; nothing behind it was read"}


def test_whose_the_shadows_are_in_a_folder_that_is_open_to_others(tmp_path: Path) -> None:
    (tmp_path / "gate.jsonl").touch()
    tmp_path.chmod(0o777)
    (said,) = history(str(tmp_path))[2]["history"]["open_to_others"]
    assert not said.endswith("those of ")
