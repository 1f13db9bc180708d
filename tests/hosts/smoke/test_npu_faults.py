"""Injected faults over an emulated HCCL. No real NPU is involved."""

from collections.abc import Iterator

import pytest

from doctor.smoke.limits import PATIENCE
from tests.lab import Lab, missing
from tests.lab.npus import fit_npus
from tests.trials.kinds import INSIDE
from tests.trials.run import Field, trial

FIRST_TIME = PATIENCE["hccl"].first
"""Seconds before a rank that never joins counts as hanging."""
SHOWN = [kind for kind in INSIDE if kind != "slow"]
"""A device's time is wall-clock time, so that of a stand-in depends on the other users of the processors."""


@pytest.fixture(scope="module", params=["atlas-training", "atlas-a2"])
def field(request: pytest.FixtureRequest) -> Iterator[Field]:
    """Atlas training: one server, whose eight NPUs sum gradients in the world group. The other products:
    three servers.
    """
    if reason := missing():
        pytest.skip(reason)
    alone = request.param == "atlas-training"
    with Lab(1 if alone else 3, data=True) as lab:
        python = fit_npus(lab, request.param).fit_torch_npu()
        yield Field(lab, ranks=8 if alone else 2, steps=12, python=python, limit=FIRST_TIME + 120)


@pytest.mark.long
@pytest.mark.parametrize("kind", SHOWN)
def test_a_fault_on_purpose_is_found_on_its_rank(kind: str, field: Field) -> None:
    outcome = trial(field, INSIDE[kind], 0)
    assert outcome.right, (outcome.place, outcome.said)
