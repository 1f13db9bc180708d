"""Ranks that only get a rank table and their device, as the loops of guides start them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from doctor.job.launch.files import read_launch_files
from doctor.job.wishes import JobWishes
from doctor.judge.examine import build_report
from doctor.judge.playbook import load_remedies
from doctor.judge.reading import read_recording
from doctor.judge.verdict import Report
from doctor.model import Confidence, Finding, Status
from doctor.text.textfile import posix_cksum
from tests.support.launches import CHECKS
from tests.support.recordings import heard, recording, syllabus

FOLDER = "/home/user/job"
MADE = [CHECKS[id] for id in ("launch-ranks", "launch-inconsistent", "master-not-here", "rank-table-differs")]
Files = Mapping[str, str | None]


def a_table(*servers: str, each: int = 8, first: int = 0) -> str:
    """The table of servers with devices from 0 on; `first` is the number of a server's first rank."""
    rows = [
        {
            "server_id": server,
            "device": [
                {
                    "device_id": str(d),
                    "device_ip": f"192.168.{n + 1}.{d + 1}",
                    "rank_id": str(n * each + (d + first) % each),
                }
                for d in range(each)
            ],
        }
        for n, server in enumerate(servers)
    ]
    said = {"version": "1.0", "server_count": str(len(rows)), "server_list": rows, "status": "completed"}
    return json.dumps(said)


TABLE = a_table("10.0.0.1")


def a_dump(device: int | str, /, **changed: str | int | None) -> str:
    """The output of `env > env$i.log` in the guide's run.sh: no rank, no host name, a folder of its own."""
    env: dict[str, str | int | None] = {
        "SHELL": "/bin/bash",
        "RANK_TABLE_FILE": "../rank_table.json",
        "RANK_SIZE": 8,
        "PWD": f"{FOLDER}/device{device}",
        "HOME": "/home/user",
        "DEVICE_ID": device,
        "SHLVL": 2,
        "_": "/usr/bin/env",
    }
    return "".join(f"{name}={value}\n" for name, value in {**env, **changed}.items() if value is not None)


def tables(files: Files) -> str:
    """The tables as a host prints them; None for a missing one."""
    said = ""
    for path, text in files.items():
        if text is None:
            said += f"@ 0 0 {path} missing\n"
        else:
            said += f"@ {posix_cksum(text.encode())} {len(text)} {path} file\n{text}\n"
    return said


def judged(folder: Path, *dumps: str, hosts: int = 1, files: Files | None = None, **said: Any) -> Report:
    for number, text in enumerate(dumps):
        (folder / f"env{number}.log").write_text(text)
    launch = read_launch_files([folder / f"env{number}.log" for number in range(len(dumps))])
    names = [f"node{n}" for n in range(1, hosts + 1)]
    held = tables({f"{FOLDER}/rank_table.json": TABLE} if files is None else files)
    devices = {f"/dev/davinci{d}": "" for d in range(8)}
    answers = {
        name: heard(n, names, **{"tables": held, "devices": devices, **said})
        for n, name in enumerate(names, 1)
    }
    run = recording(names, exam="host", wishes=JobWishes(launch=launch), heard=answers)
    return build_report(read_recording(run), syllabus(MADE), load_remedies())


def only(report: Report, check: str = "launch-ranks") -> Finding:
    assert [(each.check, each.summary) for each in report.findings if each.check != check] == []
    (finding,) = report.findings
    assert finding.status is Status.FAIL
    assert report.exit_code == 1
    return finding


def eight(**changed: str | int | None) -> list[str]:
    return [a_dump(d, **changed) for d in range(8)]


def test_eight_dumps_are_eight_ranks(tmp_path: Path) -> None:
    assert judged(tmp_path, *eight()).findings == ()
    assert judged(tmp_path, *eight(RANK_SIZE=None, WORLD_SIZE=8)).findings == ()
    assert judged(tmp_path, *eight(RANK_SIZE=None)).findings == ()
    assert judged(tmp_path, *eight(HOSTNAME="node1")).findings == ()


