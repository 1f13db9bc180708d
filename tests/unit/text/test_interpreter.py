"""Which paths of interpreters may be in a suggested command."""

from __future__ import annotations

import pytest

from doctor.text.interpreter import PLAIN, to_type
from tests.support.cases import cases


@cases
def test_an_interpreter(path: str) -> None:
    assert to_type(path) == path


@pytest.mark.parametrize(
    "path",
    [
        *(
            "",
            "python3",
            "./python3",
            "~/python3",
            "/tmp/evil",
            "/tmp/python3/evil",
            "/tmp/python3-evil",
            "/usr/bin/",
        ),
        *(
            "/tmp/../bin/python3",
            "/tmp/a b/python3",
            "/tmp/$(id)/python3",
            "/tmp/`id`/python3",
            "/tmp/a;b/python3",
        ),
        *(
            "/tmp/a|b/python3",
            "/tmp/a\nb/python3",
            "/usr/bin/python3\n",
            "/tmp/\x1b[2J/python3",
            "/tmp/é/python3",
        ),
        *("/usr/bin/python3 -c", "/tmp/'/python3", "/tmp/*/python3", "/usr/bin/python٣", "-c/python3", "//"),
    ],
)
def test_anything_else_is_the_plain_one(path: str) -> None:
    assert to_type(path) == PLAIN
