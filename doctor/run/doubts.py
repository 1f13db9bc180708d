"""Causes that only may be those of the job."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from doctor.logs.explanation import Explanation, Proof, ProofState
from doctor.logs.model import Form
from doctor.model import Confidence
from doctor.run.kernel import pid_of_killed

_DOUBT = "the job does not name the process that the kernel killed, which may be another program's"
_NO_PROOF = "the kernel's log does not say whose process it was"


def with_doubts(explanation: Explanation, maybe: Collection[int]) -> Explanation:
    """The explanation, with a cause only suspected if it rests on a kill of one of these processes: the
    kernel names it, but the job does not.
    """
    found, proofs = explanation.conclusion, list(explanation.proofs)
    charges = list(found.charges)
    for place, charge in enumerate(charges):
        killed = {pid_of_killed(line.text) for line in charge.lines if line.form is Form.KERNEL} - {None}
        if killed and killed <= {*maybe}:
            charges[place] = replace(charge, confidence=Confidence.SUSPECT, how=(_DOUBT,))
            proofs = [
                Proof(place, ProofState.OPEN, _NO_PROOF) if each.charge == place else each for each in proofs
            ]
    conclusion = replace(found, charges=tuple(charges))
    return replace(explanation, conclusion=conclusion, proofs=tuple(proofs))
