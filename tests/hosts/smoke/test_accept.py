"""`doctor accept` and `--baseline` on real hosts: the culprit is named, with the direction that is slow, and
what has changed.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab import Lab, missing

OURS = (
    *("accept-slow-link", "accept-slow-collective", "smoke-slow-link"),
    *("smoke-slower-than-baseline", "changed-since-baseline"),
)
NAMES = "node[1-4]"


@pytest.fixture(scope="module")
def field() -> Iterator[Lab]:
    if reason := missing():
        pytest.skip(reason)
    with Lab(4) as lab:
        yield lab


def accept(lab: Lab, folder: Path, *more: str, names: str = NAMES) -> tuple[int, list[dict[str, Any]]]:
    """The exit code, and the findings about links and the baseline; every host is left as it was."""
    report = folder / "report.json"
    shape = ("--python", sys.executable, "--ranks-per-host", "1", "--steps", "14")
    before = {host.name: host.snapshot() for host in lab}
    done = lab.doctor("accept", names, *shape, "--json", str(report), *more)
    assert report.exists(), done.stderr
    assert {host.name: host.snapshot() for host in lab} == before
    findings = json.loads(report.read_bytes())["findings"]
    assert not [f for f in findings if f["status"] in ("fail", "crash") and f["check"] not in OURS], (
        done.stdout
    )
    return done.returncode, [f for f in findings if f["check"] in OURS and f["status"] != "unknown"]


@pytest.mark.alone
def test_a_slow_sender_is_named_and_what_changed_since_the_baseline(field: Lab, tmp_path: Path) -> None:
    good, baseline, floor = (tmp_path / name for name in ("good.json", "good.yaml", "accept.yaml"))
    floor.write_text("floors: [pair >= 150 Mbit/s]")
    code, found = accept(field, tmp_path, "--save", str(good))
    assert (code in (0, 3), found) == (True, [])
    assert field.doctor("baseline", str(good), "--output", str(baseline)).returncode == 0
    field["node2"].slow_link("60mbit")
    field["node3"].do("sysctl -q -w net.core.somaxconn=4000")
    try:
        code, found = accept(field, tmp_path, "--baseline", str(baseline), "--floor", str(floor))
    finally:
        field.reset()
    told = {(f["check"], f["status"], *f["hosts"]): f["summary"] for f in found}
    assert code == 1
    assert re.match(r"what it sends arrives at [45]\d\b", told["accept-slow-link", "fail", "node2"])
    assert told["changed-since-baseline", "warn", "node3"].startswith("somaxconn: 4000; ")


def test_two_hosts_without_a_floor_are_no_pass(field: Lab, tmp_path: Path) -> None:
    code, found = accept(field, tmp_path, names="node[1-2]")
    assert (code, found) == (3, [])
    (tmp_path / "accept.yaml").write_text("floors: [pair >= 1 Mbit/s]")
    code, found = accept(field, tmp_path, "--floor", str(tmp_path / "accept.yaml"), names="node[1-2]")
    assert (code, found) == (0, [])


@pytest.mark.alone
def test_a_collective_below_its_floor_is_named_and_a_healthy_one_is_not(field: Lab, tmp_path: Path) -> None:
    floor, recording = tmp_path / "accept.yaml", tmp_path / "run.json"
    floor.write_text("floors: [inter all_reduce 256KB >= 20 MB/s, all send_recv 64KB >= 20 MB/s]")
    given = ("--floor", str(floor), "--save", str(recording))
    healthy = accept(field, tmp_path, *given, names="node[1-2]")[1]
    assert [found for found in healthy if found["check"] == "accept-slow-collective"] == []
    field["node2"].slow_link("60mbit")
    try:
        code, found = accept(field, tmp_path, *given, names="node[1-2]")
    finally:
        field.reset()
    told = {f["subject"]: (f["hosts"], f["summary"]) for f in found if f["check"] == "accept-slow-collective"}
    assert (code, told["inter all_reduce 256KB"][0]) == (1, [])
    assert "at most; the floor is 20 MB/s" in told["inter all_reduce 256KB"][1]
    assert "all send_recv 64KB" in told
    report = json.loads((tmp_path / "report.json").read_bytes())
    timed = report["smoke"]["collectives"]
    rate = next(
        each["bus_bytes_per_second"] for each in timed if (each["op"], each["bytes"]) == ("all_reduce", 2**18)
    )
    assert 3e6 < rate < 7.6e6
    replay = ["accept", "--replay", str(recording), "--json", "-"]
    again = field.run([sys.executable, "-m", "doctor", *replay])
    assert json.loads(again.stdout)["smoke"]["collectives"] == timed
