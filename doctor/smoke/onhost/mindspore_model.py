"""The model with MindSpore: see `torch_model`, whose parameters, cuts and collectives it has."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mindspore
from mindspore import Parameter, Tensor, mint, nn, ops

from doctor.smoke.onhost import framework
from doctor.smoke.onhost.comm import Comm
from doctor.smoke.onhost.corpus import HIDDEN
from doctor.smoke.onhost.framework import TokenSample
from doctor.smoke.onhost.parameters import HEADS, LAYERS, VOCABULARY, WIDTH, parameters


class Model(framework.Model):
    """One rank's part of the model. All parameters are parts of one, so that there is one gradient."""

    def __init__(self, comm: Comm, tensor: Callable[[bytes, str], Any]) -> None:
        self.comm, self.tensor = comm, tensor
        shape = comm.shape
        self.heads = HEADS // shape.tp
        self.vocabulary = VOCABULARY // shape.tp
        self.first = shape.tp_of(comm.place) * self.vocabulary
        self.beyond = self.first + self.vocabulary
        self.layout = parameters(shape.tp)
        count = sum(parameter.elements for parameter in self.layout)
        self.flat = Parameter(tensor(bytes(4 * count), "float32"), name="flat")
        self.grad = tensor(bytes(4 * count), "float32")
        self.moments = tensor(bytes(4 * count), "float32"), tensor(bytes(4 * count), "float32")
        self.steps = 0
        self.fan_out, self.fan_in, self.cross_entropy = _FanOut(comm), _FanIn(comm), _CrossEntropy(self)
        # The function layer_norm has no kernel on the CPU.
        self.layer_norm = ops.LayerNorm(begin_norm_axis=-1, begin_params_axis=-1, epsilon=1e-5)
        self.value_and_grad = mindspore.value_and_grad(self.loss, None, [self.flat])

    def load(self, data: bytes) -> None:
        self.flat.assign_value(self.tensor(data, "float32"))

    def gradient(self, sample: TokenSample) -> float:
        loss, (grad,) = self.value_and_grad(*sample)
        self.grad = grad * 1.0
        self.grad.asnumpy()
        return float(loss.asnumpy())

    def update(self, rate: float, replicas: int) -> None:
        grad = self.grad / replicas
        self.steps += 1
        mean = self.moments[0] * 0.9 + grad * 0.1
        square = self.moments[1] * 0.99 + grad * grad * 0.01
        self.moments = mean, square
        size = ops.sqrt(square / (1 - 0.99**self.steps)) + 1e-8
        self.flat.assign_value(self.flat - mean / (1 - 0.9**self.steps) / size * rate)
        self.flat.asnumpy()

    def loss(self, tokens: Any, mask: Any, labels: Any) -> Any:
        cut = mint.split(self.flat, [parameter.elements for parameter in self.layout])
        parts = {each.name: part.reshape(each.size) for each, part in zip(self.layout, cut)}  # noqa: B905
        hidden = mask.astype(mindspore.bool_)
        x = self._embedded(ops.masked_fill(tokens, hidden, HIDDEN), parts)
        for layer in range(LAYERS):
            x = x + self._attention(x, layer, parts)
            x = x + self._inner(x, layer, parts)
        x = self.fan_out(self._norm(x, "last", parts))
        logits = ops.matmul(x, parts["embedding"].T).reshape(-1, self.vocabulary)
        losses = self.cross_entropy(logits, labels.reshape(-1))
        weights = hidden.reshape(-1).astype(mindspore.float32)
        return (losses * weights).sum() / weights.sum()

    def own_columns(self, tokens: Any) -> tuple[Any, Any]:
        """Which of the tokens this rank has, and their rows; 0 for those of others."""
        own = ops.logical_and(tokens >= self.first, tokens < self.beyond)
        return own.astype(mindspore.float32), (tokens - self.first) * own.astype(mindspore.int64)

    def _embedded(self, tokens: Any, parts: dict[str, Any]) -> Any:
        own, rows = self.own_columns(tokens)
        return self.fan_in(ops.gather(parts["embedding"], rows, 0) * own[..., None]) + parts["positions"]

    def _attention(self, x: Any, layer: int, parts: dict[str, Any]) -> Any:
        """Attention over the heads that this rank has."""
        sequences, length, _ = x.shape
        qkv = ops.matmul(self.fan_out(self._norm(x, f"{layer}.attention", parts)), parts[f"{layer}.qkv"].T)
        qkv = qkv.reshape(sequences, length, 3, self.heads, WIDTH // HEADS).transpose(2, 0, 3, 1, 4)
        query, key, value = qkv[0], qkv[1], qkv[2]
        weights = ops.softmax(ops.matmul(query, key.swapaxes(-1, -2)) / math.sqrt(WIDTH // HEADS), -1)
        heads = ops.matmul(weights, value).swapaxes(1, 2).reshape(sequences, length, -1)
        return self.fan_in(ops.matmul(heads, parts[f"{layer}.out"].T))

    def _inner(self, x: Any, layer: int, parts: dict[str, Any]) -> Any:
        y = self.fan_out(self._norm(x, f"{layer}.inner", parts))
        inner = ops.gelu(ops.matmul(y, parts[f"{layer}.up"].T), approximate="none")
        return self.fan_in(ops.matmul(inner, parts[f"{layer}.down"].T))

    def _norm(self, x: Any, name: str, parts: dict[str, Any]) -> Any:
        return self.layer_norm(x, parts[f"{name}.scale"], parts[f"{name}.shift"])[0]


class _FanOut(nn.Cell):  # type: ignore[misc]
    """Passes the same value to all ranks of the group; their gradients are summed."""

    def __init__(self, comm: Comm) -> None:
        super().__init__()
        self.comm = comm

    def construct(self, x: Any) -> Any:
        return x * 1.0

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:  # noqa: ARG002
        total = dout * 1.0
        self.comm.all_reduce(total, "tp")
        return (total,)


class _FanIn(nn.Cell):  # type: ignore[misc]
    """Sums the values of the ranks of the group; each rank gets the gradient of the sum."""

    def __init__(self, comm: Comm) -> None:
        super().__init__()
        self.comm = comm

    def construct(self, x: Any) -> Any:
        total = x * 1.0
        self.comm.all_reduce(total, "tp")
        return total

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:  # noqa: ARG002
        return (dout,)


class _CrossEntropy(nn.Cell):  # type: ignore[misc]
    """Cross-entropy over split logits: the rank has those of tokens from `first` to before `beyond`."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        self.saved: Any = None

    def construct(self, logits: Any, labels: Any) -> Any:
        comm = self.model.comm
        highest = logits.max(axis=-1) * 1.0
        comm.all_reduce(highest, "tp", maximum=True)
        lowered = logits - highest[:, None]
        own, column = self.model.own_columns(labels)
        exponents = ops.exp(lowered)
        sums = ops.stack([ops.gather_elements(lowered, 1, column[:, None])[:, 0] * own, exponents.sum(-1)])
        comm.all_reduce(sums, "tp")
        self.saved = exponents / sums[1][:, None], own, column
        return ops.log(sums[1]) - sums[0]

    def bprop(self, logits: Any, labels: Any, out: Any, dout: Any) -> Any:  # noqa: ARG002
        probabilities, own, column = self.saved
        one, zero = Tensor(1.0, mindspore.float32), Tensor(0.0, mindspore.float32)
        off = probabilities - ops.one_hot(column, self.model.vocabulary, one, zero) * own[:, None]
        return off * dout[:, None], ops.zeros_like(labels)
