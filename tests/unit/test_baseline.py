"""`doctor baseline` and `--baseline`: each change is named with its host and nothing else; what looks like a
change and is none stays silent; a file that is not one is refused with its line.
"""

import contextlib
import copy
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from doctor import cli
from doctor.baseline import Baseline, Measure, as_yaml, read_baseline
from doctor.exam.demo import FOLDER
from doctor.judge.baseline import KIND, OF_PYTHON
from doctor.judge.fact_changes import SIZES, TITLES
from tests.support.accept_runs import healthy as recorded
from tests.support.cases import cases
from tests.support.each import each

CHANGED, SLOWER = "changed-since-baseline", "smoke-slower-than-baseline"
ALL = [f"node{n}" for n in range(1, 5)]
Run = dict[str, Any]


def run(*words: str) -> tuple[int, str, str]:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = cli.run(words)
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def healthy() -> Run:
    return carrying(recorded(), {})


def carrying(data: Run, rates: dict[str, float], swing: float = 0.0) -> Run:
    """Each host carries 1 GB a second, or its own rate; a pair carries the lesser. The second turn of each
    pair carries more by `swing`.
    """
    (smoke,) = data["smoke"]
    seats = {seat["rank"]: seat["host"] for seat in smoke["plan"]["seats"]}
    for rank in smoke["ranks"]:
        for pair in rank["pairs"]:
            ends = seats[rank["rank"]], seats[pair["peer"]]
            pair["bytes"] = int(1e8 * min(rates.get(end, 1.0) for end in ends) * (pair["stage"] * swing + 1))
            pair.update(seconds=0.1, queued=0.0, rtt=0.0002)
    for host in smoke["hosts"]:
        host["load"] = 0.0
    return data


@pytest.fixture(scope="module")
def good(healthy: Run, tmp_path_factory: pytest.TempPathFactory) -> Baseline:
    folder = tmp_path_factory.mktemp("good")
    (folder / "run.json").write_text(json.dumps(healthy))
    code, out, err = run("baseline", str(folder / "run.json"), "--output", str(folder / "good.yaml"))
    assert (code, out, err) == (0, "", "")
    return read_baseline(folder / "good.yaml")


def found(tmp_path: Path, data: Run, baseline: Baseline | None) -> tuple[set[tuple[str, str]], Run]:
    """The findings of the two checks, as (check, nodeset), and the whole report."""
    (tmp_path / "run.json").write_text(json.dumps(data))
    given = []
    if baseline is not None:
        (tmp_path / "good.yaml").write_text(as_yaml(baseline))
        given = ["--baseline", str(tmp_path / "good.yaml")]
    code, out, err = run("preflight", "--replay", str(tmp_path / "run.json"), *given, "--json", "-")
    assert out, err
    said: Run = json.loads(out)
    assert code == said["exit_code"]
    ours = [each for each in said["findings"] if each["check"] in (CHANGED, SLOWER)]
    return {(each["check"], each["nodeset"]) for each in ours if each["status"] == "warn"}, said


def of_slower(said: Run) -> tuple[str, str | None]:
    """The status and the reason of the check of links."""
    (row,) = (row for row in said["results"] if row["check"] == SLOWER)
    return row["status"], row["reason"]


def changed(baseline: Baseline, host: str, facts: dict[str, Any], serial: str = "") -> Baseline:
    made: Run = copy.deepcopy(msgspec.to_builtins(baseline))
    made["hosts"][host]["facts"].update(facts)
    made["hosts"][host]["serial"] = serial
    return msgspec.convert(made, Baseline)


def test_a_run_is_as_good_as_itself(tmp_path: Path, healthy: Run, good: Baseline) -> None:
    ours, said = found(tmp_path, healthy, good)
    assert (ours, said["exit_code"]) == (set(), 0)
    assert of_slower(said) == ("pass", None)
    assert good == msgspec.convert(msgspec.to_builtins(good), Baseline)
    assert {row["check"] for row in found(tmp_path, healthy, None)[1]["results"]}.isdisjoint(
        {CHANGED, SLOWER}
    )


def test_each_fact_that_changes_is_named_with_its_host_and_nothing_else(
    tmp_path: Path, healthy: Run, good: Baseline
) -> None:
    known = good.facts("node2")
    assert len(known) > 15
    for key, value in known.items():
        other = value // 2 + 1 if isinstance(value, int) else "another"
        ours, said = found(tmp_path, healthy, changed(good, "node2", {key: other}))
        assert ours == {(CHANGED, "node2")}, key
        assert said["exit_code"] == 0
        (finding,) = (each for each in said["findings"] if each["check"] == CHANGED)
        assert finding["summary"].startswith(f"{TITLES[key]}: ")


