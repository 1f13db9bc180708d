"""Reads that may block are abandoned in time, and everything else goes on."""

import os
import resource
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from doctor.agents.onhost.recorder import TOO_LARGE
from doctor.live.onhost import careful, job_files
from doctor.live.onhost.careful import MEMORY, Tool, carefully, run_all


def _slow(item: int) -> int:
    if item == 2:
        time.sleep(60)
    if item == 3:
        raise OSError
    return item * 10


def test_what_does_not_return_is_given_up_alone() -> None:
    began = time.monotonic()
    assert dict(carefully(_slow, [1, 2, 3, 4], stall=0.3)) == {1: 10, 2: None, 3: None, 4: 40}
    assert time.monotonic() - began < 15


def test_after_many_stalls_the_rest_is_not_tried() -> None:
    found = list(carefully(lambda _: time.sleep(60), list(range(100)), stall=0.05))
    assert found == [(item, None) for item in range(100)]


def test_what_one_user_has_made_slow_keeps_nobody_waiting() -> None:
    def work(item: int) -> int:
        if item < 100:
            time.sleep(60 if item % 2 else 0.05)
        return item

    items, owners = [*range(100), 100, 101, 102], ["slow"] * 100 + ["other"] * 3
    found = dict(carefully(work, items, 0.1, owners, time.monotonic() + 3))
    assert {*found} == {*items}
    assert [found[item] for item in (100, 101, 102)] == [100, 101, 102]


def test_tools_on_what_one_user_has_made_slow_keep_none_waiting() -> None:
    slow, quick = ([sys.executable, "-c", text] for text in ("import time; time.sleep(60)", "print('x')"))
    starts = [partial(Tool, argv, 2.0, 100) for argv in [slow] * 10 + [quick] * 3]
    seen = run_all(starts, 2, ["slow"] * 10 + ["other"] * 3, time.monotonic() + 1)
    assert {place for place, _, _ in seen} >= {10, 11, 12}


def test_tools_have_limits() -> None:
    def start(text: str, seconds: float = 5.0, most: int = 1000) -> Any:
        return partial(Tool, [sys.executable, "-c", text], seconds, most)

    starts = [start("print('x')"), start("import time; time.sleep(60)", 0.5), start("print('x' * 10**6)")]
    ended = {place: (tool.why, code) for place, tool, code in run_all(starts, 2)}
    assert ended == {
        0: ("", 0),
        1: ("no answer within 0.5 s", None),
        2: ("it printed more than 0 KiB", None),
    }


def test_a_dump_that_takes_too_much_memory_is_said_and_nothing_else_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """32 MB of empty lists would take 1 GB."""
    monkeypatch.setattr(careful, "HUNGRY", 100.0)
    large, small = tmp_path / "large", tmp_path / "small"
    large.write_text('{"pg_status":[' + "[]," * 10_000_000 + "[]]}")
    small.write_text('{"pg_status": {}, "entries": []}')
    uid = os.getuid()
    items = [(str(path), uid, 0.0) for path in (large, small)]
    (_, first), (_, second) = carefully(job_files.dump, items, stall=100.0)
    assert first["problem"] == TOO_LARGE
    assert "pg_status" in second["text"]


def test_py_spy_has_a_limit_of_memory_and_other_tools_have_none() -> None:
    text = "import resource; print(resource.getrlimit(resource.RLIMIT_DATA)[0])"
    starts = [partial(Tool, [sys.executable, "-c", text], 20.0, 100, (), reads) for reads in (True, False)]
    said = {place: int(tool.out) for place, tool, _ in run_all(starts, 1)}
    assert said == {0: MEMORY, 1: resource.getrlimit(resource.RLIMIT_DATA)[0]}
