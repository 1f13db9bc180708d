"""The model with torch: a two-layer transformer that guesses hidden tokens, split over the ranks of a
tensor-parallel group, and perhaps cut in the stages of a pipeline.

All parameters lie in one flat buffer and all gradients in another, so that replicas need one all-reduce a
step. It is split as in Megatron-LM: vocabulary, heads and inner layer. https://arxiv.org/abs/1909.08053
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.optim.adam import adam

from doctor.smoke.onhost import framework
from doctor.smoke.onhost.comm import Comm
from doctor.smoke.onhost.corpus import HIDDEN, LENGTH, SEQUENCES
from doctor.smoke.onhost.framework import TokenSample
from doctor.smoke.onhost.parameters import HEADS, VOCABULARY, WIDTH, blocks, parameters
from doctor.smoke.onhost.trainplan import BACKWARD, FORWARD, WITH_NEXT, moves

ADAM: Any = {
    **dict.fromkeys(("foreach", "fused", "amsgrad", "maximize"), False),
    "beta1": 0.9,
    "beta2": 0.99,
    "weight_decay": 0.0,
    "eps": 1e-8,
}


class Model(framework.Model):
    """One rank's part of the model: of a stage, if it is cut."""

    def __init__(self, comm: Comm, device: torch.device) -> None:
        self.comm = comm
        shape = comm.shape
        self.heads = HEADS // shape.tp
        vocabulary = VOCABULARY // shape.tp
        self.first = shape.tp_of(comm.place) * vocabulary
        self.beyond = self.first + vocabulary
        stage = shape.stage_of(comm.place)
        self.stages = range(stage, shape.stages * shape.vpp, shape.stages)
        self.last, self.moves = shape.stages * shape.vpp - 1, moves(shape, comm.place)
        layout = parameters(shape.tp, shape.stages, stage, shape.vpp)
        count = sum(parameter.elements for parameter in layout)
        self.flat = torch.zeros(count, device=device)
        self.grad = torch.zeros(count, device=device)
        self.parts: dict[str, Tensor] = {}
        start = 0
        for parameter in layout:
            end = start + parameter.elements
            part = self.flat[start:end].view(parameter.size).requires_grad_(True)
            part.grad = self.grad[start:end].view(parameter.size)
            self.parts[parameter.name] = part
            start = end
        self.moments = torch.zeros_like(self.flat), torch.zeros_like(self.flat)
        self.count = torch.tensor(0.0)

    def load(self, data: bytes) -> None:
        if data:  # a stage may only pass on what it gets
            self.flat.copy_(torch.frombuffer(bytearray(data), dtype=torch.float32))

    def gradient(self, sample: TokenSample) -> float:
        """Make the moves of the schedule: what went forward waits until its gradient is back."""
        self.grad.zero_()
        parts = [x.chunk(self.comm.shape.micro or 1) for x in sample]
        hidden = sample.mask.sum().to(self.flat.dtype)
        loss = torch.zeros_like(hidden)
        waiting: dict[int, list[tuple[Tensor | None, Tensor]]] = {stage: [] for stage in self.stages}
        left = {stage: zip(*parts) for stage in self.stages}  # noqa: B905 (Python 3.8)
        x: Tensor | None = None
        above: Tensor | None = None
        y = below = loss
        """From the stage before, for the stage after, and the gradients of both."""
        for move, chunk in self.moves:
            stage = self.stages[chunk]
            if move == FORWARD:
                given, x = x, None
                y = self._forward(stage, TokenSample(*next(left[stage])), given, hidden)
                waiting[stage].append((given, y))
            elif move == BACKWARD:
                given, made = waiting[stage].pop(0)
                if self.gather:
                    self.gather()
                # Of a number: to begin with a given gradient, torch imports 40 MB of symbolic algebra.
                number = made if above is None or stage == self.last else (made * above.detach()).sum()
                number.backward()  # type: ignore[no-untyped-call]
                below = below if given is None or given.grad is None else given.grad
                loss = loss + made.detach() if stage == self.last else loss
            elif move in WITH_NEXT:
                above = self._hand(move, y)
            else:
                x = self._hand(move, below)
        if self.comm.shape.micro:
            self.comm.broadcast(loss, "pp", self.comm.shape.pp - 1)
        if self.comm.shape.zero:  # of shards, the two stages hold different parts of it
            self._tie()
        return float(loss)

    def _hand(self, move: str, out: Tensor) -> Tensor | None:
        """Give `out` to a stage beside this one, get the like from it, or both, as the move says."""
        into = torch.zeros(SEQUENCES // self.comm.shape.micro, LENGTH, WIDTH, device=self.flat.device)
        give, get = "send" in move, "recv" in move
        self.comm.hand(move, out.detach().contiguous() if give else None, into if get else None)
        return into.requires_grad_() if get else None

    def update(self, rate: float, replicas: int) -> None:
        """By torch's function: the class imports the whole compiler at first use, and makes a folder."""
        if not self.comm.shape.zero:
            self._tie()
        self.grad.div_(replicas)
        with torch.no_grad():
            first, second = self.moments
            adam([self.flat], [self.grad], [first], [second], [], [self.count], **ADAM, lr=rate)

    def _tie(self) -> None:
        """The first and the last stage both have the embedding: they sum its gradients."""
        if "embedding" in self.parts:
            self.comm.all_reduce(self.parts["embedding"].grad, "embedding")

    def _forward(self, stage: int, sample: TokenSample, x: Tensor | None, count: Tensor) -> Tensor:
        """What goes to the next stage; of the last one, the part's share of the loss of `count` tokens."""
        hidden = sample.mask.bool()
        if x is None:
            x = self._embedded(sample.tokens.masked_fill(hidden, HIDDEN))
        for layer, block in blocks(self.last + 1, stage):
            x = x + (self._attention if block == "attention" else self._inner)(x, layer)
        if stage < self.last:
            return x
        x = _through(_FanOut, self._norm(x, "last"), self.comm)
        logits = (x @ self.parts["embedding"].T).flatten(0, 1)
        losses: Tensor = _CrossEntropy.apply(  # type: ignore[no-untyped-call]
            logits, sample.labels.flatten(), self.first, self.beyond, self.comm
        )
        share: Tensor = (losses * hidden.flatten().to(losses.dtype)).sum() / count
        return share

    def _embedded(self, tokens: Tensor) -> Tensor:
        own = (tokens >= self.first) & (tokens < self.beyond)
        rows = functional.embedding((tokens - self.first) * own, self.parts["embedding"]) * own[..., None]
        return _through(_FanIn, rows, self.comm) + self.parts["positions"]

    def _attention(self, x: Tensor, layer: int) -> Tensor:
        """Attention over the heads that this rank has."""
        sequences, length, _ = x.shape
        y = _through(_FanOut, self._norm(x, f"{layer}.attention"), self.comm)
        qkv = (y @ self.parts[f"{layer}.qkv"].T).view(sequences, length, 3, self.heads, WIDTH // HEADS)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        weights = torch.softmax(query @ key.transpose(-1, -2) / math.sqrt(WIDTH // HEADS), -1)
        heads = (weights @ value).transpose(1, 2).reshape(sequences, length, -1)
        return _through(_FanIn, heads @ self.parts[f"{layer}.out"].T, self.comm)

    def _inner(self, x: Tensor, layer: int) -> Tensor:
        y = _through(_FanOut, self._norm(x, f"{layer}.inner"), self.comm)
        inner = functional.gelu(y @ self.parts[f"{layer}.up"].T)
        return _through(_FanIn, inner @ self.parts[f"{layer}.down"].T, self.comm)

    def _norm(self, x: Tensor, name: str) -> Tensor:
        scale, shift = self.parts[f"{name}.scale"], self.parts[f"{name}.shift"]
        return functional.layer_norm(x, (WIDTH,), scale, shift)


class _FanOut(torch.autograd.Function):
    """Passes the same value to all ranks of the group; their gradients are summed."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, comm: Comm) -> Tensor:
        ctx.comm = comm
        return x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        total = gradients[0].clone(memory_format=torch.contiguous_format)
        ctx.comm.all_reduce(total, "tp")
        return total, None


class _FanIn(torch.autograd.Function):
    """Sums the values of the ranks of the group; each rank gets the gradient of the sum."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor, comm: Comm) -> Tensor:
        total = x.clone(memory_format=torch.contiguous_format)
        comm.all_reduce(total, "tp")
        return total

    @staticmethod
    def backward(_ctx: Any, *gradients: Tensor) -> Any:
        return gradients[0], None


class _CrossEntropy(torch.autograd.Function):
    """Cross-entropy over split logits: the rank has those of tokens from `first` to before `beyond`."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, first: int, beyond: int, comm: Comm) -> Tensor:
        highest = logits.max(-1).values
        comm.all_reduce(highest, "tp", maximum=True)
        lowered = logits - highest[:, None]
        own = (labels >= first) & (labels < beyond)
        column = (labels - first) * own
        exponents = lowered.exp()
        sums = torch.stack([lowered.gather(1, column[:, None])[:, 0] * own, exponents.sum(-1)])
        comm.all_reduce(sums, "tp")
        ctx.save_for_backward(exponents / sums[1][:, None], own, column)
        return sums[1].log() - sums[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        probabilities, own, column = ctx.saved_tensors
        off = probabilities.scatter_add(1, column[:, None], -own.to(probabilities.dtype)[:, None])
        return off * gradients[0][:, None], None, None, None, None


def _through(kind: type[torch.autograd.Function], x: Tensor, comm: Comm) -> Tensor:
    out: Tensor = kind.apply(x, comm)  # type: ignore[no-untyped-call]
    return out