def test_what_is_no_change(tmp_path: Path, healthy: Run, good: Baseline) -> None:
    size = good.facts("node2")["memory_bytes"]
    assert isinstance(size, int)
    assert "memory_bytes" in SIZES
    assert found(tmp_path, healthy, changed(good, "node2", {"memory_bytes": int(size * 0.96)}))[0] == set()
    assert found(tmp_path, healthy, changed(good, "node2", {"cann": "8.0", "kernel": None}))[0] == set()
    elsewhere = changed(good, "node2", dict.fromkeys(("python_path", *OF_PYTHON), "another"))
    (finding,) = (
        each for each in found(tmp_path, healthy, elsewhere)[1]["findings"] if each["check"] == CHANGED
    )
    assert finding["summary"].startswith("its path: ")


def test_what_changed_alike_is_said_once(tmp_path: Path, healthy: Run, good: Baseline) -> None:
    other = msgspec.to_builtins(good)
    other["kinds"]["cpu-0"]["facts"].update(kernel="5.4", mtu=9000)
    baseline = changed(msgspec.convert(other, Baseline), "node3", {"nofile": 5})
    ours, said = found(tmp_path, healthy, baseline)
    assert ours == {(CHANGED, "node[1-4]"), (CHANGED, "node3")}
    summaries = {each["summary"] for each in said["findings"] if each["check"] == CHANGED}
    assert summaries == {
        "changed since 2026-11-25: MTU, kernel",
        "nofile: 20000; 5 in the baseline of 2026-11-25",
    }


def test_a_machine_is_known_by_its_serial_number(tmp_path: Path, healthy: Run, good: Baseline) -> None:
    data = copy.deepcopy(healthy)
    for n, host in enumerate(ALL, 1):
        data["heard"][host]["captures"]["nameplate"] = {
            "fact": "nameplate",
            "rc": 0,
            "stdout": f"/sys/class/dmi/id/sys_vendor:Dell\n/sys/class/dmi/id/product_serial:7KX{n}\n",
        }
    swapped = changed(good, "node2", {"nofile": 5}, serial="7KX3")
    (finding,) = (each for each in found(tmp_path, data, swapped)[1]["findings"] if each["check"] == CHANGED)
    assert finding["hosts"] == ["node3"]
    assert finding["summary"] == "changed since 2026-11-25: calls itself, nofile, data address"
    repaired = changed(good, "node2", {}, serial="7KX9")
    (finding,) = (each for each in found(tmp_path, data, repaired)[1]["findings"] if each["check"] == CHANGED)
    assert (finding["hosts"], finding["summary"]) == (
        ["node2"],
        "serial number: 7KX2; 7KX9 in the baseline of 2026-11-25",
    )
    for capture in (data["heard"][host]["captures"]["nameplate"] for host in ALL):
        capture["stdout"] = "/sys/class/dmi/id/product_serial:Default string\n"
    assert found(tmp_path, data, repaired)[0] == set()


@cases
def test_what_is_no_serial_number(
    tmp_path: Path, healthy: Run, good: Baseline, serial: str, written: bool
) -> None:
    data = copy.deepcopy(healthy)
    told = f"/sys/class/dmi/id/sys_vendor:Dell\n/sys/class/dmi/id/product_serial:{serial}\n"
    data["heard"]["node2"]["captures"]["nameplate"] = {"fact": "nameplate", "rc": 0, "stdout": told}
    (tmp_path / "run.json").write_text(json.dumps(data))
    assert run("baseline", str(tmp_path / "run.json"), "--output", str(tmp_path / "good.yaml"))[0] == 0
    made = read_baseline(tmp_path / "good.yaml").hosts
    assert made["node2"].serial == (serial if written else "")
    twice = changed(good, "node3", {"nofile": 5}, serial="7KX1")
    both = changed(twice, "node4", {}, serial="7KX1")
    data["heard"]["node2"]["captures"]["nameplate"]["stdout"] = told.replace(serial, "7KX1")
    assert found(tmp_path, data, both)[0] == {(CHANGED, "node3")}


