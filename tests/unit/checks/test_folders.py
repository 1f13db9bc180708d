"""Whom the folders that a job needs accuse."""

from dataclasses import replace
from typing import Any

import pytest

from checks.folders import FOLDER_READS, Folder, folder_differs, folder_slow, folder_unfit
from doctor.api import Skip, Undecided
from doctor.errors import UsageError
from doctor.job.needs import MOST, read_need, read_needs
from tests.support.captures import printed
from tests.support.cases import cases
from tests.support.launches import a_plan

NOTHING = {"nothing": True}


def folder(said: str) -> Folder:
    """ "srv:/x abc 50" is a folder from there with three names, on a file system of 50 KB."""
    source, names, total = (*said.split(), "-", "-")[:3]
    entries = 0 if names == "-" else len(names)
    size = None if total == "-" else int(total)
    return Folder("folder", True, False, source, "", "/x", 10**9, size, None, entries, names)


@cases
def test_who_has_another_folder(need: str, hosts: list[str], found: list[str]) -> None:
    plan = replace(a_plan(hosts=len(hosts)), needs=(read_need(need),))
    there = {f"node{number}": {1: folder(said)} for number, said in enumerate(hosts, 1)}
    told = [
        f"{'fail' if each.severity else 'warn'} {' '.join(each.hosts)}: {each.actual}"
        for each in folder_differs.run(plan, there)
    ]
    assert told == found


@cases
def test_what_is_wrong_with_a_folder(need: str, there: dict[str, Any], found: str | None) -> None:
    plan = replace(a_plan(hosts=1), needs=(read_need(need),))
    usual = {"kind": "folder", "writable": True, "source": "srv:/x", "type": "nfs", "mount": "/x"}
    seen = {} if there == NOTHING else {1: Folder(**{**usual, **there})}
    try:
        told = [f"{each.actual}; {each.commands[0]}" for each in folder_unfit.run(plan, seen)]
    except Undecided as undecided:
        told = [str(undecided)]
    assert told == ([found] if found else [])


@cases
def test_how_a_need_is_written(text: str, path: str | None, writable: bool, free: int) -> None:
    if path is None:
        with pytest.raises(UsageError):
            read_need(text)
    else:
        need = read_need(text)
        assert (need.path, need.writable, need.free) == (path, writable, free)


def test_too_many_are_refused_and_the_last_word_counts() -> None:
    assert [need.writable for need in read_needs(("/a", "/a/:rw"))] == [True]
    with pytest.raises(UsageError, match="are the most"):
        read_needs(tuple(f"/{number}" for number in range(MOST + 1)))


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("read 1 134217728 bytes (134 MB, 128 MiB) copied, 0.0671 s, 2.0 GB/s", {1: 2000}),
        ("read 2 134217728 bytes (128.0MB) copied, 1.342177 seconds, 95.4MB/s", {2: 100}),
        ("read 1 0 bytes copied, 3.00041 s, 0.0 kB/s", {1: 0}),
        ("read 1 0 bytes copied, 0.00041 s, 0.0 kB/s", {}),
        ("read 1 7 bytes copied, 1e999 s, 0.0 kB/s", {}),
        ("read 1 dd: failed to open '/data/x': Permission denied", {}),
        ("", {}),
    ],
)
def test_what_dd_says(text: str, rates: dict[int, int]) -> None:
    assert {number: round(rate) for number, rate in printed(FOLDER_READS, text).items()} == rates


def test_a_folder_that_is_read_slowly() -> None:
    needs = (read_need("/ckpt:rw"), read_need("/data:1GB/s"), read_need("/more:50MB/s"))
    plan = replace(a_plan(hosts=1), needs=needs)
    (problem,) = folder_slow.run(plan, {1: 600.0, 2: 50.0})
    assert (problem.subject, problem.expected, problem.actual) == ("/data", "1000 MB/s", "600 MB/s")
    with pytest.raises(Undecided, match="/more"):
        [*folder_slow.run(plan, {1: 1000.0})]
    with pytest.raises(Skip):
        [*folder_slow.run(replace(plan, needs=needs[:1]), None)]
