"""NCCL's thread as /proc shows it: real threads of our own, which sleep in a library of that name."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from doctor.slow.onhost.watch import Library, RankWatch
from tests.support.cases import from_cases
from tests.support.paths import ROOT

CHILD = from_cases(__file__, "CHILD", str)


@contextmanager
def rank(
    folder: Path, library: str = "libnccl.so.2", named: str = "cuda-EvtHandlr"
) -> Iterator[subprocess.Popen[str]]:
    """It answers each word: "begin" lets a collective begin, "end" ends it, "stop" lets its threads sleep."""
    argv = [
        sys.executable,
        "-c",
        CHILD,
        str(ROOT / "tests" / "support" / "slow"),
        str(folder),
        library,
        named,
    ]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
        yield child
    finally:
        child.kill()
        child.communicate(timeout=10)


def tell(child: subprocess.Popen[str], word: str) -> None:
    assert child.stdin
    assert child.stdout
    print(word, file=child.stdin, flush=True)
    assert child.stdout.readline() == f"{word}\n"


def comes(watch: RankWatch, carries: bool) -> bool:
    """Whether it is seen so, at once or as soon as its threads had a processor."""
    end = time.monotonic() + 10
    while watch.inside() != (carries, carries):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_it_is_inside_while_a_collective_is_under_way(tmp_path: Path) -> None:
    with rank(tmp_path / "gpu") as child:
        watch = RankWatch(child.pid)
        assert len(watch.proxies) == 1
        for word, carries in (("begin", True), ("end", False)) * 2:
            tell(child, word)
            assert comes(watch, carries), f"after {word}"
        watch.close()
    assert watch.known == {*watch.proxies}, "it was seen asleep in the library"


def test_a_thread_that_sleeps_elsewhere_is_not_that_of_the_library(tmp_path: Path) -> None:
    """It yields as often; but its callers are not NCCL's."""
    with rank(tmp_path / "gpu") as child:
        tell(child, "other")
        watch = RankWatch(child.pid)
        assert len(watch.proxies) == 2
        tell(child, "begin")
        assert comes(watch, True)
        assert len(watch.proxies) == 1
        tell(child, "end")
        assert comes(watch, False)
        watch.close()


def test_without_the_library_no_thread_is_taken_for_one(tmp_path: Path) -> None:
    with rank(tmp_path / "gpu", "libother.so") as child:
        watch = RankWatch(child.pid)
        watch.close()
    assert not watch.proxies


def test_a_process_without_a_gpu_is_not_looked_at(tmp_path: Path) -> None:
    """It has loaded the library, as any torch that was built for GPUs has, and trains on processors."""
    with rank(tmp_path / "gpu", named="python3") as child:
        watch = RankWatch(child.pid)
        watch.close()
    assert not watch.proxies


def test_a_stack_that_ends_soon_is_read_to_its_end() -> None:
    """The callers of a thread of NCCL are few, and its stack begins at the end of a mapping."""
    with open("/proc/self/maps") as file:
        rows = [line.split()[0].split("-") for line in file if line.split()[1].startswith("rw")]
    ends = {int(end, 16) for _, end in rows} - {int(begin, 16) for begin, _ in rows}
    found = Library("/proc/self", {1: "cuda-EvtHandlr"})
    for end in sorted(ends):
        assert not found.sleeps_in(f"202 0x0 0x0 0x0 0x0 0x0 0x0 {end - 20:#x} 0x0")


def test_where_calls_have_no_names_no_thread_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("doctor.live.onhost.proc.MACHINE", "another")
    with rank(tmp_path / "gpu") as child:
        watch = RankWatch(child.pid)
        watch.close()
    assert not watch.proxies
