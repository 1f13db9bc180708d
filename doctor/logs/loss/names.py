"""Finds the training loss among words with "loss" in them: not a loss scale, a validation loss or a part."""

import math
import re
from typing import NamedTuple

from doctor.text.hostprogram import table

NUMBER = r"[-+]?(?:\d{1,40}(?:\.\d{0,60})?|\.\d{1,60})(?:[eE][-+]?\d{1,4})?"
NO_NUMBER = r"[-+]?(?:nan|inf(?:inity)?)"
_VALUE = re.compile(
    r"['\"]?[ \t]{0,20}(?P<sign>is\b|=|:|\||->)?[ \t]{0,20}(?:(?:tensor|Tensor|array)\()?['\"\[]?[ \t]{0,20}"
    rf"(?P<value>(?i:{NO_NUMBER})|{NUMBER})(?!\.?\w|[%/])"
)
_WORD = re.compile(r"loss", re.IGNORECASE)
_BEFORE = re.compile(r"[\w./]{1,40}$")
_AFTER = re.compile(r"\w{0,40}")
_PREVIOUS = re.compile(r"([\w/.]{1,40})[ \t]{1,8}$")
_ELSEWHERE = re.compile(
    r"(?<![\w/.\-])(?:val|valid|validation|validating|eval|evaluation|evaluate|evaluating|test|testing|dev)(?![\w/.\-])",
    re.IGNORECASE,
)
_CHECKS = re.compile(r"val|test")
_TRAINING = re.compile(r"(?<![a-z])train", re.IGNORECASE)
*_RANKED, _SEPARATE, _OTHERS = table(__file__, "names.txt")
NAMES = {name: rank for rank, names in enumerate(_RANKED) for name in names}
"""A lower rank is more likely the loss that the optimizer sees at each step."""
_QUALIFIERS = {*_SEPARATE, *_OTHERS}
PARTS = "parts"
"""The name for several losses of which none is that of the training: they count if they are NaN all along."""
MOST = 24
"""The most words of one line that are examined."""


def rank_of(name: str) -> int | None:
    """The rank of a column or a key; None if it is not the training loss."""
    return NAMES.get(name.strip().lower())


class NamedValue(NamedTuple):
    rank: int
    """That of its name."""
    name: str
    value: float
    sign: str
    """What stands between name and value."""
    at: int
    whole: bool
    """Whether it is written without a fraction."""


def find_loss(text: str) -> NamedValue | None:
    """The loss in a line whose name has the lowest rank; if it has none, whether all its parts are NaN."""
    best: NamedValue | None = None
    parts = list[float]()
    for number, found in enumerate(_WORD.finditer(text)):
        if number >= MOST:
            break
        at = found.start()
        head = text[max(0, at - 60) : at]
        before = _BEFORE.search(head)
        after = _AFTER.match(text, found.end())
        prefix = before[0].lstrip(".") if before else ""
        name = f"{prefix}loss{after[0] if after else ''}".lower()
        if name == "loss" and (previous := _PREVIOUS.search(head)):
            word = previous[1].lower()
            part = word[-1:].isalpha() and word not in _QUALIFIERS
            name = f"{word} loss" if part or word in _SEPARATE else name
        rank = NAMES.get(name)
        value = _VALUE.match(text, after.end() if after else found.end())
        if value is None or (best and (rank is None or best.rank <= rank)) or _is_elsewhere(head, name):
            continue
        if rank is None:
            parts.append(float(value["value"]))
            continue
        whole = value["value"].lstrip("+-").isdigit()
        best = NamedValue(rank, name, float(value["value"]), value["sign"] or "", at, whole)
    if best is None and len(parts) > 2:
        all_nan = all(map(math.isnan, parts))
        return NamedValue(len(_RANKED), PARTS, math.nan if all_nan else 1.0, ":", 0, whole=False)
    return best


def _is_elsewhere(head: str, name: str) -> bool:
    """Whether the words before it are about a validation or a test."""
    if "train" in name:
        return False
    near = list(_ELSEWHERE.finditer(head))
    return bool(_CHECKS.search(name) or (near and not _TRAINING.search(head, near[-1].end())))
