"""What a change touches: the folders that mirror it, and the tests that name it."""

from __future__ import annotations

import pytest

from tests.support.paths import ROOT
from tests.touched import ALWAYS, LAB, MIRRORED, PAGES, touched


@pytest.mark.parametrize(
    ("path", "tests"),
    [
        ("doctor/logs/reading/attempts.py", {"tests/unit/logs", "tests/hosts/logs"}),
        ("doctor/firewall/rules.py", {"tests/unit/firewall", "tests/hosts/firewall"}),
        ("doctor/text/printable.py", {"tests/unit/text", "tests/unit/report/test_html.py"}),
        ("doctor/cli/__init__.py", {"tests/unit/cli"}),
        ("checks/memory.py", {"tests/unit/checks", "tests/hosts/checks/test_memory.py"}),
        ("checks/zh/memory.yaml", {"tests/unit/checks"}),
        ("playbooks/remedies/memory.yaml", {"tests/unit/judge"}),
        ("tests/support/gpu_faults.py", {"tests/hosts/checks/test_gpu_xid.py"}),
        ("tests/lab/host.py", {*LAB}),
        ("tests/unit/test_touched.py", {"tests/unit/test_touched.py"}),
        ("tests/unit/cases/cases.yaml", {"tests/unit/test_cases.py"}),
        ("docs/smoke.md", {*PAGES}),
        ("Makefile", {"tests/hosts/test_docs.py"}),
    ],
)
def test_a_change_touches(path: str, tests: set[str]) -> None:
    assert {*tests, *ALWAYS} <= {*touched([path])}


def test_a_word_is_no_file() -> None:
    assert len(touched(["scripts/test"])) < 30, "it is not every test"


def test_what_is_named_is_there() -> None:
    assert [path for path in (*ALWAYS, *LAB, *PAGES, *MIRRORED) if not (ROOT / path).exists()] == []


def test_a_change_of_nothing_touches_nothing() -> None:
    assert touched([]) == []


def test_a_file_in_a_folder_that_is_run_is_not_named_again() -> None:
    found = touched(["doctor/text/printable.py", "tests/unit/text/test_redact.py"])
    assert "tests/unit/text" in found
    assert "tests/unit/text/test_redact.py" not in found
