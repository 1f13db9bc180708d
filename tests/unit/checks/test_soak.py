"""`doctor accept --for`: who slowed down in a soak, since when, and that nobody sound is named."""

import json
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from statistics import median_high
from typing import Any

import pytest

from checks.accept_soak import _usual, accept_soak
from doctor.api import UNDECIDED, Confidence, Problem, Undecided
from doctor.smoke.soak import MOST, Soak
from tests.support.accept_runs import Run, accepting, alone, shares
from tests.support.cases import cases
from tests.unit.test_accept import run

BEGAN = datetime(2026, 11, 27, 14, 0, tzinfo=timezone.utc).timestamp()
USUAL = {
    "train": 120.0,
    "matmul": 1.7e11,
    "copy": 1.3e10,
    "write /dev/shm": 3e9,
    "sends": 6e8,
    "receives": 6e8,
}
Course = Callable[[int], float]
"""What a host does at a round, as a share of the usual."""


def usually(_: int) -> float:
    return 1.0


def soaked(
    slow: Mapping[str, Course],
    *,
    rounds: int = 20,
    hosts: int = 4,
    noise: float = 0.01,
    seed: int = 3,
    stalls: float = 0.0,
    common: float = 0.0,
    gone: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Rounds of ten seconds. `slow`: "node3 train" -> its course. `common`: how far all wander."""
    rng, walk, told = random.Random(seed), 0.0, []
    names = [f"node{number}" for number in range(1, hosts + 1)]
    for number in range(rounds):
        walk += rng.gauss(0, common)
        figures: dict[str, dict[str, float]] = {}
        for what, usual in USUAL.items():
            for at, host in enumerate(names):
                course = slow.get(f"{host} {what}", usually)
                stall = rng.uniform(0.3, 0.9) if rng.random() < stalls else 1.0
                kind = 1 + 0.1 * at  # hosts may differ all the time
                value = usual * kind * course(number) * stall * math.exp(rng.gauss(0, noise) + walk)
                if number < (gone or {}).get(host, rounds):
                    figures.setdefault(what, {})[host] = value
        told.append([BEGAN + 10 * number, figures])
    return {"rounds": told, "every": 1, "done": rounds}


def judged(tmp_path: Path, soak: dict[str, Any], *words: str) -> tuple[int, dict[str, str]]:
    """The exit code, and what is said of each host."""
    data = alone(accepting(shares({})), {})
    data["soak"] = soak
    (tmp_path / "run.json").write_text(json.dumps(data))
    code, out, err = run("accept", "--replay", str(tmp_path / "run.json"), *words, "--json", "-")
    assert out, err
    found = [each for each in json.loads(out)["findings"] if each["check"] == "accept-soak"]
    return code, {host: each["summary"] for each in found for host in each["hosts"]}


def problems(data: Mapping[str, Any], **more: Any) -> list[Problem]:
    rounds = tuple((at, figures) for at, figures in data["rounds"])
    return list(accept_soak.run(None, Soak(rounds, data["every"], data["done"], **more)))


def between(first: int, end: int, share: float) -> Course:
    return lambda number: share if first <= number < end else 1.0


def test_who_is_slower_to_the_end_is_named_with_the_time_at_which_it_began(tmp_path: Path) -> None:
    told = judged(tmp_path, soaked({"node3 train": between(14, 20, 0.57)}))
    assert told == (
        1,
        {"node3": "computes steps 43% more slowly than its peers for 6 rounds from 14:02:20 UTC on"},
    )


def test_an_episode_has_a_begin_and_an_end(tmp_path: Path) -> None:
    told = judged(tmp_path, soaked({"node2 sends": between(5, 9, 0.1)}))
    words = "sends 90% more slowly than its peers for 4 rounds from 14:00:50 UTC to 14:01:30 UTC"
    assert told == (1, {"node2": words})


def test_what_still_goes_is_never_slower_by_all_of_it(tmp_path: Path) -> None:
    _, told = judged(tmp_path, soaked({"node2 sends": between(14, 20, 0.002)}))
    assert told["node2"].startswith("sends 99% more slowly than its peers")


def test_what_was_slow_only_at_the_begin_is_an_episode_too(tmp_path: Path) -> None:
    code, told = judged(tmp_path, soaked({"node2 copy": between(0, 8, 0.5)}))
    assert (code, {*told}) == (1, {"node2"})
    assert (
        "copies memory 50% more slowly than its peers for 8 rounds from 14:00:00 UTC to 14:01:20 UTC"
        in told["node2"]
    )


def test_a_ramp_is_told_from_a_step(tmp_path: Path) -> None:
    def course(number: int) -> float:
        return min(1.0, 1 - 0.02 * (number - 9))

    code, told = judged(tmp_path, soaked({"node4 matmul": course}, rounds=30))
    assert (code, {*told}) == (1, {"node4"})
    words = r"multiplies matrices ever more slowly than its peers for 1\d rounds from about 14:0[12]:"
    assert re.match(words, told["node4"]), told


def test_figures_of_a_host_that_fall_at_the_same_time_are_one_finding(tmp_path: Path) -> None:
    slow = {"node1 train": between(10, 20, 0.5), "node1 matmul": between(10, 20, 0.7)}
    assert judged(tmp_path, soaked(slow))[1].keys() == {"node1"}


def test_days_are_told_if_there_are_several(tmp_path: Path) -> None:
    soak = soaked({"node3 train": between(12, 20, 0.5)})
    for number, each in enumerate(soak["rounds"]):
        each[0] = BEGAN + 7200 * number
    assert "from 2026-11-28 14:00:00 UTC on" in judged(tmp_path, soak)[1]["node3"]


def test_a_host_that_dies_ends_only_its_part(tmp_path: Path) -> None:
    soak = soaked({}, gone={"node3": 9})
    soak["left"] = [[["node3"], BEGAN + 95, "the connection was lost", False]]
    told = judged(tmp_path, soak)
    assert told == (1, {"node3": "ended in the soak at 14:01:35 UTC: the connection was lost"})


def test_one_of_two_that_ended_is_a_suspicion_and_one_finding() -> None:
    rounds = soaked({}, gone={"node2": 9, "node3": 9}, hosts=5)
    left = (("node2", "node3"), BEGAN + 95, "the connection was lost", True)
    (found,) = problems(rounds, left=(left,))
    assert (found.hosts, found.confidence) == (("node2", "node3"), Confidence.SUSPECT)
    assert found.summary.endswith("the connection was lost" + UNDECIDED)
    (sure, other) = problems(rounds, left=((*left[:3], False),))
    assert (sure.hosts, other.hosts, sure.confidence) == (("node2",), ("node3",), Confidence.CERTAIN)
    assert UNDECIDED not in sure.summary
    alone = (("node3",), BEGAN + 95, "rank 4 or 5 ended", True)
    assert [each.confidence for each in problems(rounds, left=(alone,))] == [Confidence.CERTAIN]
    assert len(problems(rounds, left=(left, left, alone))) == 1


def test_a_best_link_that_left_with_its_peer_is_no_fall() -> None:
    """node1 and node2 share a fast switch; node1 leaves."""
    half = between(10, 20, 0.5)
    lost = soaked({"node2 sends": half, "node2 receives": half}, hosts=5, gone={"node1": 10})
    assert problems(lost) == []
    (found,) = problems(soaked({"node2 sends": half}, hosts=5))
    assert found.hosts == ("node2",)
    (found,) = problems(soaked({"node2 sends": between(15, 20, 0.5)}, hosts=5, gone={"node1": 10}))
    assert found.hosts == ("node2",)
    (found,) = problems(soaked({"node2 train": half}, hosts=5, gone={"node1": 10}))
    assert found.hosts == ("node2",)


def two_speeds(seed: int, often: float, *, hosts: int = 4, rounds: int = 60, share: float = 0.85) -> Any:
    """Hosts that are all slower by as much in some rounds, by chance."""
    rng = random.Random(seed)
    names = [f"node{number}" for number in range(hosts)]
    return {
        "rounds": [
            [
                BEGAN + 10 * number,
                {
                    what: {
                        host: (share if rng.random() < often else 1.0) * math.exp(rng.gauss(0, 0.005))
                        for host in names
                    }
                    for what in ("train", "matmul", "copy")
                },
            ]
            for number in range(rounds)
        ],
        "every": 1,
        "done": rounds,
    }


def test_rounds_that_are_slow_by_chance_name_nobody_and_one_that_stays_so_is_named() -> None:
    named = [(often, n) for often in (0.1, 0.2, 0.3) for n in range(30) if problems(two_speeds(n, often))]
    assert len(named) <= 1, named
    many = [n for n in range(4) if problems(soaked({}, hosts=48, stalls=0.05, seed=n))]
    assert many == []
    soak = two_speeds(1, 0.1)
    for _, figures in soak["rounds"][40:]:
        figures["train"]["node2"] *= 0.8
    assert {each.hosts for each in problems(soak)} == {("node2",)}


def test_two_hosts_that_are_slow_at_the_same_time_do_not_excuse_each_other() -> None:
    slow = {"node2 train": between(10, 20, 0.5), "node3 train": between(10, 20, 0.5)}
    assert {each.hosts for each in problems(soaked(slow, hosts=8))} == {("node2",), ("node3",)}


def test_if_only_two_hosts_are_left_nothing_judged_them() -> None:
    soak = soaked({"node2 train": between(12, 30, 0.3)}, hosts=3, rounds=30, gone={"node1": 5})
    with pytest.raises(Undecided, match="fewer than three hosts were left at 14:00:50 UTC"):
        problems(soak)
    assert problems(soaked({}, hosts=3, rounds=10, gone={"node1": 5})) == []


def test_a_soak_that_ended_early_is_no_pass() -> None:
    with pytest.raises(Undecided, match="the soak ended 7 h 50 min too early"):
        problems(soaked({}), lacking=28_200.0)


def test_figures_that_are_nothing_are_left_out() -> None:
    soak = soaked({"node2 train": between(12, 20, 0.5)})
    soak["rounds"][3][1]["train"]["node4"] = 0.0
    soak["rounds"][2][1]["sends"] = dict.fromkeys(("node1", "node2", "node3", "node4"), 0.0)
    assert [each.hosts for each in problems(soak)] == [("node2",)]


def test_the_others_of_each_host() -> None:
    rng = random.Random(4)
    for number in range(200):
        values = {f"node{n}": float(rng.randrange(6)) for n in range(3 + number % 9)}
        assert _usual(values) == {
            host: median_high(value for other, value in values.items() if other != host) for host in values
        }


SOUND: Mapping[str, Mapping[str, Any]] = {
    "quiet": {"noise": 0.01},
    "white": {"noise": 0.05},
    "stalls": {"noise": 0.02, "stalls": 0.02},
    "busy": {"noise": 0.25},
    "wander together": {"noise": 0.05, "common": 0.03},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOUND)
def test_of_200_sound_soaks_nobody_is_named(kind: str) -> None:
    named = [
        seed
        for seed in range(200)
        for hosts, rounds in [((3, 4, 8)[seed % 3], (6, 9, 14, 30)[seed % 4])]
        if problems(soaked({}, rounds=rounds, hosts=hosts, seed=seed, **SOUND[kind]))
    ]
    assert len(named) <= (1 if kind in ("busy", "stalls") else 0), named


def test_sound_courses_that_look_like_faults(tmp_path: Path) -> None:
    """All slow down alike; one host is slower all the time; one bad round, or two; the peer recovers."""
    every = [f"node{number} train" for number in range(1, 5)]
    assert judged(tmp_path, soaked(dict.fromkeys(every, between(8, 20, 0.5))))[1] == {}
    assert judged(tmp_path, soaked({"node2 train": lambda _: 0.5}))[1] == {}
    assert judged(tmp_path, soaked({"node2 train": between(8, 9, 0.01)}))[1] == {}
    assert judged(tmp_path, soaked({"node2 train": between(8, 10, 0.1)}))[1] == {}
    three = soaked({"node3 train": between(0, 12, 0.5)}, hosts=3)
    assert judged(tmp_path, three)[1].keys() == {"node3"}
    assert judged(tmp_path, soaked({"node2 train": between(8, 20, 0.93)}))[1] == {}


@pytest.mark.parametrize(
    ("soak", "why"),
    [
        (soaked({}, rounds=5), "rounds were compared from 6 on, and there were 5"),
        ({"done": 0}, "rounds were compared from 6 on, and there were 0"),
        (soaked({}, hosts=2), "fewer than three hosts have no peers: nothing judged their pace"),
        (
            soaked({f"node{n} train": between(4 * n, 4 * n + 4, 0.3) for n in (1, 2, 4)}),
            "so many hosts slowed down that who is usual cannot be told",
        ),
    ],
)
def test_what_nothing_judged_is_no_pass(tmp_path: Path, soak: dict[str, Any], why: str) -> None:
    code, told = judged(tmp_path, soak)
    assert (code, {*told.values()}) == (3, {why})


def test_the_page_and_the_json_have_first_worst_median_and_last(tmp_path: Path) -> None:
    soak = soaked({"node2 sends": between(5, 9, 0.1)}, noise=0.0)
    judged(tmp_path, soak)
    code, page, _ = run("accept", "--replay", str(tmp_path / "run.json"))
    assert code == 1
    assert re.search(r"sends +node2 +660 MB/s +66 MB/s +660 MB/s +660 MB/s", page), page
    assert "20 rounds." in page
    told = json.loads(run("accept", "--replay", str(tmp_path / "run.json"), "--json", "-")[1])
    assert told["smoke"]["soak"]["sends"]["node2"] == pytest.approx([6.6e8, 6.6e7, 6.6e8, 6.6e8])
    assert page == run("accept", "--replay", str(tmp_path / "run.json"))[1]


def test_without_a_soak_nothing_is_said_of_it(tmp_path: Path) -> None:
    data: Run = alone(accepting(shares({})), {})
    (tmp_path / "run.json").write_text(json.dumps(data))
    code, page, _ = run("accept", "--replay", str(tmp_path / "run.json"))
    assert (code, "soak" in page) == (0, False)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": [[BEGAN, {"train": {"node9": 1.0}}]]},
        {"rounds": [[BEGAN, {"train": {"node1": 0.0}}]]},
        {"rounds": [[BEGAN, {"train": {"node1": -1.0}}]]},
        {"rounds": [[BEGAN, {"trains": {"node1": 1.0}}]]},
        {"left": [[["node1", "node9"], BEGAN, "it ended", True]]},
        {"left": [[["node1"], -1.0, "it ended", True]]},
        {"lacking": -1.0},
        {"readings": [[BEGAN, {"throttled": {"node9": 1.0}}]]},
        {"readings": [[-1.0, {"throttled": {"node1": 1.0}}]]},
        {"readings": [[BEGAN, {"throttled": {"node1": 1e300}}]]},
    ],
)
def test_a_recording_with_nonsense_is_refused(tmp_path: Path, wrong: Mapping[str, Any]) -> None:
    data = alone(accepting(shares({})), {})
    data["soak"] = {"every": 1, "done": 1, **wrong}
    (tmp_path / "run.json").write_text(json.dumps(data))
    code, _, said = run("accept", "--replay", str(tmp_path / "run.json"))
    assert (code, "the rounds of its soak do not add up" in said) == (2, True)


def test_a_soak_does_not_grow() -> None:
    soak = Soak()
    for number in range(5 * MOST):
        soak = soak.with_round(float(number), {"train": {"node1": 1.0}})
    assert (soak.done, soak.every, len(soak.rounds) <= MOST) == (5 * MOST, 8, True)
    times: Sequence[float] = [at for at, _ in soak.rounds]
    assert {b - a for a, b in pairwise(times)} == {8.0}


@pytest.mark.parametrize("time", ["0", "soon", "-5m", "40d", ""])
def test_a_time_that_is_none_is_refused(time: str) -> None:
    code, out, said = run("accept", "node1", "--for", time)
    assert (code, out) == (2, "")
    assert "--for" in said


def read(data: Any, *more: tuple[str, str, Sequence[float]], first: int = 0) -> Any:
    """With a reading before the rounds and one after each. `more`: host, name, its value at each reading."""
    times = [BEGAN - 1, *(at + 9 for at, _ in data["rounds"])]
    figures: list[dict[str, dict[str, float]]] = [{} for _ in times]
    quiet = [("throttled", 3.0), ("net eth0 rx_dropped", 40.0), ("celsius", 55.0), ("boot", 1e9)]
    for host in {host for _, own in data["rounds"] for hosts in own.values() for host in hosts}:
        for name, value in quiet:
            figures[0].setdefault(name, {})[host] = value
    for host, name, values in more:
        for at, value in enumerate(values, first):
            figures[at].setdefault(name, {})[host] = value
    data["readings"] = [[at, own] for at, own in zip(times, figures, strict=True)]
    return data


def grows(begin: int, end: int, by: float, *, start: float = 0.0, slowly: float = 0.0) -> list[float]:
    """A counter at 21 readings: so much more at each from `begin` to before `end`, else `slowly`."""
    value, told = start, []
    for number in range(21):
        value += by if begin <= number < end else slowly
        told.append(value)
    return told


SICK = {"node3 train": between(8, 20, 0.5)}


@cases
def test_what_moved_then_on_that_host_is_told(
    tmp_path: Path, moved: list[tuple[str, str, list[float]]], told: str
) -> None:
    """`moved`: host, name, and at which readings it grows by how much, from where, and else by how much."""
    rows = [
        (host, name, grows(int(a), int(b), by, start=start, slowly=slowly))
        for host, name, (a, b, by, start, slowly) in moved
    ]
    data = read(soaked(SICK, noise=0.002), *rows)
    code, said = judged(tmp_path, data)
    assert (code, {*said}) == (1, {"node3"})
    (found,) = accept(tmp_path)
    assert found["actual"] == "; ".join(filter(None, ("50%", told)))


def accept(tmp_path: Path) -> list[dict[str, Any]]:
    _, out, _ = run("accept", "--replay", str(tmp_path / "run.json"), "--json", "-")
    return [each for each in json.loads(out)["findings"] if each["check"] == "accept-soak"]


def test_what_was_otherwise_in_the_rounds_is_told(tmp_path: Path) -> None:
    """The temperature rose, the clock fell, a stranger's processes ran: and nothing of it on the others."""
    hot = [55.0] * 9 + [85.0] * 12
    judged(tmp_path, read(soaked(SICK), ("node3", "celsius", hot), ("node1", "celsius", [55.0, 60.0] * 10)))
    assert accept(tmp_path)[0]["actual"].endswith("; it had 85 degrees, 55 at other times")
    every = [(f"node{n}", "celsius", hot) for n in range(1, 5)]
    judged(tmp_path, read(soaked(SICK), *every))
    assert "degrees" not in accept(tmp_path)[0]["actual"]
    slow = [
        ("node3", "mhz", [2900.0] * 9 + [1200.0] * 12),
        *((f"node{n}", "mhz", [2900.0]) for n in (1, 2, 4)),
    ]
    judged(tmp_path, read(soaked(SICK), *slow))
    assert accept(tmp_path)[0]["actual"].endswith("; its processors ran at 1,200 MHz, 2,900 at other times")
    judged(tmp_path, read(soaked(SICK), ("node3", "runs trainer", [4.0] * 12), first=9))
    assert accept(tmp_path)[0]["actual"].endswith("; 4 processes named trainer ran")
    ended = soaked({"node3 train": between(4, 8, 0.5)})
    judged(
        tmp_path, read(ended, ("node3", "gpu-pace GPU-1 reasons thermal slowdown", [1, 1, 1, 1, 0]), first=5)
    )
    assert accept(tmp_path)[0]["actual"].endswith("; device GPU-1: thermal slowdown")
    judged(tmp_path, read(ended, ("node3", "boot", [1e9 + 500]), first=6))
    assert accept(tmp_path)[0]["actual"].endswith("; it restarted")


def test_what_moved_before_a_host_ended_is_told(tmp_path: Path) -> None:
    log = "kernel nvme nvme0: I/O error, dev nvme0n1"
    soak = read(soaked({}, gone={"node3": 9}), ("node3", log, [2.0]), ("node2", "throttled", [90.0]), first=8)
    soak["left"] = [[["node3"], BEGAN + 95, "the connection was lost", False]]
    judged(tmp_path, soak)
    (found,) = accept(tmp_path)
    assert found["actual"] == "its kernel's log has 2 times: nvme nvme0: I/O error, dev nvme0n1"
    assert found["hosts"] == ["node3"]


def test_a_recording_without_readings_says_nothing_of_them(tmp_path: Path) -> None:
    judged(tmp_path, soaked(SICK, noise=0.002))
    assert accept(tmp_path)[0]["actual"] == "50%"
