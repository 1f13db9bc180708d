"""How far a smoke run is, and which ranks it waits for."""

from dataclasses import replace

from doctor.smoke.events import PhaseEvent, TrainStep
from doctor.smoke.headway import headway, with_those_behind
from doctor.stage import Stage
from tests.unit.smoke.test_watch import entry, everyone, line, show, watch

FOUR = "4 ranks on node[1-2]"


def test_hosts_that_import_torch() -> None:
    watched = watch()
    watched.hosts["node2"].imported_at = None
    stage = headway(watched)
    assert (stage.doing, stage.done, stage.of) == ("starting Python and torch on 1/2 hosts", 1, 2)
    assert stage.waiting == ["node2"]
    assert with_those_behind(stage, watched).limit == watched.patience.imports


def test_a_run_with_mindspore_waits_for_mindspore() -> None:
    watched = watch()
    watched.plan = replace(watched.plan, framework="mindspore")
    watched.hosts["node2"].imported_at = None
    assert headway(watched).doing == "starting Python and MindSpore on 1/2 hosts"


def test_a_rank_that_says_it_trains_before_its_page_does() -> None:
    watched = watch()
    show(watched, 102, everyone(watched, "join", 3))
    for rank in watched.ranks:
        rank.take(PhaseEvent("train"), 102)
    assert headway(watched).doing == f"train 0/30  {FOUR}"


def test_ranks_that_start() -> None:
    assert headway(watch()).doing == f"starting 0/4 ranks  {FOUR}"


def test_the_step_is_that_of_the_last_rank_and_the_loss_that_of_the_first() -> None:
    watched = watch()
    show(
        watched, 102, [*everyone(watched, "train", 12)[:3], line(watched, 3, entry(watched, 3, "train", 11))]
    )
    watched.ranks[0].take(TrainStep(11, 2.314, True, ""), 102)
    stage = headway(watched)
    assert (stage.doing, stage.done, stage.of) == (f"train 11/30  loss 2.31  {FOUR}", 11, 30)
    watched.ranks[0].take(TrainStep(12, None, False, ""), 103)
    assert headway(watched).doing == f"train 11/30  {FOUR}"


def test_it_moves_with_every_page() -> None:
    watched = watch()
    show(watched, 102, everyone(watched, "train", 12))
    before = headway(watched)
    assert headway(watched) == before
    show(watched, 103, everyone(watched, "train", 12, 1))
    assert headway(watched).doing == before.doing
    assert headway(watched) != before


def test_the_rank_that_the_others_wait_for() -> None:
    watched = watch()
    show(
        watched,
        102,
        [*everyone(watched, "train", 12, 1)[:3], line(watched, 3, entry(watched, 3, "train", 12))],
    )
    stage = with_those_behind(headway(watched), watched)
    assert (tuple(stage.waiting), list(stage.ranks), stage.limit) == (("node2",), [3], watched.limit(0))


def test_nobody_is_named_while_all_are_equally_far() -> None:
    watched = watch()
    show(watched, 102, everyone(watched, "train", 12))
    assert with_those_behind(headway(watched), watched).waiting == ()


def test_a_stage_knows_only_what_moves() -> None:
    assert Stage("a", "b", waiting=["x"], limit=1.0) == Stage("a", "b", waiting=["y"], limit=2.0)
    assert Stage("a", "b", moves=1) != Stage("a", "b", moves=2)
