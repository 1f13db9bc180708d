"""`--shadow`: a run that ends with 0, and a line that says how it would have ended."""

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from doctor.errors import DoctorError, UsageError
from doctor.judge.verdict import Report
from doctor.report.out.formats import Outputs
from doctor.report.out.outputs import deliver, refuse_unwritable
from doctor.text.outfile import append_line
from tests.support.recordings import HEALTHY, heard, recording, report

NAMES = ("node1", "node2", "node3")
SMALL_SHM = HEALTHY["spaces"].replace("tmpfs 12342040 0 12342040", "shm 65536 0 65536")


def faulty() -> Report:
    return report(recording(NAMES, heard={"node2": heard(2, NAMES, spaces=SMALL_SHM)}))


def test_what_is_found_is_written_and_decides_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = Outputs(json=tmp_path / "report.json", shadow=tmp_path / "shadow")
    for made in (faulty(), report(recording(NAMES))):
        assert deliver(made, None, outputs) == 0
        assert json.loads((tmp_path / "report.json").read_bytes())["exit_code"] == made.exit_code
    first, second = map(json.loads, (tmp_path / "shadow").read_text().splitlines())
    assert (first["exit_code"], first["verdict"], second["exit_code"]) == (1, "faulty", 0)
    assert first["failed"] == [{"check": "shm-small", "hosts": "node2"}]
    assert (first["hosts"], second["failed"]) == ("node[1-3]", [])
    assert stat.S_IMODE((tmp_path / "shadow").stat().st_mode) == 0o600
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"doctor: shadow: this would have ended with 1; written to {tmp_path}/shadow"


def test_without_it_the_exit_code_is_the_reports() -> None:
    assert deliver(faulty(), None, Outputs()) == 1


def test_an_interrupted_run_ends_as_always(tmp_path: Path) -> None:
    stopped = replace(faulty(), run=replace(faulty().run, stopped_by=15))
    assert deliver(stopped, None, Outputs(shadow=tmp_path / "shadow")) == 143


def test_a_line_that_cannot_be_added_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DoctorError):
        deliver(faulty(), None, Outputs(shadow=tmp_path / "nowhere" / "shadow"))


def test_files_and_folders_of_others_are_refused(tmp_path: Path) -> None:
    def refused(path: Path) -> bool:
        try:
            refuse_unwritable(Outputs(shadow=path), {})
        except UsageError:
            return True
        return False

    mine = tmp_path / "mine"
    append_line(mine, b"")
    (tmp_path / "link").symlink_to(mine)
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "fifo")
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    shared = tmp_path / "shared"
    shared.touch()
    shared.chmod(0o666)
    bad = ("link", "pipe", "fifo", "open/shadow", "shared", "nowhere/shadow")
    assert [name for name in bad if not refused(tmp_path / name)] == []
    assert not (open_to_all / "shadow").exists()
    assert not refused(mine)
    os.link(mine, tmp_path / "second")
    assert refused(mine)
