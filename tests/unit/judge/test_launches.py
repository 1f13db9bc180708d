"""What the plan assumes because the launch lacks it, and how that is given."""

import pytest

from doctor.job.launch.process_env import Launch
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.judge.launches import defaults_of
from doctor.model import Host


@pytest.mark.parametrize("live", [False, True])
def test_only_a_launch_that_does_not_run_lacks_something(live: bool) -> None:
    plan = draft([Host("node1", "node1")], JobWishes())
    said = [*defaults_of(Launch("train.sh", (), complete=False, live=live), plan)]
    assert bool(said) is not live
    assert all("--launch live while the job runs" in each for each in said)
