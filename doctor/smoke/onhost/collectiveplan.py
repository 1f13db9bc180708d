"""The plan of the collectives phase: which collectives, on which data, and what they must give.

Pure and without torch: the ranks follow it, and the controller learns from it what every page must show.
Payloads are small whole numbers, so that every sum is exact in every dtype and in every order.
"""

from __future__ import annotations

from functools import lru_cache
from struct import calcsize
from typing import NamedTuple

from doctor.smoke.onhost.encoding import FORMS
from doctor.smoke.onhost.shape import CellShape, CollectiveCall

BYTES = {"bfloat16": 2, **{dtype: calcsize(form) for dtype, form in FORMS.items()}}
LARGEST = {"bfloat16": 256, "float16": 2048, "int8": 127, "uint8": 255}
"""A dtype holds every whole number up to this one; the other dtypes hold them up to at least 2**24."""

COMMON = ("float32", "bfloat16", "int32")
"""The dtypes that people train with: tried with every collective, and in every size (but see `MANY`)."""
FURTHER = {
    # Reductions that ProcessGroupGloo's GENERATE_ALL_TYPES has (measured with torch 2.13: int16 is refused).
    "gloo": ("float64", "float16", "int64", "int8", "uint8"),
    # ncclDataType of ProcessGroupNCCL, which has no int16 either.
    "nccl": ("float64", "float16", "int64", "int8", "uint8"),
    # kHCCLAllReduceTypes of torch_npu's ProcessGroupHCCL; float64 exists only on the newest chips.
    "hccl": ("float16", "int64", "int16", "int8"),
    # Measured with MindSpore 2.10 on the CPU, whose MCCL refuses float64 and uint8.
    "mccl": ("float16", "int64", "int16", "int8"),
}
"""Further dtypes that the backend must be able to add up."""
SIZES = (1, 1000, 65536)
MANY = 16
"""More ranks than these only add up other dtypes than the first: a collective takes them long."""
PERIOD = 22
"""All payloads repeat after this many elements."""

ALL_REDUCE = ("all_reduce",)
RECIPES = (
    ALL_REDUCE,
    ("reduce", "broadcast"),
    ("reduce_scatter", "all_gather"),
    ("all_gather",),
    ("all_to_all",),
)
BROADCAST = ("broadcast",)
EXCHANGE = ("exchange",)
WHOLE = (ALL_REDUCE, ("reduce", "broadcast"), BROADCAST)
"""The recipes that do not cut the payload into parts."""
"""The second collective of a pair works on the result of the first: together they are an all-reduce."""
LACKING = {"mccl": ("reduce", "reduce_scatter", "all_to_all")}
"""Collectives that a backend does not have. (MindSpore 2.10: the kernel is unregistered on the CPU.)"""


