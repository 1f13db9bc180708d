"""The collectives phase: each collective must give exactly the result of its closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from doctor.smoke.onhost import evidence
from doctor.smoke.onhost.collectiveplan import BYTES, PERIOD, Trial, addends, pattern, sent, total, trials
from doctor.smoke.onhost.comm import Comm
from doctor.smoke.onhost.encoding import decoded, encoded

_MOST_SAID = 50
_REFUSALS = ("invalid scalar type", "unsupported", "not support", "no support", "not implemented")
"""Texts with which backends refuse an operation on a dtype; all members of a group get the same refusal."""


def refuses(error: Exception) -> bool:
    return any(words in str(error).lower() for words in _REFUSALS)


def run(comm: Comm) -> None:
    phase = _Phase(comm)
    for trial in trials(comm.shape, comm.place):
        phase.run(trial)
    comm.say(
        {
            "ev": "collectives",
            "done": phase.done,
            "wrong": phase.wrong[:_MOST_SAID],
            "unsupported": list(dict.fromkeys(phase.unsupported)),
            "forming": comm.forming,
            "network": evidence.said(),
        }
    )


class _Phase:
    def __init__(self, comm: Comm) -> None:
        self.comm = comm
        self.framework = comm.framework
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
            "broadcast": self._broadcast_own,
            "exchange": self._exchange,
        }
        given = steps[trial.recipe[0]](trial, members)
        if trial.recipe[1:] == ("broadcast",):
            # The sum, so that both collectives together are an all-reduce.
            self._broadcast(trial, given, total(members, trial.dtype))
        elif trial.recipe[1:] == ("all_gather",):
            self._gather_sum(trial, members, given)

    def _all_reduce(self, trial: Trial, members: list[int]) -> Any:
        x = self._addend(trial, members)
        self._try(trial, "all_reduce", lambda: self.comm.all_reduce(x, trial.group))
        self._compare(trial, "all_reduce", x, total(members, trial.dtype))
        return x

    def _reduce(self, trial: Trial, members: list[int]) -> Any:
        x = self._addend(trial, members)
        self._try(trial, "reduce", lambda: self.comm.reduce(x, trial.group, trial.root))
        if members[trial.root] == self.comm.place:
            self._compare(trial, "reduce", x, total(members, trial.dtype))
        return x

    def _broadcast(self, trial: Trial, x: Any, period: list[int]) -> None:
        self._try(trial, "broadcast", lambda: self.comm.broadcast(x, trial.group, trial.root))
        self._compare(trial, "broadcast", x, period)

    def _broadcast_own(self, trial: Trial, members: list[int]) -> None:
        """Broadcast the payload of the root."""
        x = self._tensor(pattern(self.comm.place), trial.elements, trial.dtype)
        self._broadcast(trial, x, pattern(members[trial.root]))

    def _reduce_scatter(self, trial: Trial, members: list[int]) -> Any:
        x = self._addend(trial, members)
        size = trial.elements // len(members)
        part = self._try(trial, "reduce_scatter", lambda: self.comm.reduce_scatter(x, trial.group))
        if part is None:
            return self.framework.first(x, size)
        own = members.index(self.comm.place) * size
        self._compare(trial, "reduce_scatter", part, total(members, trial.dtype), own)
        return part

    def _gather_sum(self, trial: Trial, members: list[int], part: Any) -> None:
        """Gather the parts of a sum, so that both collectives together are an all-reduce."""
        rows = self._try(trial, "all_gather", lambda: self.comm.all_gather(part, trial.group))
        if rows is not None and f"reduce_scatter {trial.dtype}" not in self.unsupported:
            self._compare(trial, "all_gather", rows, total(members, trial.dtype))

    def _all_gather(self, trial: Trial, members: list[int]) -> Any:
        size = trial.elements // len(members)
        x = self._tensor(pattern(self.comm.place), size, trial.dtype)
        rows = self._try(trial, "all_gather", lambda: self.comm.all_gather(x, trial.group))
        if rows is not None:
            got, width = self.framework.bytes_of(rows), size * BYTES[trial.dtype]
            for index, place in enumerate(members):
                part = got[index * width : (index + 1) * width]
                self._differ(trial, "all_gather", part, pattern(place), place=place)
        return x

    def _all_to_all(self, trial: Trial, members: list[int]) -> Any:
        own = self.comm.place
        out = sent(trial, members, own)
        back = [sent(trial, members, place)[members.index(own)] for place in members]
        whole = b"".join(_tiled(pattern(own, to), out[i], trial.dtype) for i, to in enumerate(members))
        x = self.framework.tensor(whole, trial.dtype)
        parts = self._try(trial, "all_to_all", lambda: self.comm.all_to_all(x, trial.group, out, back))
        if parts is not None:
            got, width, end = self.framework.bytes_of(parts), BYTES[trial.dtype], 0
            for size, place in zip(back, members):  # noqa: B905 (Python 3.8)
                part, end = got[end * width : (end + size) * width], end + size
                self._differ(trial, "all_to_all", part, pattern(place, own), place=place)
        return x

    def _exchange(self, trial: Trial, _members: list[int]) -> None:
        """Send and receive over one edge of a pipeline or a ring."""
        out = self._tensor(pattern(self.comm.place), trial.elements, trial.dtype)
        into = self._tensor([0] * PERIOD, trial.elements, trial.dtype)
        self._try(
            trial, "exchange", lambda: self.comm.converse(out, lambda: self.comm.swap(out, into, trial.root))
        )
        got = self.framework.bytes_of(into)
        self._differ(trial, "exchange", got, pattern(trial.root), place=trial.root)

    def _addend(self, trial: Trial, members: list[int]) -> Any:
        return self._tensor(addends(members, trial.dtype)[self.comm.place], trial.elements, trial.dtype)

    def _tensor(self, period: list[int], size: int, dtype: str) -> Any:
        return self.framework.tensor(_tiled(period, size, dtype), dtype)

    def _try(self, trial: Trial, op: str, call: Callable[[], Any]) -> Any:
        self.done += 1
        try:
            return call()
        except (RuntimeError, TypeError, ValueError) as error:
            # A refusal breaks the task queue of torch_npu: nothing after it would work.
            if not refuses(error) or self.framework.backend == "hccl":
                raise
            self.unsupported.append(f"{op} {trial.dtype}")
            return None

    def _compare(self, trial: Trial, op: str, x: Any, period: list[int], first: int = 0) -> None:
        self._differ(trial, op, self.framework.bytes_of(x), period, first)

    def _differ(
        self, trial: Trial, op: str, got: bytes, period: list[int], first: int = 0, place: int | None = None
    ) -> None:
        """Note the first wrong element. `got` begins with element `first` of the payload; `place` sent it."""
        expected = _tiled(period, len(got) // BYTES[trial.dtype], trial.dtype, first)
        if f"{op} {trial.dtype}" in self.unsupported or got == expected:
            return
        found, wanted = decoded(got, trial.dtype), decoded(expected, trial.dtype)
        index = next((i for i, value in enumerate(wanted) if found[i] != value), None)
        if index is None:
            return  # they differ in the sign of a zero
        self.wrong.append(
            {
                "name": f"{op} of {trial.elements} {trial.dtype}"
                + ("" if place is None else f" from {place}"),
                "group": trial.group,
                "index": index,
                "got": str(found[index]),
                "expected": str(wanted[index]),
                "position": self.comm.page.position,
            }
        )


def _tiled(period: list[int], size: int, dtype: str, first: int = 0) -> bytes:
    """The bytes of a payload that repeats the period, from element `first` on."""
    start = first % PERIOD
    return (encoded(period[start:] + period[:start], dtype) * -(-size // PERIOD))[: size * BYTES[dtype]]
