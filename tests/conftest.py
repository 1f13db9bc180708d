"""What applies to every test: the same signals wherever it is started, and a list of what was left out."""

import gc
import os
import signal
import sys
from collections.abc import Generator

import pytest
from hypothesis import is_hypothesis_test, settings

from tests.support.left_out import pytest_terminal_summary

__all__ = ["pytest_terminal_summary"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests that are marked long")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--long"):
        os.environ["VERIFY_EVERY_LINE"] = "1"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests are collected and stay: the collector of garbage need not look at them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Archives have the time in them: workers that collect in other seconds would see other tests."""
    return argname if isinstance(val, bytes) and val.startswith((b"PK\x03\x04", b"\x1f\x8b")) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if is_hypothesis_test(getattr(item, "function", None)):
            item.add_marker("property")
        if item.get_closest_marker("long") and not config.getoption("--long"):
            item.add_marker(pytest.mark.skip(reason="further variants of a fault run only with --long"))


def _ignore_signals_alone() -> None:
    """Signals that were ignored when we were started (`nohup`, `&`) are still ignored here, but not in the
    programs that we start. A child inherits that a signal is ignored; a handler, even one that does nothing,
    ends with exec.
    """
    ours = {signal.SIGPIPE, signal.SIGXFSZ}  # Python ignores these, but the programs that it starts do not
    for number in signal.valid_signals() - ours:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


_ignore_signals_alone()
# Compiled code is kept, here and in the programs that we start: compiling took two thirds of the collection.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["XDG_CONFIG_HOME"] = "/nonexistent"  # whoever runs the tests may have defaults of their own
# No property test is about the momentary speed of this machine.
# make quick and make test try few examples, make test-all more, make test-long a hundred.
for name, examples in (("quick", 20), ("some", 40), ("all", 100)):
    settings.register_profile(name, deadline=None, max_examples=examples)
settings.load_profile("some")
