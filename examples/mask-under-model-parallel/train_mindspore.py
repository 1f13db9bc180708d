"""The same training as in train.py, with MindSpore. The ranks exchange their hashes through a new directory.

    export DOCTOR_HOOK_DIR=$(mktemp -d)        on several hosts: a directory that all of them see
    msrun --worker_num=4 --local_worker_num=4 --join=True train_mindspore.py --bug
    msrun --worker_num=4 --local_worker_num=4 --join=True train_mindspore.py

It needs no NPU. If cluster-doctor is not installed, use the hook as a single file; see docs/smoke-hook.md.
"""

import argparse
import random

import mindspore
import numpy
from mindspore import Tensor, ops
from mindspore.communication import create_group, get_group_size, get_rank, init

GROUP = 2  # ranks of a replica
VOCABULARY, LENGTH, BATCH, MASKED, HIDDEN, RATE = 32, 16, 32, 4, 64, 2.0


def sequences(step, replica):
    """Numbers that count up from a random start and wrap around: the neighbours of a token determine it."""
    starts = numpy.random.RandomState(1000 * step + replica).randint(VOCABULARY, size=(BATCH, 1))
    return (starts + numpy.arange(LENGTH)) % VOCABULARY


def drawn_mask(drawing):
    rows = numpy.zeros((BATCH, LENGTH), bool)
    for row in rows:
        row[drawing.sample(range(1, LENGTH - 1), MASKED)] = True
    return rows


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--bug", action="store_true")
    options.add_argument("--no-hook", action="store_true")
    options.add_argument("--steps", type=int, default=60)
    asked = options.parse_args()
    init()
    rank, world = get_rank(), get_group_size()
    replica, part = divmod(rank, GROUP)
    model_ranks = list(range(replica * GROUP, (replica + 1) * GROUP))
    data_ranks = list(range(part, world, GROUP))
    create_group(f"model-{replica}", model_ranks)
    create_group(f"data-{part}", data_ranks)
    add_halves, add = ops.AllReduce(group=f"model-{replica}"), ops.AllReduce(group=f"data-{part}")

    # The bug: the ranks of one replica draw different masks, and combine parts that do not belong together.
    drawing = random.Random(rank if asked.bug else replica)

    start = numpy.random.RandomState(part)
    sizes = [(VOCABULARY + 1, HIDDEN), (VOCABULARY + 1, HIDDEN), (HIDDEN, VOCABULARY // GROUP)]
    weights = [Tensor((start.randn(*size) * 0.3).astype(numpy.float32)) for size in sizes]

    def logits(left, right, output, before, after):
        return ops.matmul(ops.tanh(ops.gather(left, before, 0) + ops.gather(right, after, 0)), output)

    def loss_of(left, right, output, before, after, others, labels):
        """`others`: the logits of all ranks of the replica. Only this rank's own depend on its weights."""
        mine = logits(left, right, output, before, after)
        halves = [mine if number == part else others[number] for number in range(GROUP)]
        return ops.cross_entropy(ops.concat(halves, 1), labels)

    gradient_of = mindspore.value_and_grad(loss_of, (0, 1, 2))
    for step in range(asked.steps):
        tokens, mask = sequences(step, replica), drawn_mask(drawing)
        labels = numpy.where(mask, tokens, -100)
        if not asked.no_hook:
            from doctor.smoke.hook import batch

            batch(tokens, mask, labels, model_parallel=model_ranks, data_parallel=data_ranks)
        seen = numpy.where(mask, VOCABULARY, tokens)
        before, after = (Tensor(numpy.roll(seen, by, 1)[mask], mindspore.int32) for by in (1, -1))
        # On a CPU, MindSpore gathers only over all ranks, so the others' logits are added to zeros instead.
        mine = logits(*weights, before, after)
        others = add_halves(ops.stack([mine if n == part else ops.zeros_like(mine) for n in range(GROUP)]))
        loss, gradients = gradient_of(*weights, before, after, others, Tensor(labels[mask], mindspore.int32))
        for number, gradient in enumerate(gradients):
            weights[number] = weights[number] - RATE * add(gradient) / (world // GROUP)
        if step % 10 == 9 and rank == 0:
            value = float(loss.asnumpy())
            print(f"step {step + 1:2}  loss {value:.4f}  {value.hex()}", flush=True)


if __name__ == "__main__":
    main()
