"""What a line says about how far a training is: its step and its epoch."""

import re

from doctor.text.hostprogram import table

_SAYS = re.compile(
    r"(?<!LIFO )\b(?:global[_ ]?step|steps?|epochs?|iter(?:ation)?s?|batch(?:es)?)\b[\"'\]]?\s{0,4}[:=\[#(]?"
    r"\s{0,12}\d|\d{1,12}/\d{1,12} \[[^\]]{0,80}(?:it/s|s/it)",
    re.IGNORECASE,
)
_SUCCEEDED = re.compile(
    r"(?i)(?!.{0,300}\b(?:not|no|never|fail\w*|errors?)\b).{0,300}\b(?:successful(?:ly)?|succeeded)\b"
)
_TRAINING = re.compile(
    r"\b(?:(?:pre-?|fine-?)?train(?:ing|ed)?|tuning|run|job|experiment|steps|epochs)\b", re.IGNORECASE
)
_FINISHED = re.compile(
    r"(?i)(?!.{0,300}\b(?:not|no|never|fail\w*|errors?|until|before|wait\w*)\b)"
    rf"(?:{'|'.join(table(__file__, 'finished.txt')[0])})"
)
_TESTED = re.compile(
    r"^=+ \d{1,6} passed(?!.*\b(?:failed|errors?)\b).* in [\d.]+s.*=$|^100% tests passed, 0 |^\[  PASSED  \] "
)
_GROUP = re.compile(
    r".{0,200}\b(?:worker group successfully finished\b"
    r"|Local worker group finished \((?:WorkerState\.)?SUCCEEDED\))"
)
_EPOCH = re.compile(r"epochs?\b\W{0,16}(\d{1,9}(?:\.\d{1,12})?)", re.IGNORECASE)
_COUNT = re.compile(
    r"(?:\b(?:global[_ ]?step|steps?|iter(?:ation)?s?|batch(?:es)?)\b[\"'\]]?\s{0,4}[:=\[#(]?\s{0,12}"
    r"|(?=\d{1,12}/\d{1,12} \[))(\d{1,12})(?:\s{0,12}/\s{0,12}(\d{1,12}))?",
    re.IGNORECASE,
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
