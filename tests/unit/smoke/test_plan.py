"""Which hosts take part in a smoke run, and how its ranks are grouped."""

from dataclasses import replace

import pytest

from checks.layout import not_rehearsed
from doctor.devices import AMD
from doctor.errors import UsageError
from doctor.job.parallel import read_layout
from doctor.job.plan import HostView, JobPlan, PlannedHost, draft, settle
from doctor.job.wishes import JobWishes
from doctor.model import Backend, Host, SourcedValue
from doctor.smoke.limits import WHOLE, whole_limit
from doctor.smoke.plan import SmokeWishes, check_wishes, plan_smoke, refuse_plan
from tests.support.cases import cases


def job(ranks: dict[str, int], backend: Backend = Backend.GLOO, head: str = "") -> JobPlan:
    hosts = tuple(
        PlannedHost(name, name, SourcedValue(count, "test"), SourcedValue(f"192.0.2.{number}", "test"))
        for number, (name, count) in enumerate(ranks.items(), 1)
    )
    return JobPlan(
        hosts=hosts,
        backend=SourcedValue(backend, "test"),
        head=SourcedValue(head or hosts[0].name, "test"),
        master_port=SourcedValue(29500, "default"),
        hccl_base_port=SourcedValue(60000, "default"),
        env={},
    )


def hosts(number: int, ranks: int) -> dict[str, int]:
    return {f"node{n}": ranks for n in range(1, number + 1)}


@cases
def test_the_layout(each: list[int], wished: int | None, tp: int, dp: int) -> None:
    ranks = {f"node{number}": count for number, count in enumerate(each, 1)}
    plan = plan_smoke(job(ranks), list(ranks), SmokeWishes(tp=wished))
    assert (plan.tp, plan.shape(0).dp) == (tp, dp)
    assert len(plan.cells) == 1
    for seat in plan.seats:
        group = plan.shape(0).members("tp", seat.place)
        assert {plan.seats[place].host for place in group} == {seat.host}, "tensor parallel inside a host"


@cases
def test_the_layout_of_the_job(
    number: int, each: int, plan: str, tp: int, formed: dict[str, int], left: list[str]
) -> None:
    """Its groups are formed where the cells can be divided so; what is left is said."""
    ranks, layout = hosts(number, each), read_layout([plan])
    asked = replace(job(ranks), layout=SourcedValue(layout, "--plan"))
    seen = plan_smoke(asked, list(ranks), SmokeWishes())
    assert (seen.tp, dict(seen.layout)) == (tp, formed)
    assert list(not_rehearsed(layout, {**seen.layout, "tp": seen.tp})) == left
    for number in range(len(seen.cells)):
        shape = seen.shape(number)
        assert shape.world % (shape.tp * shape.cp * shape.pp) == 0


def given(plan: str, source: str = "--plan", *, known: bool = True) -> JobPlan:
    """A job of eight ranks on two hosts with this plan; `known`: whether they are known to be so many."""
    asked = replace(job(hosts(2, 4)), layout=SourcedValue(read_layout([plan]), source))
    return asked if known else replace(asked, hosts=tuple(replace(h, ranks=None) for h in asked.hosts))


