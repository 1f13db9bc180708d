"""What the plan assumes because the launch lacks it, and how that is given."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from doctor.facts.software import ENVIRONMENT, Environment
from doctor.job.launch.process_env import Launch
from doctor.job.launch.rank_env import launcher
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.judge.engine import Facts
from doctor.judge.launches import defaults_of, launches_of
from doctor.model import Host, MissingFact
from tests.support.launches import a_plan, judged, read
from tests.support.recordings import heard


@pytest.mark.parametrize("live", [False, True])
def test_only_a_launch_that_does_not_run_lacks_something(live: bool) -> None:
    plan = draft([Host("node1", "node1")], JobWishes())
    said = [*defaults_of(Launch("train.sh", (), complete=False, live=live), plan)]
    assert bool(said) is not live
    assert all("--launch live while the job runs" in each for each in said)


C10D = {"PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": "node1:29400"}


@pytest.mark.parametrize(
    ("line", "logins", "backend", "found"),
    [
        ("torchrun --nnodes=2", [C10D, C10D], "c10d", []),
        ("torchrun --nnodes=2 --master_addr=node1", [C10D, {}], None, ["launch-hosts"]),
        (
            "torchrun --nnodes=2 --rdzv_backend=static --master_addr=node1",
            [C10D, C10D],
            "static",
            ["launch-hosts"],
        ),
        ("torchrun --master_addr=node1", [{"PET_NNODES": "2"}] * 2, None, ["launch-hosts"]),
        (
            "torchrun --master_addr=node1",
            [{"PET_NNODES": "2", "PET_NODE_RANK": "0"}, {"PET_NNODES": "2", "PET_NODE_RANK": "1"}],
            None,
            [],
        ),
    ],
)
def test_torchrun_takes_what_all_logins_set_alike(
    line: str, logins: list[dict[str, str]], backend: str | None, found: list[str], tmp_path: Path
) -> None:
    names = ["node1", "node2"]
    known: dict[tuple[str, str], Any] = {
        (name, ENVIRONMENT.name): Environment(own) for name, own in zip(names, logins, strict=True)
    }
    reading = SimpleNamespace(
        plan=a_plan(),
        facts=Facts({name: heard(n, names) for n, name in enumerate(names, 1)}, known),
        running=(),
        recording=SimpleNamespace(
            wishes=JobWishes(launch=read(tmp_path, f"{line} --nproc_per_node=8 train.py\n"))
        ),
    )
    launches = launches_of(cast(Any, reading), MissingFact("table", "none"))
    assert not isinstance(launches, MissingFact)
    agent = launcher(launches[0].told[0])
    assert agent
    assert agent.given("rdzv_backend") == backend
    facts = {ENVIRONMENT.name: {name: own for (name, _), own in known.items()}}
    told = {check: judged(check, launches, facts=facts)[0] for check in ("launch-hosts", "master-not-here")}
    assert [check for check, problems in told.items() if problems] == found
