"""Launches as the manuals print them, from the script to the report."""

import shutil
from pathlib import Path

import pytest

from doctor.exam.flags import apply_flags
from doctor.exam.request import JobFlags, Request
from doctor.job.ranktable import LiveDevice, LiveServer, make_table
from doctor.job.wishes import JobWishes
from doctor.judge.examine import build_report
from doctor.judge.playbook import load_remedies
from doctor.judge.reading import read_recording
from doctor.judge.registry import find_checks
from doctor.judge.verdict import Report
from doctor.model import Backend, Finding, Host, SourcedValue, Status
from tests.support.cases import cases, from_cases
from tests.support.recordings import recording, syllabus
from tests.support.reports import text

SAMPLES = Path(__file__).parents[2] / "samples" / "launches"
OF_A_LAUNCH = (
    *("launch-inconsistent", "launch-ranks", "launch-variables", "launch-timeouts", "master-not-here"),
    *("rank-table-invalid", "rank-table-ranks", "rank-table-grouping", "rank-table-differs"),
)
CHECKS = [check for check in find_checks().checks if check.id in OF_A_LAUNCH]
LOOP = from_cases(__file__, "LOOP", str)


def sample(name: str) -> Path:
    return SAMPLES / name


def written(folder: Path, text: str, name: str = "run.sh") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def examined(*scripts: Path, hosts: int = 1) -> Report:
    """The report on healthy hosts; a single host is this machine."""
    wishes = apply_flags(Request("check", job=JobFlags(launch=tuple(map(str, scripts)))), JobWishes())
    names = [f"node{n}" for n in range(1, hosts + 1)]
    made = recording(names, wishes=wishes, command="check")
    if hosts == 1:
        made = recording(names, wishes=wishes, command="check", hosts=(Host("node1", "localhost"),))
    return build_report(read_recording(made), syllabus(CHECKS), load_remedies())


def found(of: Report, status: Status = Status.FAIL) -> dict[str, Finding]:
    """The findings of a launch, each check once."""
    return {f.check: f for f in of.findings if f.status is status}


def launch_line(of: Report) -> str:
    return next(line for line in text(of, 200).splitlines() if line.startswith("launch: "))


@cases
def test_a_healthy_launch_on_one_host(name: str, first: str, ranks: int) -> None:
    of = examined(sample(name))
    assert found(of) == {}
    assert found(of, Status.WARN) == {}
    assert launch_line(of) == first
    assert of.plan.hosts[0].ranks == SourcedValue(ranks, "--launch")


def test_mpirun_over_two_hosts() -> None:
    of = examined(sample("ms_mpirun2.sh"), hosts=2)
    assert found(of) == {}
    assert [host.ranks for host in of.plan.hosts] == [SourcedValue(8, "--launch")] * 2


def test_what_was_not_understood_is_said() -> None:
    of = examined(sample("mpspawn.sh"))
    assert "launch: the number of ranks is in train_8p_spawn.py" in text(of, 200)
    _, _, unexamined = text(examined(sample("ms_ranktable.sh")), 200).partition("Not examined")
    assert (
        "RANK_TABLE_FILE=${EXEC_PATH}/rank_table_8pcs.json depends on a value that is not known here"
        in unexamined
    )


def test_a_loop_of_unknown_length_is_said(tmp_path: Path) -> None:
    script = written(tmp_path, "for i in $(seq 0 $1); do export RANK=$i; python a.py & done\n")
    assert "the number of turns of the loop around run.sh:1 is unknown" in text(examined(script), 200)


def test_the_rank_table_beside_a_script_is_read_and_judged(tmp_path: Path) -> None:
    """As in the guide: HCCL cannot read the table, and the ranks do not find it."""
    shutil.copy(sample("run.sh"), tmp_path)
    shutil.copy(sample("rank_table_as_printed.json"), tmp_path / "rank_table.json")
    of = examined(tmp_path / "run.sh")
    first = "launch: shell loop in run.sh, 8 ranks, rank table ./rank_table.json"
    assert launch_line(of) == first
    assert (of.plan.backend.value, of.plan.ranks) == (Backend.HCCL, 8)
    assert of.exit_code == 1
    faults = found(of)
    assert faults["rank-table-invalid"].summary == "there is a comma after the last element"
    assert "is looked for in device0, device1" in faults["rank-table-differs"].actual
    assert faults["rank-table-differs"].hosts == ()


def table(path: Path, *servers: str, devices: int = 8) -> Path:
    live = [
        LiveServer(id, id, tuple(LiveDevice(d, f"10.20.{n}.{d + 1}", None, None) for d in range(devices)))
        for n, id in enumerate(servers)
    ]
    path.write_text(make_table(live, "1.0", "aarch64"))
    return path


