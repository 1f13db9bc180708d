"""What may block is given up in time, and everything else goes on."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Any

from doctor.hang.onhost.careful import Tool, carefully, run_all


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
