"""The port where the ranks of a MindSpore cell meet, if another program takes it before the scheduler."""

from __future__ import annotations

import importlib
import os
import socket
from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from doctor.smoke.onhost import mindspore_side as side

HOST = "127.0.0.1"


def listen(port: int) -> socket.socket:
    """As MindSpore's scheduler does; MindSpore says this with a RuntimeError."""
    try:
        return socket.create_server((HOST, port), reuse_port=False)
    except OSError as error:
        raise RuntimeError(str(error)) from None


@pytest.fixture
def scheduled(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[tuple[int, int | None]]]:
    """The ports that ranks are told, if a stranger takes the first so many of them."""
    monkeypatch.setattr(os, "environ", dict(os.environ))

    def run(taken: int) -> list[tuple[int, int | None]]:
        told: list[tuple[int, int | None]] = []
        with ExitStack() as held:

            def say(port: int, cell: int | None) -> None:
                told.append((port, cell))
                if len(told) <= taken:
                    held.enter_context(listen(port))

            def init() -> None:
                held.enter_context(listen(int(os.environ["MS_SCHED_PORT"])))

            monkeypatch.setattr(importlib, "import_module", lambda _: SimpleNamespace(init=init))
            side.serve(HOST, 5, (7, 2), say)
        return told

    return run


@pytest.mark.parametrize("taken", range(side.CHANCES))
def test_a_scheduler_whose_port_a_stranger_holds_takes_another(
    taken: int, scheduled: Callable[[int], list[tuple[int, int | None]]]
) -> None:
    told = scheduled(taken)
    assert len(told) == len({port for port, _ in told}) == taken + 1
    assert {cell for _, cell in told} == {7}


def test_a_scheduler_whose_ports_are_all_held_says_so(
    scheduled: Callable[[int], list[tuple[int, int | None]]],
) -> None:
    with pytest.raises(RuntimeError, match="Address already in use"):
        scheduled(side.CHANCES)
