"""Heavy libraries are imported only where they are needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.cases import cases


@cases
def test_heavy_modules_are_imported_only_when_needed(code: str, absent: set[str]) -> None:
    program = f"import sys\n{code}\nsys.stderr.write(' '.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {name.partition(".")[0] for name in ran.stderr.split()} & absent


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        ("'EI0006'", {"doctor.api", "doctor.facts", "doctor.judge.verdict", "doctor.exam.collect"}),
        ("'kernel-oom'", {"doctor.api", "doctor.facts", "doctor.judge.verdict", "doctor.exam.collect"}),
        ("'load task fail'", {"doctor.api", "doctor.facts", "doctor.judge.verdict", "doctor.exam.collect"}),
        ("'shm-small'", {"doctor.logs.reading", "doctor.exam.collect"}),
        (
            f"{__file__!r}",
            {"doctor.api", "doctor.judge.verdict", "doctor.report.html", "doctor.exam.collect"},
        ),
        (f"{__file__!r}", {"pydantic", "doctor.job.launch.files"}),
    ],
)
def test_what_explain_is_asked_decides_what_it_imports(words: str, absent: set[str]) -> None:
    asked = f"from doctor.cli import run\nrun(['explain', {words}])"
    program = f"import sys\n{asked}\nsys.stderr.write('\\n'.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(ran.stderr.split()) & absent
