"""The job scripts that start with `doctor run`: what follows is a launcher on the hosts that it fills in."""

from __future__ import annotations

import re
import shlex

import pytest

from doctor.around.launcher import agent_of
from doctor.around.options import AroundWishes
from doctor.around.placeholders import OF_HOSTS, named_in
from doctor.cli.options import _parameters
from doctor.run.request import Request
from tests.support.paths import ROOT

SCRIPTS = ("slurm/run.sbatch", "pbs/train.pbs", "lsf/train.lsf")


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_command_starts_on_the_healthy_hosts(name: str) -> None:
    text = (ROOT / "examples" / name).read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^exec doctor run (.*)$", text, re.MULTILINE)
    ours, _, command = line.partition(" -- ")
    known = {option.name for kind in (Request, AroundWishes) for option, _ in _parameters(kind)}
    assert {word for word in ours.split() if word.startswith("--")} <= known
    agent = agent_of(shlex.split(command), {})
    assert agent is not None
    assert named_in(shlex.split(command)) & OF_HOSTS
