"""Which unit tests call which functions of the sources: a pytest plugin finds it, and a map keeps it.

Tests of a file are looked at again only if the file has changed.
"""

import json
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from types import CodeType, FrameType

import pytest

from tests.mutate.change import Change
from tests.support.paths import ROOT

INTO = "MUTATE_CALLS"
"""The variable with the file that the plugin writes."""
SOURCES = ("doctor", "checks")
Calls = Mapping[str, Collection[str]]
"""For each file of tests, the functions (`path:name`) that it calls."""

_called = defaultdict[str, set[CodeType]](set)
_seen = set[CodeType]()


def _hook(frame: FrameType, _event: str, _arg: object) -> None:
    _seen.add(frame.f_code)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _seen.clear()
    threading.setprofile(_hook)
    sys.setprofile(_hook)
    try:
        return (yield)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        _called[item.nodeid.partition("::")[0]] |= _seen


def pytest_sessionfinish() -> None:
    found = {test: sorted({*filter(None, map(_name, codes))}) for test, codes in _called.items()}
    Path(os.environ[INTO]).write_text(json.dumps(found))


def _name(code: CodeType) -> str:
    path = Path(code.co_filename)
    if not path.is_relative_to(ROOT) or (inner := path.relative_to(ROOT)).parts[0] not in SOURCES:
        return ""
    return f"{inner}:{code.co_name}"


class Map:
    """Kept beside the answers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept = json.loads(path.read_text()) if path.exists() else {}

    def stale(self, root: Path) -> list[str]:
        files = sorted(str(test.relative_to(root)) for test in (root / "tests/unit").rglob("test_*.py"))
        return [test for test in files if self._kept.get(test, [""])[0] != _mark(root / test)]

    def learn(self, root: Path, tests: Iterable[str], calls: Calls) -> None:
        self._kept |= {test: [_mark(root / test), [*calls.get(test, ())]] for test in tests}
        self.path.write_text(json.dumps(self._kept))

    def callers(self, change: Change) -> list[str]:
        """Those of the function; outside of functions, those of the whole file."""
        name = f"{change.path}:{change.function}"
        return [
            test
            for test, (_, calls) in self._kept.items()
            if any(call == name if change.function else call.startswith(name) for call in calls)
        ]


def _mark(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()[:16]
