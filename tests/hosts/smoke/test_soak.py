"""`doctor accept --for` on real hosts: who slows down or dies while it runs is named with the time, the
others go on, and nothing is left.
"""

import json
import re
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.lab import Lab, missing
from tests.lab.found import keep
from tests.lab.warm import Started

LONGEST = 400.0
"""Seconds to wait for the rounds of a busy machine."""


@pytest.fixture
def field() -> Iterator[Lab]:
    if reason := missing():
        pytest.skip(reason)
    with Lab(4) as lab:
        yield lab


def start(lab: Lab, folder: Path, time: str) -> Started:
    shape = ("--python", sys.executable, "--ranks-per-host", "1", "--steps", "14", "-v", "--for", time)
    files = ("--json", str(folder / "report.json"), "--save", str(folder / "run.json"))
    return lab.start_doctor("accept", "node[1-4]", *shape, *files)


def await_round(process: Started, number: int) -> None:
    until = time.monotonic() + LONGEST
    while f"round {number} of the soak" not in process.told:
        assert process.poll() is None, process.told
        assert time.monotonic() < until, process.told
        time.sleep(0.1)


def told(folder: Path) -> Mapping[str, str]:
    """Host -> what the soak says of it."""
    found: list[dict[str, Any]] = json.loads((folder / "report.json").read_bytes())["findings"]
    found = [each for each in found if (each["check"], each["status"]) == ("accept-soak", "fail")]
    return {host: each["summary"] for each in found for host in each["hosts"]}


def clock(text: str) -> datetime:
    """The time in a sentence, of today."""
    hour, minute, second = map(int, re.search(r"(\d\d):(\d\d):(\d\d) UTC", text).groups())  # type: ignore[union-attr]
    return datetime.now(timezone.utc).replace(hour=hour, minute=minute, second=second)


def test_a_sound_soak_names_nobody_and_leaves_nothing(field: Lab, tmp_path: Path) -> None:
    before = {host.name: host.snapshot() for host in field}
    process = start(field, tmp_path, "15s")
    out, errors = process.communicate(timeout=LONGEST)
    assert {host.name: host.snapshot() for host in field} == before
    assert process.returncode in (0, 3), out + errors  # a busy machine has few rounds
    assert told(tmp_path) == {}
    soak = json.loads((tmp_path / "run.json").read_bytes())["soak"]
    assert soak["done"] == len(soak["rounds"]) >= 1
    assert {*soak["rounds"][0][1]["train"]} == {"node1", "node2", "node3", "node4"}


@pytest.mark.alone
@pytest.mark.main
def test_a_link_that_slows_down_is_named_with_the_time_and_ctrl_c_reports(field: Lab, tmp_path: Path) -> None:
    before = {host.name: host.snapshot() for host in field}
    process = start(field, tmp_path, "30m")
    await_round(process, 4)
    field["node3"].slow_link("60mbit")
    slowed = datetime.now(timezone.utc)
    await_round(process, 9)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in errors) == (130, False), out + errors
    assert {host.name: host.snapshot() for host in field} == before
    (words,) = told(tmp_path).values()
    assert {*told(tmp_path)} == {"node3"}, out
    assert re.match(r"sends [5-9]\d% more slowly than its peers for [45] rounds from \S+ UTC on$", words), (
        words
    )
    assert abs(clock(words) - slowed) < timedelta(seconds=60)
    argv = [sys.executable, "-m", "doctor", "accept", "--replay", str(tmp_path / "run.json"), "-v"]
    again = field.run(argv)
    part = "       soak  "
    assert again.returncode == 1
    assert again.stdout[again.stdout.index(part) :] == out[out.index(part) :].replace("Interrupted. ", "", 0)


@pytest.mark.alone
def test_a_host_that_dies_ends_only_its_part(field: Lab, tmp_path: Path) -> None:
    process = start(field, tmp_path, "50s")
    await_round(process, 2)
    field["node3"].power_off()
    died = datetime.now(timezone.utc)
    out, errors = process.communicate(timeout=LONGEST)
    assert process.returncode == 1, out + errors
    assert {*told(tmp_path)} == {"node3"}, out
    assert told(tmp_path)["node3"].startswith("ended in the soak at ")
    assert abs(clock(told(tmp_path)["node3"]) - died) < timedelta(seconds=60)
    soak = json.loads((tmp_path / "run.json").read_bytes())["soak"]
    assert [left[0] for left in soak["left"]] == [["node3"]]
    assert {*soak["rounds"][0][1]["train"]} == {"node1", "node2", "node3", "node4"}
    keep(["--json", str(tmp_path / "report.json")], process.returncode, tmp_path, out)
    if len(soak["rounds"]) > 1:
        assert {*soak["rounds"][-1][1]["train"]} == {"node1", "node2", "node4"}
