"""`python -m tests.trials.logs [CASE ...]`: makes the logs of these jobs, or of all jobs, again."""

from __future__ import annotations

import argparse
import sys
import time

from tests.lab import Lab, missing
from tests.trials.logs.capture import JOBS, capture
from tests.trials.logs.cases import CASES


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.trials.logs", description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), help=f"some of {', '.join(CASES)}")
    args = parser.parse_args()
    if unknown := [word for word in args.cases if word not in CASES]:
        parser.error(f"no such case: {', '.join(unknown)}")
    if reason := missing():
        print(f"No logs: {reason}.", file=sys.stderr)
        return 2
    with Lab(max(CASES[name].hosts for name in args.cases)) as lab:
        for name in args.cases:
            began = time.monotonic()
            files = capture(lab, name, CASES[name])
            print(
                f"{name}: {time.monotonic() - began:.0f} s",
                *(file.relative_to(JOBS) for file in files),
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