def allowed(shape: CellShape, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """The dtypes among these that the devices of the run can add up."""
    return tuple(dtype for dtype in dtypes if not shape.dtypes or dtype in shape.dtypes)


def common(shape: CellShape) -> tuple[str, ...]:
    """The dtypes that people train with on these devices: float16 if there is no bfloat16."""
    return allowed(
        shape, tuple(dict.fromkeys(each if allowed(shape, (each,)) else "float16" for each in COMMON))
    )


def recipes(backend: str) -> tuple[tuple[str, ...], ...]:
    """The recipes that a backend can follow. Without `reduce`, a root broadcasts numbers of its own."""
    lacking = LACKING.get(backend, ())
    found = tuple(recipe for recipe in RECIPES if not set(recipe) & set(lacking))
    return found if any("broadcast" in recipe for recipe in found) else (*found, BROADCAST)


class Trial(NamedTuple):
    """One recipe with one payload. `root` is an index in the group, or the peer of an exchange."""

    group: str
    recipe: tuple[str, ...]
    dtype: str
    elements: int
    """Elements of the whole payload; a multiple of the number of members if the recipe cuts it up."""
    root: int = 0


def trials(shape: CellShape, place: int) -> list[Trial]:
    """The whole phase, in order: the same on all members of a group."""
    found: list[Trial] = []
    for group in shape.groups:
        members = len(shape.members(group, place))
        if members < 2:
            continue
        # A fault of a dtype or a size shows in the world group; the other groups can only have wrong members.
        whole, many = group == "world", members > MANY
        sizes = SIZES[many:] if whole else SIZES[1:2]
        dtypes = common(shape)[: 1 if many else None] if whole else COMMON[:1]
        if shape.zero and group == "dp":  # shards are often in half precision, and here their sums are exact
            dtypes = common(shape)[:2]
        cases = [(each, dtype, size) for dtype in dtypes for size in sizes for each in recipes(shape.backend)]
        if whole:
            further = dict.fromkeys((*common(shape), *allowed(shape, FURTHER[shape.backend])))
            cases += [(ALL_REDUCE, dtype, SIZES[1]) for dtype in further if dtype not in dtypes]
        for number, (recipe, dtype, size) in enumerate(cases):
            elements = size if recipe in WHOLE else -(-size // members) * members
            found.append(Trial(group, recipe, dtype, elements, number % members))
    return found + [Trial("pair", EXCHANGE, COMMON[0], SIZES[-1], peer) for peer in neighbours(shape, place)]


def neighbours(shape: CellShape, place: int) -> list[int]:
    """The peers over the edges of pipeline and ring, in an order that lets nobody wait in a circle."""
    found: list[int] = []
    for group in ("pp", "cp"):
        members = shape.members(group, place)
        size = len(members) if group in shape.groups else 1
        closed = int(group == "cp" and size > 2)
        order = [*range(0, size - 1, 2), *range(1, size - 1, 2), *[size - 1] * closed]
        ends = [(members[edge], members[(edge + 1) % size]) for edge in order]
        found += [first + second - place for first, second in ends if place in (first, second)]
    return found


def sent(trial: Trial, members: list[int], place: int) -> list[int]:
    """How many elements of an all_to_all a member sends to each: to experts, different numbers."""
    each = trial.elements // len(members)
    return [each * (1 + (place + to) % 3) if trial.group == "ep" else each for to in members]


def collective_calls(shape: CellShape, place: int) -> list[CollectiveCall]:
    """The calls that a rank's page shows in this phase."""
    calls: list[CollectiveCall] = []
    for trial in trials(shape, place):
        members = shape.members(trial.group, place)
        whole = trial.elements
        sizes = {"all_gather": whole // len(members), "all_to_all": sum(sent(trial, members, place))}
        both = tuple(sorted((place, trial.root))) if trial.recipe == EXCHANGE else ()
        for op in trial.recipe:
            size = sizes.get(op, whole) * BYTES[trial.dtype]
            end = members[trial.root] if op in ("reduce", "broadcast") else -1
            calls.append(CollectiveCall(0, trial.group, op, trial.dtype, size, both, end))
    return calls


@lru_cache(maxsize=1 << 14)
def pattern(place: int, shift: int = 0) -> list[int]:
    """One period of a rank's payload: ((7i + 13r) mod 11) + 1, with a second digit for ranks from 11 on."""
    return [(7 * (i + shift) + 13 * place + i % 2 * (place // 11)) % 11 + 1 for i in range(PERIOD)]


def addends(members: list[int], dtype: str) -> dict[int, list[int]]:
    """Each member's payload of a reduction: only ones and zeros if other sums would not be exact."""
    largest = LARGEST.get(dtype, 2**24)
    whole = {place: pattern(place) for place in members}
    if 11 * len(members) <= largest:
        return whole
    return {
        place: [int(value > 5 and index < largest) for value in whole[place]]
        for index, place in enumerate(members)
    }


def total(members: list[int], dtype: str) -> list[int]:
    """One period of the result of a reduction over the members."""
    return _total(tuple(members), dtype)


@lru_cache(maxsize=1024)
def _total(members: tuple[int, ...], dtype: str) -> list[int]:
    payloads = addends(list(members), dtype).values()
    return [sum(payload[i] for payload in payloads) for i in range(PERIOD)]
