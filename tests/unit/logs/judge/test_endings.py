"""Each root cause with its consequences: the guilty party is named, and no other."""

import random

import pytest

from doctor.logs.judge import JobFacts, JobHost, conclude
from doctor.logs.model import Conclusion, LogOutcome, Role
from doctor.model import UNDECIDED, Confidence
from tests.support.logs.endings import ADDRESS, Ending, endings
from tests.support.logs.written import File, logs, shifted

KNOWN = JobFacts(hosts=tuple(JobHost(name, (address,), 2) for name, address in ADDRESS.items()))
ALL = {each.name: each for each in endings()}


def causes(found: Conclusion) -> set[int | None]:
    return {party.rank for charge in found.charges if charge.because is None for party in charge.who}


def certain(found: Conclusion) -> set[int | None]:
    """The parties that the conclusion accuses with certainty."""
    return {
        party.rank
        for charge in found.charges
        if charge.because is None and charge.confidence is Confidence.CERTAIN
        for party in charge.who
    }


@pytest.mark.parametrize("known", [None, KNOWN], ids=["logs", "plan"])
@pytest.mark.parametrize("ending", ALL.values(), ids=ALL)
def test_the_guilty_is_named(ending: Ending, known: JobFacts | None) -> None:
    if known is None and ending.name == "hccl-heartbeat":
        pytest.skip("without a plan, the device stays a device")
    found = conclude(logs(ending.files), known)
    assert found.outcome is LogOutcome.NAMED
    first = found.charges[0]
    assert first.symptom == ending.symptom
    assert {party.rank for party in first.who if party.rank is not None} == ending.who
    assert causes(found) - {None} <= ending.who
    assert first.because is None
    assert all(each.because == 0 for each in found.charges[1:])
    assert (UNDECIDED in first.says) is not ending.decided
    assert first.says[0] not in " ;:"
    assert ". " not in first.says


def broken(ending: Ending) -> list[tuple[str, list[File]]]:
    files = list(ending.files)
    some = [("whole", files)]
    some += [(f"without {file.name}", [each for each in files if each is not file]) for file in files]
    some += [
        (f"{host} {seconds}", shifted(files, host, seconds))
        for host in ADDRESS
        for seconds in (-900, -90, 90, 900)
    ]
    return some


@pytest.mark.parametrize("ending", ALL.values(), ids=ALL)
def test_no_innocent_is_certain(ending: Ending) -> None:
    for what, files in broken(ending):
        found = conclude(logs(files), KNOWN)
        assert certain(found) - {None} <= ending.who | ending.may, what
        strong = {
            party.rank
            for charge in found.charges[:1]
            if charge.because is None and charge.role is Role.ROOT and charge.confidence is Confidence.STRONG
            for party in charge.who
        }
        assert strong - {None} <= ending.who | ending.may, what


@pytest.mark.parametrize("ending", ALL.values(), ids=ALL)
def test_the_order_of_the_files_means_nothing(ending: Ending) -> None:
    draw = random.Random(ending.name)
    expected = conclude(logs(ending.files), KNOWN)
    for _ in range(5):
        files = list(ending.files)
        draw.shuffle(files)
        found = conclude(logs(files), KNOWN)
        assert (found.charges, found.story, found.open) == (expected.charges, expected.story, expected.open)
