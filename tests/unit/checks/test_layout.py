"""plan-invalid: each rule with its exact numbers and words, and similar plans that are valid."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from checks.layout import CONVERTED
from doctor.api import ASCEND, Backend, Confidence, Problem, Severity, Skip, Undecided
from doctor.facts.smoke import JudgedRun, SmokeRounds
from doctor.facts.system import Devices, FoundDevices
from doctor.job.hccl import REDUCED
from doctor.job.parallel import DTYPES, read_layout
from doctor.job.plan import JobPlan, draft
from doctor.job.wishes import JobWishes
from doctor.judge.registry import find_checks
from doctor.model import Host, SourcedValue, Status
from tests.support import recordings
from tests.support.cases import cases, from_cases
from tests.support.smoke.results import healthy
from tests.support.smoke.results import plan_of as smoke_plan

(CHECK,) = (check for check in find_checks().checks if check.id == "plan-invalid")
FAIL, WARN = Severity.FAIL, Severity.WARN


def plan_of(said: str, ranks: Mapping[str, int], backend: Backend, source: str = "devices found") -> JobPlan:
    """The settled plan of a job with this many ranks on each host."""
    plan = draft([Host(name, name) for name in ranks], JobWishes())
    hosts = tuple(replace(host, ranks=SourcedValue(ranks[host.name], source)) for host in plan.hosts)
    layout = SourcedValue(read_layout([said]), "--plan") if said else None
    return replace(plan, hosts=hosts, backend=SourcedValue(backend, "devices found"), layout=layout)


def devices(product: str, ranks: Mapping[str, int], on_bus: int = 0) -> dict[str, Devices]:
    return {
        host: Devices({ASCEND.name: FoundDevices(tuple(range(n)), on_bus or n)}, product)
        for host, n in ranks.items()
    }


def judged(
    said: str, *ranks: int, product: str = "atlas-a2", backend: Backend = Backend.HCCL, on_bus: int = 0
) -> list[Problem]:
    """The problems; undecided layouts have their own tests."""
    hosts = {f"node{number}": count for number, count in enumerate(ranks or (8,), 1)}
    seen = devices(product, hosts, on_bus) if product else {}
    problems: list[Problem] = []
    try:
        problems.extend(CHECK.run(plan_of(said, hosts, backend), seen))
    except Undecided as undecided:
        if not str(undecided).startswith("not judged: "):
            raise
    return problems


def quotes(problem: Problem) -> list[str]:
    """The quotes of the evidence, except the plan itself, which always comes last."""
    assert problem.evidence[-1].source == "--plan"
    return [f"{quote.source}: {quote.text}" for quote in problem.evidence[:-1]]


def only(problems: list[Problem], severity: Severity = FAIL, where: tuple[str, ...] = ()) -> Problem:
    (problem,) = problems
    assert (problem.severity or CHECK.severity) is severity
    assert problem.hosts == (), "a wrong plan is nobody's host"
    assert tuple(place.host for place in problem.where) == where
    return problem


def test_no_plan_was_given() -> None:
    with pytest.raises(Skip, match="no parallel plan was given"):
        judged("")


@cases
def test_factors_whose_product_is_not_the_number_of_devices(
    said: str, ranks: tuple[int, ...], expected: str, actual: str
) -> None:
    problem = only(judged(said, *ranks))
    assert problem.summary == "the parallel plan does not make the number of devices"
    assert (problem.expected, problem.actual) == (expected, actual)
    assert problem.confidence is Confidence.CERTAIN
    assert problem.evidence[-1].text == said


@cases
def test_factors_that_fit(said: str, ranks: tuple[int, ...]) -> None:
    assert judged(said, *ranks) == []


@cases
def test_torch_refuses_a_mesh_that_is_too_large(said: str, words: list[str]) -> None:
    assert quotes(only(judged(said, 8))) == words


def test_default_ranks_of_cpus_are_a_guess() -> None:
    plan = plan_of("dp=8,tp=2", {"a": 2, "b": 2}, Backend.GLOO, "default")
    problem = only(list(CHECK.run(plan, {})), WARN)
    assert problem.actual == "dp 8 · tp 2 = 16; 4 ranks by default"
    assert problem.confidence is Confidence.SUSPECT
    fitting = plan_of("dp=2,tp=2", {"a": 2, "b": 2}, Backend.GLOO, "default")
    with pytest.raises(Undecided, match="dp, tp: how many ranks the job has is only a default"):
        list(CHECK.run(fitting, {}))


def test_an_accelerator_host_without_known_devices_decides_nothing() -> None:
    """The other rules are judged first."""
    plan = plan_of("dp=8,tp=2,parallel_mode=semi_paralel", {"a": 8, "b": 2}, Backend.HCCL)
    silent = replace(plan.hosts[1], ranks=SourcedValue(2, "default"))
    problems = CHECK.run(replace(plan, hosts=(plan.hosts[0], silent)), {})
    assert next(problems).summary == "MindSpore does not know this parallel mode"
    with pytest.raises(Undecided, match="how many ranks the job has is not known"):
        next(problems)


@cases
def test_a_parallel_mode_that_mindspore_does_not_know(said: str, expected: str) -> None:
    problem = only(judged(f"mode=pynative,parallel_mode={said}"))
    mode = expected.partition(" ")[0]
    command = f"# in the training script: mindspore.set_auto_parallel_context(parallel_mode='{mode}')"
    assert problem.commands == (() if mode == "one" else (command,))
    assert problem.summary == "MindSpore does not know this parallel mode"
    assert (problem.expected, problem.actual) == (expected, said)
    assert quotes(problem) == [
        f"MindSpore: ValueError: Parallel mode does not support {said}",
        "MindSpore: ValueError: The context configuration parameter 'parallel_mode' only support "
        "'stand_alone', 'data_parallel', 'hybrid_parallel', 'semi_auto_parallel' and 'auto_parallel', "
        f"but got the value : {said}.",
    ]


@cases
def test_parallel_modes_of_mindspore(said: str) -> None:
    assert judged(f"mode=graph,parallel_mode={said}") == []


def test_a_mode_that_only_auto_parallel_has() -> None:
    problem = only(judged("parallel_mode=semi_auto"), WARN)
    assert problem.expected == "semi_auto_parallel for set_auto_parallel_context"
    assert problem.actual == "semi_auto"


@cases
def test_pynative_mode_cannot_run_it(said: str, mode: str, severity: Severity, how: str) -> None:
    problem = only(judged(f"mode=pynative,parallel_mode={said}"), severity)
    assert problem.summary == f"PyNative mode runs this parallel mode {how}"
    assert problem.expected == "mode=graph (GRAPH_MODE), or parallel_mode=data_parallel"
    assert problem.actual == f"{mode} in PyNative mode"
    assert problem.commands == ("# in the training script: mindspore.set_context(mode=mindspore.GRAPH_MODE)",)
    assert quotes(problem) == [
        f"MindSpore: PyNative Only support STAND_ALONE and DATA_PARALLEL, but got:{mode}",
        "MindSpore: ValueError: Pynative only supports STAND_ALONE, DATA_PARALLEL and AUTO_PARALLEL using "
        f"sharding_propagation under shard function for ParallelMode, but got {mode.upper()}.",
    ]


def test_pynative_mode_runs_data_parallel() -> None:
    assert judged("mode=pynative,parallel_mode=data_parallel") == []


@pytest.mark.parametrize(("ranks", "count"), [((8,), 1), ((1,), 0)])
def test_stand_alone_on_several_devices(ranks: tuple[int, ...], count: int) -> None:
    problems = judged("parallel_mode=stand_alone", *ranks)
    assert [(p.severity, p.actual) for p in problems] == [(WARN, "stand_alone on 8 devices")] * count


NO_POWER = "a strategy splits a dimension into parts whose number is not a power of 2"
TOO_LARGE = "a strategy needs more devices than there are"
ODD = "The strategy is ((6, 4), (4, 6)), the value of strategy must be the power of 2, but get 6"
UNEVEN = from_cases(__file__, "UNEVEN", str)


def test_a_strategy_that_is_too_large_and_not_a_power_of_2() -> None:
    odd, uneven = judged("strategy=((6,4),(4,6))", 8)
    assert odd.summary == NO_POWER
    assert (odd.expected, odd.actual) == ("powers of 2, since 8 devices are one too", "6")
    assert quotes(odd) == [f"MindSpore: {ODD}"]
    assert uneven.summary == TOO_LARGE
    assert (uneven.expected, uneven.actual) == (
        "a product that divides the 8 devices of the job",
        "6 x 4 = 24",
    )
    assert quotes(uneven) == [f"MindSpore: {UNEVEN}"]


@cases
def test_strategies_that_do_not_fit(said: str, ranks: tuple[int, ...], summary: str, actual: str) -> None:
    assert (summary, actual) in [(p.summary, p.actual) for p in judged(said, *ranks)]


@cases
def test_strategies_that_fit(said: str, ranks: tuple[int, ...]) -> None:
    assert judged(said, *ranks) == []


@cases
def test_a_data_type_that_hccl_does_not_reduce(dtype: str, product: str) -> None:
    problem = only(judged(f"dtype={dtype}", product=product))
    listed = ", ".join(REDUCED[product])
    assert problem.summary == f"HCCL does not reduce this data type on {product}"
    assert (problem.expected, problem.actual) == (f"one of {listed}", dtype)
    assert quotes(problem) == [f"HCCL documentation: HcclAllReduce, {product}: {listed}"]


@pytest.mark.parametrize(
    ("dtype", "product"),
    [(dtype, product) for product in REDUCED for dtype in (*REDUCED[product], *CONVERTED)],
)
def test_data_types_that_are_reduced(dtype: str, product: str) -> None:
    assert judged(f"dtype={dtype}", product=product) == []


def test_the_lists_hold_only_data_types() -> None:
    assert {dtype for listed in (*REDUCED.values(), CONVERTED) for dtype in listed} <= DTYPES.keys()


@cases
def test_the_message_of_torch_npu_is_quoted(said: str, product: str, last: str | None) -> None:
    words = quotes(only(judged(said, product=product)))
    assert words[1:] == ([f"torch_npu: HCCL allreduce: Unsupported data type {last}"] if last else [])


@pytest.mark.parametrize("product", ["", "ascend"])
def test_a_product_that_is_not_known(product: str) -> None:
    assert judged("dtype=bfloat16", product=product) == []
    assert judged("dtype=float64", product=product) == []
    assert only(judged("dtype=uint32", product=product)).summary.endswith("on any product")


def test_hosts_of_two_products() -> None:
    hosts = {"a": 8, "b": 8}
    seen = devices("atlas-a2", {"a": 8}) | devices("atlas-training", {"b": 8})
    plan = plan_of("dtype=bfloat16", hosts, Backend.HCCL)
    kind, joined = CHECK.run(plan, seen)
    assert kind.summary.endswith("on atlas-training")
    assert joined.actual == "atlas-a2 on a; atlas-training on b"


@pytest.mark.parametrize("backend", [Backend.GLOO, Backend.NCCL])
def test_other_backends_reduce_every_data_type(backend: Backend) -> None:
    assert judged("dtype=float64", 3, product="atlas-training", backend=backend) == []


@cases
def test_numbers_of_devices_that_an_atlas_training_host_does_not_support(
    said: str, ranks: tuple[int, ...], on_bus: int, severity: Severity, actual: str, number: int
) -> None:
    """Cards in slots are not connected to each other, and HCCL does not check how many there are."""
    accused = tuple(
        f"node{n}" for n, own in enumerate(ranks, 1) if own not in (1, 2, 4, 8) or "world" in said
    )
    problem = only(judged(said, *ranks, product="atlas-training", on_bus=on_bus), severity, accused)
    assert problem.summary == "HCCL does not connect this number of devices of an Atlas training host"
    assert (problem.expected, problem.actual) == ("1, 2, 4 or 8 devices on each host", actual)
    assert quotes(problem) == [
        "HCCL documentation: Atlas training: 1, 2, 4 or 8 devices; of n servers 1n, 2n, 4n or 8n",
        f"HCCL: devNum[{number}] devNum must be divisible by 8, or equal to 1, 2 or 4",
    ]


def test_atlas_training_hosts_with_different_numbers() -> None:
    problem = only(judged("pp=1", 8, 8, 4, product="atlas-training"), where=("node3",))
    assert problem.actual == "8 on node[1-2], 4 on node3"
    assert only(judged("pp=1", 2, 4, product="atlas-training"), WARN, ("node1",))


@cases
def test_numbers_are_judged_without_a_plan(
    ranks: tuple[int, ...], source: str, where: tuple[str, ...]
) -> None:
    hosts = {f"node{n}": count for n, count in enumerate(ranks, 1)}
    plan = plan_of("", hosts, Backend.HCCL, source)
    problem = only(list(CHECK.run(plan, devices("atlas-training", hosts, 8))), where=where)
    assert problem.summary == "HCCL does not connect this number of devices of an Atlas training host"
    assert problem.evidence[-1].source == "ranks of a host"
    assert problem.evidence[-1].text == source


@pytest.mark.parametrize("ranks", [(1,), (2, 2, 2), (4, 4), (8,), (8, 8, 8)])
def test_numbers_that_hccl_connects_are_silent_without_a_plan(ranks: tuple[int, ...]) -> None:
    hosts = {f"node{n}": count for n, count in enumerate(ranks, 1)}
    plan = plan_of("", hosts, Backend.HCCL)
    assert list(CHECK.run(plan, devices("atlas-training", hosts, 8))) == []


@cases
def test_nothing_is_judged_without_a_plan_where_every_number_will_do(product: str, backend: Backend) -> None:
    hosts = {"node1": 7, "node2": 3}
    with pytest.raises(Skip, match="no parallel plan was given"):
        list(CHECK.run(plan_of("", hosts, backend), devices(product, hosts)))


@cases
def test_numbers_that_hccl_connects(said: str, ranks: tuple[int, ...], product: str) -> None:
    assert judged(said, *ranks, product=product) == []


def test_tensor_parallel_across_hosts() -> None:
    problem = only(judged("dp=1,tp=16", 8, 8), WARN)
    assert problem.summary.startswith("tensor parallel groups span hosts, which is slow")
    assert problem.expected == "tp of 8 or less, the rest as dp or pp"
    assert problem.actual == "tp 16; devices: 8 on node[1-2]"


@cases
def test_tensor_parallel_within_one_fabric(said: str, ranks: tuple[int, ...], product: str) -> None:
    assert judged(said, *ranks, product=product) == []


@cases
def test_expert_groups_that_do_not_divide_a_stage(said: str, ranks: tuple[int, ...], stage: int) -> None:
    problem = only(judged(said, *ranks))
    assert problem.summary == "expert groups do not divide the devices of a stage"
    assert problem.expected == f"an ep that divides {stage}"


def test_stages_that_do_not_exist_are_not_judged() -> None:
    assert only(judged("pp=3,ep=4,strategy=((8,),)", 8)).actual == "pp 3 = 3; 8 ranks: 8 on node1"


@pytest.mark.parametrize("said", ["dp=8,tp=2,ep=16", "dp=8,tp=2,ep=8", "dp=4,tp=2,pp=2,ep=8", "ep=4"])
def test_expert_groups_that_divide_a_stage(said: str) -> None:
    assert judged(said, 8, 8) == []


SMALLER = "the global batch is 4 times smaller than it was tuned for, and the learning rate does not follow"


@cases
def test_a_learning_rate_that_was_not_scaled_with_the_devices(said: str, expected: str, actual: str) -> None:
    problem = only(judged(f"devices_before=8,{said}", 2), WARN)
    assert problem.summary == SMALLER
    assert (problem.expected, problem.actual) == (expected, actual)


def test_more_devices_than_before() -> None:
    problem = only(judged("devices_before=8,batch=32,lr=0.1,dp=24", 8, 8, 8), WARN)
    assert "3 times larger" in problem.summary
    assert problem.expected == "learning rate 0.3", "a batch of a device of 32 / 3 is none"
    assert problem.actual == "8 -> 24 devices, batch of a device 32, learning rate 0.1"


@cases
def test_learning_rates_that_were_scaled_or_need_not_be(said: str, ranks: tuple[int, ...]) -> None:
    assert judged(said, *ranks) == []


def examined(said: str, **changed: Any) -> Any:
    """The report of two healthy CPU hosts with such a plan."""
    layout = SourcedValue(read_layout([said]), "--plan") if said else None
    wishes = JobWishes(layout=layout, ranks_per_host=SourcedValue(2, "--ranks-per-host"))
    return recordings.report(recordings.recording(["a", "b"], wishes=wishes, **changed))


def test_a_wrong_plan_decides_and_blames_no_host() -> None:
    report = examined("dp=4,tp=2")
    (finding,) = (found for found in report.findings if found.check == "plan-invalid")
    assert (finding.status, finding.hosts) == (Status.FAIL, ())
    assert {host.status.value for host in report.hosts} == {"healthy"}
    assert (report.verdict.value, report.exit_code) == ("faulty", 1)


def test_a_right_plan_passes_and_none_is_skipped() -> None:
    for said, status in (("dp=2,tp=2", Status.PASS), ("", Status.SKIP)):
        results = [result for result in examined(said).results if result.check == "plan-invalid"]
        assert [result.status for result in results] == [status]


@cases
def test_layers_and_samples_that_are_not_shared_evenly(said: str, summary: str, actual: str) -> None:
    problem = only(judged(said), Severity.FAIL)
    assert (problem.summary, problem.actual) == (summary, actual)


@cases
def test_tp_must_divide_the_heads(said: str, severity: Severity, expected: str) -> None:
    assert only(judged(said), severity).expected == expected


@cases
def test_heads_that_tp_divides(said: str) -> None:
    assert judged(said) == []


def rehearsed(said: str, tp: int = 1) -> str:
    """What is left undecided after a smoke run of four ranks."""
    plan = plan_of(said, {"node1": 2, "node2": 2}, Backend.GLOO)
    trained = SmokeRounds((JudgedRun(healthy(smoke_plan(hosts=2, each=2, tp=tp)), ()),))
    try:
        assert list(CHECK.run(plan, {}, trained)) == []
    except Undecided as undecided:
        return str(undecided)
    return ""


@cases
def test_dimensions_that_were_not_rehearsed_are_named(said: str, left: str) -> None:
    assert rehearsed(said) == left


def test_the_smoke_run_rehearses_tensor_parallelism() -> None:
    assert rehearsed("dp=2,tp=2", tp=2) == ""
    assert rehearsed("dp=2,pp=2,batch=8", tp=2) == (
        "not judged: batch: devices_before is not given; the plan's pipeline was not rehearsed"
    )


@pytest.mark.parametrize(
    ("said", "source", "essential"),
    [
        ("pp=2,dp=2", "--plan", True),
        ("zero=1", "--plan", True),
        ("ps=1", "--plan", True),
        ("pp=2,dp=2", "inventory", False),
        ("pp=2,tp=2,dp=1", "--plan", False),
        ("dp=4,batch=8", "--plan", False),
    ],
)
def test_nothing_is_proved_if_nothing_of_a_named_plan_was_rehearsed(
    said: str, source: str, essential: bool
) -> None:
    """Of the second but last, tensor parallelism was."""
    job = plan_of(said, {"node1": 2, "node2": 2}, Backend.GLOO)
    job = replace(job, layout=SourcedValue(read_layout([said]), source))
    trained = SmokeRounds((JudgedRun(healthy(smoke_plan(hosts=2, each=2, tp=2)), ()),))
    with pytest.raises(Undecided) as left:
        list(CHECK.run(job, {}, trained))
    assert left.value.essential == essential


OPEN = from_cases(__file__, "OPEN", dict[str, tuple[str, ...]])


@pytest.mark.parametrize("said", OPEN)
def test_what_is_compared_with_nothing_is_said(said: str) -> None:
    backend, source, why = OPEN[said]
    job = plan_of(said, {"node1": 2}, Backend(backend), source)
    with pytest.raises(Undecided, match=f"^not judged: .*{re.escape(why)}"):
        list(CHECK.run(job, devices("atlas-a2", {"node1": 2})))


@cases
def test_a_plan_that_was_judged_whole(said: str) -> None:
    assert list(CHECK.run(plan_of(said, {"node1": 8}, Backend.HCCL), devices("atlas-a2", {"node1": 8}))) == []
