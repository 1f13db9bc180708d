"""The progress line: its text, its width, and when a log gets one."""

import io
import time
from contextlib import redirect_stderr

import pytest

from doctor.exam.progress import LOG, ProgressLine, drawn, progress_line, words
from doctor.report.out.formats import Outputs
from doctor.stage import Stage
from doctor.text.terminal import room

HOSTS = tuple(f"node{n}" for n in range(1, 9))
ASKING = Stage("hosts", "5/8 answered", 5, 8, waiting=HOSTS[5:], limit=60.0)
TRAINING = Stage("smoke", "train 12/30  loss 2.31  8 ranks on node[1-4]", 12, 30)


class Log(io.StringIO):
    encoding = "utf-8"


class Terminal(Log):
    def isatty(self) -> bool:
        return True


def after(seconds: float, stages: list[Stage], *, quiet: bool = False, verbose: bool = False) -> list[str]:
    """The lines of a log after the last stage has lasted this long, looked at every second."""
    with redirect_stderr(Log()) as log:
        line = ProgressLine(not quiet, verbose=verbose)
        for stage in stages:
            line(stage)
        began = time.monotonic()
        for second in range(int(seconds) + 1):
            line.show(began + second)
        line.clear()
    return log.getvalue().splitlines()


def test_what_is_done_of_what_and_who_is_waited_for() -> None:
    assert words(ASKING, 0, 13) == "hosts  5/8 answered  waiting for node[6-8]  0:13"
    assert words(TRAINING, 0, 3725) == "smoke  train 12/30  loss 2.31  8 ranks on node[1-4]  1:02:05"


def test_nothing_is_said_of_what_may_stand_still() -> None:
    reading = Stage("logs", "3.0 of 9.5 MB  file 2: rank1.log", 3, 9, patient=True)
    assert words(reading, 90, 95) == "logs  3.0 of 9.5 MB  file 2: rank1.log  1:35"


def test_the_limit_is_said_when_nothing_moves() -> None:
    assert words(ASKING, 12, 13).endswith("no move for 12 s, limit 60 s  waiting for node[6-8]  0:13")
    assert "no move" not in words(ASKING, 4, 13)
    assert "limit" not in words(TRAINING, 12, 13)


def test_ranks_that_are_waited_for() -> None:
    stage = Stage("smoke", "train 12/30", 12, 30, waiting=["node2"], ranks=[3])
    assert "waiting for rank 3 on node2" in words(stage, 0, 1)


def test_of_ten_thousand_hosts_only_some_are_folded() -> None:
    many = [f"n{2 * n}" for n in range(10_000)]
    assert len(words(Stage("hosts", "0/10000", waiting=many), 0, 1)) < 2000


@pytest.mark.parametrize("columns", [20, 30, 39, 79, 199])
@pytest.mark.parametrize("stage", [ASKING, TRAINING, Stage("hosts", "0/9", 0, 9, waiting=["x" * 300])])
@pytest.mark.parametrize("still", [0.0, 90.0])
def test_it_is_one_line_with_its_clock_however_narrow(stage: Stage, still: float, columns: int) -> None:
    line = drawn(stage, still, 14, columns, colour=False)
    assert len(line) <= columns
    assert line.startswith(stage.phase)
    assert line.rstrip().endswith("0:14")
    assert not any(sign in line for sign in "\x1b\r\n")


def test_a_wide_terminal_shows_all_of_it_and_a_bar() -> None:
    line = drawn(TRAINING, 0, 14, 119, colour=True)
    assert "train 12/30  loss 2.31  8 ranks on node[1-4]" in line
    assert "━" in line
    assert "\x1b[1msmoke" in line
    assert "━" not in drawn(TRAINING, 0, 14, 39, colour=True)


def test_eighty_columns_have_room_for_who_is_waited_for_and_how_long() -> None:
    assert drawn(ASKING, 12, 13, 79, colour=False).rstrip() == words(ASKING, 12, 13)


def test_colours_are_left_out_with_their_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("TERM", raising=False)
    with redirect_stderr(Terminal()) as screen:
        line = progress_line(Outputs())
        line(ASKING)
        line.show(time.monotonic())
        line.clear()
    shown = screen.getvalue()
    assert "\x1b" not in shown
    assert shown.startswith("\r\rhosts")
    *_, last = shown.removesuffix("\r").split("\r")
    assert last == " " * len(shown.split("\r")[2])


def test_columns_never_exceed_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert room(Terminal()) == 39


def test_a_log_gets_a_line_every_ten_seconds_of_a_long_phase() -> None:
    assert after(LOG - 1, [ASKING]) == []
    lines = after(3 * LOG + 1, [ASKING])
    assert [line[-4:] for line in lines] == ["0:10", "0:20", "0:30"]
    assert lines[0].startswith("doctor: hosts  5/8 answered  no move for 10 s")


def test_phases_are_counted_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("doctor.exam.progress.time.monotonic", lambda: now[0])
    with redirect_stderr(Log()) as log:
        line = ProgressLine(True)
        for stage in (ASKING, TRAINING, ASKING):
            line(stage)
            now[0] += LOG - 1
            line.show(now[0])
        line.clear()
    assert log.getvalue() == ""


def test_quiet_is_silent_and_verbose_says_each_phase() -> None:
    assert after(LOG + 1, [ASKING, TRAINING], quiet=True, verbose=True) == []
    joining = Stage("smoke", "join  8 ranks on node[1-4]", part="join")
    lines = after(1, [ASKING, joining, TRAINING, TRAINING], verbose=True)
    assert [line.split()[1:3] for line in lines] == [["hosts", "5/8"], ["smoke", "join"], ["smoke", "train"]]


def test_a_dumb_terminal_is_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with redirect_stderr(Terminal()) as screen:
        line = ProgressLine(True)
        line(ASKING)
        line.show(time.monotonic() + LOG + 1)
        line.clear()
    assert screen.getvalue().startswith("doctor: hosts")
    assert screen.getvalue().count("\n") == 1
    assert not any(sign in screen.getvalue() for sign in "\x1b\r")


def test_it_draws_nothing_after_it_was_cleared() -> None:
    with redirect_stderr(Terminal()) as screen:
        line = ProgressLine(True)
        line(ASKING)
        line.clear()
        line.show(time.monotonic() + 60)
    assert "hosts" not in screen.getvalue()
