"""A small masked-language model under model parallelism, with and without the bug that keeps its loss up.

    torchrun --standalone --nproc-per-node 4 train.py --bug      the mask is drawn per process: loss stays up
    torchrun --standalone --nproc-per-node 4 train.py            the mask is drawn per replica: loss falls

Ranks 0-1 hold one replica of the model, ranks 2-3 the other. Each rank of a replica computes the logits of
one half of the vocabulary, at the masked positions. --no-hook skips the three lines of the hook.
"""

import argparse
import random

import torch
import torch.distributed as dist
from torch.nn import functional

GROUP = 2  # ranks of a replica
VOCABULARY, LENGTH, BATCH, MASKED, HIDDEN, RATE = 32, 16, 32, 4, 64, 2.0


def sequences(step: int, replica: int) -> torch.Tensor:
    """Numbers that count up from a random start and wrap around: the neighbours of a token determine it."""
    data = torch.Generator().manual_seed(1000 * step + replica)
    return (torch.randint(VOCABULARY, (BATCH, 1), generator=data) + torch.arange(LENGTH)) % VOCABULARY


def drawn_mask(drawing: random.Random) -> torch.Tensor:
    rows = torch.zeros(BATCH, LENGTH, dtype=torch.bool)
    for row in rows:
        row[drawing.sample(range(1, LENGTH - 1), MASKED)] = True
    return rows


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--bug", action="store_true")
    options.add_argument("--no-hook", action="store_true")
    options.add_argument("--steps", type=int, default=60)
    asked = options.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    replica, part = divmod(rank, GROUP)
    model_groups = [dist.new_group(range(first, first + GROUP)) for first in range(0, world, GROUP)]
    data_groups = [dist.new_group(range(first, world, GROUP)) for first in range(GROUP)]
    model_group, data_group = model_groups[replica], data_groups[part]

    # The bug: the ranks of one replica draw different masks, and combine parts that do not belong together.
    drawing = random.Random(rank if asked.bug else replica)

    start = torch.Generator().manual_seed(part)
    sizes = [(VOCABULARY + 1, HIDDEN), (VOCABULARY + 1, HIDDEN), (HIDDEN, VOCABULARY // GROUP)]
    left, right, output = weights = [torch.randn(size, generator=start) * 0.3 for size in sizes]
    for weight in weights:
        weight.requires_grad_()
    for step in range(asked.steps):
        tokens, mask = sequences(step, replica), drawn_mask(drawing)
        labels = tokens.masked_fill(~mask, -100)
        if not asked.no_hook:
            from doctor.smoke.hook import batch

            batch(tokens, mask, labels, model_parallel=model_group, data_parallel=data_group)
        seen = tokens.masked_fill(mask, VOCABULARY)
        hidden = torch.tanh(left[seen.roll(1, 1)[mask]] + right[seen.roll(-1, 1)[mask]])
        mine = hidden @ output
        halves = [torch.empty_like(mine) for _ in range(GROUP)]
        dist.all_gather(halves, mine.detach(), group=model_group)
        halves[part] = mine
        loss = functional.cross_entropy(torch.cat(halves, 1), labels[mask])
        for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
            dist.all_reduce(gradient, group=data_group)
            weight.data -= RATE * gradient / (world // GROUP)
        if step % 10 == 9 and rank == 0:
            value = float(loss.item())
            print(f"step {step + 1:2}  loss {value:.4f}  {value.hex()}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
