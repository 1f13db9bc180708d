"""Examples that a real tool can judge without running them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import ROOT


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_accepts_the_timer_and_its_service(tmp_path: Path) -> None:
    """The program is not installed here, so a copy names one that exists."""
    for unit in (ROOT / "examples/systemd").iterdir():
        (tmp_path / unit.name).write_text(
            unit.read_text().replace("/opt/cluster-doctor/bin/doctor", "/bin/true")
        )
    units = sorted(map(str, tmp_path.iterdir()))
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True)
    ours = [line for line in done.stderr.splitlines() if "doctor-sweep" in line]
    assert (done.returncode, ours) == (0, [])