def test_a_host_that_the_baseline_does_not_have(tmp_path: Path, healthy: Run, good: Baseline) -> None:
    other: Run = msgspec.to_builtins(good)
    del other["hosts"]["node4"]
    assert found(tmp_path, healthy, msgspec.convert(other, Baseline))[0] == set()
    other["kinds"]["cpu-0"]["facts"]["product"] = "nvidia"
    other["hosts"] = {
        host: {**own, "facts": {**own["facts"], "product": "cpu"}} for host, own in other["hosts"].items()
    }
    ours, said = found(tmp_path, healthy, msgspec.convert(other, Baseline))
    assert ours == set()
    (unknown,) = (each for each in said["findings"] if each["check"] == CHANGED)
    assert (unknown["status"], unknown["hosts"]) == ("unknown", ["node4"])
    assert KIND[0] == "product"


@pytest.mark.parametrize(
    ("rates", "swing", "named"),
    [
        ({"node2": 0.1}, 0.0, {"node2"}),
        ({"node2": 0.5}, 0.01, {"node2"}),
        ({"node2": 0.85}, 0.0, {"node2"}),
        ({"node2": 0.95}, 0.0, set()),
        ({"node2": 2.0}, 0.0, set()),
        ({"node2": 0.5}, 0.5, set()),
        (dict.fromkeys(ALL, 0.8), 0.0, {"node[1-4]"}),
        (dict.fromkeys(ALL, 0.8) | {"node2": 0.4}, 0.0, {"node[1-4]", "node2"}),
        (dict.fromkeys(ALL, 3.0), 0.0, set()),
    ],
)
def test_a_link_that_is_slower(
    tmp_path: Path, healthy: Run, good: Baseline, rates: dict[str, float], swing: float, named: set[str]
) -> None:
    ours, said = found(tmp_path, carrying(copy.deepcopy(healthy), rates, swing), good)
    assert {nodes for check, nodes in ours if check == SLOWER} == named
    if not named and swing:
        assert of_slower(said) == ("skip", "rates differed too much from one time to the next")


def noisy(baseline: Baseline) -> Baseline:
    made: Run = msgspec.to_builtins(baseline)
    for one in (*made["kinds"].values(), *made["hosts"].values()):
        one["links"] = {key: [value, 0.3, turns] for key, (value, _, turns) in one["links"].items()}
    return msgspec.convert(made, Baseline)


@pytest.mark.parametrize(("rate", "named"), [(0.05, {"node2"}), (0.3, set())])
def test_a_noisy_baseline_proves_little(
    tmp_path: Path, healthy: Run, good: Baseline, rate: float, named: set[str]
) -> None:
    ours, _ = found(tmp_path, carrying(copy.deepcopy(healthy), {"node2": rate}), noisy(good))
    assert {nodes for _, nodes in ours} == named


def busy(data: Run) -> None:
    data["smoke"][0]["hosts"][0].update(load=4.0, cores=2)


def of_nccl(data: Run) -> None:
    data["smoke"][0]["plan"]["backend"] = "nccl"


def late(data: Run) -> None:
    for pair in data["smoke"][0]["ranks"][0]["pairs"]:
        pair["rtt"] = 0.0004


@each("spoil", [busy, of_nccl, late])
def test_what_makes_links_slow_without_their_fault(
    spoil: Callable[[Run], None], tmp_path: Path, healthy: Run, good: Baseline
) -> None:
    rates = {} if spoil is late else {"node2": 0.3}
    data = carrying(copy.deepcopy(healthy), rates)
    spoil(data)
    ours, said = found(tmp_path, data, good)
    assert {nodes for check, nodes in ours if check == SLOWER} == set()
    assert of_slower(said)[0] == ("pass" if spoil is late else "skip")


def test_round_trips_that_take_far_longer(tmp_path: Path, healthy: Run, good: Baseline) -> None:
    data = carrying(copy.deepcopy(healthy), {})
    (smoke,) = data["smoke"]
    second = next(seat["rank"] for seat in smoke["plan"]["seats"] if seat["host"] == "node2")
    for rank in smoke["ranks"]:
        for pair in rank["pairs"]:
            pair["rtt"] = 0.02 if second in (rank["rank"], pair["peer"]) else 0.0002
    assert (SLOWER, "node2") in found(tmp_path, data, good)[0]


def test_a_replay_holds_the_baseline(tmp_path: Path, healthy: Run, good: Baseline) -> None:
    then = changed(good, "node2", {"nofile": 5})
    kept = {**healthy, "baseline": msgspec.to_builtins(then)}
    assert found(tmp_path, kept, None)[0] == {(CHANGED, "node2")}
    assert found(tmp_path, kept, good)[0] == set()
    kept["baseline"]["hosts"]["node2"]["kind"] = "nobody"
    (tmp_path / "bad.json").write_text(json.dumps(kept))
    code, _, err = run("preflight", "--replay", str(tmp_path / "bad.json"))
    assert (code, "its baseline does not add up" in err) == (2, True)


