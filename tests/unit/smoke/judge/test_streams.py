"""The libraries' random streams: different libraries, additional draws, and harmless differences."""

from typing import Any

import pytest

from doctor.model import Severity
from doctor.smoke.events import BatchHashes
from doctor.smoke.judge.data import judge_data
from doctor.smoke.onhost.streamplan import reference_fingerprint
from doctor.smoke.result import SmokeResult
from tests.support.cases import from_cases
from tests.support.smoke import spoilt
from tests.support.smoke.results import changed, mark, with_batches, with_rank
from tests.support.smoke.spoilt import Spoil, Verdict, batches, both, masked, run_of, started, stray, verdicts

KNOWN = reference_fingerprint()


def gives(name: str, fingerprint: str, *ranks: int, version: str = "") -> Spoil:
    """A stream with other numbers, or one more stream, from another version of its library."""

    def spoil(result: SmokeResult) -> SmokeResult:
        for rank in ranks:
            said = result.ranks[rank].started
            assert said
            versions = {**said.versions, name: version} if version else said.versions
            streams = {**said.streams, name: fingerprint}
            result = with_rank(result, rank, started=changed(said, versions=versions, streams=streams))
        return result

    return spoil


def draw(name: str, *ranks: int, odd: tuple[int, ...] = (), first: int = 0, shared: bool = False) -> Spoil:
    """Draws that plain Python cannot predict: the same within a replica, except for the odd ranks."""

    def spoil(result: SmokeResult) -> SmokeResult:
        for rank in ranks:

            def change(batch: BatchHashes, rank: int = rank) -> Any:
                own = rank if rank in odd and batch.step >= first else f"replica {0 if shared else rank // 2}"
                return changed(batch, streams={**batch.streams, name: mark(name, own, batch.step)})

            result = with_batches(result, rank, change)
        return result

    return spoil


def without(name: str, *ranks: int) -> Spoil:
    """A library that is not installed on some hosts."""

    def spoil(result: SmokeResult) -> SmokeResult:
        for rank in ranks:
            said = result.ranks[rank].started
            assert said
            streams = {other: each for other, each in said.streams.items() if other != name}
            result = with_rank(result, rank, started=changed(said, streams=streams))
            result = with_batches(result, rank, lambda b: changed(b, streams=streams_without(b, name)))
        return result

    return spoil


def streams_without(batch: BatchHashes, name: str) -> dict[str, str]:
    return {other: each for other, each in batch.streams.items() if other != name}


def swapped(rank: int) -> Spoil:
    """The rank draws what the first replica draws."""

    def change(batch: BatchHashes) -> Any:
        return changed(
            batch, streams={**batch.streams, "numpy-pcg64": mark("numpy-pcg64", "replica 0", batch.step)}
        )

    return batches(rank, change)


ALL = (0, 1, 2, 3)
CASES = from_cases(
    __file__, "CASES", dict[str, tuple[Spoil, list[Verdict]]], gives, draw, without, swapped, **vars(spoilt)
)


@pytest.mark.parametrize("name", CASES)
def test_streams_that_differ_are_charged(name: str) -> None:
    spoil, expected = CASES[name]
    charges = judge_data(spoil(run_of("2x2")))
    assert verdicts(charges) == expected
    for charge in charges:
        assert (charge.severity is Severity.WARN) == (charge.kind == "device-product")


def test_data_and_draws_of_different_ranks_are_two_faults() -> None:
    charges = judge_data(both(masked(1), stray(2, "python"))(run_of("2x2")))
    assert {(charge.kind, charge.ranks) for charge in charges} >= {("stream", (2,))}
    assert {charge.ranks for charge in charges} == {(1,), (2,)}
    assert judge_data(both(masked(1), stray(1, "python"))(run_of("2x2")))[0].ranks == (1,)


def test_both_versions_are_named_with_a_way_to_compare() -> None:
    result = run_of("2x2")
    for rank in ALL:
        result = gives("numpy", KNOWN["numpy"], rank, version="2.1.0")(result)
    result = both(gives("numpy", "other", 2, version="1.16.0"), stray(2, "numpy"))(result)
    (charge,) = judge_data(result)
    assert "(numpy 1.16.0, the others have 2.1.0)" in charge.summary
    assert charge.commands[0].startswith("ssh n2 \"/usr/bin/python3 -c 'import numpy")
    assert charge.commands[1].startswith("ssh n1 ")


def test_a_stray_draw_names_the_steps_before_and_after() -> None:
    (charge,) = judge_data(stray(1, "python", first=10)(run_of("2x2")))
    assert charge.summary.endswith("from a step between 3 and 10 on")
    assert charge.step == 10
    (charge,) = judge_data(stray(1, "python", first=1)(run_of("2x2")))
    assert charge.summary.endswith("from step 1 on")


def test_stray_draws_hide_no_later_fault() -> None:
    """They neither hide a later fault nor are hidden by it."""
    spoil = both(stray(1, "python"), started(3, golden=("a", "b", "c")))
    assert [charge.kind for charge in judge_data(spoil(run_of("2x2")))] == ["golden-again", "stream"]
