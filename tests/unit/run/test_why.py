"""What is said after the command has ended badly."""

from dataclasses import replace

from doctor.logs.explanation import ProofState, last_words
from doctor.logs.model import LogOutcome
from doctor.model import Confidence
from doctor.run.kernel import with_doubts
from doctor.run.why import _blamed, not_clean
from tests.support.logs.conclusions import explaineds


def test_logs_without_a_complaint_are_not_clean() -> None:
    known = explaineds()
    assert not_clean(known["clean"]).conclusion.outcome is LogOutcome.UNKNOWN
    others = [each for each in known.values() if each.conclusion.outcome is not LogOutcome.CLEAN]
    assert [not_clean(each) for each in others] == others


def test_a_kill_that_may_be_anothers_is_only_suspected() -> None:
    known = explaineds()["oom-proved"]
    found = with_doubts(known, {4711})
    charge, proof = found.conclusion.charges[0], found.proofs[0]
    assert (charge.confidence, proof.proved) == (Confidence.SUSPECT, ProofState.OPEN)
    assert last_words(found).startswith("Suspected: rank 2 on node3")
    assert with_doubts(known, {4712}) == known


def test_a_host_is_blamed_if_its_kernel_proves_it() -> None:
    known = explaineds()["oom-proved"]
    assert _blamed(known) == ("node3",)
    open_proof = tuple(replace(each, proved=ProofState.OPEN) for each in known.proofs)
    assert _blamed(replace(known, proofs=open_proof)) == ()
