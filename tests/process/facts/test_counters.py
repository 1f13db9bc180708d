"""What a host counts, read by the shells of this machine."""

import subprocess
import sys
from collections.abc import Mapping

import pytest

from doctor.facts.counters import COUNTERS, numbers_in
from doctor.facts.device_pace import DevicePace
from doctor.judge.engine import Facts
from tests.support.probing import HERE, ask

SPINS = "print(flush=True)\nwhile True: pass"


def counted(shell: str) -> Mapping[str, float]:
    heard = ask([COUNTERS], shell)
    told = Facts({heard.host: heard}).get(heard.host, COUNTERS)
    assert isinstance(told, dict), told
    return told


@pytest.mark.parametrize("shell", HERE)
def test_what_a_host_counts(shell: str) -> None:
    with subprocess.Popen([sys.executable, "-c", SPINS], stdout=subprocess.PIPE) as spins:
        try:
            assert spins.stdout
            spins.stdout.readline()
            first, second = counted(shell), counted(shell)
        finally:
            spins.kill()
    assert any(name.startswith("runs python") for name in {*first, *second})
    assert first["boot"] > 1e9
    assert first.keys() >= {"steal", "tcp resent"}
    assert any(name.startswith("free ") for name in first)
    assert first["boot"] == pytest.approx(second["boot"], abs=2)
    assert second["tcp resent"] >= first["tcp resent"]


def test_the_numbers_in_a_fact() -> None:
    pace = {"GPU-1": DevicePace(mhz=1980, celsius=61, idle=False, reasons=("thermal slowdown",))}
    assert dict(numbers_in(pace, "gpu-pace")) == {
        "gpu-pace GPU-1 mhz": 1980.0,
        "gpu-pace GPU-1 celsius": 61.0,
        "gpu-pace GPU-1 idle": 0.0,
        "gpu-pace GPU-1 reasons thermal slowdown": 1.0,
    }
    assert dict(numbers_in(None, "x")) == {}
