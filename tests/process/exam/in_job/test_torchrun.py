"""`--in-job` inside a real torchrun on this machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.injob import RANK, TORCHRUN, free_port


def test_torchrun_on_one_machine(tmp_path: Path) -> None:
    """The port of torchrun's own store is not reported, and no rank is killed before its own verdict."""
    port = free_port()
    report = tmp_path / "report.json"
    check = ["check", "--exam", "host", "--only", "port-in-use,shm-*", "--json", str(report), "--in-job"]
    launch = [
        TORCHRUN,
        "--nproc-per-node=3",
        "--master-addr=127.0.0.1",
        f"--master-port={port}",
        "--no-python",
    ]
    done = subprocess.run(
        [*launch, "sh", "-c", RANK, "rank", sys.executable, "-m", "doctor", *check],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    codes = sorted(line for line in done.stdout.splitlines() if line.startswith("code "))
    assert codes == ["code 0 0", "code 1 0", "code 2 0"], done.stdout + done.stderr
    found = json.loads(report.read_bytes())
    assert found["findings"] == []
    assert found["plan"]["master_port"] == {"value": port, "source": "the running job MASTER_PORT"}
    ran = {each["check"]: each["status"] for each in found["results"]}
    assert ran["port-in-use"] == "pass"