def test_facts_on_which_runs_differ_are_left_out(tmp_path: Path, healthy: Run) -> None:
    later = copy.deepcopy(healthy)
    later["started"] = "2026-11-26T08:00:00Z"
    limits = later["heard"]["node2"]["captures"]["limits"]
    limits["stdout"] = limits["stdout"].replace("20000", "30000")
    for name, data in (("a", healthy), ("b", later)):
        (tmp_path / f"{name}.json").write_text(json.dumps(data))
    code, out, _ = run("baseline", str(tmp_path / "b.json"), str(tmp_path / "a.json"))
    (tmp_path / "good.yaml").write_text(out)
    made = read_baseline(tmp_path / "good.yaml")
    assert (code, made.made, len(made.runs)) == (0, "2026-11-26T08:00:00Z", 2)
    assert made.facts("node2").get("nofile") is None
    assert made.facts("node1")["nofile"] == 20000


def test_hosts_that_are_not_healthy_are_left_out(tmp_path: Path) -> None:
    for name in ("npus", "gpus"):
        (tmp_path / f"{name}.json").write_bytes(
            gzip.decompress((FOLDER / f"{name}.run.json.gz").read_bytes())
        )
        code, out, err = run("baseline", str(tmp_path / f"{name}.json"))
        if code == 3:
            assert "none of the hosts is healthy" in err
        else:
            assert (code, "left out: not healthy in that run" in err) == (0, True)
            assert out.startswith("doctor: baseline\n")


@cases
def test_a_file_that_is_no_baseline(tmp_path: Path, good: Baseline, change: list[str], wrong: str) -> None:
    before, after = change
    text = as_yaml(good)
    assert before in text
    (tmp_path / "good.yaml").write_text(text.replace(before, after, 1))
    code, out, err = run("check", "--local", "--baseline", str(tmp_path / "good.yaml"))
    assert (code, out) == (2, "")
    assert wrong in err
    assert err.count("\n") <= 2


def test_other_files_are_refused(tmp_path: Path, healthy: Run) -> None:
    (tmp_path / "run.json").write_text(json.dumps(healthy))
    (tmp_path / "facts.json").write_text(json.dumps({**healthy, "command": "facts"}))
    code, _, err = run("check", "--local", "--baseline", str(tmp_path / "run.json"))
    assert (code, "is a recording of a run" in err) == (2, True)
    for words, said in (
        ([], "No recording is named."),
        ([str(tmp_path / "facts.json")], "is a recording of doctor facts."),
        ([str(tmp_path / "none.json")], "does not exist"),
        ([str(tmp_path / "run.json"), "--output", str(tmp_path)], "it is a folder"),
    ):
        code, _, err = run("baseline", *words)
        assert code == 2
        assert said.lower() in err.lower()


def test_a_measure_is_three_numbers() -> None:
    assert msgspec.convert([1.5, 0.01, 2], Measure) == (1.5, 0.01, 2)


def test_what_hosts_had_counted_is_in_it(tmp_path: Path) -> None:
    """By what is added since then, in the same boot of the host."""

    def counting(text: str) -> Run:
        data = copy.deepcopy(carrying(recorded(), {}))
        for host in data["heard"].values():
            host["captures"]["counts"] = {"fact": "counts", "rc": 0, "stdout": text}
        return data

    def grew(text: str) -> list[tuple[str, str]]:
        (tmp_path / "run.json").write_text(json.dumps(counting(text)))
        given = (
            "--exam",
            "full",
            "--only",
            "errors-growing",
            "--baseline",
            str(tmp_path / "good.yaml"),
            "--json",
            "-",
        )
        _, out, err = run("preflight", "--replay", str(tmp_path / "run.json"), *given)
        assert out, err
        said = json.loads(out)
        return [(each["status"], each["actual"]) for each in said["findings"]]

    (tmp_path / "run.json").write_text(json.dumps(counting("boot a 90\n5 edac mc0\nboot a 99\n5 edac mc0\n")))
    code, _, err = run("baseline", str(tmp_path / "run.json"), "--output", str(tmp_path / "good.yaml"))
    assert (code, err) == (0, "")
    assert "boot a 99" in (tmp_path / "good.yaml").read_text()
    assert grew("boot a 490\n99 edac mc0\nboot a 499\n99 edac mc0\n") == [
        ("warn", "94 in 6 min 40 s, since the earlier run")
    ]
    assert grew("boot b 490\n99 edac mc0\nboot b 499\n99 edac mc0\n") == []
    assert grew("boot a 490\n5 edac mc0\nboot a 499\n5 edac mc0\n") == []
