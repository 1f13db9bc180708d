"""The bundled recordings: they load, accuse the right hosts, and play like a run."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
from pathlib import Path

import pytest

from doctor import cli
from doctor.errors import UsageError
from doctor.run.demo import DEMOS, FOLDER, LASTS, load_demo, play, stages_of
from doctor.run.progress import ProgressLine
from doctor.text.nodeset import fold

CULPRITS = {
    "gpus": {
        ("gpu-unhealthy", "node2"),
        ("nvlink-down", "node4"),
        ("gpu-ecc", "node7"),
        ("shm-small", "node6"),
    },
    "npus": {("device-link-down", "node2"), ("ports-not-reserved", "node[1-4,6]")},
    "hang": {("smoke-hang", "node2")},
    "healthy": set(),
}
each_demo = pytest.mark.parametrize("name", list(DEMOS))


def shown(*arguments: str) -> tuple[int, str]:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = cli.run(["demo", *arguments])
    return code, printed.getvalue()


def test_every_recording_has_its_line() -> None:
    assert (
        {path.name.removesuffix(".run.json.gz") for path in FOLDER.iterdir()} == set(DEMOS) == set(CULPRITS)
    )


@each_demo
def test_it_accuses_whom_it_should(name: str, tmp_path: Path) -> None:
    code, text = shown(name, "--json", str(tmp_path / "report.json"))
    report = json.loads((tmp_path / "report.json").read_bytes())
    failed = {
        (found["check"], fold(found["hosts"])) for found in report["findings"] if found["status"] == "fail"
    }
    assert failed == CULPRITS[name]
    assert report["verdict"] == ("faulty" if failed else "healthy")
    assert code == 0, "the demo was shown"
    assert text.startswith("A bundled recording")
    assert "$ doctor " in text.splitlines()[1]


@each_demo
def test_emulated_devices_are_said_to_be_emulated(name: str) -> None:
    first, *_ = shown(name)[1].splitlines()
    assert ("of emulated devices" in first) is (name in ("gpus", "npus"))


def test_without_a_name_the_first_is_shown_and_the_others_are_listed() -> None:
    code, text = shown()
    assert code == 0
    assert text.startswith(shown(next(iter(DEMOS)))[1])
    assert all(f"doctor demo {name} " in text for name in list(DEMOS)[1:])


def test_a_demo_that_there_is_not() -> None:
    with pytest.raises(UsageError, match=r"no demo 'helthy'\. Did you mean .healthy") as refused:
        load_demo("helthy")
    assert "gpus, npus, hang, healthy" in refused.value.hint


@each_demo
def test_it_plays_what_was_recorded(name: str) -> None:
    recorded = load_demo(name)
    stages = list(stages_of(recorded))
    assert [stage.phase for stage in stages if stage.done == stage.of][:2] == ["hosts", "network"]
    assert all(stage.done <= stage.of for stage in stages)
    assert len({fold(stage.waiting) for stage in stages if stage.phase == "hosts"}) == len(recorded.hosts) + 1
    trained = [stage.doing for stage in stages if stage.phase == "smoke"]
    assert any("loss" in doing for doing in trained) is bool(recorded.smoke)


def test_nothing_is_played_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("doctor.run.demo.time.sleep", waited.append)
    line = ProgressLine(False)
    play(load_demo("hang"), line)
    assert waited == []
    line.live = True
    play(load_demo("hang"), line)
    assert sum(waited) == pytest.approx(LASTS)


@each_demo
def test_it_is_small_and_names_no_other_machine(name: str) -> None:
    raw = (FOLDER / f"{name}.run.json.gz").read_bytes()
    assert len(raw) < 100_000
    places = set(
        re.findall(rb"/(?:home|work|root|usr/local|opt|mnt|data)/[a-z0-9_.-]+", gzip.decompress(raw))
    )
    ours = {b"/opt/train", b"/opt/python3", b"/opt/cluster-doctor", b"/usr/local/Ascend"}
    assert {place for place in places if not place.startswith(tuple(ours))} == set()
