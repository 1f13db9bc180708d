"""A torchrun job dies of a fault of its hosts: its logs lead to the check that proves the fault until it is
repaired.
"""

import subprocess
from pathlib import Path

import pytest

from tests.lab import Lab
from tests.support.cases import cases
from tests.trials.logs.capture import run
from tests.trials.logs.cases import CASES

pytestmark = pytest.mark.slow

PROVED, GONE = "proved", "not seen any more"


def explained(lab: Lab, folder: Path, hosts: int) -> subprocess.CompletedProcess[str]:
    asked = ("--check", f"node[1-{hosts}]", "--ssh-config", str(lab.ssh_config))
    return lab.doctor("explain", str(folder), *asked, env={"COLUMNS": "200"})


@cases
def test_the_check_proves_it_until_it_is_repaired(
    lab: Lab, name: str, host: str, check: str, tmp_path: Path
) -> None:
    case = CASES[name]
    run(lab, case, tmp_path)
    there = explained(lab, tmp_path, case.hosts)
    assert there.returncode == 1, there.stdout + there.stderr
    assert PROVED in there.stdout, there.stdout
    assert check in there.stdout
    assert host in there.stdout
    assert GONE not in there.stdout
    lab.reset()
    repaired = explained(lab, tmp_path, case.hosts)
    assert GONE in repaired.stdout, repaired.stdout + repaired.stderr
    assert f"{PROVED}:" not in repaired.stdout
