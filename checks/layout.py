"""The given parallel plan: whether devices, framework and product support it."""

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from doctor.api import (
    ASCEND,
    PLAN,
    Backend,
    Confidence,
    Damage,
    Evidence,
    JobPlan,
    Place,
    Problem,
    Scope,
    Severity,
    Skip,
    Undecided,
    check,
    fold,
    grouped,
    maybe,
)
from doctor.facts.job import LAUNCHES
from doctor.facts.smoke import SMOKE, SmokeRounds
from doctor.facts.system import DEVICES, Devices
from doctor.job.hccl import REDUCED
from doctor.job.launch.process_env import Launch
from doctor.job.parallel import IF_REPLICAS, OF_LAUNCH, Layout
from doctor.rules.launch_names import remark

COUNTED = {"atlas-training"}
"""Products for which HCCL connects only certain numbers of devices."""
SCRIPT = "# in the training script: mindspore."
REFUSED_BY_TORCH = {
    "float64": "at::kDouble",
    "uint16": "at::ScalarType::UInt16",
    "uint32": "at::ScalarType::UInt32",
    "uint64": "at::ScalarType::UInt64",
}
"""Types that torch_npu refuses to reduce, with the names that it prints (ProcessGroupHCCL.cpp)."""


CONVERTED = ("bool", "uint8", "complex64", "complex128")
"""Types reduced as another one: torch_npu uses int32 for the first two, torch float pairs for the rest."""

DEVICES_FOUND = "devices found"
"""The source of a number of ranks that nobody gave."""
MODES = ("stand_alone", "data_parallel", "hybrid_parallel", "semi_auto_parallel", "auto_parallel")
WRAPPED = {
    "semi_auto": "semi_auto_parallel",
    "sharding_propagation": "auto_parallel",
    "recursive_programming": "auto_parallel",
}
"""Values of AutoParallel(net, parallel_mode=…) -> the equal mode of set_auto_parallel_context."""


