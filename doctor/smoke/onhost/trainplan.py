"""The collectives of the training and of the audit after it. Without torch: the controller counts with it."""

from __future__ import annotations

from doctor.smoke.onhost.corpus import LENGTH, SEQUENCES
from doctor.smoke.onhost.parameters import WIDTH, blocks, parameters
from doctor.smoke.onhost.shape import CellShape, CollectiveCall

VOTES = 3
"""This many replicas compute each batch in an audit: if two agree, the third is wrong."""


MICRO_BATCHES = (2, 4, 8, SEQUENCES)
MOST_HELD = 8
FORWARD, BACKWARD = "forward", "backward"
WITH_NEXT = ("send_forward", "recv_backward", "send_forward_recv_backward")
WITH_PREVIOUS = ("recv_forward", "send_backward", "send_backward_recv_forward")
ACROSS = dict(zip(WITH_NEXT + WITH_PREVIOUS, WITH_PREVIOUS + WITH_NEXT))  # noqa: B905 (Python 3.8)
"""A move -> that of the rank at the other end."""


def micro_batches(stages: int, wished: int = 0) -> int:
    """Into how many parts a batch is cut: as wished, or at least two for each stage; 0 if it is too small."""
    if wished in MICRO_BATCHES and wished >= stages:
        return wished
    return next((parts for parts in MICRO_BATCHES if parts >= 2 * stages), 0)


def may_interleave(stages: int, held: int, parts: int) -> bool:
    """Whether each rank of a pipeline can hold so many stages. As in Megatron, parts go in whole rounds."""
    return stages > 1 and parts % stages == 0 and held <= MOST_HELD


def moves(shape: CellShape, place: int) -> list[tuple[str, int]]:
    """What a rank does for one gradient, each with the number of its stage among those that the rank holds.
    As Megatron's schedule 1F1B: one forward, one backward.
    """
    stage, parts = shape.stage_of(place), shape.micro or 1
    ahead = shape.stages - 1 - stage
    if shape.vpp > 1:
        return _interleaved(shape, stage, 2 * ahead + (shape.vpp - 1) * shape.pp)
    both = [FORWARD, "send_forward_recv_backward", BACKWARD, "send_backward_recv_forward"] * (parts - ahead)
    found = [
        *["recv_forward", FORWARD, "send_forward"] * ahead,
        *["recv_forward", *both[:-1], "send_backward"],
        *["recv_backward", BACKWARD, "send_backward"] * ahead,
    ]
    lacking = (*(WITH_PREVIOUS if stage == 0 else ()), *(WITH_NEXT if ahead == 0 else ()))
    return [(move, 0) for move in found if move not in lacking]


