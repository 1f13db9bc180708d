"""A saved run reads back as the same run and holds no secret; a file that is not a recording is refused."""

import gzip
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doctor import savedrun
from doctor.errors import UsageError
from doctor.job.wishes import JobWishes
from doctor.model import (
    Answer,
    AnswerEnd,
    Backend,
    Host,
    MissingFact,
    SourcedValue,
    UnreachedHost,
    UnreachedKind,
)
from doctor.probe import read
from doctor.recording import Recording, load, save
from doctor.smoke.judge import judge
from doctor.smoke.result import SmokeResult
from tests.support.cases import cases
from tests.support.envelopes import as_data, as_json
from tests.support.probing import TOKEN
from tests.support.recordings import heard, mesh, recording, report
from tests.support.reports import NAMES as FOUR
from tests.support.reports import seated, smoke_runs
from tests.support.smoke.frozen import died, frozen, stuck

NAMES = ["node1", "node2", "node3"]
FULL = recording(
    NAMES,
    hosts=(
        Host("node1", "10.0.0.1", user="root", port=22, jump="gate", data="10.1.0.1", ranks=2),
        Host("node2", "10.0.0.2", enter="docker exec -i job", python="/opt/python", expected={"nofile": "5"}),
        Host("node3", "10.0.0.3"),
    ),
    wishes=JobWishes(
        SourcedValue(Backend.NCCL, "--backend"), SourcedValue("node1", "x"), None, None, {"A": "1"}, {}
    ),
    expect={"somaxconn": "70000"},
    heard={
        "node2": heard(
            2,
            NAMES,
            firewall=MissingFact("firewall", "needs root"),
            identity={"/proc/sys/kernel/hostname": "node1"},
        )
    },
    unreached={
        "node3": UnreachedHost("node3", UnreachedKind.AUTH, "refused", "add the key", ("ssh-add",), "denied")
    },
    mesh=mesh(NAMES[:2], ("node1", "node2")),
    unfinished=(),
    notes=("a note",),
)
FULL = replace(FULL, heard={name: FULL.heard[name] for name in NAMES[:2]})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.json"


def test_saved_and_loaded_is_equal(file: Path) -> None:
    save(FULL, file)
    assert load(file) == FULL
    assert file.stat().st_mode & 0o777 == 0o600, "what hosts said is nobody else's business"


def test_the_same_recording_gives_the_same_report(file: Path) -> None:
    save(FULL, file)
    assert as_json(report(load(file))) == as_json(report(FULL))


def test_two_runs_with_the_same_answers_differ_only_in_the_run_itself() -> None:
    later = replace(FULL, started="2027-01-01T00:00:00Z", seconds=9.9)
    data, other = as_data(report(FULL)), as_data(report(later))
    assert data.pop("run") != other.pop("run")
    assert data == other


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a recording"),
        (b"hello", "is not a recording"),
        (b"[1]", "is not a recording"),
        (b"{}", "is not a recording"),
        (b'{"schema": "one"}', "is not a recording"),
        (b'{"schema": 99}', "is a recording of form 99; this version"),
        (b'{"schema": 1}', "is a damaged recording"),
        (b'{"schema": 1, "tool": "\xbd"}', "is a damaged recording"),
        (b'{"\xbd": 1}', "is not a recording"),
        (b"[" * 100_000, "is not a recording"),
        (b'{"schema": ' + b"9" * 5000 + b"}", "is not a recording"),
        (b"\xff\xfe\x00", "is not a recording"),
    ],
)
def test_a_file_that_is_not_a_recording(file: Path, content: bytes, message: str) -> None:
    file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load(file)
    assert str(file) in caught.value.message
    assert message in caught.value.message


