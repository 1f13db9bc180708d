"""The hosts in a job's plan, as the judge uses them."""

from doctor.job.plan import JobPlan
from doctor.job.plan.job import PlannedHost
from doctor.logs.judge import JobFacts, JobHost, known_of
from doctor.model import Backend, SourcedValue


def planned(name: str, ranks: int | None, data: str | None = None) -> PlannedHost:
    return PlannedHost(
        name,
        f"{name}.example",
        SourcedValue(ranks, "test") if ranks else None,
        SourcedValue(data, "test") if data else None,
    )


def plan(*hosts: PlannedHost) -> JobPlan:
    port = SourcedValue(29500, "default")
    return JobPlan(
        hosts, SourcedValue(Backend.GLOO, "test"), SourcedValue(hosts[0].name, "test"), port, port, {}
    )


def test_hosts_have_all_their_addresses_and_ranks() -> None:
    found = known_of(
        plan(planned("node1", 2, "10.0.0.1"), planned("node2", 2)), addresses={"node2": ["10.0.0.2"]}
    )
    assert found.hosts == (
        JobHost("node1", ("node1.example", "10.0.0.1"), 2),
        JobHost("node2", ("node2.example", "10.0.0.2"), 2),
    )
    assert found.world == 4


def test_a_job_of_unknown_size_has_no_world() -> None:
    assert known_of(plan(planned("node1", 2), planned("node2", None))).world is None


def test_nothing_is_known_without_a_plan() -> None:
    assert known_of() == JobFacts()
