"""`doctor smoke` in the stages of a pipeline, on real hosts: each host has one stage of two replicas."""

import json
import sys
from pathlib import Path

import pytest

from tests.lab import Lab

CUT = ("--ranks-per-host", "4", "--plan", "pp=2,dp=2,tp=2")


@pytest.mark.main
def test_a_stage_that_gets_stuck_is_named_and_healthy_stages_are_silent(lab: Lab, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    args = ("smoke", "node[1-2]", "--python", sys.executable, *CUT, "--json", str(report))
    done = lab.doctor(*args, "--inject", "stuck@5:12")
    found = json.loads(report.read_bytes())
    (finding,) = [each for each in found["findings"] if each["status"] != "unknown"]
    named = (finding["check"], finding["rank"], finding["host"], finding["subject"])
    assert (done.returncode, *named) == (1, "smoke-hang", 5, "node2", "rank 5"), done.stdout
    assert "wait for it" in finding["summary"]
    done = lab.doctor(*args)
    found = json.loads(report.read_bytes())
    assert (done.returncode, found["findings"]) == (0, []), done.stdout
    order = "tp-cp-ep-dp-pp"
    layout = {"dp": 2, "tp": 2, "cells": 1, "pp": 2, "cp": 1, "ep": 1, "micro": 4, "order": order}
    assert (found["verdict"], found["smoke"]["layout"]) == ("healthy", layout)
    assert "pp 2 × dp 2 × tp 2, 1F1B with 4 micro-batches" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("fault", "check", "rank"),
    [
        ("exit@6:3", "smoke-crash", 6),
        ("stop@1:3", "smoke-hang", 1),
        ("skip@4:3", "smoke-mismatch", 4),
        ("tag@3:5", "smoke-mismatch", 3),
        ("wrong-result@5:3/tp", "smoke-collective-wrong", 5),
        ("wrong-result@6:3/pair", "smoke-collective-wrong", 6),
        ("shape@3:4/pair", "smoke-mismatch", 3),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in (
                ("kill@2:3", "smoke-crash", 2),
                ("shape@1:3", "smoke-mismatch", 1),
                ("nan@6:3", "smoke-loss-nan", 6),
                ("grad-bit@3:3", "smoke-corruption", 3),
                ("mask@5:3", "smoke-mask-divergence", 5),
                ("skip@5:3/tp", "smoke-mismatch", 5),
                ("skip@6:4/embedding", "smoke-mismatch", 6),
                ("skip@2:3/pp", "smoke-mismatch", 2),
                ("skip@3:4/pair", "smoke-mismatch", 3),
                ("peer@2:4", "smoke-mismatch", 2),
                ("peer@6:4/pp", "smoke-mismatch", 6),
                ("dtype@4:4/pair", "smoke-mismatch", 4),
                ("stuck@5:3/pair", "smoke-hang", 5),
                ("kill@1:4/tp", "smoke-crash", 1),
                ("wrong-result@1:7/embedding", "smoke-collective-wrong", 1),
                ("wrong-result@2:7/pp", "smoke-collective-wrong", 2),
                ("lost-part@1:5", "smoke-collective-wrong", 1),
                ("extra@2:3/pp", "smoke-mismatch", 2),
                ("shape@5:3/tp", "smoke-mismatch", 5),
            )
        ),
    ],
)
def test_a_fault_of_one_rank_of_a_stage_is_its_own(
    lab: Lab, tmp_path: Path, fault: str, check: str, rank: int
) -> None:
    report = tmp_path / "report.json"
    args = ("smoke", "node[1-2]", "--python", sys.executable, *CUT, "--json", str(report))
    done = lab.doctor(*args, "--inject", fault)
    found = json.loads(report.read_bytes())
    named = [(each["check"], each["rank"]) for each in found["findings"] if each["status"] != "unknown"]
    assert (done.returncode, named) == (1, [(check, rank)]), done.stdout


