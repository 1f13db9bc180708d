"""A small BERT with MindSpore: two replicas, each split over two ranks. job.sh starts it, after a preflight.

    msrun --worker_num=4 --local_worker_num=4 --join=True train.py [--wrong-seed]

The data set draws the mask, as the loaders of BERT do. With --wrong-seed each rank seeds it by its own
number, and the ranks of a replica combine parts of different samples. It needs no NPU.
"""

import argparse
import math

import mindspore
import numpy
from mindspore import Parameter, Tensor, dataset, nn, ops
from mindspore.communication import create_group, get_group_size, get_rank, init

from doctor.smoke.hook import batch

PARTS = 2  # ranks of a replica
VOCABULARY, LENGTH, BATCH, MASKED, HIDDEN = 32, 16, 32, 3, 32
WIDTH, HEADS, LAYERS, RATE = 64, 4, 2, 0.003


def loader(replica, seed, steps):
    """Sentences that count up, and their hidden words. Several workers would draw in any order."""
    starts = numpy.random.RandomState(100 + replica)

    def sentences():
        for _ in range(steps * BATCH):
            yield ((starts.randint(VOCABULARY) + numpy.arange(LENGTH)) % VOCABULARY,)

    def masked(tokens):
        mask = numpy.zeros(LENGTH, bool)
        mask[numpy.random.choice(LENGTH, MASKED, replace=False)] = True
        return tokens, mask, numpy.where(mask, tokens, -100)

    numpy.random.seed(seed)
    rows = dataset.GeneratorDataset(sentences, ["tokens"], shuffle=False, python_multiprocessing=False)
    columns = ["tokens", "mask", "labels"]
    rows = rows.map(masked, ["tokens"], columns, num_parallel_workers=1, python_multiprocessing=False)
    return rows.batch(BATCH, num_parallel_workers=1)


class FanOut(nn.Cell):
    """Passes its input to all ranks of the replica; their gradients are summed."""

    def __init__(self, group):
        super().__init__()
        self.add = ops.AllReduce(group=group)

    def construct(self, x):
        return x * 1.0

    def bprop(self, x, out, dout):  # noqa: ARG002
        return (self.add(dout * 1.0),)


class FanIn(nn.Cell):
    """Sums what the ranks of the replica have computed."""

    def __init__(self, group):
        super().__init__()
        self.add = ops.AllReduce(group=group)

    def construct(self, x):
        return self.add(x * 1.0)

    def bprop(self, x, out, dout):  # noqa: ARG002
        return (dout,)


class Bert(nn.Cell):
    """Each rank has half of the heads and half of the inner layers; the embeddings and norms are whole."""

    def __init__(self, group, part):
        super().__init__()
        self.fan_out, self.fan_in = FanOut(group), FanIn(group)
        self.norm = ops.LayerNorm(begin_norm_axis=-1, begin_params_axis=-1, epsilon=1e-5)
        shared, own = numpy.random.RandomState(1), numpy.random.RandomState(2 + part)
        self.weights = {"words": (VOCABULARY + 1, WIDTH), "places": (LENGTH, WIDTH)}
        halves = {"qkv": (WIDTH, 3 * WIDTH // PARTS), "out": (WIDTH // PARTS, WIDTH)}
        halves.update(up=(WIDTH, 4 * WIDTH // PARTS), down=(4 * WIDTH // PARTS, WIDTH))
        sizes = dict(self.weights)
        sizes.update({f"{name}{layer}": halves[name] for name in halves for layer in range(LAYERS)})
        self.weights = {}
        for name, size in sizes.items():
            drawn = (shared if name in ("words", "places") else own).randn(*size) * 0.1
            self.weights[name] = Parameter(Tensor(drawn.astype(numpy.float32)), name=name)
        self.one, self.zero = (Tensor(numpy.full(WIDTH, x, numpy.float32)) for x in (1, 0))

    def construct(self, tokens):
        w = self.weights
        x = ops.gather(w["words"], tokens, 0) + w["places"]
        for layer in range(LAYERS):
            x = x + self.attention(self.split(x), w[f"qkv{layer}"], w[f"out{layer}"])
            inner = ops.relu(ops.matmul(self.split(x), w[f"up{layer}"]))
            x = x + self.fan_in(ops.matmul(inner, w[f"down{layer}"]))
        return ops.matmul(self.normed(x), w["words"][:VOCABULARY].T)

    def normed(self, x):
        return self.norm(x, self.one, self.zero)[0]

    def split(self, x):
        return self.fan_out(self.normed(x))

    def attention(self, x, qkv, out):
        rows, length, _ = x.shape
        size = WIDTH // HEADS
        heads = ops.matmul(x, qkv).reshape(rows, length, 3, HEADS // PARTS, size).transpose(2, 0, 3, 1, 4)
        scores = ops.softmax(ops.matmul(heads[0], heads[1].swapaxes(-1, -2)) / math.sqrt(size), -1)
        mixed = ops.matmul(scores, heads[2]).swapaxes(1, 2).reshape(rows, length, -1)
        return self.fan_in(ops.matmul(mixed, out))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--wrong-seed", action="store_true")
    options.add_argument("--steps", type=int, default=60)
    asked = options.parse_args()
    init()
    rank, world = get_rank(), get_group_size()
    replica, part = divmod(rank, PARTS)
    model_ranks = list(range(replica * PARTS, (replica + 1) * PARTS))
    data_ranks = list(range(part, world, PARTS))
    create_group(f"model-{replica}", model_ranks)
    create_group(f"data-{part}", data_ranks)
    add = ops.AllReduce(group=f"data-{part}")

    model = Bert(f"model-{replica}", part)
    weights = list(model.weights.values())
    optimizer = nn.Adam(weights, learning_rate=RATE)

    def loss_of(seen, labels):
        return ops.cross_entropy(model(seen).reshape(-1, VOCABULARY), labels.reshape(-1), ignore_index=-100)

    gradient_of = mindspore.value_and_grad(loss_of, None, weights)
    # Every rank of a replica must draw the same mask, and every replica another one.
    seed = 7 + (rank if asked.wrong_seed else replica)
    samples = loader(replica, seed, asked.steps).create_tuple_iterator(num_epochs=1)
    for step, (tokens, mask, labels) in enumerate(samples, 1):
        batch(tokens, mask, labels, model_parallel=model_ranks, data_parallel=data_ranks)
        seen = ops.masked_fill(tokens, mask, HIDDEN)
        loss, gradients = gradient_of(seen, labels.astype(mindspore.int32))
        optimizer(tuple(add(gradient) / (world // PARTS) for gradient in gradients))
        if step % 10 == 0 and rank == 0:
            print(f"step {step:2}  loss {float(loss.asnumpy()):.4f}", flush=True)


if __name__ == "__main__":
    main()
