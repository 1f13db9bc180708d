"""The entry point: an internal error, also one while importing, becomes exit code 70."""

from __future__ import annotations

import sys

from doctor.errors import EXIT_BROKEN


def main() -> None:
    try:
        from doctor.cli import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt as stop:
        code = 128 + getattr(stop, "number", 2)
    except SystemExit:
        raise
    except BaseException as error:
        _apologise(error)
        code = EXIT_BROKEN
    sys.exit(code)


def _apologise(error: BaseException) -> None:
    """Print one sentence with the place; DOCTOR_TRACEBACK=1 shows the traceback."""
    import os
    import traceback

    from doctor.text.printable import clean

    if os.environ.get("DOCTOR_TRACEBACK"):
        print(clean(traceback.format_exc()), end="", file=sys.stderr)
        return
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""
    print(
        f"doctor: internal error ({clean(f'{type(error).__name__}: {error}')}){place}.\n"
        "        No verdict was reached. Please report this; DOCTOR_TRACEBACK=1 shows more.",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