def test_the_job_is_taken_for_one_of_hccl(tmp_path: Path) -> None:
    plan = judged(tmp_path, *eight(), devices={}).plan
    assert (plan.backend.value.value, plan.backend.source) == ("hccl", "--launch RANK_TABLE_FILE")
    assert plan.table_paths == (f"{FOLDER}/rank_table.json",)


def test_two_hosts(tmp_path: Path) -> None:
    files = {f"{FOLDER}/rank_table.json": a_table("10.0.0.1", "10.0.0.2")}
    dumps = [a_dump(r % 8, RANK_SIZE=16, HOSTNAME=f"node{r // 8 + 1}") for r in range(16)]
    assert judged(tmp_path, *dumps, hosts=2, files=files).findings == ()
    finding = only(judged(tmp_path, *dumps[:11], *dumps[12:], hosts=2, files=files))
    assert finding.hosts == ("node2",)
    assert finding.actual == "rank 11 missing: device 3"
    assert [(p.host, p.rank, p.device) for p in finding.where] == [("node2", 11, 3)]


@pytest.mark.parametrize("first", [0, 3])
def test_a_dump_that_is_missing(first: int, tmp_path: Path) -> None:
    """The rank of a device is the one in the table."""
    files = {f"{FOLDER}/rank_table.json": a_table("10.0.0.1", first=first)}
    dumps = [a_dump(d) for d in range(8) if d != 3]
    finding = only(judged(tmp_path, *dumps, files=files))
    rank = 3 + first
    assert finding.hosts == ("node1",)
    assert finding.actual == f"rank {rank} missing: device 3"
    assert [(p.host, p.rank, p.device) for p in finding.where] == [("node1", rank, 3)]
    assert finding.remedy
    assert finding.remedy.commands == ("# start a process with DEVICE_ID=3",)


def test_a_dump_that_is_missing_where_no_table_could_be_read(tmp_path: Path) -> None:
    dumps = [a_dump(d, RANK_TABLE_FILE="/job/t.json") for d in range(8) if d != 3]
    report = judged(tmp_path, *dumps, files={})
    finding = only(report)
    assert finding.actual == "device 3 missing"
    assert [(p.host, p.rank, p.device) for p in finding.where] == [("node1", None, 3)]


@pytest.mark.parametrize("device", [8, "x", -1])
def test_a_device_that_is_not_in_the_table(device: int | str, tmp_path: Path) -> None:
    dumps = [*eight()[:7], a_dump(device)]
    finding = only(judged(tmp_path, *dumps))
    assert finding.hosts == ("node1",)
    assert "DEVICE_ID is not in the rank table" in finding.summary
    assert finding.actual == f"DEVICE_ID={device} (env7.log)"
    assert finding.expected.startswith("devices 0-7")


def test_a_device_that_the_host_has_not(tmp_path: Path) -> None:
    """There is no table that could be read."""
    dumps = [a_dump(d if d < 7 else 9, RANK_TABLE_FILE="/job/t.json") for d in range(8)]
    finding, unknown = judged(tmp_path, *dumps, files={}).findings
    assert finding.summary == "DEVICE_ID is beyond the devices of the host"
    assert "DEVICE_ID=9" in finding.actual
    assert unknown.status is Status.UNKNOWN
    assert "which ranks these are is in the rank table" in unknown.summary + unknown.actual


def test_two_ranks_on_one_device(tmp_path: Path) -> None:
    dumps = [a_dump(d if d != 4 else 3) for d in range(8)]
    finding = only(judged(tmp_path, *dumps))
    assert finding.summary == "2 ranks of one host take the same device"
    assert finding.hosts == ("node1",)
    assert {e.source.partition(" ")[0] for e in finding.evidence} == {"env3.log", "env4.log"}


@pytest.mark.parametrize("name", ["RANK_SIZE", "WORLD_SIZE"])
def test_more_ranks_than_the_table_has(name: str, tmp_path: Path) -> None:
    finding = only(judged(tmp_path, *eight(**{"RANK_SIZE": None, name: 16})))
    assert f"{name} is not the number of ranks in the rank table" in finding.summary
    assert finding.expected.startswith(f"{name}=8")
    assert finding.remedy
    assert finding.remedy.commands == (f"export {name}=8",)