@dataclass(frozen=True, slots=True)
class ParallelJob:
    """The given parallel plan, and what is known about the devices that it is made for.

    Without a plan the layout and its source are empty: the ranks are the devices in use.
    """

    plan: JobPlan
    layout: Layout
    source: str
    devices: Mapping[str, Devices]

    @property
    def ranks(self) -> dict[str, int]:
        """Host -> its ranks, unless their number is only a default."""
        known = [h.name for h in self.plan.hosts if h.ranks and h.ranks.source != "default"]
        return {name: self.plan.ranks_on(name) for name in known}

    @property
    def counted(self) -> bool:
        return len(self.ranks) == len(self.plan.hosts)

    @property
    def products(self) -> set[str]:
        return {found.product for found in self.devices.values()}

    @property
    def product(self) -> int:
        """The number of devices by the factors; a missing factor counts as 1."""
        return math.prod(self.layout.factors.values())

    @property
    def world(self) -> int | None:
        """The number of devices of the job: as given, as counted, or as the plan adds up."""
        counted = self.plan.ranks if self.counted else None
        return self.layout.world or counted or (self.product if self.layout.dp else None)

    @property
    def replicas(self) -> int | None:
        """The number of replicas of the model, if the devices can be divided in this way."""
        rest = self.product // (self.layout.dp or 1)
        return self.layout.dp or (self.world // rest if self.world and self.world % rest == 0 else None)

    @property
    def stage(self) -> int | None:
        """The number of devices of one pipeline stage."""
        world, pp = self.world, self.layout.pp or 1
        return world // pp if world and world % pp == 0 else None

    def found_on(self, hosts: Iterable[str]) -> tuple[Place, ...]:
        """The hosts whose number of ranks is that of their visible devices: a device may be missing there."""
        ranks = {host.name: host.ranks for host in self.plan.hosts}
        return tuple(Place(host=h) for h in hosts if (own := ranks[h]) and own.source == DEVICES_FOUND)

    def _sources(self) -> Evidence:
        sources = dict.fromkeys(host.ranks.source for host in self.plan.hosts if host.ranks)
        return Evidence("ranks of a host", ", ".join(sources))

    def wrong(self, summary: str, expected: str, actual: str, *quotes: Evidence, **more: Any) -> Problem:
        given = Evidence(self.source, str(self.layout)) if self.source else self._sources()
        return Problem(summary, expected, actual, evidence=(*quotes, given), **more)


def known_mode(text: str) -> str | None:
    """The one of MODES that a text or a member of ParallelMode stands for; None for any other text."""
    member = re.fullmatch(r"(?:\w{1,40}\.){0,3}ParallelMode\.([A-Z_]{1,40})", text)
    name = member[1].lower() if member else WRAPPED.get(text, text)
    return name if name in MODES else None


_REHEARSED_AS = {
    "tp": "tensor parallelism",
    "pp": "pipeline",
    "cp": "context parallelism",
    "ep": "expert parallelism",
}


def not_rehearsed(layout: Layout, formed: Mapping[str, int]) -> Iterator[str]:
    """The dimensions of the plan without which the smoke run trained, by the groups it formed."""
    for key, name in _REHEARSED_AS.items():
        if (getattr(layout, key) or 1) > 1 and formed.get(key, 1) == 1:
            yield f"the plan's {name} was not rehearsed"
        elif formed.get(key, 1) > 1 and key not in (("tp", "pp") if "micro" in formed else ("tp",)):
            yield f"the groups of the plan's {name} were tried, and the training did without"
    if layout.zero and not formed.get("zero"):
        yield "the plan's sharded optimizer (zero) was not rehearsed"
    if layout.ps and not formed.get("ps"):
        yield "the plan's parameter server (ps) was not rehearsed"
    if (layout.vpp or 1) > 1 and formed.get("vpp", 1) == 1:
        yield "the plan's virtual stages (vpp) were not rehearsed"
    micro = formed.get("micro", 0)
    if micro and layout.accumulation not in (None, micro):
        yield f"the plan's {layout.accumulation} micro-batches were rehearsed as {micro}"


@check(
    "plan-invalid",
    PLAN,
    maybe(DEVICES),
    maybe(SMOKE),
    maybe(LAUNCHES),
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    causes=("device-missing",),
)
def plan_invalid(
    plan: JobPlan,
    devices: Mapping[str, Devices],
    smoke: SmokeRounds | None = None,
    launches: tuple[Launch, ...] | None = None,
) -> Iterator[Problem]:
    """The parallel plan does not fit the devices, the framework or the product.

    Why it matters: a plan that cannot work stops every rank, often after minutes of starting up, with an
    error that names an operator or an argument instead of the plan. No host is at fault.

    What is judged, if it was given, or if the launch states it by the options of Megatron such as
    --tensor-model-parallel-size, or in the configuration that it gives to DeepSpeed: whether the product of
    dp, tp, pp and cp is the number of devices (once dp is given, a missing factor counts as 1; otherwise the
    given factors must divide the devices), and whether expert groups fill one stage and share the experts
    evenly; whether tp divides the attention heads, and those for keys and values (of which several devices
    may hold a copy: a warning), and these the hidden size; whether pp divides the layers, and whether the
    replicas share the global batch evenly, or make it up: train_batch_size = train_micro_batch_size_per_gpu x
    gradient_accumulation_steps x replicas. That is a warning if the program was not read, or may get other
    values than those of the configuration, unless no number of replicas makes it. MindSpore's parallel mode,
    whether PyNative mode runs it, and the strategy of an operator. Whether HCCL reduces the data type on this
    product. Of a launch with the options of Megatron also what it asserts of virtual stages, of the length of
    a sequence, and of iterations and samples. As warnings: tensor parallel groups that span hosts,
    stand-alone mode on several devices, and a learning rate that does not follow the global batch. Values
    that could be compared with nothing are listed as not judged, and dimensions whose groups the smoke run
    could not form as not rehearsed.

    Also without a plan: whether the NPUs of all hosts are of one product, because HCCL joins no two (a
    warning as long as nothing tells that one job starts on these hosts); and whether HCCL connects this
    number of devices of a host, whether found or given by --ranks-per-host, a hostfile or a launch. On Atlas
    training hosts: 1, 2, 4 or 8, the same on each host.

    The learning rate: `devices_before` is the number of devices for which `batch` and `lr` were tuned. If
    they were changed since, `batch_before` and `lr_before` are the old values; otherwise they count as
    unchanged. From 8 devices to 2, with the batch of a device kept, the global batch is 4 times smaller:
    divide the learning rate by 4, or make the batch of a device 4 times larger. A rate that follows by the
    square root, as is usual with Adam, causes no warning.

    What to do: change the plan in the job script, and in --plan or the inventory's `plan:`, to the expected
    values. The quoted messages are those that the framework would print.
    """
    hccl = plan.backend.value is Backend.HCCL
    for launch in launches or ():
        yield from _asserted(launch)
    if plan.layout is None:
        job = ParallelJob(plan, Layout(), "", devices)
        if not (hccl and (COUNTED & job.products or len(job.products) > 1)):
            raise Skip("no parallel plan was given (--plan dp=4,tp=2 or plan: in the inventory)")
        yield from _one_product(job, smoke)
        yield from _devices_of_a_host(job)
        return
    job = ParallelJob(plan, plan.layout.value, plan.layout.source, devices)
    yield from _parallel_mode(job)
    yield from _strategy(job)
    if hccl:
        yield from _data_type(job)
        yield from _one_product(job, smoke)
        yield from _devices_of_a_host(job)
    yield from _tensor_parallel(job)
    yield from _experts(job)
    yield from _heads(job)
    yield from _layers(job)
    yield from _batch(job)
    yield from _learning_rate(job)
    yield from _factors(job)
    open_items = list(_not_judged(job, hccl))
    left = [f"not judged: {'; '.join(open_items)}"] if open_items else []
    if smoke and smoke.runs:
        trained = smoke.runs[0].plan
        formed = {**trained.layout, "tp": trained.tp}
        left += not_rehearsed(job.layout, formed)
        least = {**dict.fromkeys(_REHEARSED_AS, 1), "zero": 0, "ps": 0}
        wished = [key for key, none in least.items() if (getattr(job.layout, key) or 0) > none]
        nothing = wished and not any(formed.get(key, 0) > least[key] for key in wished)
        if nothing and job.source == "--plan":  # whoever named it asked for its rehearsal
            raise Undecided("; ".join(left), essential=True)
    if left:
        raise Undecided("; ".join(left))


def _parallel_mode(job: ParallelJob) -> Iterator[Problem]:
    said = job.layout.parallel_mode
    if said is None:
        return
    mode = known_mode(said)
    if mode is None:
        near = difflib.get_close_matches(said.rpartition(".")[2].lower().replace("-", "_"), MODES, 1)
        yield job.wrong(
            "MindSpore does not know this parallel mode",
            f"{near[0]} or ParallelMode.{near[0].upper()}" if near else f"one of {', '.join(MODES)}",
            said,
            *_words_on_mode(said),
            commands=(f"{SCRIPT}set_auto_parallel_context(parallel_mode='{near[0]}')",) if near else (),
        )
        return
    if said in WRAPPED:
        yield job.wrong(
            "only AutoParallel, and not set_auto_parallel_context, takes this parallel mode",
            f"{mode} for set_auto_parallel_context",
            said,
            *_words_on_mode(said),
            severity=Severity.WARN,
        )
    if job.layout.mode == "pynative" and mode not in ("stand_alone", "data_parallel"):
        sharded = mode == "auto_parallel"  # newer versions run it, inside shard functions
        yield job.wrong(
            f"PyNative mode runs this parallel mode {'in shard functions only' if sharded else 'not at all'}",
            "mode=graph (GRAPH_MODE), or parallel_mode=data_parallel",
            f"{mode} in PyNative mode",
            Evidence("MindSpore", f"PyNative Only support STAND_ALONE and DATA_PARALLEL, but got:{mode}"),
            Evidence(
                "MindSpore",
                "ValueError: Pynative only supports STAND_ALONE, DATA_PARALLEL and AUTO_PARALLEL using "
                f"sharding_propagation under shard function for ParallelMode, but got {mode.upper()}.",
            ),
            commands=(f"{SCRIPT}set_context(mode=mindspore.GRAPH_MODE)",),
            severity=Severity.WARN if sharded else Severity.FAIL,
        )
    if mode == "stand_alone" and job.world and job.world > 1:
        yield job.wrong(
            "in stand-alone mode each device trains its own model",
            "data_parallel or another parallel mode, or one device",
            f"stand_alone on {job.world} devices",
            severity=Severity.WARN,
        )


def _words_on_mode(said: str) -> tuple[Evidence, ...]:
    """The older and the newer message of set_auto_parallel_context."""
    return (
        Evidence("MindSpore", f"ValueError: Parallel mode does not support {said}"),
        Evidence(
            "MindSpore",
            "ValueError: The context configuration parameter 'parallel_mode' only support 'stand_alone', "
            "'data_parallel', 'hybrid_parallel', 'semi_auto_parallel' and 'auto_parallel', "
            f"but got the value : {said}.",
        ),
    )


def _power_of_2(number: int) -> bool:
    return number & (number - 1) == 0


def _strategy(job: ParallelJob) -> Iterator[Problem]:
    """Strategies count only in modes that split operators, and must be powers of 2 only if the number of
    devices is a power of 2.
    """
    rows, stage, mode = job.layout.strategy or (), job.stage, known_mode(job.layout.parallel_mode or "")
    if not stage or not job.world or mode in ("stand_alone", "data_parallel"):
        return
    odd = [number for row in rows for number in row if not _power_of_2(number)]
    if odd and _power_of_2(job.world):
        yield job.wrong(
            "a strategy splits a dimension into parts whose number is not a power of 2",
            f"powers of 2, since {job.world} devices are one too",
            ", ".join(map(str, dict.fromkeys(odd))),
            Evidence(
                "MindSpore",
                f"The strategy is {_printed(job.layout)}, "
                f"the value of strategy must be the power of 2, but get {odd[0]}",
            ),
        )
    uneven = [row for row in rows if stage % math.prod(row)]
    if uneven:
        wanted, of = math.prod(uneven[0]), "of a stage" if job.layout.pp else "of the job"
        yield job.wrong(
            f"a strategy {'needs more devices than there are' if wanted > stage else 'leaves devices over'}",
            f"a product that divides the {stage} devices {of}",
            f"{' x '.join(map(str, uneven[0]))} = {wanted}",
            # The number of devices that it requires depends on the operator, not only on one of its inputs.
            Evidence(
                "MindSpore",
                f"The strategy is {_printed(job.layout)}, it requires … devices, but the device number of "
                f"this stage is {stage}, it can not be divisible by …",
            ),
        )


def _printed(layout: Layout) -> str:
    """The strategy, as MindSpore prints it."""
    rows = ["(" + ", ".join(map(str, row)) + ")" for row in layout.strategy or ()]
    return "(" + ", ".join(rows) + (",)" if len(rows) == 1 else ")")


def _data_type(job: ParallelJob) -> Iterator[Problem]:
    """The problem of a data type that HCCL does not reduce; the longest list counts for unknown products."""
    dtype, known = job.layout.dtype, sorted(job.products & REDUCED.keys())
    refusing = [product for product in known or ["atlas-950"] if dtype not in REDUCED[product]]
    if dtype is None or dtype in CONVERTED or not refusing:
        return
    listed = ", ".join(REDUCED[refusing[0]])
    quotes = [Evidence("HCCL documentation", f"HcclAllReduce, {refusing[0]}: {listed}")]
    if dtype in REFUSED_BY_TORCH and job.layout.framework == "torch":
        words = f"HCCL allreduce: Unsupported data type {REFUSED_BY_TORCH[dtype]}"
        quotes.append(Evidence("torch_npu", words))
    yield job.wrong(
        f"HCCL does not reduce this data type on {' or '.join(refusing) if known else 'any product'}",
        f"one of {listed}",
        dtype,
        *quotes,
    )


def _one_product(job: ParallelJob, smoke: SmokeRounds | None) -> Iterator[Problem]:
    hosts = grouped(
        (_product(job, host), host)
        for host in job.plan.names
        if _product(job, host) in ASCEND.servers and job.devices[host].npus
    )
    if len(hosts) > 1:
        one_job = job.plan.known_world or (smoke and smoke.runs)
        yield job.wrong(
            "the hosts have NPUs of different products, which HCCL does not join in one job",
            "NPUs of one product on all hosts of the job",
            "; ".join(f"{product} on {fold(own)}" for product, own in hosts.items()),
            Evidence("CANN documentation", "a communicator of Atlas A2 and Atlas A3 is not supported by now"),
            severity=None if one_job else Severity.WARN,
        )


def _devices_of_a_host(job: ParallelJob) -> Iterator[Problem]:
    """The problem of a number of devices that HCCL does not connect; `world` may select fewer than exist."""
    used = job.ranks
    if job.layout.world and job.layout.world < job.plan.ranks:
        share, rest = divmod(job.layout.world, len(job.plan.hosts))
        used = {host: share for host in used if not rest}
    training = {host: n for host, n in used.items() if _product(job, host) == "atlas-training"}
    bad = {host: number for host, number in training.items() if number not in (1, 2, 4, 8)}
    # HCCL does not check the number for cards in slots, which are not wired to each other.
    wired = [host for host in training if _wired(job.devices[host])]
    documented = Evidence(
        "HCCL documentation", "Atlas training: 1, 2, 4 or 8 devices; of n servers 1n, 2n, 4n or 8n"
    )
    if bad:
        number = next(iter(bad.values()))
        sure = any(host in wired for host in bad)
        yield job.wrong(
            "HCCL does not connect this number of devices of an Atlas training host",
            "1, 2, 4 or 8 devices on each host",
            _by_host(bad),
            documented,
            # The message counts the devices of one server, and is less exact than the documentation.
            Evidence("HCCL", f"devNum[{number}] devNum must be divisible by 8, or equal to 1, 2 or 4"),
            where=job.found_on(bad),
            severity=Severity.FAIL if sure else Severity.WARN,
            confidence=Confidence.CERTAIN if sure else Confidence.STRONG,
        )
    elif len(set(training.values())) > 1:
        few = {host: n for host, n in training.items() if n < max(training.values())}
        yield job.wrong(
            "Atlas training hosts take part with different numbers of devices",
            "the same number on each host",
            _by_host(training),
            documented,
            where=job.found_on(few),
            severity=Severity.FAIL if wired else Severity.WARN,
        )


def _product(job: ParallelJob, host: str) -> str:
    return job.devices[host].product if host in job.devices else ""


def _wired(devices: Devices) -> bool:
    there = max(len(devices.npus), devices.of(ASCEND).on_bus)
    return 2 * there > min(ASCEND.servers[devices.product])


def _by_host(numbers: Mapping[str, int]) -> str:
    """`8 on node[1-3], 7 on node4`."""
    groups = grouped((number, host) for host, number in numbers.items())
    return ", ".join(f"{number} on {fold(hosts)}" for number, hosts in groups.items())


def _tensor_parallel(job: ParallelJob) -> Iterator[Problem]:
    """A warning about tensor parallel groups that span hosts; in superpods fast links join the hosts."""
    tp = job.layout.tp or 1
    small = {host: number for host, number in job.ranks.items() if number < tp}
    superpods = {"atlas-a3", "atlas-950"} & job.products
    if small and job.plan.several_hosts and not superpods:
        yield job.wrong(
            "tensor parallel groups span hosts, which is slow unless one fast fabric joins the hosts",
            f"tp of {min(small.values())} or less, the rest as dp or pp",
            f"tp {tp}; devices: {_by_host(small)}",
            severity=Severity.WARN,
            confidence=Confidence.STRONG,
        )


def _experts(job: ParallelJob) -> Iterator[Problem]:
    """The problem of expert groups that span stages, which no framework allows; other rules differ."""
    ep, stage = job.layout.ep, job.stage
    if ep and stage and stage % ep:
        yield job.wrong(
            "expert groups do not divide the devices of a stage",
            f"an ep that divides {stage}",
            f"ep {ep}",
        )
    if ep and job.layout.experts and job.layout.experts % ep:
        yield job.wrong(
            "ep does not divide the experts", f"an ep that divides {job.layout.experts}", f"ep {ep}"
        )


def _heads(job: ParallelJob) -> Iterator[Problem]:
    """The problem of heads that cannot be split evenly. Some frameworks copy those for keys and values."""
    tp, heads, kv_heads = job.layout.tp or 1, job.layout.heads, job.layout.kv_heads
    hidden = job.layout.hidden
    if heads and hidden and hidden % heads:
        yield job.wrong(
            "the attention heads do not divide the hidden size",
            f"heads that divide {hidden}",
            f"heads {heads}",
        )
    if heads and heads % tp:
        yield job.wrong("tp does not divide the attention heads", f"a tp that divides {heads}", f"tp {tp}")
    if heads and kv_heads and heads % kv_heads:
        yield job.wrong(
            "the heads for keys and values do not divide the attention heads",
            f"kv_heads that divide {heads}",
            f"kv_heads {kv_heads}",
        )
    if kv_heads and kv_heads % tp:
        copied = tp % kv_heads == 0
        yield job.wrong(
            "tp does not divide the heads for keys and values"
            + (", which not every framework copies" if copied else ""),
            f"a tp that divides {kv_heads}",
            f"tp {tp}",
            severity=Severity.WARN if copied else Severity.FAIL,
            confidence=Confidence.STRONG if copied else Confidence.CERTAIN,
        )


def _layers(job: ParallelJob) -> Iterator[Problem]:
    layers, pp = job.layout.layers, job.layout.pp or 1
    if layers and layers % pp:
        yield job.wrong("pp does not divide the layers", f"a pp that divides {layers}", f"pp {pp}")


def _asserted(launch: Launch) -> Iterator[Problem]:
    """The problems of sizes that only the options of Megatron state, and that it refuses when it starts."""
    sizes = launch.sizes
    layers, pp, cp = sizes.get("layers", 0), sizes.get("pp"), sizes.get("cp", 1)
    stage = layers // pp if pp and layers % pp == 0 else 0
    chunk, chunks = sizes.get("chunk", 0), sizes.get("chunks", 0)
    sequence, positions = sizes.get("sequence", 0), sizes.get("positions", 0)
    per_chunk, of_stage = "--num-layers-per-virtual-pipeline-stage", "--num-virtual-stages-per-pipeline-rank"
    number = chunks or (stage // chunk if chunk else 0)
    rows = (
        (
            chunk and stage % chunk,
            "the layers of a virtual stage do not divide those of a stage",
            f"a number that divides {stage}: {layers} layers / pp {pp}",
            f"{per_chunk} {chunk}",
        ),
        (
            chunks and stage % chunks,
            "the virtual stages do not divide the layers of a stage",
            f"a number that divides {stage}: {layers} layers / pp {pp}",
            f"{of_stage} {chunks}",
        ),
        (
            pp == 1 and number > 1,
            "virtual stages need a pipeline of several stages",
            "a pp of 3 or more, or no virtual stages",
            f"pp 1, {f'{of_stage} {chunks}' if chunks else f'{per_chunk} {chunk}'}",
        ),
        (
            cp > 1 and sequence % (2 * cp),
            "cp does not divide the sequence into two parts for each rank",
            f"a multiple of {2 * cp}, twice the cp",
            f"--seq-length {sequence}",
        ),
        (
            0 < positions < sequence,
            "a sequence is longer than the positions that the model has",
            f"--max-position-embeddings of {sequence} or more",
            f"--max-position-embeddings {positions}, --seq-length {sequence}",
        ),
        (
            sizes.get("iterations") and sizes.get("samples"),
            "the training is given both in iterations and in samples",
            "--train-iters or --train-samples",
            f"--train-iters {sizes.get('iterations')}, --train-samples {sizes.get('samples')}",
        ),
    )
    for wrong, summary, expected, actual in rows:
        if wrong:
            told = Evidence(launch.name, ", ".join(f"{key}={size}" for key, size in sizes.items()))
            yield Problem(summary, expected, actual, evidence=(told,))


def _batch(job: ParallelJob) -> Iterator[Problem]:
    """The problem of samples that the replicas cannot share evenly, or that are not those of all of them."""
    layout, replicas = job.layout, job.replicas
    if not layout.global_batch or not replicas or _fits(layout, replicas):
        return
    at_once, times = layout.micro_batch or 1, layout.accumulation or 1
    step = at_once * times * replicas
    wanted = f"{step}: {at_once} at once on each of {replicas} replicas" + (
        f", {times} times" if times > 1 else ""
    )
    summary = "the global batch is not the sum of its micro batches"
    whole = bool(layout.micro_batch and layout.accumulation)
    if layout.global_batch % step:
        summary = "the replicas cannot share the global batch evenly"
        wanted = wanted if whole else f"a multiple of {wanted}"
    parts, rest = divmod(layout.global_batch, at_once * times)
    never = whole and (rest or not job.world or job.world % parts)
    severity = Severity.WARN if job.source == IF_REPLICAS and not never else None
    named = " (train_batch_size / --global-batch-size)" if job.source.startswith(OF_LAUNCH) else ""
    typed = (remark(f"train_batch_size: {step}"),) if whole and named else ()
    yield job.wrong(summary, wanted, f"{layout.global_batch}{named}", severity=severity, commands=typed)


def _fits(layout: Layout, replicas: int) -> bool:
    """Whether so many replicas share the global batch, and are exactly as many if all else is given."""
    step = (layout.micro_batch or 1) * (layout.accumulation or 1) * replicas
    whole = bool(layout.micro_batch and layout.accumulation)
    return layout.global_batch == step if whole else (layout.global_batch or 0) % step == 0


def _times(factor: float) -> str:
    return f"{factor if factor > 1 else 1 / factor:.3g} times {'larger' if factor > 1 else 'smaller'}"


def _change(before: float, now: float) -> str:
    return f"{before:g}" if before == now else f"{before:g} -> {now:g}"


def _learning_rate(job: ParallelJob) -> Iterator[Problem]:
    change = _scaling(job.layout, job.world)
    if change is None or change.follows:
        return
    factor, layout, before = float(change.batch), job.layout, job.layout.devices_before or 1
    rate, wanted = "learning rate kept", f"a learning rate {_times(factor)}"
    if layout.lr:
        old = layout.lr_before or layout.lr
        rate, wanted = f"learning rate {_change(old, layout.lr)}", f"learning rate {old * factor:.4g}"
    batch, instead = "batch of a device kept", f"a batch of a device {_times(1 / factor)}"
    if layout.batch:
        kept = layout.batch / change.batch
        what = "batch of a device" if layout.batch_per == "device" else "global batch"
        batch = f"{what} {_change(layout.batch_before or layout.batch, layout.batch)}"
        instead = f"{what} {kept}" if kept.denominator == 1 else ""
    yield job.wrong(
        f"the global batch is {_times(factor)} than it was tuned for, and the learning rate does not follow",
        f"{wanted}, or {instead}" if instead else wanted,
        f"{before} -> {job.world} devices, {batch}, {rate}",
        severity=Severity.WARN,
        confidence=Confidence.STRONG,
    )


def _factors(job: ParallelJob) -> Iterator[Problem]:
    """The problem of a plan that does not make the number of ranks. With only a default number of ranks it is
    undecided if there are accelerators, and a warning on CPUs.
    """
    factors, product = job.layout.factors, job.product
    ranks = job.layout.world or job.plan.ranks
    if not factors or product == ranks or (not job.layout.dp and ranks % product == 0):
        return
    if job.source == OF_LAUNCH and not job.layout.world:
        return  # it may be for more hosts than were named
    guessed = not job.layout.world and not job.counted
    if guessed and job.plan.backend.value is not Backend.GLOO:
        raise Undecided("how many ranks the job has is not known: some host did not report its devices")
    rest = product // (job.layout.dp or 1)
    if not job.layout.dp:
        expected = f"{' · '.join(factors)} that divides {ranks}"
    elif ranks % rest == 0:
        expected = f"{ranks}, as with dp={ranks // rest}"
    else:
        expected = (
            f"{ranks}, which {rest} = {' · '.join(name for name in factors if name != 'dp')} must divide"
        )
    if job.layout.world:
        devices = f"world is {ranks}"
    else:
        devices = f"{ranks} ranks by default" if guessed else f"{ranks} ranks: {_by_host(job.ranks)}"
    mesh = f"Mesh should not be bigger than default world size {ranks}, but found {product} ranks!"
    torch = job.layout.framework == "torch" and product > ranks
    yield job.wrong(
        "the parallel plan does not make the number of devices",
        expected,
        f"{' · '.join(f'{name} {value}' for name, value in factors.items())} = {product}; {devices}",
        *((Evidence("torch, init_device_mesh", f"RuntimeError: {mesh}"),) if torch else ()),
        severity=Severity.WARN if guessed else Severity.FAIL,
        confidence=Confidence.SUSPECT if guessed else Confidence.CERTAIN,
    )


_SAYS_SOMETHING = (
    "dp",
    "tp",
    "pp",
    "cp",
    "ep",
    "zero",
    "ps",
    "heads",
    "kv_heads",
    "hidden",
    "layers",
    "experts",
    "global_batch",
    "strategy",
    "mode",
    "parallel_mode",
    "dtype",
    "batch",
    "lr",
)
"""Values of a plan that mean something alone. `devices_before` has its own reason; others modify these."""


@dataclass(frozen=True, slots=True)
class _Scaling:
    """How a job changed since it was tuned: the factor of the global batch, and that of the learning rate.

    What the plan does not say is taken as unchanged: the batch (per device or of all, as batch_per says), the
    learning rate, and the division into tp, pp and cp.
    """

    batch: Fraction
    rate: float

    @property
    def follows(self) -> bool:
        """Whether the rate follows the batch: by the square root (usual with Adam), linearly or faster."""
        if self.batch == 1:
            return True
        wanted, done = math.log(self.batch), math.log(self.rate)
        return done / wanted >= 0.48


def _scaling(layout: Layout, world: int | None) -> _Scaling | None:
    """None if the plan says nothing about it, or nothing changed."""
    before = layout.devices_before
    if before is None or world is None or before == world or not (layout.batch or layout.lr):
        return None
    batch = Fraction(layout.batch or 1, layout.batch_before or layout.batch or 1)
    if layout.batch_per == "device":
        batch *= Fraction(world, before)
    rate = layout.lr / (layout.lr_before or layout.lr) if layout.lr else 1.0
    return _Scaling(batch, rate)


def _not_judged(job: ParallelJob, hccl: bool) -> Iterator[str]:
    """The values of the plan that were compared with nothing, each with the reason."""
    layout, counted = job.layout, job.counted or job.layout.world
    mode = known_mode(layout.parallel_mode or "")
    if layout.factors and not counted and job.plan.ranks % job.product == 0:  # else it is a warning
        yield f"{', '.join(layout.factors)}: how many ranks the job has is only a default (--ranks-per-host)"
    if layout.ep and not job.stage:
        yield "ep: how many devices a stage has is not known"
    if lone := [
        key for key in ("heads", "kv_heads") if getattr(layout, key) and not (layout.tp or layout.dp)
    ]:
        yield f"{', '.join(lone)}: tp is not given"
    if layout.hidden and not layout.heads:
        yield "hidden: heads is not given"
    if layout.experts and not layout.ep:
        yield "experts: ep is not given"
    if layout.layers and not (layout.pp or layout.dp):
        yield "layers: pp is not given"
    if layout.global_batch and not job.replicas:
        yield "global_batch: how many replicas there are is not known"
    if layout.strategy and mode in ("stand_alone", "data_parallel"):
        yield f"strategy: {mode} does not use it"
    elif layout.strategy and not (job.stage and job.world):
        yield "strategy: how many devices a stage has is not known"
    if layout.mode and not layout.parallel_mode:
        yield "mode: without parallel_mode nothing depends on it"
    if layout.dtype and layout.dtype not in CONVERTED and not hccl:
        yield f"dtype: what {job.plan.backend.value.value} reduces is not known here, only what HCCL does"
    yield from _not_scaled(job)
    if layout.world and not (hccl or layout.factors or layout.ep or layout.global_batch):
        yield "world: it is compared with dp, tp, pp and cp, and none of them is given"
    elif all(getattr(layout, key) is None for key in (*_SAYS_SOMETHING, "devices_before", "world")):
        yield "there is nothing in it to compare with the devices"


def _not_scaled(job: ParallelJob) -> Iterator[str]:
    """Why batch and learning rate were compared with nothing."""
    layout = job.layout
    tuned = [key for key in ("batch", "lr") if getattr(layout, key) is not None]
    if tuned and layout.devices_before is None:
        yield f"{', '.join(tuned)}: devices_before is not given"
    elif layout.devices_before is not None and not tuned:
        yield "devices_before: neither batch nor lr is given"
    elif tuned and job.world is None:
        yield f"{', '.join(tuned)}: how many devices the job has is not known"
