"""The symptoms of a command line: the bundled ones, and those of `--symptoms DIR`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from doctor.judge.registry import check_ids
from doctor.logs.symptoms.load import load_symptoms
from doctor.logs.symptoms.match import Matcher
from doctor.text.printable import clean_line
from doctor.text.terminal import tell


def matcher_of(folders: Sequence[Path], checks: Sequence[Path]) -> Matcher:
    """All symptoms. What an entry point brings and cannot be used is said, and stops nothing."""
    found = load_symptoms(folders, check_ids(checks))
    for broken in found.broken:
        tell(f"doctor: {clean_line(f'{broken.origin}: its symptoms could not be used: {broken.reason}')}\n")
    return Matcher(found.symptoms)