@pytest.mark.parametrize(("place", "why"), [("none", "does not exist"), (".", "is a directory, not a file")])
def test_a_file_that_cannot_be_read(tmp_path: Path, place: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        load(tmp_path / place)


def test_a_recording_packed_by_gzip(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """People pack a recording to send it."""
    save(FULL, file)
    whole = file.read_bytes()
    packed = file.with_suffix(".json.gz")
    packed.write_bytes(gzip.compress(whole))
    assert load(packed) == load(file)
    for damaged in (gzip.compress(whole)[:-30], gzip.compress(whole)[:20], b"\x1f\x8b nonsense"):
        packed.write_bytes(damaged)
        with pytest.raises(UsageError, match="is a damaged gzip file"):
            load(packed)
    packed.write_bytes(gzip.compress(b"\0" * 100))
    with pytest.raises(UsageError, match="is not a recording"):
        load(packed)
    monkeypatch.setattr(savedrun, "MOST_BYTES", 50_000)
    packed.write_bytes(gzip.compress(b" " * 50_001))
    with pytest.raises(UsageError, match="holds more than 0 MB"):
        load(packed)


def test_a_recording_cut_anywhere_is_recognised(file: Path) -> None:
    save(FULL, file)
    whole = file.read_bytes()
    for end in range(0, len(whole), 997):
        file.write_bytes(whole[:end])
        with pytest.raises(UsageError, match=r"is not a recording|is a damaged recording"):
            load(file)


@cases
def test_a_recording_with_a_wrong_part(file: Path, change: dict[str, Any]) -> None:
    save(FULL, file)
    file.write_text(json.dumps(json.loads(file.read_bytes()) | change))
    with pytest.raises(UsageError, match="damaged recording"):
        load(file)


@cases
def test_a_recording_that_no_run_could_make(file: Path, change: dict[str, Any]) -> None:
    """Its types are right, but it may come from anywhere, and its names end up in lists of hosts."""
    save(FULL, file)
    told = json.loads(file.read_bytes()) | {"heard": {}, "unreached": {}, "mesh": None} | change
    file.write_text(json.dumps(told))
    with pytest.raises(UsageError, match="damaged recording"):
        load(file)


def test_an_answer_under_the_name_of_another_host(file: Path) -> None:
    one, two, *_ = NAMES
    save(replace(FULL, heard={one: replace(FULL.heard[one], host=two)}), file)
    with pytest.raises(UsageError, match="damaged recording: an answer is under the name of another host"):
        load(file)


def test_an_answer_without_a_frame_hides_secrets_too() -> None:
    lost = read(Answer("h", b"token: hunter2", b"", 1, AnswerEnd.DONE, 0, 0), (), TOKEN)
    assert isinstance(lost, UnreachedHost)
    assert "hunter2" not in repr(lost)


def test_an_older_recording_without_newer_fields(file: Path) -> None:
    save(FULL, file)
    data = json.loads(file.read_bytes())
    for optional in ("notes", "unfinished", "mesh_mode"):
        del data[optional]
    file.write_text(json.dumps(data))
    assert isinstance(load(file), Recording)


def with_smoke(*runs: SmokeResult) -> Recording:
    return recording(FOUR, smoke_wanted=True, smoke=runs)


@cache
def runs() -> dict[str, SmokeResult]:
    """Smoke runs with every kind of end."""
    died_there = died(frozen(seated(FOUR, each=2, tp=2), {3: stuck(100)}, kind="exit"), 3, signal=9)
    return {**smoke_runs(), "died": died_there}


@pytest.mark.parametrize("name", [*sorted(runs()), "two"])
def test_smoke_runs_are_judged_again_as_they_were(file: Path, name: str) -> None:
    told = with_smoke(*([runs()["hung"], runs()["repeated"]] if name == "two" else [runs()[name]]))
    save(told, file)
    assert load(file) == told
    assert as_json(report(load(file))) == as_json(report(told))


def as_saved(run: SmokeResult) -> Any:
    return json.loads(msgspec.json.encode(run))


def changed_at(data: Any, path: tuple[str | int, ...], value: Any) -> Any:
    *way, last = path
    inner = data
    for step in way:
        inner = inner[step]
    inner[last] = value
    return data


def load_with(file: Path, run: Any) -> Recording:
    """Load a recording with this smoke run, valid or not."""
    data = json.loads(msgspec.json.encode(recording(FOUR, smoke_wanted=True)))
    file.write_text(json.dumps(data | {"smoke": [run]}))
    return load(file)


@cases
def test_a_smoke_run_that_does_not_add_up(file: Path, path: tuple[str | int, ...], value: Any) -> None:
    with pytest.raises(UsageError, match="damaged recording"):
        load_with(file, changed_at(as_saved(runs()["hung"]), path, value))


@pytest.mark.parametrize("text", [b"NaN", b"Infinity", b"1e999"])
def test_numbers_without_bounds_are_refused(file: Path, text: bytes) -> None:
    save(with_smoke(runs()["hung"]), file)
    whole = file.read_bytes()
    assert whole.count(b'"latency":1.04') == 1
    file.write_bytes(whole.replace(b'"latency":1.04', b'"latency":' + text))
    with pytest.raises(UsageError, match=r"is not a recording|damaged recording"):
        load(file)


def paths(data: Any, before: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The paths of all values, with at most the first three items of a list."""
    inner: list[tuple[str | int, Any]] = []
    if isinstance(data, dict):
        inner = list(data.items())
    elif isinstance(data, list):
        inner = list(enumerate(data[:3]))
    return [place for key, value in inner for place in [(*before, key), *paths(value, (*before, key))]]


@cache
def places(name: str) -> list[tuple[str | int, ...]]:
    return paths(as_saved(runs()[name]))


NONSENSE = st.sampled_from(
    [0, 1, -1, 7, 64, 10**6, 2**53, 2**70, 0.5, 1e308, -1e308, None, True, "", "x" * 80, "train", "node2"]
) | st.sampled_from([[], {}, [1], {"0": 1}])


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.sampled_from(["passed", "hung", "died"]), NONSENSE)
def test_a_hostile_smoke_run_is_damaged_or_harmless(
    file: Path, data: st.DataObject, name: str, value: Any
) -> None:
    path = data.draw(st.sampled_from(places(name)))
    told = changed_at(as_saved(runs()[name]), path, value)
    try:
        read_back = load_with(file, told)
    except UsageError:
        return
    for charge in judge(read_back.smoke[0]):
        assert set(charge.culprit_hosts(read_back.smoke[0].plan)) <= set(FOUR)
