"""The one runner of all trials goes on where it was cut short, and selects kinds by their names."""

import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.support.cases import cases
from tests.trials.node.__main__ import SITUATIONS
from tests.trials.node.acts import ACTS, BUSY
from tests.trials.outcome import Outcome, load
from tests.trials.runner import Args, Case, Cases, Key, NoTrial, Series, chosen, main
from tests.trials.slow.kinds import KINDS as SLOW
from tests.trials.slow.kinds import OUTSIDE

KINDS = ("healthy", "work sleep", "work nap", "host stops, alone")


def looked(asked: list[Key], keys: Sequence[Key]) -> Iterator[Outcome]:
    for name, number in keys:
        asked.append((name, number))
        if name == "work nap" and number == 1:
            raise NoTrial("the job did not get there")
        if name == "host stops, alone":
            raise subprocess.TimeoutExpired("doctor", 1.0)
        yield Outcome(name, number, "", True, True, True, None, 1.0, 0, ())


def run(monkeypatch: pytest.MonkeyPatch, out: Path, *words: str) -> tuple[int, list[Key]]:
    """The exit code, and what was looked at."""
    asked: list[Key] = []

    def cases(args: Args) -> Cases:
        for kind in args.kinds:
            yield Case([(kind, number) for number in range(args.trials)], partial(looked, asked))

    series = Series("tests.trials.made", "made.jsonl", KINDS, cases, lacks=lambda _: None)
    monkeypatch.setattr("sys.argv", ["trials", "--out", str(out), *words])
    return main(series, ""), asked


def test_what_was_tried_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "made.jsonl"
    words = ("--faults", "work,healthy", "--trials")
    assert run(monkeypatch, out, *words, "1") == (0, [("healthy", 0), ("work sleep", 0), ("work nap", 0)])
    assert run(monkeypatch, out, *words, "1") == (0, [])
    assert run(monkeypatch, out, *words, "2") == (0, [("healthy", 1), ("work sleep", 1), ("work nap", 1)])
    assert "No trial of work nap: the job did not get there" in capsys.readouterr().err
    assert run(monkeypatch, out, *words, "2")[1] == [("work nap", 1)]
    assert run(monkeypatch, out, "--table") == (0, [])
    said = capsys.readouterr().out
    assert "5 trials were made." in said
    assert "| all that is sound |" in said


def test_a_doctor_that_does_not_end_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, _ = run(monkeypatch, tmp_path / "made.jsonl", "--kinds", "stops", "--trials", "1")
    (outcome,) = load(tmp_path / "made.jsonl")
    assert (code, outcome.verdict, outcome.said) == (1, "silent", ("it did not end",))


def test_an_unknown_kind_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        run(monkeypatch, tmp_path / "made.jsonl", "--faults", "healthy,no such")


@cases
def test_a_name_its_first_word_or_a_part_selects_kinds(words: list[str], found: list[str]) -> None:
    assert chosen(KINDS, words) == found


def test_what_the_files_name_is_there() -> None:
    own = {each.act for each in SITUATIONS.values()} - {"", "full_cgroup"}
    assert own == ACTS.keys()
    assert {name for each in SITUATIONS.values() for name in each.busy} == BUSY.keys()
    kinds = [*SLOW.values(), *(kind.beside for kind in SLOW.values() if kind.beside)]
    assert {kind.outside for kind in kinds} - {""} == OUTSIDE.keys()
