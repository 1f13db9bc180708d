"""A loop over SSH: the ranks that it started on other hosts stay if it is ended, unless doctor ends them."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.lab import Lab
from tests.support.around import relays
from tests.support.injob import environment
from tests.support.paths import ROOT

pytestmark = pytest.mark.slow
LOOP = """
rank=0
for host in node1 node2; do
  ssh -F "$1" $host env $2 RANK=$rank "$3" "$4" &
  rank=$((rank + 1))
done
wait
"""


def test_the_ranks_of_a_loop_over_ssh_are_ended(lab: Lab, tmp_path: Path) -> None:
    mark, other = f"mark-{uuid.uuid4()}", f"other-{uuid.uuid4()}"
    given = {"MARK": mark, "WORLD_SIZE": "2", "MASTER_ADDR": lab.hosts[0].address, "MASTER_PORT": "29655"}
    own = {name: value for name, value in environment(**given, FAULT="sleep").items() if name != "PATH"}
    words = " ".join(f"{name}={value}" for name, value in own.items())
    for host in lab.hosts[:2]:
        host.dirty = True
    report = tmp_path / "run.json"
    run = [sys.executable, "-m", "doctor", "run", "--ssh-config", str(lab.ssh_config), "node[1-2]"]
    run += ["--no-preflight", "--stall", "3", "--on-hang", "end", "--json", str(report), "--"]
    loop = ["sh", "-c", LOOP, "loop", str(lab.ssh_config), words]
    job = [sys.executable, str(ROOT / "tests/support/around_job.py")]
    sleeps = lab.hosts[1].enter(["env", f"MARK={other}", "sleep", "600"])
    with subprocess.Popen(sleeps) as stays:
        try:
            done = lab.run([*run, *loop, *job], cwd=tmp_path, timeout=240)
            assert done.returncode == 75, done.stderr
            assert not relays(mark), done.stderr
            assert len(relays(other)) == 1
        finally:
            stays.kill()
    assert "doctor: rank 1 on node2 was ended too, by TERM.\n" in done.stderr
    (attempt,) = json.loads(report.read_text())["around"]["attempts"]
    assert len(attempt["elsewhere"]) == 2