@cases
def test_a_plan_that_the_ranks_cannot_be_divided_by_is_refused(plan: str, words: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        refuse_plan(given(plan))
    assert (refused.value.message, refused.value.hint) == (words, hint)


@cases
def test_a_plan_that_fits_or_that_nobody_typed_is_not_refused(plan: str, source: str, known: bool) -> None:
    refuse_plan(given(plan, source, known=known))


@cases
def test_the_order_of_ranks_decides_the_groups(order: str, groups: dict[str, list[int]]) -> None:
    """Of the eight ranks of pp 2, dp 2 and tp 2, the fifth is in these."""
    shape = plan_smoke(given(f"pp=2,dp=2,tp=2,order={order}"), ["node1", "node2"], SmokeWishes()).shape(0)
    assert {name: shape.members(name, 4) for name in groups} == groups
    for name in shape.groups:
        every = [tuple(shape.members(name, rank)) for rank in range(8)]
        assert all(rank in members for rank, members in enumerate(every))
        assert all(every[other] == members for members in every for other in members), "one group, one answer"
    replicas = [shape.replica(dp) for dp in range(shape.dp)]
    assert sorted(place for each in replicas for place in each) == [*range(8)]
    assert sorted(map(shape.part_of, replicas[0])) == [*range(shape.parts)]


def test_a_fault_of_a_group_needs_that_group() -> None:
    cut, fault = given("pp=2,dp=2,tp=2"), SmokeWishes(inject=("skip@5:3/pair",))
    assert plan_smoke(cut, ["node1", "node2"], fault).injected[0].group == "pair"
    with pytest.raises(UsageError, match="changes no call of a group 'pair' here") as refused:
        plan_smoke(given("dp=4,tp=2"), ["node1", "node2"], fault)
    assert refused.value.hint == "groups: tp, dp"


def test_a_slow_rank_shows_only_among_several_of_its_stage() -> None:
    layout, slow = SourcedValue(read_layout(["pp=2,tp=2"]), "--plan"), SmokeWishes(inject=("slow@1",))
    few, enough = hosts(2, 2), hosts(2, 4)
    with pytest.raises(UsageError) as refused:
        plan_smoke(replace(job(few), layout=layout), list(few), slow)
    assert refused.value.hint == "it needs 4 ranks of one stage; this run has fewer"
    assert plan_smoke(replace(job(enough), layout=layout), list(enough), slow).injected[0].rank == 1


@cases
def test_the_cells(number: int, each: int, cells: list[int]) -> None:
    ranks = hosts(number, each)
    plan = plan_smoke(job(ranks), list(ranks), SmokeWishes())
    assert [len({plan.seats[rank].host for rank in cell}) for cell in plan.cells] == cells
    assert [rank for cell in plan.cells for rank in cell] == list(range(sum(ranks.values())))
    for number, cell in enumerate(plan.cells):
        assert [plan.seats[rank].place for rank in cell] == list(range(len(cell)))
        assert plan.shape(number).world == len(cell) == sum(plan.shape(number).hosts)


@cases
def test_the_cells_of_a_job_that_is_cut_hold_its_own_pipelines_and_rings(
    number: int, each: int, plan: str, cells: list[list[int]]
) -> None:
    """A cell has the same hosts side by side as the job, and replicas on several of them."""
    ranks = hosts(number, each)
    asked = replace(job(ranks), layout=SourcedValue(read_layout([plan]), "--plan"))
    seen = plan_smoke(asked, list(ranks), SmokeWishes())
    names = [list(dict.fromkeys(seen.seats[rank].host for rank in cell)) for cell in seen.cells]
    assert names == [[f"node{host}" for host in cell] for cell in cells]
    assert [seat.rank for seat in seen.seats] == [*range(number * each)], "the numbers are those of the job"
    whole = plan_smoke(asked, list(ranks), SmokeWishes(accept=True)).shape(0)
    for rank, seat in enumerate(seen.seats):
        of_cell = seen.cells[seat.cell]
        for group in ("pp", "cp"):
            members = seen.shape(seat.cell).members(group, seat.place)
            assert [of_cell[place] for place in members] == whole.members(group, rank)


def test_only_named_hosts_take_part_in_the_order_of_the_job() -> None:
    plan = plan_smoke(job(hosts(4, 2), head="node1"), ["node4", "node2"], SmokeWishes())
    assert plan.hosts == ("node2", "node4")
    assert plan.head == "node2", "the job's head was left out"
    assert [seat.host for seat in plan.seats] == ["node2", "node2", "node4", "node4"]
    assert plan.addresses == {"node2": "192.0.2.2", "node4": "192.0.2.4"}


def test_ranks_have_devices_where_there_are_any() -> None:
    gloo = plan_smoke(job(hosts(2, 2)), ["node1", "node2"], SmokeWishes())
    hccl = plan_smoke(job(hosts(2, 2), Backend.HCCL), ["node1", "node2"], SmokeWishes())
    assert {seat.device for seat in gloo.seats} == {None}
    assert [seat.device for seat in hccl.seats] == [0, 1, 0, 1]


def test_the_error_for_a_group_that_does_not_fit_names_its_host() -> None:
    with pytest.raises(UsageError, match="the 3 ranks of b cannot be split into groups of 2"):
        plan_smoke(job({"a": 2, "b": 3}), ["a", "b"], SmokeWishes(tp=2))


@cases
def test_invalid_wishes_are_refused(wishes: SmokeWishes) -> None:
    with pytest.raises(UsageError):
        check_wishes(wishes)


def test_on_amd_gpus_each_device_has_a_rank_over_rccl() -> None:
    """torch calls it nccl; a rank sees the devices that the job's own variables leave, counted from 0."""
    sights = {name: HostView(devices={AMD: 8}) for name in ("node1", "node2")}
    wishes = JobWishes(env={"HIP_VISIBLE_DEVICES": "4,5,6,7"})
    plan = plan_smoke(
        settle(draft([Host(name, name) for name in sights], wishes), sights), list(sights), SmokeWishes()
    )
    assert plan.backend == "nccl"
    assert [(seat.host, seat.device) for seat in plan.seats] == [
        (host, device) for host in sights for device in range(4)
    ]


@pytest.mark.parametrize(("number", "most", "pairs", "longer"), [
    (8, None, 0, 1), (8, 2, 1, 4), (8, 3, 1, 4), (8, 4, 2, 2), (7, 4, 2, 2), (8, 8, 0, 1), (9, 8, 0, 1),
    (64, 4, 2, 16), (2, 2, 0, 1), (1, 2, 0, 1),
])  # fmt: skip
def test_few_hosts_at_once_take_longer(number: int, most: int | None, pairs: int, longer: int) -> None:
    """Bounds that all hosts of a round keep are none; a run may last as long as its schedule is."""
    names = hosts(number, 2)
    plan = plan_smoke(job(names), list(names), SmokeWishes(accept=True, hosts_at_once=most))
    assert (plan.pairs_at_once, plan.shape(0).pairs_at_once) == (pairs, pairs)
    assert whole_limit(plan) == longer * WHOLE["gloo"]
