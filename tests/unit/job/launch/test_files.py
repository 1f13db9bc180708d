"""The files of --launch on disk: dumps of ranks, env files and scripts, for every way to start a job."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.errors import InputErrors
from doctor.job.launch.common import common_env
from doctor.job.launch.env_files import read_dump
from doctor.job.launch.files import read_launch_files
from doctor.job.launch.process_env import Launch
from doctor.job.launch.variables import is_kept
from tests.support.cases import cases
from tests.support.launches import (
    C10D,
    DYNAMIC_CLUSTER,
    ENV_FILE,
    HEALTHY,
    MINDSPORE_LOOP,
    MPIRUN,
    MSRUN,
    REST_OF_A_DUMP,
    SLURM,
    TORCHRUN,
    dump,
    read,
    table_rank,
    written,
)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_script_does_not_show_how_many_ranks_there_are(name: str, tmp_path: Path) -> None:
    launch = read(tmp_path, *HEALTHY[name])
    assert launch.told
    assert not launch.complete


def test_a_dump_holds_what_matters_to_the_job_and_nothing_else(tmp_path: Path) -> None:
    launch = read(tmp_path, dump({**table_rank(3), "AWS_SECRET_ACCESS_KEY": "x", "HCCL_TOKEN": "y"}, "node7"))
    (told,) = launch.told
    assert told.host == "node7"
    assert told.source == launch.name == "env0.log"
    assert told.env == {
        "RANK_ID": "3",
        "DEVICE_ID": "3",
        "RANK_SIZE": "8",
        "RANK_TABLE_FILE": "/job/table.json",
        "HCCL_CONNECT_TIMEOUT": "600",
    }
    assert all(map(is_kept, told.env))


def test_dumps_of_all_ranks_are_complete(tmp_path: Path) -> None:
    launch = read(tmp_path, *(dump(table_rank(rank)) for rank in range(8)))
    assert launch.complete
    assert launch.name == "env0.log … env7.log"
    assert [told.env["RANK_ID"] for told in launch.told] == [str(rank) for rank in range(8)]


def test_files_with_the_same_name_are_distinguished(tmp_path: Path) -> None:
    paths = []
    for rank in range(2):
        (tmp_path / f"device{rank}").mkdir()
        paths.append(tmp_path / f"device{rank}" / "env.log")
        paths[-1].write_text(dump(table_rank(rank)))
    assert [told.source for told in read_launch_files(paths).told] == [str(path) for path in paths]


def test_a_value_of_several_lines_stays_whole() -> None:
    env, twice = read_dump("A=1\nX=x\nsecond line\nB=2\nX=y\nlast line\n")
    assert env == {"A": "1", "X": "y\nlast line", "B": "2"}
    assert twice == [(5, "X")]


def test_an_env_file(tmp_path: Path) -> None:
    (told,) = read(tmp_path, ENV_FILE.format(node=1)).told
    assert told.env["HCCL_CONNECT_TIMEOUT"] == "600"
    assert told.env["NODE_RANK"] == "1"
    assert "NOTE" not in told.env
    (told,) = read(tmp_path, "H=node1\nMASTER_ADDR=${H}\nMASTER_PORT=$OTHER\nMASTER_PORT=1\nNNODES=$X\n").told
    assert told.env == {"MASTER_ADDR": "node1", "MASTER_PORT": "1"}


def test_a_file_to_be_sourced(tmp_path: Path) -> None:
    (told,) = read(tmp_path, "export MASTER_ADDR=node1\nexport HCCL_IF_IP=$(hostname -i)\nNNODES=2\n").told
    assert told.env == {"MASTER_ADDR": "node1", "NNODES": "2"}
    assert not told.whole


def test_line_ends_of_windows(tmp_path: Path) -> None:
    path = tmp_path / "env.log"
    path.write_bytes(dump(table_rank(1)).replace("\n", "\r\n").encode())
    (told,) = read_launch_files([path]).told
    assert told.env["RANK_ID"] == "1"


def test_a_script_that_sets_usual_variables_is_not_a_dump(tmp_path: Path) -> None:
    text = "HOME=/job\nPATH=/opt/bin\nSHELL=/bin/sh\nexport MASTER_ADDR=$1\ntorchrun --nnodes=2 t.py\n"
    (told,) = read(tmp_path, text).told
    assert told.command[0] == "torchrun"


def test_a_launch_can_be_recorded(tmp_path: Path) -> None:
    for name, texts in HEALTHY.items():
        launch = read(tmp_path, *texts)
        assert msgspec.json.decode(msgspec.json.encode(launch), type=Launch) == launch, name


def test_what_bash_prints_of_its_exports(tmp_path: Path) -> None:
    (told,) = read(tmp_path, 'declare -x HOME="/root"\ndeclare -x MASTER_ADDR="node1"\n').told
    assert told.env == {"MASTER_ADDR": "node1"}


def test_the_loop_of_the_mindspore_guide(tmp_path: Path) -> None:
    told = read(tmp_path, MINDSPORE_LOOP).told
    assert [each.source for each in told] == [f"env0.log:24 (i={n})" for n in range(8)]
    assert not any(each.loop for each in told)
    table = str(tmp_path / "rank_table_8pcs.json")
    common = {"RANK_SIZE": "8", "HCCL_CONNECT_TIMEOUT": "600", "RANK_TABLE_FILE": table}
    assert [each.env for each in told] == [
        {**common, "RANK_ID": str(n), "DEVICE_ID": str(n)} for n in range(8)
    ]


def test_workers_and_scheduler_of_one_script(tmp_path: Path) -> None:
    *workers, scheduler = read(tmp_path, DYNAMIC_CLUSTER).told
    assert [(each.env["MS_ROLE"], each.env["MS_NODE_ID"]) for each in workers] == [
        ("MS_WORKER", str(n)) for n in range(4)
    ]
    assert (scheduler.env["MS_ROLE"], scheduler.loop) == ("MS_SCHED", False)
    assert scheduler.env["MS_SCHED_HOST"] == "192.168.7.1"


def test_of_two_branches_one_is_started(tmp_path: Path) -> None:
    loop = "for i in 0 1; do export RANK_ID=$i; python a.py & done"
    text = f"if [ -n $1 ]; then {loop}; else {loop}; fi; wait\n"
    assert [each.env["RANK_ID"] for each in read(tmp_path, text).told] == ["0", "1"]


def test_what_a_script_waits_for_is_another_job(tmp_path: Path) -> None:
    loop = "for i in 0 1; do export RANK_ID=$i; python a.py & done\nwait\n"
    assert [each.env["RANK_ID"] for each in read(tmp_path, loop + loop).told] == ["0", "1"]


def test_only_the_training_counts(tmp_path: Path) -> None:
    """Preparations, and launches before the last one, are other jobs."""
    (told,) = read(tmp_path, TORCHRUN.format(node=0)).told
    assert "pretrain.py" in told.command
    (told,) = read(
        tmp_path, "torchrun --master_port 1 a.py\ntorchrun --master_port 2 b.py\npython c.py\n"
    ).told
    assert told.command[-1] == "b.py"
    (told,) = read(tmp_path, "torchrun --master_port 1 a.py\ntorchrun --master_port 2 a.py\n").told
    assert told.source == "env0.log:2"


def test_two_launches_side_by_side_in_one_script(tmp_path: Path) -> None:
    first, second = read(tmp_path, "torchrun --node_rank 0 a.py &\ntorchrun --node_rank 1 a.py\n").told
    assert (first.command[2], second.command[2]) == ("0", "1")


@cases
def test_of_a_command_line_only_the_launch_is_kept(line: str, words: str, tmp_path: Path) -> None:
    (told,) = read(tmp_path, f"{line}\n").told
    assert " ".join(told.command) == words


@pytest.mark.parametrize(
    ("texts", "env"),
    [
        (
            [TORCHRUN.format(node=0), TORCHRUN.format(node=1)],
            {"MASTER_ADDR": "192.168.7.1", "MASTER_PORT": "29500"},
        ),
        ([C10D], {"MASTER_ADDR": "node2", "MASTER_PORT": "29400", "NCCL_SOCKET_IFNAME": "eth0"}),
        ([MSRUN.format(node=0)], {"MS_SCHED_HOST": "192.168.7.1", "MS_SCHED_PORT": "8118"}),
        (["msrun net.py\n"], {"MS_SCHED_PORT": "8118"}),
        (["torchrun --standalone train.py\n"], {}),
        ([MPIRUN], {"MASTER_ADDR": "node1", "MASTER_PORT": "29500", "HCCL_CONNECT_TIMEOUT": "600"}),
        ([SLURM], {"MASTER_PORT": "29500", "HCCL_BUFFSIZE": "200"}),
        (
            [dump(table_rank(0)), dump(table_rank(1, HCCL_BUFFSIZE=1))],
            {"RANK_SIZE": "8", "RANK_TABLE_FILE": "/job/table.json", "HCCL_CONNECT_TIMEOUT": "600"},
        ),
        (["export MASTER_ADDR=a\ntorchrun --nnodes=2 t.py\n"], {"MASTER_ADDR": "a", "MASTER_PORT": "29500"}),
    ],
)
def test_variables_common_to_a_launch(texts: list[str], env: dict[str, str], tmp_path: Path) -> None:
    assert common_env(read(tmp_path, *texts)) == env


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"", None, "no variable of a job"),
        (b"#!/bin/sh\necho hello\n", None, "no variable of a job"),
        (REST_OF_A_DUMP.encode(), None, "no variable of a job"),
        (b"MASTER_ADDR=a\n\xff\n", 2, "not UTF-8"),
        (b"MASTER_ADDR=a\0b", None, "binary"),
        (b"export A='x\ntorchrun t.py\n", 1, "never closed"),
        (b'\ntorchrun \\\n  --x "y t.py\n', 3, "never closed"),
        (dump({"RANK_ID": 0}).encode() + dump({"RANK_ID": 1}).encode(), 18, "a second time"),
        (b"A=b\n" * 100_000, None, "larger than"),
    ],
)
def test_unreadable_parts_are_reported_with_their_place(
    content: bytes, line: int | None, message: str, tmp_path: Path
) -> None:
    good, bad = tmp_path / "good.log", tmp_path / "bad.log"
    good.write_text(dump(table_rank(0)))
    bad.write_bytes(content)
    with pytest.raises(InputErrors) as caught:
        read_launch_files([good, bad])
    (mistake,) = caught.value.mistakes
    assert (mistake.file, mistake.line) == (str(bad), line)
    assert message in mistake.message


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputErrors) as caught:
        read_launch_files([tmp_path / "none.sh", *written(tmp_path, "", "echo 'x\n")])
    assert [mistake.line for mistake in caught.value.mistakes] == [None, 1, None]
    assert caught.value.hint


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=200)
    | st.lists(
        st.sampled_from([*dump(table_rank(1)).splitlines(True), *MSRUN.splitlines(True), "\0", "\x1b[2J"])
    )
    .map("".join)
    .map(str.encode)
)
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "launch"
    path.write_bytes(content)
    launch = None
    try:
        launch = read_launch_files([path])
    except InputErrors as error:
        mistakes = error.mistakes
    if launch is None:
        assert mistakes
        assert all(mistake.file == str(path) for mistake in mistakes)
    else:
        assert launch.told
        assert all(is_kept(name) for told in launch.told for name in told.env)
        common_env(launch)


@pytest.mark.parametrize("program", ["./start.sh", "python train.py"])
def test_ssh_starts_a_rank_on_each_host(program: str, tmp_path: Path) -> None:
    line = "ssh node{0} 'cd /job && RANK={1} WORLD_SIZE=2 MASTER_ADDR=node1 {2}' &"
    text = "\n".join([line.format(1, 0, program), line.format(2, 1, program), "wait", ""])
    told = read(tmp_path, text).told
    assert [(each.on, each.env["RANK"]) for each in told] == [("node1", "0"), ("node2", "1")]
