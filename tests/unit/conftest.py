"""Unit tests start nothing: one that starts a process, reaches another machine or imports torch fails."""

import sys
from collections.abc import Generator

import pytest

STARTS = {
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "pty.spawn",
    "subprocess.Popen",
}
_running = False


def _watch(event: str, args: tuple[object, ...]) -> None:
    if _running and (event in STARTS or _is_elsewhere(event, args) or _is_torch(event, args)):
        pytest.fail(f"a unit test must not start anything; move it to tests/process: {event} {args!r}")


def _is_elsewhere(event: str, args: tuple[object, ...]) -> bool:
    """Whether an address belongs to another machine; a path is a socket of this one."""
    if event != "socket.connect":
        return False
    address = args[1]
    return isinstance(address, tuple) and not str(address[0]).startswith(("127.", "::1", "localhost"))


def _is_torch(event: str, args: tuple[object, ...]) -> bool:
    return event == "import" and args[0] == "torch"


sys.addaudithook(_watch)


def _guarded() -> Generator[None, object, object]:
    global _running
    _running = True
    try:
        return (yield)
    finally:
        _running = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    return (yield from _guarded())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    return (yield from _guarded())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    return (yield from _guarded())