def _interleaved(shape: CellShape, stage: int, ahead: int) -> list[tuple[str, int]]:
    """The same for ranks that hold several stages, as with --overlap-p2p-communication: nobody waits until
    what it sends has arrived.
    """
    last = shape.pp * shape.vpp - 1
    held = [turn // shape.pp % shape.vpp for turn in range(shape.micro * shape.vpp)]
    forth = [(FORWARD, chunk) for chunk in held]
    back = [(BACKWARD, shape.vpp - 1 - chunk) for chunk in held]
    ahead = min(ahead, len(held)) if shape.micro > shape.pp else len(held)
    pairs = zip(forth[ahead:], back)  # noqa: B905 (Python 3.8)
    turns = [*forth[:ahead], *(turn for pair in pairs for turn in pair), *back[len(held) - ahead :]]
    found: list[tuple[str, int]] = []
    for way, chunk in turns:
        ends = (0, last) if way == FORWARD else (last, 0)
        made = ["recv_" * (stage + shape.pp * chunk != ends[0]) + way, way, "send_" + way]
        found += [(move, chunk) for move in dict.fromkeys(made[: 3 - (stage + shape.pp * chunk == ends[1])])]
    return found


def beside(shape: CellShape, place: int, move: str) -> int:
    """The place of the rank in the stage before or after, with which a rank makes this move."""
    stages = shape.members("pp", place)
    return stages[(stages.index(place) + (1 if move in WITH_NEXT else -1)) % len(stages)]


def train_calls(shape: CellShape, place: int) -> list[CollectiveCall]:
    """The calls of all steps of the training; every rank of a stage enters the same."""
    calls: list[CollectiveCall] = []
    for _ in range(shape.waver_tries):
        calls += [*_gradient_calls(shape, place, 0), *_sum_calls(shape, place, 0)]
    if shape.waver_tries and shape.world > 1:
        calls.append(CollectiveCall(0, "world", "all_reduce_max", "float32", 4))
    for step in range(shape.steps):
        calls += [*_gradient_calls(shape, place, step), *_sum_calls(shape, place, step)]
        if audited(shape, step):
            for _ in replicas_again(shape, 0):
                calls += _gradient_calls(shape, place, step)
        calls += _tie_calls(shape, place, step) if not shape.zero else []
        calls += _gather_calls(shape, place, step) if shape.zero or shape.ps else []
    return calls


def shard(shape: CellShape, place: int) -> int:
    """How many parameters of its stage a replica updates; the last one perhaps fewer."""
    return -(-_whole(shape, place) // shape.dp)


def _whole(shape: CellShape, place: int) -> int:
    held = parameters(shape.tp, shape.stages, shape.stage_of(place), shape.vpp)
    return sum(parameter.elements for parameter in held)


def _tie_calls(shape: CellShape, place: int, step: int) -> list[CollectiveCall]:
    size = parameters(shape.tp)[0].elements
    tied = len(shape.members("embedding", place)) > 1
    return [CollectiveCall(step, "embedding", "all_reduce", "float32", 4 * size)] * tied


def _gather_calls(shape: CellShape, place: int, step: int) -> list[CollectiveCall]:
    op, size = ("broadcast", _whole(shape, place)) if shape.ps else ("all_gather", shard(shape, place))
    end = shape.members("dp", place)[0] if shape.ps else -1
    return [CollectiveCall(step, "dp", op, "float32", 4 * size, end=end)]


def audit_calls(shape: CellShape) -> list[CollectiveCall]:
    """The call after the audit. Each rank audits alone; then all wait, so that none leaves early."""
    return [CollectiveCall(0, "world", "all_reduce", "float32", 4)] if shape.world > 1 else []


def _gradient_calls(shape: CellShape, place: int, step: int) -> list[CollectiveCall]:
    """One gradient of a split model; if it is cut in stages, the last one tells the others the loss."""
    rows, stage = 4 * SEQUENCES * LENGTH // (shape.micro or 1), shape.stage_of(place)
    activations = CollectiveCall(step, "tp", "all_reduce", "float32", rows * WIDTH)
    passes: dict[tuple[str, int], list[CollectiveCall]] = {}
    for chunk in range(shape.vpp):
        number, stages = stage + shape.stages * chunk, shape.stages * shape.vpp
        layers = [activations] * len(blocks(stages, number))
        passes[FORWARD, chunk] = [activations] * (number == 0) + layers
        passes[BACKWARD, chunk] = [activations] * (number == stages - 1) + layers
    passes[FORWARD, shape.vpp - 1] += [
        CollectiveCall(step, "tp", "all_reduce_max", "float32", rows),
        CollectiveCall(step, "tp", "all_reduce", "float32", 2 * rows),
    ] * (stage == shape.stages - 1)
    calls: list[CollectiveCall] = []
    for move, chunk in moves(shape, place):
        calls += _gather_calls(shape, place, step) if move == BACKWARD and shape.zero > 2 else []
        if (move, chunk) not in passes:
            peer, size = beside(shape, place, move), rows * WIDTH
            both = min(place, peer), max(place, peer)
            tag = int(shape.vpp > 1 and "backward" in move)
            calls.append(CollectiveCall(step, "pair", move, "float32", size, both, peer, tag))
        elif shape.tp > 1:
            calls += passes[move, chunk]
    told = CollectiveCall(step, "pp", "broadcast", "float32", 4, end=shape.members("pp", place)[-1])
    calls += [told] * (shape.stages > 1)
    return calls + _tie_calls(shape, place, step) if shape.zero else calls


def _sum_calls(shape: CellShape, place: int, step: int) -> list[CollectiveCall]:
    """The sum of the gradients of all replicas."""
    if shape.dp == 1:
        return []
    if shape.zero:
        return [CollectiveCall(step, "dp", "reduce_scatter", "float32", 4 * shard(shape, place) * shape.dp)]
    size = 4 * _whole(shape, place)
    slots = shape.tp if shape.dp_in_world else 1
    op, end = ("reduce", shape.members("dp", place)[0]) if shape.ps else ("all_reduce", -1)
    return [CollectiveCall(step, shape.sums_in, op, "float32", slots * size, end=end)]


def shown(shape: CellShape, step: int) -> bool:
    """Whether a rank reports the hashes of its batch at this step."""
    return step < 3 or step % 10 == 0 or step == shape.steps - 1


def audited(shape: CellShape, step: int) -> bool:
    """Whether replicas compute the gradient of this step again."""
    return step % 10 == 9 or step == shape.steps - 1


def replicas_again(shape: CellShape, dp: int) -> list[int]:
    """The replicas whose batches replica `dp` computes again in the training, itself first."""
    return voters(shape.dp, dp, max(shape.hosts) // shape.tp)


def places_again(shape: CellShape, place: int) -> list[int]:
    """The places whose batches a rank computes alone, its own first."""
    return voters(shape.world, place, max(shape.hosts))


def voters(count: int, own: int, apart: int = 1) -> list[int]:
    """A rank's own number, and those `apart` before it, on other hosts: hosts may have faults in common."""
    backs = dict.fromkeys(back % count for back in (0, apart, 2 * apart, 1, 2))
    return [(own - back) % count for back in list(backs)[:VOTES]]


GOLDEN_SIZE = 256
GOLDEN = "e1b359d627de9cf5"
"""The hash that `audit.golden` gives on a healthy device."""
