"""Changes of a small tree, asked by its own tests."""

import os
from pathlib import Path
from threading import Event

import pytest

from tests.mutate.ask import Answer, Asker, Stage
from tests.mutate.change import Change
from tests.mutate.draw import sites_of
from tests.mutate.tree import Stopped, Tree
from tests.support.cases import from_cases

SOURCE = from_cases(__file__, "SOURCE", str)
TESTS = from_cases(__file__, "TESTS", str)
PROFILE = 'import hypothesis\n\nhypothesis.settings.register_profile("quick")\n'
STAGE = Stage("own", ("test_small.py",), 20)


def tree(root: Path, tests: str = TESTS) -> Tree:
    root.mkdir()
    (root / "small.py").write_text(SOURCE)
    (root / "test_small.py").write_text(tests)
    (root / "pytest.ini").write_text("[pytest]\n")
    (root / "conftest.py").write_text(PROFILE)
    return Tree(root, root.with_name(f"{root.name}t"), Event())


def change(to: str) -> Change:
    (found,) = [c for site in sites_of("small.py", SOURCE.encode()) for c in site if c.after == to]
    return found


def asked(tmp_path: Path, to: str, tests: str = TESTS, limit: float = 20) -> Answer:
    asker = Asker(tree(tmp_path / "sound", tests))
    return asker.ask(change(to), tree(tmp_path / "0", tests), 1, [Stage("own", STAGE.args, limit)])


def test_a_test_notices(tmp_path: Path) -> None:
    found = asked(tmp_path, "return number <= 10")
    assert (found.stage, found.by) == ("own", "test_small.py::test_small")


def test_what_no_test_proves_lives(tmp_path: Path) -> None:
    assert asked(tmp_path, "return number >= 10").stage == ""


def test_a_loop_without_end_is_noticed(tmp_path: Path) -> None:
    found = asked(tmp_path, "while True:", limit=6)
    assert (found.stage, found.by) == ("own", "pytest did not come to its end")


def test_a_test_that_always_fails_notices_nothing(tmp_path: Path) -> None:
    broken = f"def test_broken():\n    assert False\n{TESTS}"
    assert asked(tmp_path, "return number >= 10", broken).stage == ""


def test_it_hides_no_other(tmp_path: Path) -> None:
    broken = f"def test_broken():\n    assert False\n{TESTS}"
    assert asked(tmp_path, "return number <= 10", broken).by == "test_small.py::test_small"


def test_the_same_tree_serves_for_one_change_after_the_other(tmp_path: Path) -> None:
    asker, copy = Asker(tree(tmp_path / "sound")), tree(tmp_path / "0")
    ways = ["return number <= 10", "return number >= 10", "return number < 20", "return number >= 10"]
    stages = [asker.ask(change(to), copy, at + 1, [STAGE]).stage for at, to in enumerate(ways)]
    assert stages == ["own", "", "own", ""]
    assert (copy.root / "small.py").read_text() == SOURCE


def test_a_run_that_is_stopped_leaves_no_process(tmp_path: Path) -> None:
    copy = tree(tmp_path / "0", "def test_wait():\n    import os, time\n    time.sleep(60)\n")
    copy.stopped.set()
    with pytest.raises(Stopped):
        Asker(copy).ask(change("return number < 20"), copy, 1, [STAGE])
    assert not [pid for pid in filter(str.isdecimal, os.listdir("/proc")) if str(copy.root) in _cwd(pid)]


def _cwd(pid: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""
