"""An interpreter for tests without MindSpore's wheel: the tests' own, which finds the emulated mindspore."""

import sys
from pathlib import Path
from shlex import quote

from .emulated import EMULATORS

SITE = EMULATORS / "python_mindspore"
VERSION = "2.10.0+emulated"


def write(folder: Path) -> Path:
    """Write the interpreter, a wrapper as people give to `--python`, and what says that it has mindspore."""
    described = folder / "site" / f"mindspore-{VERSION}.dist-info"
    described.mkdir(parents=True, exist_ok=True)
    (described / "METADATA").write_text(f"Name: mindspore\nVersion: {VERSION}\n")
    wrapper = folder / "mindspore-python"
    wrapper.write_text(
        "#!/bin/sh\n"
        f"export EMULATED_MINDSPORE={VERSION} PYTHONPATH={quote(str(SITE))}:{quote(str(folder / 'site'))}\n"
        f'exec {quote(sys.executable)} "$@"\n'
    )
    wrapper.chmod(0o755)
    return wrapper
