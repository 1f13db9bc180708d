"""Which caller's interpreter is looked for on the hosts."""

from __future__ import annotations

import pytest

from doctor.exam.examination import own_interpreters


@pytest.mark.parametrize(
    ("environ", "prefix", "found"),
    [
        ({}, "/usr", ()),
        ({}, "/home/me/.local/pipx/venvs/doctor", ("/home/me/.local/pipx/venvs/doctor/bin/python",)),
        (
            {"VIRTUAL_ENV": "/home/me/train", "CONDA_PREFIX": "/opt/conda/"},
            "/home/me/train",
            ("/home/me/train/bin/python", "/opt/conda/bin/python"),
        ),
        ({"VIRTUAL_ENV": "/tmp/venv", "CONDA_PREFIX": "relative"}, "/usr/local", ()),
        ({"VIRTUAL_ENV": "/home/$(evil)"}, "/usr", ()),
        ({"VIRTUAL_ENV": "/home/../tmp/x"}, "/usr", ()),
    ],
)
def test_the_activated_one_then_that_of_the_doctor(
    environ: dict[str, str], prefix: str, found: tuple[str, ...]
) -> None:
    assert own_interpreters(environ, prefix) == found
