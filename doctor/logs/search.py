"""Which logs were looked for, on hosts or in folders, and whether one of a job is among those that were read.

The kernel's log and other people's files do not complain when a job dies, so they do not prove it healthy.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from doctor.logs.fetch.onhost.agent import KERNEL
from doctor.logs.model import Form, LogFile, Logs

FEW = 4
_OF_JOBS = frozenset(Form) - {Form.KERNEL, Form.PYTHON, Form.PLAIN}
"""Forms that only a job writes: any Python program writes tracebacks."""
_SYSTEM = re.compile(rf"(?:^|[:/]){KERNEL}$|/var/log/(?:messages|syslog|kern\.log)\b")
_PLACES = re.compile(
    r"(?:^|[:/])(?:slurm-[^/]*\.out$|torchelastic_|none_[^/]*/attempt_|msrun_log[^/]*/|ascend/log/)"
)
"""Places in which only jobs write."""


@dataclass(frozen=True, slots=True)
class LogSearch:
    """A search for logs on hosts."""

    patterns: tuple[str, ...]
    since: str = ""
    """When a file must have been written, in words; empty: at any time."""
    outputs: frozenset[str] = frozenset()
    """Files of the job itself, as its scheduler says, by the names that they have in the logs."""


def in_folders(paths: Sequence[str]) -> LogSearch | None:
    """The search if only folders were named: what they hold need not be logs of a job."""
    return LogSearch(tuple(paths)) if paths and all(map(os.path.isdir, paths)) else None


def read_a_job(logs: Logs, search: LogSearch) -> bool:
    """Whether a log of a job was read: by its name, or its lines."""
    if logs.earlier or logs.jobs:
        return bool(logs.files)
    known = {curve.file for curve in logs.curves} | search.outputs
    return any(_is_of_a_job(one) or one.name in known for one in logs.files if not _SYSTEM.search(one.name))


def _is_of_a_job(file: LogFile) -> bool:
    if _PLACES.search(file.name) or file.ranks or file.progress or file.world is not None:
        return True
    return file.who.rank is not None or not _OF_JOBS.isdisjoint(file.forms)


def read_instead(logs: Logs) -> tuple[str, ...]:
    """What was read, in a few words."""
    kernel = [file for file in logs.files if file.name.endswith(KERNEL)]
    others = [file for file in logs.files if file not in kernel]
    names = ", ".join(file.name for file in others[:FEW]) + ", …" * (len(others) > FEW)
    kinds = (("the kernel's log", kernel), (names, others))
    return tuple(f"{name}: {_lines(files)}" for name, files in kinds if files)


def _lines(files: Sequence[LogFile]) -> str:
    lines = sum(file.lines for file in files)
    return f"{lines:,} line{'' if lines == 1 else 's'}"
