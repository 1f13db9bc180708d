"""The judgement of every recorded trial, compared with the guilty rank: with all rights, fewer, or none."""

import pytest

from doctor.hang.judge import judge
from doctor.hang.judge.judgement import Cause, HangConfidence, HangState, Judgement
from tests.support.cases import from_cases
from tests.support.each import each
from tests.support.hang.trials import Trial, of_another_user, over_two_hosts, trials, without_stacks

LIMIT = 1.0
"""Seconds: the recorded jobs were looked at three seconds after they had come to rest."""

CAUSES = from_cases(__file__, "CAUSES", dict[str, tuple[Cause, str]])
CERTAIN = {"lock", "fifo", "loader", "dstate", "stop", "store"}
BY_STATE = {"dstate", "stop", "store"}
CRASHED = {"kill", "extra"}
MISMATCH = {"skip", "order"}


def crashed(trial: Trial) -> bool:
    return trial.fault in CRASHED or (trial.fault, trial.mode) == ("skip", "ddp")


def ids(trial: Trial) -> str:
    return f"{trial.mode}-{trial.fault}-{trial.victim[0]}"


def named(judgement: Judgement) -> tuple[int | None, ...]:
    return tuple(each.rank for each in judgement.named)


def nobody(judgement: Judgement) -> bool:
    return not judgement.named and judgement.exit_code in (0, 3)


def of_faults(*faults: str) -> list[Trial]:
    return [trial for trial in trials() if trial.fault in faults and not crashed(trial)]


@pytest.mark.parametrize("trial", of_faults(*CAUSES), ids=ids)
class TestACulprit:
    def test_with_stacks(self, trial: Trial) -> None:
        cause, place = CAUSES[trial.fault]
        found = judge(trial.evidence, limit=LIMIT)
        assert (found.verdict, found.exit_code) == (HangState.HANG, 1)
        assert [(each.rank, each.cause, each.place) for each in found.culprits] == [
            (trial.victim[0], cause, place)
        ]
        assert found.confidence is (
            HangConfidence.CERTAIN if trial.fault in CERTAIN else HangConfidence.STRONG
        )
        assert sum(group.number for group in found.stands.groups) == 3
        assert not found.suspects

    def test_without_py_spy(self, trial: Trial) -> None:
        found = judge(without_stacks(trial.evidence), limit=LIMIT)
        assert (named(found), found.exit_code) == (trial.victim, 1)
        assert found.confidence is (
            HangConfidence.CERTAIN if trial.fault in BY_STATE else HangConfidence.SUSPECT
        )

    def test_of_another_user(self, trial: Trial) -> None:
        """States suffice for ranks that cannot go on; other named ranks are not accused."""
        found = judge(of_another_user(trial.evidence), limit=LIMIT)
        if trial.fault in BY_STATE:
            assert (named(found), found.exit_code) == (trial.victim, 1)
        else:
            assert found.exit_code == 3
            assert not found.culprits
            assert not found.suspects or trial.victim[0] in named(found)

    def test_below_the_limit_only_who_cannot_go_on_is_accused(self, trial: Trial) -> None:
        found = judge(trial.evidence)
        assert named(found) == trial.victim
        if trial.fault in BY_STATE:
            assert found.exit_code == 1
        else:
            assert (found.verdict, found.exit_code, found.culprits) == (HangState.WAITS, 0, ())


@pytest.mark.parametrize("trial", of_faults("spin"), ids=ids)
def test_an_endless_loop_is_named_and_not_accused(trial: Trial) -> None:
    """It looks like long work."""
    found = judge(trial.evidence, limit=LIMIT)
    assert (found.verdict, found.exit_code, found.culprits) == (HangState.UNKNOWN, 3, ())
    assert [(each.rank, each.cause, each.place) for each in found.named] == [
        (trial.victim[0], Cause.COMPUTES, "train.py:60")
    ]
    bare = judge(without_stacks(trial.evidence), limit=LIMIT)
    assert (named(bare), bare.exit_code) == (trial.victim, 3)
    assert judge(of_another_user(trial.evidence), limit=LIMIT).exit_code == 3
    assert judge(trial.evidence).exit_code == 0


