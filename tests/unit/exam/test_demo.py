"""The bundled recordings: they load, accuse the right hosts, and play like a run."""

import contextlib
import gzip
import io
import json
import re
from pathlib import Path

import pytest

from doctor import cli
from doctor.cli.demo import demo
from doctor.errors import UsageError
from doctor.exam.demo import (
    ALL_DEMOS,
    DEMOS,
    FOLDER,
    HANGS,
    LASTS,
    SLOWS,
    TRANSCRIPT_LASTS,
    TRANSCRIPTS,
    load_demo,
    load_transcript,
    play,
    play_transcript,
    stages_of,
    transcript_of,
)
from doctor.exam.progress import ProgressLine
from doctor.exam.request import Request
from doctor.report.out.formats import STDOUT, Outputs
from doctor.text.language import Language
from doctor.text.nodeset import fold
from doctor.text.speech import speaking
from tests.support.cases import cases, from_cases

CULPRITS = from_cases(__file__, "CULPRITS", dict[str, set[tuple[str, ...]]])
each_demo = pytest.mark.parametrize("name", list(DEMOS))


def shown(*arguments: str) -> tuple[int, str]:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = cli.run(["demo", *arguments])
    return code, printed.getvalue()


def test_every_recording_has_its_line() -> None:
    assert (
        {path.name.removesuffix(".run.json.gz") for path in FOLDER.glob("*.run.*")}
        == set(DEMOS)
        == set(CULPRITS)
    )
    assert {path.name.removesuffix(".hang.json.gz") for path in FOLDER.glob("*.hang.*")} == set(HANGS)
    assert {path.name.removesuffix(".slow.json.gz") for path in FOLDER.glob("*.slow.*")} == set(SLOWS)
    casts = {transcript_of(name, lang) for name in TRANSCRIPTS for lang in Language}
    assert set(FOLDER.glob("*.cast.gz")) == casts
    assert len(list(FOLDER.iterdir())) == len(ALL_DEMOS) - len(TRANSCRIPTS) + len(casts)


@cases
def test_a_job_names_its_rank(demo: str, begins: str, command: str, says: list[str], tmp_path: Path) -> None:
    code, text = shown(demo, "--json", str(tmp_path / "report.json"))
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert (code, report["exit_code"], report["verdict"]) == (0, 1, "faulty")
    assert text.startswith(f"A bundled recording: {begins}")
    assert f"$ doctor {command} 'node[1-4]'" in text.splitlines()[1]
    assert all(each in text for each in says)


def test_the_transcript_tells_the_job_from_its_start_to_its_end() -> None:
    code, text = shown("run")
    assert (code, text.splitlines()[1]) == (0, "$ " + TRANSCRIPTS["run"].command)
    told = (
        "doctor: go: node1",
        "step 11 ",
        "doctor: The job waits for rank 1 on node1.",
        "HANG  rank 1 on node1",
        "Timed out waiting",
        "FAIL  rank 1 did not join what ranks 0, 2 waited for",
        "is the job's, after",
    )
    places = [text.index(each) for each in told]
    assert places == sorted(places)
    assert "\x1b" not in text
    assert "\r" not in text


def test_the_transcript_is_kept_in_chinese_too() -> None:
    with speaking(Language.ZH):
        text = shown("run", "--lang", "zh")[1]
    assert "doctor: 作业在等 node1 上的 rank 1。" in text
    assert "doctor: 退出码 1 是作业的" in text


@pytest.mark.parametrize("lang", Language)
def test_a_transcript_plays_within_20_seconds(lang: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("doctor.exam.demo.time.sleep", waited.append)
    played, seen = load_transcript("run", lang), list[str]()
    play_transcript(played, seen.append)
    assert sum(waited) == pytest.approx(TRANSCRIPT_LASTS)
    assert sum(waited) <= 20
    assert "".join(seen) == "".join(piece for _, piece in played.pieces)


def test_a_transcript_has_no_report() -> None:
    with pytest.raises(UsageError, match="it has no report"):
        demo("run", Request("demo", outputs=Outputs(json=STDOUT)))


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
    assert all(f"doctor demo {name} " in text for name in list(ALL_DEMOS)[1:])


def test_a_demo_that_there_is_not() -> None:
    with pytest.raises(UsageError, match=r"no demo 'helthy'\. Did you mean .healthy") as refused:
        load_demo("helthy")
    assert "gpus, npus, hang, healthy, loader, slow, run" in refused.value.hint


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
    monkeypatch.setattr("doctor.exam.demo.time.sleep", waited.append)
    line = ProgressLine(False)
    play(load_demo("hang"), line)
    assert waited == []
    line.live = True
    play(load_demo("hang"), line)
    assert sum(waited) == pytest.approx(LASTS)


@pytest.mark.parametrize("file", sorted(FOLDER.iterdir()), ids=lambda file: file.name)
def test_it_is_small_and_names_no_other_machine(file: Path) -> None:
    raw = file.read_bytes()
    assert len(raw) < 100_000
    places = set(
        re.findall(
            rb"(?<![a-z0-9_.-])/(?:home|work|root|usr/local|opt|mnt|data)/[a-z0-9_.-]+", gzip.decompress(raw)
        )
    )
    ours = {b"/opt/train", b"/opt/python3", b"/opt/cluster-doctor", b"/usr/local/Ascend", b"/data/job"}
    assert {place for place in places if not place.startswith(tuple(ours))} == set()


@pytest.mark.parametrize("name", sorted(set(DEMOS) - {"hang"}))
def test_a_demo_leaves_nothing_undecided(name: str) -> None:
    """What is older than a check cannot answer it: `make demos`. A training that hangs ends early."""
    assert "not decided" not in shown(name)[1]
