"""`doctor accept --for`: who slowed down in a soak, since when, and that nobody sound is named."""

import json
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from doctor.smoke.soak import MOST, Soak
from tests.support.accept_runs import Run, accepting, alone, shares
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
    soak["left"] = [["node3", BEGAN + 95, "the connection was lost"]]
    told = judged(tmp_path, soak)
    assert told == (1, {"node3": "ended in the soak at 14:01:35 UTC: the connection was lost"})


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
    from checks.accept_soak import accept_soak

    named = [
        seed
        for seed in range(200)
        for hosts, rounds in [((3, 4, 8)[seed % 3], (6, 9, 14, 30)[seed % 4])]
        if list(
            accept_soak.run(None, _soak(soaked({}, rounds=rounds, hosts=hosts, seed=seed, **SOUND[kind])))
        )
    ]
    assert len(named) <= (1 if kind in ("busy", "stalls") else 0), named


def _soak(data: Mapping[str, Any]) -> Soak:
    return Soak(tuple((at, figures) for at, figures in data["rounds"]), data["every"], data["done"])


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
            soaked({f"node{n} train": between(3 * n, 3 * n + 3, 0.3) for n in (1, 2, 4)}),
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


@pytest.mark.parametrize("wrong", [{"node9": 1.0}, {"node1": 0.0}, {"node1": -1.0}])
def test_a_recording_with_nonsense_is_refused(tmp_path: Path, wrong: Mapping[str, float]) -> None:
    data = alone(accepting(shares({})), {})
    data["soak"] = {"rounds": [[BEGAN, {"train": wrong}]], "every": 1, "done": 1}
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
