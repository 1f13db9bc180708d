"""Golden files: what is made must be what the file holds."""

import os
from pathlib import Path


def compare(golden: Path, made: str) -> None:
    """Fails if they differ. UPDATE_GOLDEN has the file written: read the difference before committing it."""
    if os.environ.get("UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(made)
    again = f"run these tests with UPDATE_GOLDEN=1 to write golden file {golden.name}"
    assert golden.is_file(), f"there is none: {again}"
    assert made == golden.read_text(), f"it is stale: {again} again"
