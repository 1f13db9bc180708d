"""`doctor ranktable check FILE`: no host is touched; the exit code, the place and the words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from doctor.cli import run
from doctor.job.ranktable import LiveDevice, LiveServer, make_table

SOUND = make_table(
    [
        LiveServer(
            id=f"10.0.0.{n}",
            address=f"10.0.0.{n}",
            devices=tuple(LiveDevice(d, f"10.20.{n}.{d}", None, None) for d in range(8)),
        )
        for n in (1, 2)
    ],
    "1.0",
    "aarch64",
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "hccl.json"
    path.write_text(SOUND)
    return path


def checked(table: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = run(["ranktable", "check", str(table)])
    return code, capsys.readouterr().out


def test_a_valid_table(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = checked(table, capsys)
    assert code == 0
    assert "2 hosts · 16 ranks (8 a host, rank table) · backend hccl (rank table)" in said
    assert "Healthy. No host was asked; 3 checks, 3 results: 3 passed" in said


@pytest.mark.parametrize(
    ("before", "after", "check", "line", "says"),
    [
        ('"status": "completed"', '"status": "completed",', "rank-table-invalid", "status", "comma"),
        ('"status": "completed"', '"status": "initializing"', "rank-table-invalid", "status", "initializing"),
        ('"rank_id": "9"', '"rank_id": "3"', "rank-table-ranks", '"10.20.2.1"', "rank 3"),
        ('"server_count": "2"', '"server_count": "3"', "rank-table-ranks", "server_count", "3"),
        ('"10.20.2.1"', '"10.20.1.1"', "rank-table-ranks", "10.20.1.1", "10.20.1.1"),
    ],
)
def test_a_flaw_has_its_line_and_its_text(
    before: str, after: str, check: str, line: str, says: str, table: Path, tmp_path: Path
) -> None:
    assert SOUND.count(before) == 1
    table.write_text(SOUND.replace(before, after))
    report = tmp_path / "report.json"
    assert run(["ranktable", "check", str(table), "--json", str(report)]) == 1
    found = [f for f in json.loads(report.read_text())["findings"] if f["status"] == "fail"]
    mine = [finding for finding in found if finding["check"] == check]
    assert mine, found
    where = [str(finding["subject"]).split(":") for finding in mine]
    assert all(parts[0] == str(table) and parts[2].isdigit() for parts in where)
    lines = table.read_text().splitlines()
    assert any(line in " ".join(lines[max(int(parts[1]) - 4, 0) : int(parts[1]) + 3]) for parts in where)
    assert any(says in f"{finding['summary']} {finding['actual']}".lower() for finding in mine)
    assert all(finding["hosts"] == [] for finding in found)


def test_a_file_that_is_not_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("", "{", "[]", "hello", "null"):
        path = tmp_path / "broken.json"
        path.write_text(text)
        code, said = checked(path, capsys)
        assert code == 1
        assert "rank-table-invalid" in said
        assert "Traceback" not in said


def test_a_file_that_does_not_exist_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ranktable", "check", str(tmp_path / "none.json")]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_hosts_are_not_called_healthy(table: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert run(["ranktable", "check", str(table), "--json", str(report)]) == 0
    data = json.loads(report.read_text())
    assert (data["hosts"], data["summary"]["hosts"]) == ([], 0)


def test_a_table_that_names_no_host_is_a_mistake_of_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.json"
    path.write_text('{"version": "1.0",\n "server_list": [\n')
    assert run(["check", "--rank-table", str(path)]) == 2
    assert f"{path}:" in capsys.readouterr().err
