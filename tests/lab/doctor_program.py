"""`doctor` as a program that stays loaded."""

import contextlib
import io

from doctor import cli
from doctor.__main__ import main

__all__ = ["load", "main"]


def load() -> None:
    """Everything that an examination over SSH imports."""
    import rich.console

    import doctor.exam.examination
    import doctor.transport.ssh

    assert rich.console
    assert doctor.exam.examination
    assert doctor.transport.ssh
    with contextlib.redirect_stdout(io.StringIO()):
        cli.run(["list"])
