"""`doctor ranktable check FILE`: no host is touched; the exit code, the place and the words."""

import json
from pathlib import Path

import pytest

from doctor.cli import run
from doctor.job.ranktable import LiveDevice, LiveServer, make_table
from tests.support.cases import cases

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
    assert "2 hosts · 16 ranks (8 a host, rank table) · backend hccl (rank table)" in " ".join(said.split())
    assert "Healthy. No host was asked. 3 checks apply and all pass" in said


@cases
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


def test_what_to_write_is_said_instead_of_where_to_look(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table.write_text(SOUND.replace('"server_count": "2"', '"server_count": "3"'))
    code, said = checked(table, capsys)
    line = SOUND[: SOUND.index("server_count")].count("\n") + 1
    words = " ".join(said.split())
    assert code == 1
    assert f"""do Line {line}: "server_count": "2" instead of '"3"'""" in words
    assert "sed -n" not in words
    assert "type here" not in words
    assert "(rank table)" in words, "nothing was trained"


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


SEVEN = {str(n): [LiveDevice(d, f"10.{20 + d % 4}.{n}.{d + 1}") for d in range(7)] for n in (1, 2)}


def test_the_product_decides_and_is_missed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Seven devices on each of two servers: sound on Atlas A2, refused by HCCL on Atlas training."""
    path = tmp_path / "hccl.json"
    servers = [LiveServer(f"10.0.0.{n}", f"10.0.0.{n}", tuple(own)) for n, own in SEVEN.items()]
    path.write_text(make_table(servers, "1.0", "aarch64"))
    code, said = checked(path, capsys)
    assert code == 0
    assert "the table does not name its product" in " ".join(said.split())
    assert "--product atlas-training|atlas-a2|atlas-a3|atlas-950" in " ".join(said.split())
    assert run(["ranktable", "check", str(path), "--product", "atlas-a2"]) == 0
    assert "does not say" not in capsys.readouterr().out
    assert run(["ranktable", "check", str(path), "--product", "atlas-training"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "7 devices on a server; HCCL refuses it: devNum must be divisible by 8" in said
    assert "(and 1 more like it)" in said
    assert "does not say" not in said


def test_the_oldest_form_is_judged_by_its_product_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hccl.json"
    path.write_text(make_table([LiveServer("a", "10.0.0.1", tuple(SEVEN["1"]))], "legacy", "x86_64"))
    code, said = checked(path, capsys)
    assert code == 1
    assert "7 devices on a server" in said
    assert "--product" not in said


@pytest.mark.parametrize("given", [["--product", "atlas-a4"], ["--product", "atlas-a2", "node1"]])
def test_a_product_that_means_nothing_is_a_usage_error(given: list[str], table: Path) -> None:
    assert run(["ranktable", "check", str(table), *given]) == 2


def test_equal_flaws_of_eight_devices_are_one_finding(table: Path, tmp_path: Path) -> None:
    for device in range(8):
        table.write_text(table.read_text().replace(f'"10.20.2.{device}"', f'"10.20.2.{device}.1"'))
    report = tmp_path / "report.json"
    assert run(["ranktable", "check", str(table), "--json", str(report)]) == 1
    (found,) = (f for f in json.loads(report.read_text())["findings"] if f["status"] == "fail")
    assert found["summary"] == "device_ip is not an address (and 7 more like it)"
    assert [place["rank"] for place in found["where"]] == list(range(8, 16))
    assert [place["device"] for place in found["where"]] == list(range(8))
    assert [each["text"] for each in found["evidence"]] == [f"'10.20.2.{d}.1'" for d in range(8)]


def test_flaws_of_devices_that_differ_in_numbers_only_are_one_finding(table: Path, tmp_path: Path) -> None:
    for rank in range(8, 16):
        table.write_text(table.read_text().replace(f'"rank_id": "{rank}"', f'"rank_id": "{rank - 8}"'))
    report = tmp_path / "report.json"
    assert run(["ranktable", "check", str(table), "--json", str(report)]) == 1
    found = [f["summary"] for f in json.loads(report.read_text())["findings"] if f["status"] == "fail"]
    assert sorted(found) == ["rank 0 is given twice (and 7 more like it)", "ranks 8-15 of 16 missing"]