@pytest.mark.parametrize("trial", of_faults(*MISMATCH), ids=ids)
@pytest.mark.parametrize(
    "rights", [lambda e: e, without_stacks, of_another_user], ids=["all", "bare", "other"]
)
def test_a_mismatch_is_put_on_nobody(trial: Trial, rights: object) -> None:
    found = judge(rights(trial.evidence), limit=LIMIT)  # type: ignore[operator]
    assert found.exit_code == 3
    assert not found.culprits
    assert trial.victim[0] in named(found)
    assert len(found.named) < 4
    if rights is not of_another_user:
        assert found.verdict is HangState.HANG
        assert len(found.named) > 1
        assert found.confidence is HangConfidence.UNDECIDED


@pytest.mark.parametrize("trial", of_faults("netdrop"), ids=ids)
@pytest.mark.parametrize(
    "rights", [lambda e: e, without_stacks, of_another_user], ids=["all", "bare", "other"]
)
def test_a_cut_connection_names_its_two_ends(trial: Trial, rights: object) -> None:
    found = judge(rights(trial.evidence), limit=LIMIT)  # type: ignore[operator]
    if found.verdict is HangState.MOVES:  # these two do not exchange data in that job
        assert trial.victim == (1, 3)
        return
    assert (named(found), found.exit_code) == (trial.victim, 1)
    assert {each.cause for each in found.culprits} == {Cause.LINK}


@pytest.mark.parametrize("trial", of_faults("none", "slow"), ids=ids)
@pytest.mark.parametrize(
    "rights", [lambda e: e, without_stacks, of_another_user], ids=["all", "bare", "other"]
)
@pytest.mark.parametrize("limit", [LIMIT, 60.0])
def test_a_healthy_or_slow_job_accuses_nobody(trial: Trial, rights: object, limit: float) -> None:
    found = judge(rights(trial.evidence), limit=limit)  # type: ignore[operator]
    assert (found.verdict, found.exit_code, found.named) == (HangState.MOVES, 0, ())


@pytest.mark.parametrize("trial", of_faults("ckpt"), ids=ids)
def test_a_checkpoint_is_work(trial: Trial) -> None:
    found = judge(trial.evidence, limit=LIMIT)
    assert (found.verdict, found.exit_code, named(found)) == (HangState.WAITS, 0, (0,))
    assert found.named[0].sentence.startswith("writes a checkpoint: ")
    assert judge(without_stacks(trial.evidence), limit=LIMIT).exit_code == 0
    other = judge(of_another_user(trial.evidence), limit=LIMIT)
    assert (other.exit_code, other.culprits) == (3, ())


@pytest.mark.parametrize("trial", [trial for trial in trials() if crashed(trial)], ids=ids)
def test_a_job_that_is_over_hangs_on_nobody(trial: Trial) -> None:
    found = judge(trial.evidence, limit=LIMIT)
    assert nobody(found)
    assert "has ended" in found.sentence


def test_every_fault_of_the_trials_is_judged_here() -> None:
    known = {*CAUSES, "spin", *CRASHED, *MISMATCH, "netdrop", "none", "slow", "ckpt"}
    assert {trial.fault for trial in trials()} == known
    assert len(trials()) == 56


def test_the_chain_leads_to_the_culprit() -> None:
    trial = next(each for each in trials() if (each.mode, each.fault) == ("tp", "sleep"))
    chain = judge(trial.evidence, limit=LIMIT).stands.chain
    assert [(each.rank, each.on, each.place) for each in chain] == [
        (2, 0, "train.py:183"),
        (0, 1, "train.py:176"),
    ]


@each("trial", trials())
@pytest.mark.parametrize(
    "rights", [lambda e: e, without_stacks, of_another_user], ids=["all", "bare", "other"]
)
def test_two_hosts_without_a_common_clock_say_the_same(trial: Trial, rights: object) -> None:
    seen = rights(trial.evidence)  # type: ignore[operator]
    one, two = judge(seen, limit=LIMIT), judge(over_two_hosts(seen), limit=LIMIT)
    assert (two.verdict, two.exit_code, named(two)) == (one.verdict, one.exit_code, named(one))
    assert [each.cause for each in two.named] == [each.cause for each in one.named]
    assert [each.host for each in two.culprits] == [
        "node2" if (each.rank or 0) > 1 else "node1" for each in one.culprits
    ]
