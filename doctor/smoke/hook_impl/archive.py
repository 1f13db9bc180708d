"""Writes the hook as one file, for the PYTHONPATH of jobs whose Python lacks cluster-doctor."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Iterator

import doctor
from doctor.smoke.hook_impl.rank_variables import ROWS
from doctor.text.printable import clean

MODULES = (
    "__init__.py",
    "smoke/__init__.py",
    "smoke/hook.py",
    "text/__init__.py",
    "text/printable.py",
    "text/ranks.py",
)
FOLDER = "smoke/hook_impl"
RANK_VARIABLES = f"{FOLDER}/rank_variables.py"
"""It imports modules that the archive lacks, so the archive holds its result instead."""


def main() -> None:
    if len(sys.argv) != 2 or not sys.argv[1].endswith(".zip"):
        sys.exit("usage: python3 -m doctor.smoke.hook FILE.zip")
    try:
        write(sys.argv[1])
    except OSError as error:
        sys.exit(clean(f"{sys.argv[1]} cannot be written: {error.strerror}"))
    print(clean(f"start the ranks with PYTHONPATH={os.path.abspath(sys.argv[1])}"))


def write(path: str) -> None:
    """Write the archive, without compression, so that a Python without zlib can read it too."""
    root = os.path.dirname(doctor.__file__)
    with zipfile.ZipFile(path, "w") as archive:
        for name in names(root):
            if name != RANK_VARIABLES:
                archive.write(os.path.join(root, name), f"doctor/{name}")
        archive.writestr(f"doctor/{RANK_VARIABLES}", f"ROWS = {ROWS!r}\n")


def names(root: str) -> Iterator[str]:
    yield from MODULES
    for name in sorted(os.listdir(os.path.join(root, FOLDER))):
        if name.endswith(".py"):
            yield f"{FOLDER}/{name}"
