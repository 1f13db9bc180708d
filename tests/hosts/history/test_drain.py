"""`doctor history --as slurm` on a real Slurm: what its lines drain and resume, and what they leave alone."""

import io
import sys
from contextlib import redirect_stdout
from pathlib import Path

from doctor import cli
from tests.lab.controller import REPOSITORY
from tests.lab.host import Host
from tests.lab.slurm import Slurm

SICK, FLAPPING, REPAIRED, OTHERS = "node2", "node3", "node4", "node1"
ROUNDS = ({SICK, FLAPPING, REPAIRED, OTHERS}, {SICK, REPAIRED, OTHERS}, {SICK, FLAPPING}, {SICK}, {SICK})
"""The hosts that are broken in each round of checks."""


def test_what_is_sick_is_drained_and_what_was_repaired_is_resumed(slurm: Slurm, tmp_path: Path) -> None:
    slurm.run(["scontrol", "update", f"nodename={OTHERS}", "state=drain", "reason=a disk is exchanged"])
    for number, broken in enumerate(ROUNDS):
        for host in slurm.lab:
            (tmp_path / f"{number}-{host.name}.json").write_text(check(host, host.name in broken))
        if number == 1:
            type_lines(slurm, tmp_path)
            assert reasons(slurm).keys() == {SICK, REPAIRED, OTHERS}
            assert reasons(slurm)[SICK].startswith("doctor: tmp-not-writable since 2")
    type_lines(slurm, tmp_path)
    assert reasons(slurm).keys() == {SICK, OTHERS}
    assert reasons(slurm)[OTHERS] == "a disk is exchanged"
    assert idle(slurm) == {FLAPPING, REPAIRED}


def test_a_machine_that_is_called_all_is_not_every_node(slurm: Slurm, tmp_path: Path) -> None:
    for number in range(2):
        report = check(slurm.lab[SICK], broken=True)
        (tmp_path / f"{number}.json").write_text(report.replace(f'"{SICK}"', '"ALL"'))
    said = type_lines(slurm, tmp_path)
    slurm.lab[SICK].do("mount -o remount,rw /tmp")
    assert "nodename=ALL" in said
    assert reasons(slurm) == {}


def check(host: Host, broken: bool) -> str:
    """The report of a run on the host itself."""
    host.do(f"mount -o remount,{'ro' if broken else 'rw'} /tmp")
    doctor = f"PYTHONPATH={REPOSITORY} {sys.executable} -m doctor"
    return host.ask(f"cd /; {doctor} check --local --exam node -q --json - 2>/dev/null").stdout


def type_lines(slurm: Slurm, runs: Path) -> str:
    with redirect_stdout(io.StringIO()) as out:
        assert cli.run(["history", str(runs), "--as", "slurm"]) == 0
    slurm.run(["sh", "-c", out.getvalue()])
    return out.getvalue()


def reasons(slurm: Slurm) -> dict[str, str]:
    rows = slurm.run(["sinfo", "-h", "-R", "-o", "%n|%E"]).stdout.splitlines()
    return dict(row.strip().split("|", 1) for row in rows)


def idle(slurm: Slurm) -> set[str]:
    rows = slurm.run(["sinfo", "-h", "-N", "-o", "%N %T"]).stdout.splitlines()
    return {row.split()[0] for row in rows if row.split()[1].startswith("idle")}