OTHERWISE = "pp=2,dp=2,tp=2,order=tp-pp-dp,accumulation=8"
HELD = "pp=2,dp=2,tp=2,vpp=2"
SHARED = "dp=4,tp=2,zero=3"
SERVED = "ps=1"
SAID = {
    OTHERWISE: "1F1B with 8 micro-batches, order tp-pp-dp-cp-ep, in 17 groups, made in",
    HELD: "1F1B with 4 micro-batches, 2 stages a rank, in 17 groups, made in",
    SHARED: "dp 4 × tp 2, ZeRO 3, in 7 groups, made in",
    SERVED: "dp 8 × tp 1, a parameter server, in 2 groups, made in",
}


@pytest.mark.parametrize("plan", [OTHERWISE, HELD, SHARED, SERVED])
@pytest.mark.parametrize(
    ("fault", "check", "rank"),
    [
        ("stuck@2:5", "smoke-hang", 2),
        pytest.param("skip@5:3", "smoke-mismatch", 5, marks=pytest.mark.long),
        pytest.param("mask@6:3", "smoke-mask-divergence", 6, marks=pytest.mark.long),
        pytest.param("grad-bit@3:3", "smoke-corruption", 3, marks=pytest.mark.long),
        pytest.param("param-bit@3:3", "smoke-desync", 3, marks=pytest.mark.long),
    ],
)
def test_in_another_order_of_ranks_with_several_stages_a_rank_or_shards(
    lab: Lab, tmp_path: Path, plan: str, fault: str, check: str, rank: int
) -> None:
    """Stages may be beside each other on one host, and each may be two stages of the model."""
    report = tmp_path / "report.json"
    args = ("smoke", "node[1-2]", "--python", sys.executable, *CUT[:2], "--plan", plan, "--json", str(report))
    done = lab.doctor(*args, "--inject", fault)
    found = json.loads(report.read_bytes())
    named = [(each["check"], each["rank"]) for each in found["findings"] if each["status"] != "unknown"]
    assert (done.returncode, named) == (1, [(check, rank)]), done.stdout
    done = lab.doctor(*args)
    found = json.loads(report.read_bytes())
    assert (done.returncode, found["findings"]) == (0, []), done.stdout
    assert SAID[plan] in " ".join(done.stdout.split())


def test_a_message_with_another_tag_is_laid_to_the_sender_that_has_gone_on(lab: Lab, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    args = ("smoke", "node[1-2]", "--python", sys.executable, *CUT[:2], "--plan", HELD, "--json", str(report))
    done = lab.doctor(*args, "--inject", "tag@2:5")
    found = json.loads(report.read_bytes())
    named = [(each["check"], each["rank"]) for each in found["findings"] if each["status"] != "unknown"]
    assert (done.returncode, named) == (1, [("smoke-mismatch", 2)]), done.stdout
    assert "with a wrong peer or tag" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("fault", "check", "rank"),
    [
        ("skip@5/ep", "smoke-mismatch", 5),
        ("shape@3/ep", "smoke-mismatch", 3),
        ("wrong-result@6/cp", "smoke-collective-wrong", 6),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in (
                ("stuck@1/cp", "smoke-hang", 1),
                ("wrong-result@2/ep", "smoke-collective-wrong", 2),
                ("dtype@4/cp", "smoke-mismatch", 4),
                ("op@2/ep", "smoke-mismatch", 2),
            )
        ),
    ],
)
def test_a_rank_that_sends_other_counts_to_experts_or_breaks_a_ring_is_named(
    lab: Lab, tmp_path: Path, fault: str, check: str, rank: int
) -> None:
    report = tmp_path / "report.json"
    args = ("smoke", "node[1-2]", "--python", sys.executable, *CUT[:2], "--plan", "cp=2,ep=2,tp=2")
    done = lab.doctor(*args, "--inject", fault, "--json", str(report))
    found = json.loads(report.read_bytes())
    named = [(each["check"], each["rank"]) for each in found["findings"] if each["status"] == "fail"]
    assert (done.returncode, named) == (1, [(check, rank)]), done.stdout


def test_a_plan_that_does_not_divide_the_ranks_is_refused_and_nothing_starts(lab: Lab) -> None:
    done = lab.doctor("smoke", "node[1-2]", "--ranks-per-host", "4", "--plan", "pp=3,tp=2")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--plan pp=3: 8 ranks cannot be divided so." in done.stderr
    assert "What fits: pp=1, 2, 4." in done.stderr
