"""`--per-host`: the file of each host says what a run over it alone says."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from doctor.model import UnreachedHost, UnreachedKind
from doctor.report.out.file_names import host_file
from doctor.report.out.formats import Outputs, json_of
from doctor.report.out.outputs import deliver, refuse_unwritable
from tests.support.recordings import heard, recording
from tests.unit.judge.test_alone import FAULTS, alone, judged

NAMES = ("node1", "node2", "node3", "node4")


def shape(data: dict[str, Any]) -> dict[str, Any]:
    (host,) = data["hosts"]
    return {
        **{key: data[key] for key in ("schema", "verdict", "exit_code")},
        "host": (host["name"], host["status"], host["facts"]),
        "failed": [(f["check"], f["hosts"], f["where"]) for f in data["findings"] if f["status"] == "fail"],
    }


@pytest.mark.parametrize("name", FAULTS)
def test_each_file_is_the_report_of_its_host(name: str, tmp_path: Path) -> None:
    sick = FAULTS[name][0]
    of = recording(NAMES, heard={n: heard(int(n[-1]), NAMES, **sick) for n in ("node2", "node3")})
    why = UnreachedHost("node4", UnreachedKind.REFUSED, "Connection refused by 10.0.0.4:22.", "Start sshd.")
    of = replace(of, heard={n: a for n, a in of.heard.items() if n != "node4"}, unreached={"node4": why})
    outputs = Outputs(per_host=tmp_path / "made" / "here", quiet=True)
    refuse_unwritable(outputs, {})
    assert deliver(judged(of), None, outputs) == 1
    folder = tmp_path / "made" / "here"
    assert sorted(path.name for path in folder.iterdir()) == [".sweep", *(f"{name}.json" for name in NAMES)]
    assert {path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())} == {0o700, 0o600}
    read = {name: json.loads((folder / f"{name}.json").read_bytes()) for name in NAMES}
    assert [read[name]["exit_code"] for name in NAMES] == [0, 1, 1, 1]
    for host in NAMES[:3]:
        assert shape(read[host]) == shape(json.loads(json_of(judged(alone(of, host)))))
    assert [found[:2] for found in shape(read["node4"])["failed"]] == [("host-unreachable", ["node4"])]
    assert read["node4"]["hosts"][0]["status"] == "unexamined"


@pytest.mark.parametrize("name", ["../etc/passwd", ".hidden", "a/b", "fe80::1%eth0", "..", "主机"])
def test_a_name_stays_in_the_folder_and_is_not_hidden(name: str) -> None:
    assert Path("folder", host_file(name)).name == host_file(name)
    assert not host_file(name).startswith(".")


@pytest.mark.parametrize("whose", ["own", "another", "link"])
def test_only_the_own_list_of_a_sweep_removes_files(whose: str, tmp_path: Path) -> None:
    """The folder may be one in which everybody may write."""
    folder = tmp_path / "here"
    folder.mkdir()
    listed = tmp_path / "list" if whose == "link" else folder / ".sweep"
    listed.write_text("old.json\n")
    (folder / "old.json").touch()
    if whose == "link":
        (folder / ".sweep").symlink_to(listed)
    elif whose == "another":
        if os.geteuid():
            pytest.skip("only root can give files away")
        os.chown(listed, 12345, 12345)
    of = recording(NAMES, heard={n: heard(int(n[-1]), NAMES) for n in NAMES})
    assert deliver(judged(of), None, Outputs(per_host=folder, quiet=True)) == 0
    assert (folder / "old.json").exists() == (whose != "own")
    assert (folder / ".sweep").read_text().split() == [f"{name}.json" for name in NAMES]