LOST = from_cases(__file__, "LOST", str)


@pytest.mark.parametrize(
    "text",
    [
        LOST.format("cp t.json device$i"),
        LOST.format("cp ./*.json ./device$i/"),
        LOST.format("ln -s ../t.json device$i/"),
        LOST.format("").replace("=./t.json", "=$(pwd)/t.json"),
        LOST.format("").replace("=./t.json", "=$PWD/t.json"),
        LOST.format("").replace("=./t.json", "=../t.json"),
        LOST.format("").replace("cd ", "# "),
    ],
)
def test_ranks_that_find_their_table(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    table(folder / "t.json", "node1")
    of = examined(written(folder, text))
    assert found(of) == {}
    assert of.plan.backend.value is Backend.HCCL


def test_ranks_that_do_not_find_their_table(tmp_path: Path) -> None:
    table(tmp_path / "t.json", "node1")
    assert set(found(examined(written(tmp_path, LOST.format(""))))) == {"rank-table-differs"}


def test_a_table_that_is_not_by_the_script(tmp_path: Path) -> None:
    """On this machine that is a fault; on other hosts, the script may be elsewhere."""
    script = written(tmp_path, "export RANK_TABLE_FILE=t.json RANK_SIZE=8\n" + LOOP)
    here = found(examined(script))["rank-table-differs"]
    assert here.actual == f"there is no {tmp_path}/t.json"
    assert here.hosts == ("node1",)
    assert found(examined(script, hosts=2)) == {}
    doubt = found(examined(script, hosts=2), Status.UNKNOWN)["rank-table-differs"]
    assert "RANK_TABLE_FILE=t.json is not by the script" in doubt.summary


def test_a_loopback_master_over_two_hosts() -> None:
    for name in ("torchrun2.sh", "ms_msrun_2node.sh"):
        assert set(found(examined(sample(name), hosts=2))) == {"master-not-here"}, name


def test_the_scripts_of_two_nodes_that_do_not_fit() -> None:
    of = found(examined(sample("py_launch_multi0.sh"), sample("py_launch_multi1.sh"), hosts=2))
    assert set(of) == {"launch-inconsistent", "launch-ranks"}
    assert of["launch-ranks"].summary == "--node_rank=0 is given 2 times"


def counted(folder: Path, *lines: str, hosts: int = 1, copies: int = 1) -> Report:
    text = "\n".join((*lines, LOOP))
    return examined(*(written(folder, text, f"run{n}.sh") for n in range(copies)), hosts=hosts)


LOOPBACK = "export MASTER_ADDR=127.0.0.1 MASTER_PORT=29500"


@pytest.mark.parametrize(("world", "says"), [(4, "more ranks"), (9, "fewer ranks"), (16, "fewer ranks")])
@pytest.mark.parametrize("name", ["WORLD_SIZE", "RANK_SIZE"])
def test_another_number_than_the_script_starts(world: int, says: str, name: str, tmp_path: Path) -> None:
    of = counted(tmp_path, LOOPBACK, f"export {name}={world}")
    (fault,) = found(of).values()
    assert (fault.check, of.exit_code) == ("launch-ranks", 1)
    assert fault.summary.startswith(says)
    assert (fault.expected, fault.actual) == (f"{world} ranks ({name})", "8 ranks")


def test_all_scripts_of_two_hosts_start_too_few(tmp_path: Path) -> None:
    master = "export MASTER_ADDR=10.0.0.1 WORLD_SIZE=24"
    of = counted(tmp_path, master, hosts=2, copies=2)
    assert set(found(of)) == {"launch-ranks"}
    assert found(counted(tmp_path, master.replace("24", "16"), hosts=2, copies=2)) == {}


def test_other_hosts_may_start_the_others(tmp_path: Path) -> None:
    """Neither a script for one of several hosts nor a script with its master elsewhere is wrong by itself."""
    assert found(counted(tmp_path, "export MASTER_ADDR=10.0.0.1 WORLD_SIZE=16", hosts=2)) == {}
    offset = "export MASTER_ADDR=10.0.0.1 WORLD_SIZE=16 RANK_ID=$((8 * $1))"
    assert found(counted(tmp_path, offset)) == {}
    vague = counted(tmp_path, "export WORLD_SIZE=16")
    assert (found(vague), set(found(vague, Status.WARN))) == ({}, {"launch-ranks"})


def test_a_table_with_another_number_of_ranks(tmp_path: Path) -> None:
    table(tmp_path / "t.json", "node1", devices=4)
    of = counted(tmp_path, "export RANK_SIZE=8 RANK_TABLE_FILE=t.json")
    assert found(of)["launch-ranks"].summary == "the rank table has a different number of ranks"
