"""Reads from one line the loss that it prints, and its step.

Lines are foreign input: every pattern takes linear time, and nothing is evaluated.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from doctor.logs.loss.names import NUMBER, PARTS, find_loss, rank_of
from doctor.logs.model import LossForm
from doctor.text.hostprogram import table

LONGEST = 8192
"""The most characters of a line that are examined."""
_STEP, EPOCH, _PLACE, _SKIPPED, _NAN_STEPS, _NAN_NORM = (
    re.compile("|".join(rows)) for _, *rows in table(__file__, "lines.txt")
)
_STEP_RANKS = {"global": 0, "num_up": 0, "curren": 0, "cur_st": 0, "batch": 2, "batch_": 2, "it": 3}
STEP_NAMES = (
    *("global_step", "num_updates", "current_steps", "step", "steps", "_step", "trainer/global_step"),
    *("iteration", "iter", "update", "batch", "batch_idx"),
)
_DEEPEST = 3


@dataclass(frozen=True, slots=True)
class LossValues:
    """The values of one line; `epoch` without `step` means the loss of a whole epoch."""

    form: LossForm
    name: str
    loss: float
    step: int | None = None
    of: int | None = None
    """Number of steps of an epoch, or of the job."""
    epoch: int | None = None
    part: bool = False
    """The epoch is not a whole number, so it does not number the lines."""
    rank: int | None = None


def wants(raw: bytes) -> bool:
    """A cheap test: if it is False, `read_line` finds nothing."""
    return b"loss" in raw or b"Loss" in raw or b"LOSS" in raw


def read_line(text: str) -> LossValues | None:
    text = text[:LONGEST]
    if "oss" not in text and "OSS" not in text:
        return None
    if text.lstrip()[:1] == "{" and '"' in text and (said := _json(text)):
        return said
    found = find_loss(text)
    if found is None or "'train_runtime'" in text or '"train_runtime"' in text:
        return None
    step, of = _step(text, found.at)
    epoch = EPOCH.search(text)
    if step is None and not epoch and (not found.sign or found.whole or found.name == PARTS):
        return None  # "loss 3" is only a word and a number
    form, loss = _form(text, found.name), found.value
    if form is LossForm.TRAINER and loss == 0 and _NAN_NORM.search(text):
        loss = math.nan  # the Trainer leaves NaN out of its mean, which is then 0
    return LossValues(
        form,
        found.name,
        loss,
        step,
        of,
        int(epoch["epoch"]) if epoch else None,
        bool(epoch and epoch["part"]),
    )


def read_without_loss(text: str) -> LossValues | None:
    """The step of a line of Megatron's that leaves its loss out, as NaN. Megatron prints a loss only if it is
    above 0. Steps that were skipped have none either, and a gradient that is a number shows that the loss is
    one.
    """
    text = text[:LONGEST]
    if "elapsed time per iteration" not in text or "grad norm:" in text or find_loss(text) is not None:
        return None
    if not _NAN_STEPS.search(text):
        skipped = _SKIPPED.search(text)
        if (skipped and int(skipped["skipped"])) or not (skipped or "loss scale: 1.0 |" in text):
            return None
    step, of = _step(text, 0)
    return None if step is None else LossValues(LossForm.MEGATRON, "", math.nan, step, of)


def _form(text: str, name: str) -> LossForm:
    if "elapsed time per iteration" in text or name in ("lm loss", "mlm loss"):
        return LossForm.MEGATRON
    if "'loss':" in text and "'epoch':" in text:
        return LossForm.TRAINER
    return LossForm.JSON if text.lstrip()[:1] == "{" and '"loss"' in text else LossForm.PLAIN


def _step(text: str, loss_at: int) -> tuple[int | None, int | None]:
    """The step and the number of steps, by the clearest name or in a progress bar."""
    best: tuple[int, re.Match[str]] | None = None
    for found in _STEP.finditer(text):
        rank = _STEP_RANKS.get(found["name"].lower()[:6], 1)
        if rank == 2 and not found["of"] and found["between"].isspace():
            continue  # "batch 16" may as well be its size
        if best is None or rank < best[0]:
            best = rank, found
    if best:
        return int(best[1]["step"]), int(best[1]["of"]) if best[1]["of"] else None
    place = _PLACE.search(text, 0, loss_at + 80)
    if not place:
        return None, None
    step, of = filter(None, place.groups())
    return int(step), int(of)


def _json(text: str) -> LossValues | None:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(whole, dict) or "train_runtime" in whole:
        return None
    flat = dict(_flat(whole, "", 0))
    ranked = [
        (order, name)
        for name in flat
        if (order := rank_of(_bare(name))) is not None and _is_number(flat[name])
    ]
    if not ranked:
        return None
    _, name = min(ranked)
    step = next((int(at) for each in STEP_NAMES if (at := _finite(flat.get(each))) is not None), None)
    epoch, rank = _finite(flat.get("epoch")), _finite(flat.get("rank"))
    return LossValues(
        LossForm.JSON,
        _bare(name),
        float(str(flat[name])),
        step,
        None,
        None if epoch is None else int(epoch),
        epoch is not None and not epoch.is_integer(),
        None if rank is None else int(rank),
    )


def _bare(name: str) -> str:
    """`train/loss` stays, `metrics/loss` becomes `loss`."""
    return name.removeprefix("metrics/").removeprefix("data/").lower()


def _flat(whole: dict[str, object], before: str, depth: int) -> Iterator[tuple[str, object]]:
    for key, value in whole.items():
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from _flat(value, f"{before}{key}/", depth + 1)
        else:
            yield f"{before}{key}", value


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return re.fullmatch(rf"{NUMBER}|(?i:[-+]?(?:nan|inf(?:inity)?))", value.strip()) is not None
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _finite(value: object) -> float | None:
    """The value if it is a number that is not negative and not huge, else None."""
    found = float(str(value)) if _is_number(value) else -1.0
    return found if 0 <= found < 1e15 else None
