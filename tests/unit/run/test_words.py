"""What is filled into a command, and what its words say about hosts."""

import shlex
import socket
from pathlib import Path

import pytest

from doctor.errors import UsageError
from doctor.job.launch.forms import Go
from doctor.run.launcher import (
    agent_of,
    is_first,
    line_to_type,
    named_hosts,
    own_logs,
    runs_on_each_host,
    spans_hosts,
)
from doctor.run.placeholders import filled, named_in, own_place
from doctor.run.relay.kept import HEAD, RING, SIZE, Kept, nameless_file
from tests.support.cases import cases

GO = Go(("node3", "node1"), (), ("node2",), {"node3": 8, "node1": 8}, "10.0.0.3", 29501)


def no_file(_: Go) -> str:
    raise AssertionError


def test_every_placeholder() -> None:
    words = ["{hosts}", "-n{nnodes}", "{nproc}", "{master_addr}:{master_port}", "{hostfile}"]
    assert filled(words, GO, lambda _: "/tmp/h") == ["node3,node1", "-n2", "8", "10.0.0.3:29501", "/tmp/h"]


@cases
def test_other_braces_pass_through(word: str) -> None:
    assert filled([word], GO, no_file) == [word]
    assert not named_in([word])


def test_the_place_of_this_machine() -> None:
    own = socket.gethostname()
    assert own_place(["a", own], {}) == 1
    assert own_place(["node1", "node2"], {"SLURMD_NODENAME": "node2"}) == 1
    with pytest.raises(UsageError, match="does not take part"):
        own_place(["node1", "node2"], {})


def test_hosts_with_different_numbers_of_ranks() -> None:
    uneven = Go(("a", "b"), (), (), {"a": 8, "b": 4}, "a", 1)
    with pytest.raises(UsageError, match="8 on a, 4 on b"):
        filled(["{nproc}"], uneven, no_file)


@cases
def test_which_commands_start_ranks_elsewhere(line: str, spans: bool) -> None:
    assert spans_hosts(agent_of(shlex.split(line), {})) is spans


def test_hosts_that_the_command_lists(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("a slots=2\n")

    def of(line: str) -> object:
        return named_hosts(agent_of(shlex.split(line), {}))

    assert of("mpirun -H a:2,b:2 python x.py") == (("a", "b"), None)
    assert of("srun -w n[1-2,4],m7 python x.py") == (("n[1-2,4]", "m7"), None)
    assert of(f"mpirun --hostfile {file} python x.py") == ((), file)
    assert of("mpirun --hostfile {hostfile} python x.py") == ((), None)
    assert of("srun -w {hosts} python x.py") == ((), None)


@cases
def test_the_line_to_type(line: str, typed: str) -> None:
    words = shlex.split(line)
    assert line_to_type(words, agent_of(words, {}), ["doctor", "run"]).startswith(f"doctor run -- {typed}")


@pytest.mark.slow
def test_both_ends_of_long_output_are_kept() -> None:
    file = nameless_file(SIZE)
    writer, reader = Kept(file, 0), Kept(file, 0)
    line, total = b"%09d\n", 0
    while total < HEAD + 3 * RING:
        room = writer.room()
        size = min(len(room), 70_000)
        text = b"".join(line % n for n in range(total // 10, (total + size) // 10 + 1))
        room[:size] = text[total % 10 :][:size]
        writer.add(size)
        total += size
    assert reader.total == total
    assert reader.first().startswith(line % 0 + line % 1)
    begin, end = reader.since(0)
    assert begin + len(end) == total
    assert len(end) > RING // 2
    at = -begin % 10
    assert int(end[at : at + 9]) == (begin + at) // 10
    assert end[at : at + 10] == line % ((begin + at) // 10)


def first(line: str, *hosts: str, **environ: str) -> bool:
    agent = agent_of(shlex.split(line), environ)
    return is_first(agent, environ, lambda: hosts)


def test_who_leads_if_the_command_is_started_on_every_host() -> None:
    own = socket.gethostname()
    static = "torchrun --nnodes=2 --node-rank={} --master-addr=a x.py"
    assert first(static.format("0"))
    assert not first(static.format("1"))
    assert first(static.format("{node_rank}"), own, "b")
    assert not first(static.format("{node_rank}"), "b.example", own)
    elastic = "torchrun --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint={}:29400 x.py"
    assert not first(elastic.format(own), "b.example", own)
    assert first(elastic.format("127.0.0.1"), "b.example", "c.example")
    assert not first(elastic.format("192.0.2.7"), "b.example", "c.example")
    step = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2"}
    assert first(elastic.format("b"), "b.example", SLURM_PROCID="0", **step)
    assert not first(elastic.format(own), own, SLURM_PROCID="1", **step)


@cases
def test_commands_that_are_started_on_every_host(line: str, each: bool) -> None:
    assert runs_on_each_host(agent_of(shlex.split(line), {}), {}) is each


@cases
def test_msrun_prints_nothing_of_its_ranks(line: str, folder: str) -> None:
    words = shlex.split(line, posix="'s" not in line)
    own = tuple(str(Path.cwd() / folder / name) for name in ("worker_*.log", "scheduler.log"))
    assert own_logs(agent_of(words)) == own


@pytest.mark.parametrize("line", ["torchrun --log-dir out train.py", "python train.py --log_dir out"])
def test_others_pass_on_what_their_ranks_print(line: str) -> None:
    assert own_logs(agent_of(shlex.split(line))) == ()
