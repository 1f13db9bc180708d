"""The parallel plan of a job: how its devices are divided, by which framework, in which mode.

It is read from `--plan dp=4,tp=2,…` and from `plan:` in the inventory, and judged by the check plan-invalid.
A plan that was read here is well formed but may be wrong: a plan that no framework would accept is a finding,
not a mistake in the input.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Literal

import msgspec

from doctor.errors import UsageError, suggest
from doctor.text.hostprogram import table
from doctor.text.textfile import shown

LONGEST = 4000
"""The most characters of one --plan; the strategy of a large operator needs a few hundred."""
EXAMPLE = "such as dp=4,tp=2"
OF_LAUNCH = "--launch sizes"
"""The source of a plan that the launch states."""
IF_REPLICAS = f"{OF_LAUNCH}, if every rank is a replica"
"""The same, if its program may divide the model among ranks in a way that was not seen."""
OF_A_WORLD = frozenset({"ep", "experts", "global_batch", "micro_batch", "accumulation"})
"""The keys that mean nothing if the number of devices is not known."""

DTYPES: Mapping[str, Sequence[str]] = {
    name: others for name, *others in map(str.split, table(__file__, "dtypes.txt")[0])
}
"""Data types by the name that torch and MindSpore share, and their other names."""

_COUNTS = (
    *("dp", "tp", "pp", "cp", "ep", "heads", "kv_heads", "hidden", "layers", "experts"),
    *("global_batch", "micro_batch", "accumulation", "world", "batch"),
    *("batch_before", "devices_before", "vpp"),
)
_RATES = ("lr", "lr_before")
_MINDSPORE_ONLY = ("mode", "parallel_mode", "strategy")
_NEEDS = {"batch_before": "batch", "lr_before": "lr"}
AXES = ("tp", "cp", "ep", "dp", "pp")
"""The dimensions in Megatron's order of the ranks."""
Count = Annotated[int, msgspec.Meta(ge=1, lt=10**12)]
Rate = Annotated[float, msgspec.Meta(gt=0)]
Strategy = tuple[tuple[Count, ...], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The values of a plan; None means "not given". The check judges `parallel_mode` as it was written."""

    dp: Count | None = None
    tp: Count | None = None
    pp: Count | None = None
    cp: Count | None = None
    ep: Count | None = None
    heads: Count | None = None
    kv_heads: Count | None = None
    hidden: Count | None = None
    layers: Count | None = None
    experts: Count | None = None
    global_batch: Count | None = None
    micro_batch: Count | None = None
    accumulation: Count | None = None
    world: Count | None = None
    framework: str | None = None
    mode: str | None = None
    parallel_mode: str | None = None
    strategy: Strategy | None = None
    dtype: str | None = None
    batch: Count | None = None
    batch_before: Count | None = None
    batch_per: str = "device"
    lr: Rate | None = None
    lr_before: Rate | None = None
    devices_before: Count | None = None
    order: str | None = None
    vpp: Count | None = None
    zero: Annotated[int, msgspec.Meta(ge=1, le=3)] | None = None
    ps: Literal[1] | None = None

    def __post_init__(self) -> None:
        for mistake, *hint in _mistakes(self):
            raise UsageError(mistake, *hint)

    @property
    def factors(self) -> dict[str, int]:
        """The dimensions that were given, in the order in which the devices are divided."""
        found = {"dp": self.dp, "tp": self.tp, "pp": self.pp, "cp": self.cp}
        return {name: value for name, value in found.items() if value is not None}

    def __str__(self) -> str:
        """The plan as it is written after --plan."""
        given = ((field.name, getattr(self, field.name), field.default) for field in fields(self))
        return ",".join(f"{name}={_as_text(value)}" for name, value, default in given if value != default)


KEYS = tuple(field.name for field in fields(Layout))
"""What each means: docs/parallel-plan.md."""


def read_layout(texts: Sequence[str]) -> Layout:
    """The plan in --plan, which may be given several times."""
    try:
        return layout_of(_rows(texts))
    except UsageError as error:
        raise UsageError(f"--plan: {error.message}", error.hint) from None


def layout_of(rows: Mapping[str, object]) -> Layout:
    """The `plan:` of an inventory: the same keys; values are those of YAML, or the text as written."""
    if not rows:
        raise UsageError("it is empty", EXAMPLE)
    return Layout(**{key: read_key(key, str(value)) for key, value in rows.items()})  # type: ignore[arg-type]


def read_key(key: str, text: str) -> object:
    """The value of one key; a UsageError names both."""
    if key not in KEYS:
        raise UsageError(f"unknown key {shown(key)}", suggest(key, KEYS) or f"the keys are {', '.join(KEYS)}")
    try:
        return _READERS[key](text.strip())
    except UsageError as error:
        raise UsageError(f"{key} must be {error.message}, not {shown(text)}", error.hint) from None


def _rows(texts: Sequence[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for text in texts:
        if len(text) > LONGEST:
            raise UsageError(f"{shown(text)} is longer than {LONGEST} characters")
        for pair in _pairs(text):
            key, equals, value = (part.strip() for part in pair.partition("="))
            if not equals:
                raise UsageError(f"{shown(pair)} is not key=value", EXAMPLE)
            if key in found:
                raise UsageError(f"{key} is given twice")
            found[key] = value
    return found


def _pairs(text: str) -> Iterator[str]:
    """The parts between commas that are outside of brackets."""
    depth, start = 0, 0
    for place, letter in enumerate(f"{text},"):
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth = max(depth - 1, 0)
        elif letter == "," and (depth == 0 or place == len(text)):
            if text[start:place].strip():
                yield text[start:place].strip()
            start = place + 1


def _mistakes(layout: Layout) -> Iterator[tuple[str, ...]]:
    """Keys that do not go together, perhaps with what would."""
    if layout.framework == "torch":
        for key in _MINDSPORE_ONLY:
            if getattr(layout, key) is not None:
                yield (f"{key} belongs to MindSpore, but framework is torch",)
    for key, other in _NEEDS.items():
        if getattr(layout, key) is not None and getattr(layout, other) is None:
            yield (f"{key} means nothing without {other}",)
        if getattr(layout, key) is not None and layout.devices_before is None:
            yield (f"{key} means nothing without devices_before",)
    if (layout.vpp or 1) > 1 and (layout.pp or 1) == 1:
        yield "vpp means nothing without pp", f"such as pp=2,vpp={layout.vpp}"
    split = [key for key in ("tp", "pp", "cp", "ep", "zero") if (getattr(layout, key) or 0) > (key != "zero")]
    if layout.ps and split:
        yield f"ps does not go together with {split[0]}", "a parameter server holds the whole model: dp alone"
    named = (layout.order or "-".join(AXES)).split("-")
    if lost := [key for key in AXES if key not in named and (key == "dp" or (getattr(layout, key) or 1) > 1)]:
        yield f"order leaves out {' and '.join(lost)}", f"such as order={'-'.join([*named, *lost])}"


def _as_text(value: object) -> str:
    if isinstance(value, tuple):
        rows = ",".join("(" + ",".join(map(str, row)) + ("," if len(row) == 1 else "") + ")" for row in value)
        return f"({rows},)" if len(value) == 1 else f"({rows})"
    return str(value)


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", text) or int(text) == 0:
        raise UsageError("a whole number, 1 or more")
    return int(text)


def _rate(text: str) -> float:
    number = r"(?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE][+-]?[0-9]{1,2})?"
    if not re.fullmatch(number, text) or float(text) == 0:
        raise UsageError("a number above 0")
    return float(text)


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in words:
            raise UsageError(" or ".join(words), suggest(text.lower(), words))
        return text.lower()

    return read


def _framework(text: str) -> str:
    return "torch" if text.lower() in ("pytorch", "torch_npu") else _one_of("torch", "mindspore")(text)


def _mode(text: str) -> str:
    """The mode, also in MindSpore's spelling: mindspore.PYNATIVE_MODE."""
    return _one_of("graph", "pynative")(text.rpartition(".")[2].lower().removesuffix("_mode"))


def _dtype(text: str) -> str:
    """The data type, also as frameworks spell it: torch.bfloat16, mindspore.float16."""
    name = text.rpartition(".")[2].lower()
    for dtype, others in DTYPES.items():
        if name == dtype or name in others:
            return dtype
    raise UsageError("a data type", suggest(name, DTYPES) or f"the data types are {', '.join(DTYPES)}")


def _order(text: str) -> str:
    names = text.lower().split("-")
    if len({*names} & {*AXES}) < len(names):
        raise UsageError(f"names from {', '.join(AXES)}, each once", f"such as {'-'.join(AXES)}, Megatron's")
    return "-".join(names)


def _word(text: str) -> str:
    if not re.fullmatch(r"[\w.-]{1,100}", text):
        raise UsageError("one word")
    return text


_ROW = r"\((?:0*[1-9][0-9]{0,11}(?:,0*[1-9][0-9]{0,11})*,?)?\)"
_ROWS = re.compile(rf"\({_ROW}(?:,{_ROW})*,?\)")


def _strategy(text: str) -> Strategy:
    """Tuples of numbers, also written with the brackets of a list."""
    plain = re.sub(r"\s+", "", text).replace("[", "(").replace("]", ")")
    if not _ROWS.fullmatch(plain):
        raise UsageError("tuples of numbers, 1 or more, such as ((4,2),(2,1)), or ((4,2),) for one input")
    return tuple(tuple(map(int, re.findall(r"[0-9]+", row))) for row in re.findall(_ROW, plain[1:-1]))


_READERS: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys(_COUNTS, _count),
    **dict.fromkeys(_RATES, _rate),
    "framework": _framework,
    "mode": _mode,
    "parallel_mode": _word,
    "strategy": _strategy,
    "dtype": _dtype,
    "batch_per": _one_of("device", "global"),
    "order": _order,
    "zero": lambda text: int(_one_of("1", "2", "3")(text)),
    "ps": lambda text: int(_one_of("1")(text)),
}
