"""The files of a report, and its text on stderr."""

import pytest

from doctor.logs.report import page_of
from doctor.logs.report_json import logs_report
from doctor.run.page_files import in_files
from tests.support.logs.conclusions import explaineds


@pytest.mark.parametrize("columns", [60, 80, 110])
def test_the_text_is_as_wide_as_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text, files = in_files(page_of(explaineds()["oom"]), logs_report(explaineds()["oom"], None))
    assert columns - 12 <= max(map(len, text.splitlines())) <= columns
    assert files.keys() == {".txt", ".html", ".json"}
    assert files[".txt"].decode() == text
