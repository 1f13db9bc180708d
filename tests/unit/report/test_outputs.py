"""The output of a report for a job script: the line on stdout or nothing, everything else on stderr."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from doctor.errors import DoctorError, UsageError
from doctor.judge.reading import Reading, read_recording
from doctor.judge.verdict import Report
from doctor.model import HostStatus, Status, View
from doctor.report.out.formats import STDOUT, Outputs
from doctor.report.out.outputs import deliver, refuse_unwritable, show
from doctor.report.start.no_go import LONGEST, no_go
from doctor.text.nodeset import fold
from tests.support.cases import from_cases
from tests.support.recordings import FILES, HEALTHY, heard, recording, report
from tests.support.reports import reports

NAMES = [f"node{n}" for n in range(1, 5)]
SMALL_SHM = HEALTHY["spaces"].replace("tmpfs 12342040 0 12342040", "shm 65536 0 65536")
ON_29500 = from_cases(__file__, "ON_29500", str)
TORCHRUN = from_cases(__file__, "TORCHRUN", str)

SUFFIXES = ["hosts", "html", "json", "junit.xml", "md", "run.json", "txt"]
"""The suffixes of the files of a go run in --report-dir."""


@pytest.fixture(autouse=True)
def _no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "MS_WORKER_NUM", "MS_SCHED_HOST", "PBS_JOBID"):
        monkeypatch.delenv(name, raising=False)


def sick_head(need: int) -> tuple[Report, Reading]:
    """The head is faulty; on the next host, a process listens on the master port."""
    made = recording(
        NAMES,
        heard={"node1": heard(1, NAMES, spaces=SMALL_SHM), "node2": heard(2, NAMES, listeners=ON_29500)},
    )
    return report(made, need_hosts=need), read_recording(made)


def test_a_go_prints_the_line_on_stdout_and_the_rest_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    deliver(*sick_head(2), Outputs(launch="launch"))
    said = capsys.readouterr()
    assert said.out == TORCHRUN.format(2, "10.0.0.2", 29501)
    assert "shm-small" in said.err
    assert "3 healthy hosts remain, 2 are needed: go." in said.err
    assert said.err.splitlines()[-4:] == [
        "doctor: go: node[2-3], head node2 (10.0.0.2, port 29501); spare: node4; left out: node1.",
        "doctor: the head is node2 in place of node1.",
        "doctor: port 29500 is taken on node2: 29501 is in its place.",
        "doctor: the line is for every host: NODE_RANK is 0 on node2, 1 on node3.",
    ]


def test_a_quiet_go_prints_only_what_its_line_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    deliver(*sick_head(2), Outputs(launch="launch=hostfile", quiet=True))
    said = capsys.readouterr()
    assert said.out == "node2 slots=2\nnode3 slots=2\n"
    assert said.err.splitlines() == [
        "doctor: go: node[2-3], 1.5 s; spare: node4; left out: node1 (shm-small)",
        "doctor: the head is node2 in place of node1.",
        "doctor: port 29500 is taken on node2: 29501 is in its place.",
    ]


@pytest.mark.parametrize("launch", ["launch", "launch=hostfile", "launch=env", "launch=mpirun"])
def test_a_no_go_has_no_line(launch: str, capsys: pytest.CaptureFixture[str]) -> None:
    deliver(*sick_head(4), Outputs(launch=launch))
    said = capsys.readouterr()
    assert said.out == ""
    assert "3 healthy hosts remain, 4 are needed: no go." in said.err
    what, where, then = said.err.splitlines()[-3:]
    assert what.startswith("doctor: no go: shm-small: /dev/shm is too small for the ranks on this host")
    assert where == "        On node1; 3 of 4 hosts are healthy, 4 are needed (faulty node1)."
    assert then == "        Next: doctor explain shm-small"


def test_a_quiet_no_go_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deliver(*sick_head(4), Outputs(launch="launch", quiet=True))
    said = capsys.readouterr()
    assert (said.out, len(said.err.splitlines())) == ("", 3)
    assert said.err.startswith("doctor: no go: shm-small: ")
    deliver(*sick_head(4), Outputs(quiet=True))
    findings = capsys.readouterr()
    assert ("shm-small" in findings.out, findings.err) == (True, "")
    deliver(*sick_head(4), Outputs(quiet=True, report_dir=tmp_path))
    said = capsys.readouterr()
    (whole,) = tmp_path.glob("*.txt")
    assert (said.out, said.err) == (findings.out, f"doctor: the whole report is {whole}\n")


def test_a_terminal_gets_the_whole_report(capsys: pytest.CaptureFixture[str]) -> None:
    deliver(*sick_head(4), Outputs())
    said = capsys.readouterr()
    assert (said.err, "shm-small" in said.out) == ("", True)


def test_a_quiet_go_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    deliver(*sick_head(3), Outputs(quiet=True))
    assert capsys.readouterr() == ("", "doctor: go: node[2-4], 1.5 s; left out: node1 (shm-small)\n")


def test_the_line_of_a_go_says_what_must_not_be_missed(capsys: pytest.CaptureFixture[str]) -> None:
    few = FILES["limits"]["/proc/self/limits"].replace("20000 20000", "500 500")
    made = recording(NAMES, heard={"node2": heard(2, NAMES, limits={"/proc/self/limits": few})})
    shown, reading = report(made), read_recording(made)
    (warned,) = [finding for finding in shown.findings if finding.status is Status.WARN]
    assert warned.hosts == ("node2",)
    deliver(replace(shown, run=replace(shown.run, seconds=51.4, replayed=True)), reading, Outputs(quiet=True))
    assert capsys.readouterr() == ("", "doctor: go: node[1-4], 51 s; 1 warning: nofile-low; replayed\n")


def test_slurm_gets_srun_and_the_files_its_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[1-4]")
    deliver(*sick_head(2), Outputs(launch="launch", report_dir=tmp_path))
    assert capsys.readouterr().out == (
        "srun --nodelist=node2,node3 --nodes=2 --ntasks=2 --ntasks-per-node=1"
        " --export=ALL,MASTER_ADDR=10.0.0.2,MASTER_PORT=29501\n"
    )
    found = sorted(path.name for path in tmp_path.iterdir())
    assert [name.partition(".")[2] for name in found] == SUFFIXES
    assert all(name.startswith("doctor-20261120T090000Z-4711-") for name in found)


def test_mpirun_gets_the_hostfile_of_this_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    deliver(*sick_head(3), Outputs(launch="launch=mpirun", report_dir=Path()))
    (hosts,) = tmp_path.glob("*.hosts")
    assert hosts.read_text() == "node2 slots=2\nnode3 slots=2\nnode4 slots=2\n"
    assert f"mpirun --hostfile {hosts} -np 6 " in capsys.readouterr().out


def test_no_line_is_printed_when_the_report_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DoctorError, match=r"could not be written: No such file or directory\."):
        deliver(*sick_head(2), Outputs(launch="launch", report_dir=tmp_path / "gone"))
    assert capsys.readouterr().out == ""


def test_two_things_do_not_fit_on_stdout(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="both write to stdout"):
        refuse_unwritable(Outputs(json=STDOUT, launch="launch", report_dir=tmp_path / "runs"), {})
    assert not (tmp_path / "runs").exists()


GOES = {"healthy", "one-host", "no-root", "need-three-hosts", "smoke-passed"}


@pytest.mark.parametrize("name", sorted(reports().keys() - GOES))
def test_every_kind_of_no_go_is_three_lines(name: str) -> None:
    of = reports()[name]
    what, where, then = no_go(of, Path("/runs/it.txt")).splitlines()
    assert what.startswith("doctor: no go: ")
    assert what.endswith(".")
    assert f"{len(of.healthy_hosts)} of {len(of.hosts)} hosts are healthy" in where
    for status in (HostStatus.FAULTY, HostStatus.UNEXAMINED):
        found = [host.name for host in of.hosts if host.status is status]
        assert not found or f"{status.value} {fold(found)}" in where
    assert then.startswith("        Next: ")
    assert then.endswith("the whole report is /runs/it.txt")


EXPECTED = from_cases(__file__, "EXPECTED", dict[str, tuple[str, ...]])


@pytest.mark.parametrize("name", EXPECTED)
def test_a_no_go_names_the_fault_and_the_hosts(name: str) -> None:
    what, where, _ = no_go(reports()[name], None).splitlines()
    assert EXPECTED[name][0] in what
    assert EXPECTED[name][1] in where


def test_output_of_a_host_stays_on_its_line() -> None:
    of = reports()["same-fault-twice"]
    (found, *_) = of.findings
    hostile = replace(found, summary="a\x1b[2J\nb" + "x" * 5000, subject="\r\n\x07", view=View.HOST)
    text = no_go(replace(of, findings=(hostile,)), None)
    assert text.count("\n") == 3
    assert "\x1b" not in text
    assert "\x07" not in text
    assert max(map(len, text.splitlines())) <= LONGEST


def test_a_report_can_be_shown_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    import sys

    show(reports()["healthy"], Outputs(), sys.stdout)
    assert "Healthy: node[1-4]." in capsys.readouterr().out


def test_the_same_json_in_every_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = sick_head(3)
    deliver(*made, Outputs(json=STDOUT, report_dir=tmp_path))
    (file,) = (path for path in tmp_path.glob("*.json") if not path.name.endswith(".run.json"))
    assert json.loads(capsys.readouterr().out) == json.loads(file.read_bytes())


def test_one_healthy_host_remains(capsys: pytest.CaptureFixture[str]) -> None:
    hosts = {name: heard(n, NAMES, spaces=SMALL_SHM) for n, name in enumerate(NAMES[:3], 1)}
    made = recording(NAMES, heard=hosts)
    deliver(report(made, need_hosts=1), read_recording(made), Outputs())
    assert "1 healthy host remains, 1 is needed: go." in capsys.readouterr().out
