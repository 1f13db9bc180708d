"""The training of one rank, and what it reports of every step. Injected faults replace methods."""

from __future__ import annotations

import math
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from doctor.agents.onhost.process import HeldProcess
from doctor.smoke.onhost.comm import Comm
from doctor.smoke.onhost.corpus import batch_of
from doctor.smoke.onhost.encoding import decoded, encoded
from doctor.smoke.onhost.framework import Model, TokenSample
from doctor.smoke.onhost.parameters import initial_parameters
from doctor.smoke.onhost.random_bytes import hashed
from doctor.smoke.onhost.streamplan import stream_seed
from doctor.smoke.onhost.streams import Streams
from doctor.smoke.onhost.trainplan import audited, replicas_again, shard, shown

if TYPE_CHECKING:
    Sums = tuple[float, float]

RATE = 3e-3
WARM_UP = 5


class Trainer:
    """The training of one rank: data parallel over `dp`, tensor parallel over `tp`."""

    def __init__(self, comm: Comm) -> None:
        self.comm = comm
        self.shape = comm.shape
        self.dp = comm.shape.dp_of(comm.place)
        self.framework = comm.framework
        self.model: Model = comm.framework.model(comm)
        self.streams = Streams(comm.framework)
        self.wavers = False
        """Whether any rank of the cell gets different bits from time to time."""
        self.bytes = 4 * shard(self.shape, comm.place) if self.shape.zero else 0
        """Of a shard."""
        if self.shape.zero > 2:
            self.model.gather = self._gather
        self.process: HeldProcess | None = None
        with suppress(OSError):  # without /proc
            self.process = HeldProcess(os.getpid())

    def run(self) -> None:
        self.begin()
        for step in range(self.shape.steps):
            self.comm.page.enter_phase("train", step)
            self.step_begins(step)
            self.step(step)

    def begin(self) -> None:
        self.comm.held, self.comm.sizes = {}, {}
        self.streams.seed(stream_seed(self.shape, self.dp))
        self.model.load(self.initial())
        self.comm.say({"ev": "init", "params": self.fingerprint()})
        if self.shape.waver_tries:
            self.wavers = self._try_bits()

    def step(self, step: int) -> None:
        queued = self._queued()
        before = self.fingerprint() if self.shape.zero or self.shape.ps else ""  # the step overwrites them
        sample, streams = self.batch(step), self.streams.draw()
        self.comm.sums = shown(self.shape, step)
        if self.comm.sums:
            hashes: dict[str, Any] = {name: self.fingerprint(x) for name, x in sample._asdict().items()}
            self.comm.say({"ev": "batch", "step": step, **hashes, "streams": streams})
        began, burnt, waited = time.perf_counter(), self.framework.burnt(), self.comm.wait
        idle = self.comm.idle
        loss = self.gradient(sample)
        self.framework.synchronise()
        cpu = self.framework.burnt() - burnt
        compute = max(0.0, time.perf_counter() - began - (self.comm.wait - waited))
        own, shards = self._projection(), self._shards()
        used = self.fingerprint(self.model.grad) if audited(self.shape, step) else ""
        self.reduce()
        wait, idle = self.comm.wait - waited, self.comm.idle - idle
        reduced = self._projection()[0]
        if used:
            self._audit(step, used, own)
        self.update(step)
        held, sizes = self.comm.held or {}, self.comm.sizes
        self.comm.held, self.comm.sizes = {}, {}
        self.comm.say(
            {
                "ev": "step",
                "step": step,
                "loss": loss if math.isfinite(loss) else None,
                "finite": math.isfinite(loss) and math.isfinite(own[1]),
                "params": hashed((before + self.fingerprint()).encode()) if before else self.fingerprint(),
                "own": _finite(own),
                "reduced": reduced if math.isfinite(reduced) else None,
                "shards": shards if all(map(math.isfinite, shards)) else [],
                "weights": _finite(self.framework.projection(self.model.flat)) if self.wavers else None,
                "cpu": cpu if self.framework.on_cpu else compute,
                "compute": compute,
                "wait": wait,
                "idle": idle,
                "entered": dict(self.comm.seq),
                "sizes": sizes,
                "held": {name: each for name, each in held.items() if all(map(math.isfinite, each))},
                "queued": max(0.0, self._queued() - queued),
            }
        )

    def _queued(self) -> float:
        """For how many seconds it could have run so far, and others had its processor."""
        turns = self.process.turns() if self.process else None
        return turns[1] if turns else 0.0

    # Methods that injected faults replace.

    def step_begins(self, step: int) -> None:
        """Do nothing; faults replace this."""

    def initial(self) -> bytes:
        return initial_parameters(self.shape, self.comm.place)

    def batch(self, step: int) -> TokenSample:
        return self.batch_of(step, self.dp)

    def gradient(self, sample: TokenSample) -> float:
        """Leave the rank's own gradient in the model and return the loss."""
        return self.model.gradient(sample)

    def reduce(self) -> None:
        """Sum the gradient over the replicas."""
        self._sum()

    def rate(self, step: int) -> float:
        return RATE * min(1.0, (step + 1) / WARM_UP)

    def update(self, step: int) -> None:
        """One step of Adam with the mean of the replicas' gradients."""
        self.model.update(self.rate(step), self.shape.dp)
        if self.shape.zero or self.shape.ps:
            self._gather()

    # Methods that faults never replace.

    def batch_of(self, step: int, dp: int) -> TokenSample:
        """The batch that a replica should have."""
        return self.framework.sample(batch_of(self.shape, step, dp))

    def _sum(self) -> None:
        """Sum the gradient over the replicas; in the world, each tensor-parallel place has its own slot."""
        grad = self.model.grad
        if self.shape.zero:
            data = self.framework.bytes_of(grad)
            whole = self.framework.tensor(data.ljust(self.bytes * self.shape.dp, b"\0"), "float32")
            part = self.framework.bytes_of(self.comm.reduce_scatter(whole, "dp"))
            self.framework.write(grad, self._only(self.dp, part, len(data)))
        elif self.shape.ps:
            self.comm.reduce(grad, "dp")
            if self.dp:  # what it holds now is undefined
                self.framework.write(grad, bytes(4 * self.framework.size_of(grad)))
        elif not self.shape.dp_in_world:
            self.comm.all_reduce(grad, "dp")
        elif self.shape.dp > 1:
            data, place = self.framework.bytes_of(grad), self.shape.tp_of(self.comm.place)
            before, after = place * len(data), (self.shape.tp - 1 - place) * len(data)
            slots = self.framework.tensor(bytes(before) + data + bytes(after), "float32")
            self.comm.all_reduce(slots, "world")
            self.framework.write(grad, self.framework.bytes_of(slots)[before : before + len(data)])

    def _only(self, dp: int, part: bytes, size: int) -> bytes:
        """A gradient of so many bytes that is zero outside of the shard of one replica."""
        return (bytes(self.bytes * dp) + part).ljust(size, b"\0")[:size]

    def _shards(self) -> list[float]:
        """The projections of each shard of the gradient; a parameter server has all of it."""
        if self.shape.ps:
            return [self._projection()[0], *[0.0] * (self.shape.dp - 1)]
        data, framework = self.framework.bytes_of(self.model.grad) if self.bytes else b"", self.framework
        starts = range(0, len(data), self.bytes) if self.bytes else ()
        parts = (self._only(at // self.bytes, data[at : at + self.bytes], len(data)) for at in starts)
        return [framework.projection(framework.tensor(part, "float32"))[0] for part in parts]

    def _gather(self) -> None:
        """Get from each replica the parameters that it has updated."""
        if self.shape.ps:
            self.comm.broadcast(self.model.flat, "dp")
            return
        data = self.framework.bytes_of(self.model.flat)
        own = data[self.bytes * self.dp : self.bytes * (self.dp + 1)].ljust(self.bytes, b"\0")
        whole = self.comm.all_gather(self.framework.tensor(own, "float32"), "dp")
        self.framework.write(self.model.flat, self.framework.bytes_of(whole)[: len(data)])

    def _try_bits(self) -> bool:
        """Whether any rank of the cell gets different bits when it computes its first gradient again."""
        sample, hashes, sums = self.batch_of(0, self.dp), [], []
        for _ in range(self.shape.waver_tries):
            self.model.gradient(sample)
            alone = self.fingerprint(self.model.grad)
            sums.append(self._projection())
            self._sum()
            hashes.append(hashed((alone + self.fingerprint(self.model.grad)).encode()))
        least, most = min(sums), max(sums)
        spread = (most[0] - least[0]) / (most[1] or 1.0)
        self.comm.say({"ev": "bits", "tries": hashes, "spread": spread if math.isfinite(spread) else 0.0})
        differ = self.framework.tensor(encoded([int(len(set(hashes)) > 1)], "float32"), "float32")
        self.comm.all_reduce(differ, "world", maximum=True)
        return any(decoded(self.framework.bytes_of(differ), "float32"))

    def fingerprint(self, x: Any = None) -> str:
        """The hash of a tensor; without one, of the parameters."""
        return hashed(self.framework.bytes_of(self.model.flat if x is None else x))

    def _audit(self, step: int, used: str, own: Sums) -> None:
        """Compute the gradients of some replicas again, before the parameters move on."""
        reduced = self.framework.bytes_of(self.model.grad)
        votes, sums = [], [own]
        for replica in replicas_again(self.shape, self.dp):
            self.model.gradient(self.batch_of(step, replica))
            votes.append(self.fingerprint(self.model.grad))
            sums.append(self._projection())
        self.framework.write(self.model.grad, reduced)
        self.comm.say({"ev": "audit", "step": step, "used": used, "votes": votes, **self.numbers(sums)})

    def numbers(self, sums: list[Sums]) -> dict[str, list[Sums]]:
        """Sums to compare beside the hashes, if equal bits cannot be expected."""
        return {"sums": sums} if self.wavers and all(math.isfinite(each[1]) for each in sums) else {}

    def _projection(self) -> Sums:
        return self.framework.projection(self.model.grad)


def _finite(sums: Sums) -> Sums | None:
    return sums if math.isfinite(sums[1]) else None
