"""Files and words that a person gives: inventories, hostfiles, node sets, launches, rank tables, settings."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

from doctor.errors import UsageError
from doctor.job.launch.files import read_launch_files
from doctor.job.ranktable import judge as judge_table
from doctor.job.ranktable import read_table
from doctor.job.wishes import JobWishes
from doctor.judge.playbook import load_exam
from doctor.model import Host, TableFile
from doctor.recording import Recording
from doctor.targets.hostfile import read_hostfile
from doctor.targets.inventory import read_targets
from doctor.text.nodeset import fold, unfold, unfold_users
from doctor.transport.ssh.config import SshConfig
from doctor.transport.ssh.settings import SshSettings
from tests.support.launches import HEALTHY
from tests.support.recordings import recording
from tests.trials.fuzz.mutate import spoilt
from tests.trials.fuzz.recordings import checks, judged, refuse_broken, show
from tests.trials.fuzz.target import Find, refuse_unsafe, samples

HOSTS = ["node1", "node2"]
GIVEN = Path(__file__).with_name("given")


def given(glob: str) -> Callable[[], Sequence[bytes]]:
    """What somebody might give."""
    return lambda: [path.read_bytes() for path in sorted(GIVEN.glob(glob))]


def nodesets() -> Sequence[bytes]:
    return (GIVEN / "nodesets").read_bytes().splitlines()


def _in_a_file(case: bytes, read: Callable[[Path], object], name: str = "own") -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(case)
        read(path)


@cache
def healthy() -> Recording:
    return recording(HOSTS)


def _judge(wished: Recording) -> None:
    _, report = judged(wished, "check")
    refuse_broken(report)
    show(report)


def read_inventory(case: bytes) -> None:
    def read(path: Path) -> None:
        found = read_targets((), None, path, False, ("node2",), {})
        assert found.hosts
        _judge(replace(healthy(), wishes=found.wishes, expect=found.wishes.expect))

    _in_a_file(case, read)


def read_hosts(case: bytes) -> None:
    _in_a_file(case, read_hostfile)


def read_nodeset(case: bytes) -> None:
    """An unfolded node set is folded again, and unfolds to the same."""
    text = case.decode("utf-8", "replace")
    groups = {"train": ["node1", "node2"]}
    with suppress(UsageError):
        unfold_users(f"me@{text}", groups)
    names = unfold(text, groups)
    again = fold(names)
    refuse_unsafe(again)
    if sorted(unfold(again)) != sorted(names):
        raise Find(f"{text[:80]!r} folds to {again[:80]!r}, which means other hosts")


def read_ssh_config(case: bytes) -> None:
    if b"exec" in case.lower():  # ssh would run it as well
        return

    def read(path: Path) -> None:
        config = SshConfig(SshSettings(config_file=str(path)))
        try:
            for name in ("node1", "node3", "node4", "gate", "10.0.0.1"):
                config.of(Host(name, name))
            config.jump("me@gate:2200")
        finally:
            config.close()

    _in_a_file(case, read)


def launches() -> Sequence[bytes]:
    of_others = [line.encode() for group in HEALTHY.values() for line in group]
    (env,), (script,) = given("launch.env")(), given("launch.sh")()
    return [*samples("launches/*.sh")(), *of_others, env, b"A=1\n" + env.replace(b"=", b"=$A"), script]


def mixed_launch(dice: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Lines of many launches, one below the other: each is read beside what another script does."""
    lines = [*data.splitlines(), *dice.choice(others).splitlines(), *_launch_lines()]
    few = [dice.choice(lines) for _ in range(dice.randint(2, 14))]
    here = b"cat %s<<EOF" % dice.choice((b"", b"> a.yaml ", b"> hosts ", b">> $1 "))
    mixed = [here, *few[:2], b"EOF", *few[2:]] if dice.random() < 0.3 else few
    return b"\n".join(spoilt(dice, line, lines) if dice.random() < 0.1 else line for line in mixed) + b"\n"


@cache
def _launch_lines() -> tuple[bytes, ...]:
    """Those of the tests of launches, in which every form that is known stands once at least."""
    folder = Path(__file__).parents[2] / "unit/checks/cases"
    texts = b"\n".join(path.read_bytes() for path in sorted(folder.glob("launch*.yaml")))
    lines = (line.strip(b" -'\"") for line in texts.splitlines())
    starts = b"torchrun --nnodes=2 --node_rank=$1 --nproc_per_node=2 --master_addr=node1 train.py"
    return tuple(line.replace(b"TORCHRUN", starts).replace(b"\\n", b"\n") for line in lines if line)


def read_launch(case: bytes) -> None:
    def read(path: Path) -> None:
        _judge(replace(healthy(), wishes=JobWishes(launch=read_launch_files([path]))))

    _in_a_file(case, read, "run.sh")


def read_rank_table(case: bytes) -> None:
    text = case.decode("utf-8", "replace")
    table, _ = read_table(text)
    if table is not None:
        judge_table(table, "atlas-a2")
    _judge(replace(healthy(), wishes=JobWishes(table=TableFile("/root/hccl.json", text, "1"))))


def read_exam(case: bytes) -> None:
    _in_a_file(case, lambda path: load_exam(str(path), checks(()).checks), "exam.yaml")
