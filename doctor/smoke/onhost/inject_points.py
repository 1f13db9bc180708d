"""How injected faults get into a rank: they wrap methods of its `Comm` and `Trainer`, and mark its page."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from doctor.smoke.onhost.comm import Comm
from doctor.smoke.onhost.corpus import mask_of, masked, tokens_of
from doctor.smoke.onhost.framework import TokenSample
from doctor.smoke.onhost.page import PHASES, RankPage
from doctor.smoke.onhost.train import Trainer


def wrap(thing: Any, name: str, around: Callable[..., Any]) -> None:
    """Replace a method by `around`, which gets the original method as its first argument."""
    setattr(thing, name, functools.partial(around, getattr(thing, name)))


class FaultyRank:
    """The rank that gets a fault, and the places where faults get in."""

    def __init__(
        self, comm: Comm, trainer: Trainer, page: RankPage, step: int | None, group: str = ""
    ) -> None:
        self.comm = comm
        self.trainer = trainer
        self.page = page
        self.step = step or 0
        self.early = step is None
        """Whether no step was given: it is in the collectives phase."""
        self.named = bool(group)
        usual = "dp" if comm.shape.dp > 1 else "tp" if comm.shape.tp > 1 else "embedding"
        self.group = group or (comm.shape.sums_in if usual == "dp" else usual)
        """The group whose sum is changed by faults in the training's collectives."""
        own = "reduce_scatter" if comm.shape.zero else "reduce" if comm.shape.ps else "all_reduce"
        sums = own if self.group == "dp" else "all_reduce"
        self.op = {"pp": "broadcast", "pair": "", "ep": "all_to_all"}.get(self.group, sums)

    def at_step(self, do: Callable[[], Any]) -> None:
        """Do this once: when the step begins, or instead of a call of the named group."""

        def begins(inner: Callable[[int], None], step: int) -> None:
            inner(step)
            if step == self.step:
                self.page.disturb()
                do()

        if self.named:
            return self.one_call(lambda _, __: do())
        return wrap(self.trainer, "step_begins", begins)

    def each_batch(self, change: Callable[[int, TokenSample], TokenSample]) -> None:
        """Change all batches from the step on."""

        def batch(inner: Callable[[int], TokenSample], step: int) -> TokenSample:
            sample = inner(step)
            if step < self.step:
                return sample
            self.page.disturb()
            return change(step, sample)

        wrap(self.trainer, "batch", batch)

    def each_gradient(self, change: Callable[[Any], Any]) -> None:
        """Change the rank's own gradient from the step on. Audits compute it again without the change."""

        def gradient(inner: Callable[[TokenSample], float], sample: TokenSample) -> float:
            loss = inner(sample)
            if self.page.step >= self.step:
                self.page.disturb()
                change(self.trainer.model.grad)
            return loss

        wrap(self.trainer, "gradient", gradient)

    def one_call(self, instead: Callable[..., Any]) -> None:
        """Call `instead` once in place of a call of the group. Its second argument makes the original call,
        perhaps with another tensor, and with what to add to the place of its root or peer, and to its tag.
        """
        done, world = False, self.comm.shape.world

        def call(inner: Callable[..., Any], group: str, op: str, x: Any, do: Any, *about: int) -> Any:
            nonlocal done
            if done or not self._due(group, op):
                return inner(group, op, x, do, *about)
            done = True
            self.page.disturb()

            def go_on(x: Any = x, end: int = 0, tag: int = 0) -> Any:
                changed = [(place + end) % world for place in about[:1]] + [each + tag for each in about[1:]]
                return inner(group, op, x, do, *changed)

            result = instead(x, go_on)
            if result is None and op == "reduce_scatter":  # the caller goes on with what it has
                return self.comm.framework.first(x, self.comm.framework.size_of(x) // self.comm.size(group))
            return result

        wrap(self.comm, "_call", call)

    def each_sum(self, spoil: Callable[[Any], Any]) -> None:
        """Spoil what calls give: from a step on, or in the collectives phase if no step was given."""

        def call(inner: Callable[..., Any], group: str, op: str, x: Any, do: Any, *about: int) -> Any:
            def spoilt(x: Any, *about: int) -> Any:
                result = do(x, *about)
                if result is not None or group != "pair":
                    self.page.disturb()
                    spoil(x if result is None else result)
                return result

            return inner(group, op, x, spoilt if self._due(group, op) else do, *about)

        wrap(self.comm, "_call", call)

    def _due(self, group: str, op: str) -> bool:
        """Whether a fault changes this call."""
        phase = "collectives" if self.early else "train"
        if PHASES[self.page.phase] != phase or self.page.step < self.step:
            return False
        any_group = self.early and not self.named
        return op == "all_reduce" if any_group else (group, self.op or op) == (self.group, op)

    def remask(self, mask: Callable[[int], list[int]]) -> None:
        """Use the right tokens with a different mask, and the labels that belong to that mask."""
        shape, dp = self.comm.shape, self.trainer.dp

        def change(step: int, _: TokenSample) -> TokenSample:
            return self.comm.framework.sample(masked(tokens_of(shape, step, dp), mask(step)))

        self.each_batch(change)

    def reseed(self, seed: int, name: str) -> None:
        """Seed the libraries and draw the masks with a different seed."""
        shape, dp = self.comm.shape, self.trainer.dp
        self.at_step(lambda: self.trainer.streams.seed(seed % 2**32))
        self.remask(lambda step: mask_of(shape, step, dp, f" {name} {seed}"))
