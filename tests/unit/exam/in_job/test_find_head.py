"""Why rank 0 was not found: the last try may be cut short by the limit, and shows nothing then."""

import socket
import time
from collections.abc import Iterator

import pytest

from doctor.exam.in_job import find_head as searching
from doctor.exam.in_job.rank_env import read_job_rank

SEAT = read_job_rank({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"})


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (ConnectionRefusedError(), "nothing listens there"),
        (socket.gaierror(), "the name 127.0.0.1 cannot be resolved"),
        (None, "no answer, as when a firewall drops the connection"),
    ],
    ids=["refused", "no name", "silent"],
)
def test_a_try_that_is_cut_short_says_nothing(
    first: OSError | None, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    until = time.monotonic() + 0.3
    errors: Iterator[OSError] = iter([first] if first else [])

    def connect(*_: object) -> socket.socket:
        for error in errors:
            raise error
        time.sleep(max(0.0, until - time.monotonic()))
        raise TimeoutError

    monkeypatch.setattr(searching, "_connect", connect)
    monkeypatch.setattr(searching, "PAUSE", 0.01)
    assert searching.find_head(SEAT, until) == searching.NoHead(why)