def test_one_rank_that_was_told_another_number_of_ranks(tmp_path: Path) -> None:
    dumps = [a_dump(d, RANK_SIZE=16 if d == 5 else 8) for d in range(8)]
    finding = only(judged(tmp_path, *dumps), "launch-inconsistent")
    assert finding.summary == "RANK_SIZE differs from the other ranks'"
    assert "env5.log" in finding.actual or "rank 5" in finding.actual


OTHER = a_table("10.0.0.1").replace("192.168.1.3", "192.168.1.33")


@pytest.mark.parametrize(
    ("text", "certain"), [(OTHER, Confidence.CERTAIN), (None, Confidence.STRONG)], ids=["other", "missing"]
)
def test_a_rank_with_another_table(text: str | None, certain: Confidence, tmp_path: Path) -> None:
    files = {f"{FOLDER}/rank_table.json": TABLE, "/old/rank_table.json": text}
    dumps = [a_dump(d, **({"RANK_TABLE_FILE": "/old/rank_table.json"} if d == 5 else {})) for d in range(8)]
    finding = only(judged(tmp_path, *dumps, files=files), "launch-inconsistent")
    assert finding.hosts == ("node1",)
    assert [(p.host, p.rank) for p in finding.where] == [("node1", 5)]
    assert "/old/rank_table.json, for rank 5 on node1" in finding.actual
    assert finding.confidence is certain


def test_the_first_rank_with_another_table(tmp_path: Path) -> None:
    """The table of most ranks is the job's, whichever rank has the odd one."""
    files = {"/old/rank_table.json": OTHER, f"{FOLDER}/rank_table.json": TABLE}
    dumps = [a_dump(d, **({"RANK_TABLE_FILE": "/old/rank_table.json"} if d == 0 else {})) for d in range(8)]
    finding = only(judged(tmp_path, *dumps, files=files), "launch-inconsistent")
    assert [p.rank for p in finding.where] == [0]


def test_a_copy_for_each_device(tmp_path: Path) -> None:
    files: dict[str, str | None] = {f"{FOLDER}/device{d}/rank_table.json": TABLE for d in range(8)}
    dumps = eight(RANK_TABLE_FILE="./rank_table.json")
    assert judged(tmp_path, *dumps, files=files).findings == ()
    files[f"{FOLDER}/device5/rank_table.json"] = OTHER
    finding = only(judged(tmp_path, *dumps, files=files), "launch-inconsistent")
    assert [p.rank for p in finding.where] == [5]


def test_half_of_the_ranks_with_another_table(tmp_path: Path) -> None:
    files: Files = {f"{FOLDER}/rank_table.json": TABLE, "/old/rank_table.json": OTHER}
    old = {"RANK_TABLE_FILE": "/old/rank_table.json"}
    dumps = [a_dump(d, **(old if d < 4 else {})) for d in range(8)]
    (finding,) = judged(tmp_path, *dumps, files=files).findings
    assert finding.summary.startswith("the ranks were given different rank tables")
    assert finding.confidence is Confidence.SUSPECT
    report = judged(tmp_path, *dumps, files={**files, "/old/rank_table.json": None})
    finding = only(report, "launch-inconsistent")
    assert [p.rank for p in finding.where] == [0, 1, 2, 3]


def test_tables_that_are_where_no_rank_looks_for_them(tmp_path: Path) -> None:
    """The bug in the guide's own script: the loop has changed to device$i before the start."""
    files: Files = {f"{FOLDER}/device{d}/rank_table.json": None for d in range(8)}
    report = judged(tmp_path, *eight(RANK_TABLE_FILE="./rank_table.json"), files=files)
    finding = only(report, "rank-table-differs")
    assert finding.hosts == ("node1",)
    assert "there is no such file" in finding.summary


def test_one_rank_without_a_number_among_others_that_have_one(tmp_path: Path) -> None:
    """A launch that gives numbers has forgotten one: the table is not its source of ranks."""
    dumps = [a_dump(d, RANK_ID=None if d == 2 else d) for d in range(8)]
    finding = only(judged(tmp_path, *dumps))
    assert finding.summary == "RANK_ID is not set"
    assert "env2.log" in finding.actual
