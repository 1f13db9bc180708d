"""The job scripts that start with `doctor run`: what follows is a launcher on the hosts that it fills in."""

import re
import shlex
from pathlib import Path

import pytest

from doctor.cli.options import _parameters
from doctor.exam.request import Request
from doctor.run.launcher import agent_of
from doctor.run.options import RunWishes
from doctor.run.placeholders import OF_HOSTS, named_in
from tests.support.paths import ROOT

EXAMPLES = [path for path in sorted((ROOT / "examples").rglob("*.*")) if path.suffix not in (".md", ".py")]
STARTS = re.compile(r"(?m)^(?!.*--exam node)[^#\n]*\bdoctor,? (?:preflight|run|check)\b.*$", re.MULTILINE)
SCRIPTS = ("slurm/run.sbatch", "pbs/train.pbs", "lsf/train.lsf")


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_command_starts_on_the_healthy_hosts(name: str) -> None:
    text = (ROOT / "examples" / name).read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^exec doctor run (.*)$", text, re.MULTILINE)
    ours, _, command = line.partition(" -- ")
    known = {option.name for kind in (Request, RunWishes) for option, _ in _parameters(kind)}
    assert {word for word in ours.split() if word.startswith("--")} <= known
    agent = agent_of(shlex.split(command), {})
    assert agent is not None
    assert named_in(shlex.split(command)) & OF_HOSTS


@pytest.mark.parametrize(
    "path", [path for path in EXAMPLES if STARTS.search(path.read_text())], ids=lambda p: p.name
)
def test_each_example_names_the_backend(path: Path) -> None:
    """If it did not, a job whose devices are gone would be examined as one for CPUs."""
    for command in STARTS.findall(path.read_text().replace("\\\n", " ").replace(", ", " ")):
        assert re.search(r"--backend (\"\$\{BACKEND:-[nh]ccl\}\"|nccl|hccl|gloo)", command), command
