"""A limit of processor time stops busy code, but not waiting code."""

import signal
import time

import pytest

from tests.support.limits import TooSlow, within


def _busy_until(end: float) -> None:
    while time.process_time() < end:
        pass


def test_busy_code_is_stopped() -> None:
    began = time.process_time()
    with pytest.raises(TooSlow), within(0.1):
        _busy_until(began + 10)
    assert 0.09 < time.process_time() - began < 5


def test_waiting_code_is_not_stopped() -> None:
    before = signal.getsignal(signal.SIGVTALRM)
    with within(0.05):
        time.sleep(0.2)
    assert signal.getsignal(signal.SIGVTALRM) == before
