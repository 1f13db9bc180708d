"""The job of another user: a rank that has ended, is stopped or stuck is a suspect, none is ever accused."""

import pytest
from msgspec.structs import replace

from doctor.hang.advice import advice_of
from doctor.hang.judge import judge
from doctor.live.evidence import LiveEvidence
from tests.support.cases import cases
from tests.support.hang.written import changed, evidence, seen_from_outside

HERE = ("node1",)


@cases
@pytest.mark.parametrize("loose", [True, False])
def test_the_one_that_differs_is_a_suspect(does: tuple[str, ...], odd: int, cause: str, loose: bool) -> None:
    found = judge(seen_from_outside(evidence(does, HERE), loose=loose))
    assert [(each.pid, each.cause.value) for each in found.suspects] == [(odd, cause)]
    assert (found.culprits, found.exit_code, found.confidence.value) == ((), 3, "suspect")
    assert found.sentence.startswith("Only alice and root may look into this job: that one")
    assert advice_of(found).commands == ("doctor hang node1 --pid 4000 --sudo",), (
        "no signal to a job of others"
    )


@cases
def test_nobody_is_suspect_while_all_run(does: tuple[str, ...]) -> None:
    found = judge(seen_from_outside(evidence(does, HERE)))
    assert (found.named, found.exit_code, found.stands.still) == ((), 3, 200.0)


def test_connections_of_others_and_those_that_were_just_used_tell_nothing() -> None:
    for silent, user in ((0.1, "alice"), (200.0, "bob")):
        found = judge(seen_from_outside(evidence(["waits"] * 3, HERE, silent=silent), user=user))
        assert (found.verdict.value, found.stands.still) == ("unknown", None)


def test_a_short_silence_may_be_normal() -> None:
    found = judge(seen_from_outside(evidence(["waits"] * 3, HERE, silent=20.0)))
    assert (found.verdict.value, found.exit_code) == ("waits", 0)


def nameless(seen: LiveEvidence) -> LiveEvidence:
    """The job as it looks if no launcher names it."""
    return changed(seen, lambda m: replace(m, job=f"started by process 1 on {m.host}"))


def test_hosts_that_exchange_data_as_their_user_have_one_job() -> None:
    seen = nameless(seen_from_outside(evidence(["waits"] * 3 + ["stopped"], ("node1", "node2"))))
    found = judge(seen)
    assert found.job is not None
    assert (found.job.hosts, len(found.job.ranks)) == (("node1", "node2"), 4)
    assert [each.pid for each in found.suspects] == [4030]


def test_where_nothing_tells_it_is_said() -> None:
    seen = nameless(seen_from_outside(evidence(["waits"] * 4, ("node1", "node2")), loose=False))
    found = judge(seen)
    assert (found.verdict.value, len(found.jobs), found.exit_code) == ("several jobs", 2, 3)
    two = replace(seen.hosts[0].members[0], job="started by process 2 on node1", pid=9)
    first = replace(seen.hosts[0], members=(*seen.hosts[0].members, two))
    joined = seen_from_outside(evidence(["waits"] * 4, ("node1", "node2"))).hosts
    known = (replace(first, loose=joined[0].loose), replace(seen.hosts[1], loose=joined[1].loose))
    assert len(judge(replace(seen, hosts=known)).jobs) == 3, "which of the two on node1 is not known"
