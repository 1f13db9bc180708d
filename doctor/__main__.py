"""The entry point: an internal error, even during import, becomes exit code 70."""

import gc
import sys

from doctor.errors import EXIT_BROKEN
from doctor.text.printable import clean_line
from doctor.text.terminal import hold_closed, settle, tell


def main() -> None:
    broken: BaseException | None = None
    gc.set_threshold(100_000, 50, 50)  # most objects made here live on, without cycles
    try:
        hold_closed()
        from doctor.cli import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt as stop:
        code = 128 + getattr(stop, "number", 2)
    except SystemExit:
        raise
    except BaseException as error:
        broken, code = error, EXIT_BROKEN
    why = settle()
    if why and (isinstance(broken, OSError) or code != EXIT_BROKEN):  # otherwise it was already reported
        tell(f"doctor: stdout could not be written: {why}.\n")
        code = EXIT_BROKEN
    elif broken:
        _apologise(broken)
    sys.exit(code)


def _apologise(error: BaseException) -> None:
    """Print one sentence with the place of the error; DOCTOR_TRACEBACK=1 shows the traceback."""
    import os
    import traceback

    if os.environ.get("DOCTOR_TRACEBACK"):
        tell("".join(traceback.format_exception(error)))
        return
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""
    what = f"internal error ({clean_line(f'{type(error).__name__}: {error}')}){place}."
    more = "No verdict was reached. Please report this; DOCTOR_TRACEBACK=1 shows more."
    tell(f"doctor: {_said(what)}\n        {_said(more)}\n")


def _said(text: str) -> str:
    try:
        from doctor.text.speech import t

        return t(text)
    except Exception:  # translating may be what is broken
        return text


if __name__ == "__main__":
    main()
