"""Whether several ranks may have written in one file."""

from __future__ import annotations

import pytest

from doctor.logs.judge.recovery import _several
from doctor.logs.model import Form, LogFile, Party


@pytest.mark.parametrize(
    ("file", "several"),
    [
        (None, True),
        (LogFile("a"), False),
        (LogFile("a", world=1), False),
        (LogFile("a", world=2), True),
        (LogFile("a", world=2, who=Party(rank=1)), False),
        (LogFile("a", ranks=(0,)), False),
        (LogFile("a", ranks=(0, 1)), True),
        (LogFile("a", forms=(Form.PLAIN,)), False),
        (LogFile("a", forms=(Form.PLAIN, Form.ELASTIC)), True),
    ],
)
def test_who_may_have_written_a_file(file: LogFile | None, several: bool) -> None:
    assert _several(file) is several
