"""A host that answers the probe and then prints without end: it is named, and the others are examined."""

import json
import sys
import time
from pathlib import Path

import pytest

from tests.lab import Lab
from tests.support.faults import some_of

MEMORY = '{"say":"memory","peak":1}'
READY = '{"say":"ready","agent":"python 3.9","python":"3.9","cores":4}'
FLOODING = "/opt/flooding/python3"
# All other requests are run.
PYTHON = f"""#!/bin/sh
for last do :; done
case $* in
  *sys.executable*) printf {FLOODING}; exit;;
esac
[ "$last" = AGENT ] || exec {sys.executable} "$@"
echo '{READY}'
exec yes 'LINE'
"""
INVENTORY = f"""
hosts:
  node1: {{python: {sys.executable}}}
  node2: {{python: {FLOODING}}}
  node[3-4]: {{python: {sys.executable}}}
"""


@pytest.mark.parametrize(
    ("agent", "line"),
    some_of(
        [
            ("doctor.mesh.agent", ""),
            ("doctor.mesh.agent", READY),
            ("doctor.smoke.onhost.agent", ""),
            ("doctor.smoke.onhost.agent", MEMORY),
        ],
        ("doctor.smoke.onhost.agent", MEMORY),
    ),
)
def test_a_host_that_floods_is_named_and_costs_the_others_nothing(
    agent: str, line: str, lab: Lab, tmp_path: Path
) -> None:
    lab["node2"].write(FLOODING, PYTHON.replace("AGENT", agent).replace("LINE", line), 0o755)
    inventory = tmp_path / "inventory.yaml"
    inventory.write_text(INVENTORY)
    report = tmp_path / "report.json"
    began = time.monotonic()
    lab.doctor("preflight", "--inventory", str(inventory), "--json", str(report))
    assert time.monotonic() - began < 60
    told = json.loads(report.read_bytes())
    status = {host["name"]: host["status"] for host in told["hosts"]}
    assert status.pop("node2") != "healthy"
    assert set(status.values()) == {"healthy"}
    named = {host for each in told["findings"] for host in each["hosts"]}
    assert named == {"node2"}
