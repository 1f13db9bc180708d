"""A recording of `doctor accept` that was made slower by hand in one value: `--baseline` and `doctor diff`
name it and nothing else.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from doctor.smoke.onhost.sweepplan import SIZES, TIMED, size_text
from tests.support.accept_runs import Run, accepting, alone, shares, timed
from tests.unit.test_accept import run

SCOPES = {"intra": 2, "inter": 4, "all": 8}
WORSE = ("fail", "warn")


def good(**slow: Any) -> Run:
    """Everything that accept measures, on quiet hosts."""
    data = alone(timed(accepting(shares(slow.get("links", {})), noise=0.002)), slow.get("alone", {}))
    (smoke,) = data["smoke"]
    for rank in smoke["ranks"]:
        for each in rank["sweep"]:
            middle = each["seconds"][1]
            each["seconds"] = [0.99 * middle, middle, 1.2 * middle]
    for host in smoke["hosts"]:
        host.update(login=0.3, imported=3.3, reverse_dns=0.002)
    return data


def of_host(**values: float) -> Run:
    data = good()
    (host,) = (each for each in data["smoke"][0]["hosts"] if each["host"] == "node2")
    host.update(values)
    return data


def late() -> Run:
    data = good()
    data["smoke"][0]["ranks"] = accepting(shares({}), noise=0.002, trip="node2")["smoke"][0]["ranks"]
    for rank, other in zip(data["smoke"][0]["ranks"], good()["smoke"][0]["ranks"], strict=True):
        rank["sweep"], rank["alone"] = other["sweep"], other["alone"]
    return data


def collective(scope: str, op: str, size: int) -> Run:
    data = good()
    hosts = {seat["rank"]: seat["host"] for seat in data["smoke"][0]["plan"]["seats"]}
    for rank in data["smoke"][0]["ranks"]:
        for each in rank["sweep"]:
            if (each["scope"], each["op"], each["bytes"]) == (scope, op, size):
                slower = 2.0 if scope != "intra" or hosts[rank["rank"]] == "node2" else 1.0
                each["seconds"] = [slower * seconds for seconds in each["seconds"]]
    return data


ALONE: dict[str, Callable[[], Run]] = {
    "matmul": lambda: good(alone={"node2 matmul": 0.7}),
    "copy": lambda: good(alone={"node2 copy": 0.7}),
    "write /data": lambda: good(alone={"node2 write": 0.1}),
    "read /data": lambda: good(alone={"node2 read": 0.1}),
    "fsync /data": lambda: good(alone={"node2 fsync": 0.02}),
    "login": lambda: of_host(login=4.0, imported=7.0),
    "start": lambda: of_host(imported=20.0),
    "dns": lambda: of_host(reverse_dns=1.8),
    "out_gbit_s": lambda: good(links={"node2>": 0.6}),
    "in_gbit_s": lambda: good(links={">node2": 0.6}),
    "trip_us": late,
}
OF_LINKS = {"out_gbit_s": "what it sends", "in_gbit_s": "what it receives", "trip_us": "its round trips"}
COLLECTIVES = {
    f"{scope} {op} {size_text(size)} of {ranks}": (scope, op, size)
    for number, (scope, ranks) in enumerate(SCOPES.items())
    for at, op in enumerate(TIMED)
    for size in [SIZES[(number + 2 * at) % 7]]
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("good")
    recording, baseline = folder / "good.json", folder / "good.yaml"
    recording.write_text(json.dumps(good()))
    code, _, err = run("baseline", str(recording), "--output", str(baseline))
    assert code == 0, err
    return recording, baseline


def said(kept: tuple[Path, Path], data: Run, tmp_path: Path) -> tuple[list[Any], list[Any], list[Any]]:
    """What is wrong beside the baseline; and by diff: what changed, and the new findings."""
    (tmp_path / "now.json").write_text(json.dumps(data))
    now = str(tmp_path / "now.json")
    _, out, err = run("accept", "--replay", now, "--baseline", str(kept[1]), "--json", "-")
    assert out, err
    found = [each for each in json.loads(out)["findings"] if each["status"] in WORSE]
    _, out, err = run("diff", str(kept[0]), now, "--json", "-")
    assert out, err
    changed = json.loads(out)["diff"]
    return found, changed["facts"], [each for each in changed["changes"] if each["state"] == "new"]


def only(kept: tuple[Path, Path], data: Run, tmp_path: Path, words: str, hosts: list[str]) -> None:
    found, facts, new = said(kept, data, tmp_path)
    (then,) = (each for each in found if each["check"] == "smoke-slower-than-baseline")
    assert (then["summary"].startswith(f"{words}: "), then["hosts"]) == (True, hosts), then
    assert {host for each in (*found, *new) for host in each["hosts"]} <= {*hosts}
    assert [(each["key"], each["worse"]) for each in facts] == [(words, True)], facts
    assert set(hosts) <= {*facts[0]["hosts"]}


@pytest.mark.parametrize("key", ALONE)
def test_one_slower_value_of_a_host_is_named_and_nothing_else(
    kept: tuple[Path, Path], tmp_path: Path, key: str
) -> None:
    only(kept, ALONE[key](), tmp_path, OF_LINKS.get(key, key), ["node2"])


@pytest.mark.slow
@pytest.mark.parametrize("key", COLLECTIVES)
def test_one_slower_collective_is_named_and_nothing_else(
    kept: tuple[Path, Path], tmp_path: Path, key: str
) -> None:
    hosts = ["node2"] if key.startswith("intra") else []
    only(kept, collective(*COLLECTIVES[key]), tmp_path, key, hosts)


def test_another_sound_run_says_nothing(kept: tuple[Path, Path], tmp_path: Path) -> None:
    data = good()
    for rank in data["smoke"][0]["ranks"]:
        for at, each in enumerate(rank["alone"]):
            each["rates"] = [rate * math.exp(0.01 * (-1) ** (at + n)) for n, rate in enumerate(each["rates"])]
    assert said(kept, data, tmp_path) == ([], [], [])
    assert said(kept, of_host(login=0.6, imported=4.5, reverse_dns=0.3), tmp_path) == ([], [], [])


def test_what_all_hosts_do_less_of_is_said_once(kept: tuple[Path, Path], tmp_path: Path) -> None:
    names = [f"node{number}" for number in range(1, 5)]
    found, facts, _ = said(kept, good(alone={f"{name} matmul": 0.7 for name in names}), tmp_path)
    (then,) = found
    assert then["summary"].startswith("matmul: on all hosts alike 7")
    assert [(each["key"], each["hosts"]) for each in facts] == [("matmul", names)]


def test_a_busy_host_is_not_held_against_its_quiet_past(kept: tuple[Path, Path], tmp_path: Path) -> None:
    data = good(alone={"node2 matmul": 0.7, "node2 write": 0.1})
    for host in data["smoke"][0]["hosts"]:
        host["load"] = 2.0 * max(1, host["cores"])
    found, facts, _ = said(kept, data, tmp_path)
    assert [each["check"] for each in found if each["check"] == "smoke-slower-than-baseline"] == []
    assert facts == []


def test_a_host_that_does_what_it_did_is_a_warning_beside_its_peers(
    kept: tuple[Path, Path], tmp_path: Path
) -> None:
    data = good(alone={"node2 matmul": 0.7})
    assert [each["status"] for each in peers(data, tmp_path)] == ["fail"]
    text, slow = kept[1].read_text(), "each: {matmul: [70.0, 0.01, 2]}, "
    (tmp_path / "slow.yaml").write_text(text.replace("node2: {kind: ", f"node2: {{{slow}kind: "))
    (found,) = peers(data, tmp_path, "--baseline", str(tmp_path / "slow.yaml"))
    assert (found["status"], found["hosts"]) == ("warn", ["node2"])


def peers(data: Run, folder: Path, *words: str) -> list[Any]:
    (folder / "now.json").write_text(json.dumps(data))
    _, out, err = run("accept", "--replay", str(folder / "now.json"), *words, "--json", "-")
    assert out, err
    return [each for each in json.loads(out)["findings"] if each["check"] == "accept-slow-host"]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("matmull: [1.0, 0.1, 2]", "nothing that is measured is called 'matmull'"),
        ("copy: [0.0, 0.1, 2]", "is not [median, noise, number], all above zero"),
    ],
)
def test_a_baseline_with_nonsense_is_refused(
    kept: tuple[Path, Path], tmp_path: Path, key: str, said: str
) -> None:
    text = kept[1].read_text().replace("node2: {kind: ", f"node2: {{each: {{{key}}}, kind: ")
    (tmp_path / "odd.yaml").write_text(text)
    code, _, err = run("accept", "--replay", str(kept[0]), "--baseline", str(tmp_path / "odd.yaml"))
    assert (code, said in err) == (2, True), err


def test_many_collectives_that_are_slow_are_one_finding(kept: tuple[Path, Path], tmp_path: Path) -> None:
    data = good()
    for rank in data["smoke"][0]["ranks"]:
        for each in rank["sweep"]:
            if each["scope"] != "intra":
                each["seconds"] = [2.5 * seconds for seconds in each["seconds"]]
    found, facts, _ = said(kept, data, tmp_path)
    (then,) = found
    assert then["summary"].startswith("inter all_reduce 1KB of 4 and 83 more: on all hosts alike 4")
    assert len(facts) == 84
