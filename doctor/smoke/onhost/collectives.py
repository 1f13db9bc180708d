"""The collectives phase: each collective must give exactly the result of its closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from doctor.smoke.onhost.collectiveplan import PERIOD, Trial, addends, pattern, total, trials
from doctor.smoke.onhost.comm import Comm

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_SAID = 50
_REFUSALS = ("invalid scalar type", "unsupported", "not support", "no support", "not implemented")
"""Texts with which backends refuse an operation on a dtype; all members of a group get the same refusal."""


def run(comm: Comm) -> None:
    phase = _Phase(comm)
    for trial in trials(comm.shape, comm.place):
        phase.run(trial)
    refused = list(dict.fromkeys(phase.unsupported))
    wrong = phase.wrong[:_MOST_SAID]
    comm.say({"ev": "collectives", "done": phase.done, "wrong": wrong, "unsupported": refused})


class _Phase:
    def __init__(self, comm: Comm) -> None:
        self.comm = comm
        self.done = 0
        self.wrong: list[dict[str, Any]] = []
        self.unsupported: list[str] = []

    def run(self, trial: Trial) -> None:
        """Run a recipe. Its second collective follows even if the first is refused, as scheduled."""
        members = self.comm.shape.members(trial.group, self.comm.place)
        steps = {
            "all_reduce": self._all_reduce,
            "reduce": self._reduce,
            "reduce_scatter": self._reduce_scatter,
            "all_gather": self._all_gather,
            "all_to_all": self._all_to_all,
        }
        given = steps[trial.recipe[0]](trial, members)
        if trial.recipe[1:] == ("broadcast",):
            self._broadcast(trial, members, given)
        elif trial.recipe[1:] == ("all_gather",):
            self._gather_sum(trial, members, given)

    def _all_reduce(self, trial: Trial, members: list[int]) -> Tensor:
        x = self._addend(trial, members)
        self._try(trial, "all_reduce", lambda: self.comm.all_reduce(x, trial.group))
        self._compare(trial, "all_reduce", x, total(members, trial.dtype))
        return x

    def _reduce(self, trial: Trial, members: list[int]) -> Tensor:
        x = self._addend(trial, members)
        self._try(trial, "reduce", lambda: self.comm.reduce(x, trial.group, trial.root))
        if members[trial.root] == self.comm.place:
            self._compare(trial, "reduce", x, total(members, trial.dtype))
        return x

    def _broadcast(self, trial: Trial, members: list[int], reduced: Tensor) -> None:
        """Broadcast the sum, so that both collectives together are an all-reduce."""
        self._try(trial, "broadcast", lambda: self.comm.broadcast(reduced, trial.group, trial.root))
        self._compare(trial, "broadcast", reduced, total(members, trial.dtype))

    def _reduce_scatter(self, trial: Trial, members: list[int]) -> Tensor:
        x = self._addend(trial, members)
        size = trial.elements // len(members)
        part = self._try(trial, "reduce_scatter", lambda: self.comm.reduce_scatter(x, trial.group))
        if part is None:
            return x[:size].clone()
        own = members.index(self.comm.place) * size
        self._compare(trial, "reduce_scatter", part, total(members, trial.dtype), own)
        return part

    def _gather_sum(self, trial: Trial, members: list[int], part: Tensor) -> None:
        """Gather the parts of a sum, so that both collectives together are an all-reduce."""
        rows = self._try(trial, "all_gather", lambda: self.comm.all_gather(part, trial.group))
        if rows is not None and f"reduce_scatter {trial.dtype}" not in self.unsupported:
            self._compare(trial, "all_gather", rows.flatten(), total(members, trial.dtype))

    def _all_gather(self, trial: Trial, members: list[int]) -> Tensor:
        size = trial.elements // len(members)
        x = self._tiled(pattern(self.comm.place), size, trial.dtype)
        rows = self._try(trial, "all_gather", lambda: self.comm.all_gather(x, trial.group))
        if rows is not None:
            for index, place in enumerate(members):
                self._compare(trial, "all_gather", rows[index], pattern(place), place=place)
        return x

    def _all_to_all(self, trial: Trial, members: list[int]) -> Tensor:
        size = trial.elements // len(members)
        x = torch.cat([self._tiled(pattern(self.comm.place, to), size, trial.dtype) for to in members])
        parts = self._try(trial, "all_to_all", lambda: self.comm.all_to_all(x, trial.group))
        if parts is not None:
            for index, place in enumerate(members):
                part = parts[index * size : (index + 1) * size]
                self._compare(trial, "all_to_all", part, pattern(place, self.comm.place), place=place)
        return x

    def _addend(self, trial: Trial, members: list[int]) -> Tensor:
        return self._tiled(addends(members, trial.dtype)[self.comm.place], trial.elements, trial.dtype)

    def _tiled(self, period: list[int], size: int, dtype: str, first: int = 0) -> Tensor:
        start = first % PERIOD
        turned = torch.tensor(period[start:] + period[:start]).to(getattr(torch, dtype))
        return turned.repeat(-(-size // PERIOD))[:size].to(self.comm.device.torch)

    def _try(self, trial: Trial, op: str, call: Callable[[], Tensor | None]) -> Tensor | None:
        self.done += 1
        try:
            return call()
        except (RuntimeError, TypeError, ValueError) as error:
            refused = any(words in str(error).lower() for words in _REFUSALS)
            # A refusal breaks the task queue of torch_npu: nothing after it would work.
            if not refused or self.comm.device.backend == "hccl":
                raise
            self.unsupported.append(f"{op} {trial.dtype}")
            return None

    def _compare(
        self, trial: Trial, op: str, got: Tensor, period: list[int], first: int = 0, place: int | None = None
    ) -> None:
        """Note the first wrong element. `got` begins with element `first` of the payload; `place` sent it."""
        if f"{op} {trial.dtype}" in self.unsupported:
            return
        expected = self._tiled(period, got.numel(), trial.dtype, first)
        if torch.equal(got, expected):
            return
        index = int((got != expected).nonzero()[0])
        self.wrong.append(
            {
                "name": f"{op} of {trial.elements} {trial.dtype}"
                + ("" if place is None else f" from {place}"),
                "group": trial.group,
                "index": index,
                "got": str(got[index].item()),
                "expected": str(expected[index].item()),
                "position": self.comm.page.position,
            }
        )
