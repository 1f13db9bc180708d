"""What a line says about how far a training is: its step and its epoch."""

import re

from doctor.text.hostprogram import table

_SAYS, _SUCCEEDED, _TRAINING, _TESTED, _GROUP, _EPOCH, _COUNT = (
    re.compile(each) for _, each in table(__file__, "steps.txt")
)
_FINISHED = re.compile(
    r"(?i)(?!.{0,300}\b(?:not|no|never|fail\w*|errors?|until|before|wait\w*)\b)"
    rf"(?:{'|'.join(table(__file__, 'finished.txt')[0])})"
)


Value = tuple[float, int]
"""Epoch and step."""


def says_step(text: str) -> bool:
    return len(text) < 2000 and not text.startswith("#") and _SAYS.search(text) is not None


def says_success(text: str) -> bool:
    """Whether a line says what a program says only if it has caught its exceptions. That it ended or is done,
    its script says too.
    """
    return _SUCCEEDED.match(text) is not None


def says_finished(text: str) -> bool:
    """Whether a line says that the training is over. So may a script, whose program ended before."""
    return says_trained(text) or _FINISHED.match(text) is not None


def says_trained(text: str) -> bool:
    """Whether it says so of a training or its tests, and not of something that was done meanwhile."""
    return (says_success(text) and _TRAINING.search(text) is not None) or _TESTED.search(text) is not None


def says_group_finished(text: str) -> bool:
    """Whether torchrun says that all ranks that it started ended without an error."""
    return _GROUP.match(text) is not None


def counted(text: str) -> tuple[str, Value]:
    """The label of a line's step, and its value."""
    epoch, step = _EPOCH.search(text), _COUNT.search(text)
    begin = min(found.start(1) for found in (epoch, step) if found) if epoch or step else 0
    words = "".join(filter(str.isalpha, text[:begin]))
    total = step[2] or "" if step else ""
    return f"{words}/{total}", (float(epoch[1]) if epoch else -1.0, int(step[1]) if step else -1)
