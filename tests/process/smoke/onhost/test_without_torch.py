"""The controller's part of the smoke run imports without torch."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["random_bytes", "corpus", "parameters", "streamplan", "trainplan"])
def test_the_controller_needs_no_torch(module: str) -> None:
    code = f"import sys, doctor.smoke.onhost.{module}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
