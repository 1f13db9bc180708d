"""`python -m tests.trials.logs`: jobs that end by a fault; `doctor explain` concludes why from their logs."""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from doctor.logs.model import Conclusion
from tests.lab import Lab
from tests.support.fault_logs import accusations, concluded, innocents, truths, wrong
from tests.trials.logs.capture import JOBS, run, write
from tests.trials.logs.cases import CASES
from tests.trials.outcome import Outcome
from tests.trials.runner import Args, Case, Cases, Key, Series, main


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep", action="store_true", help=f"replace the logs in {JOBS.name}/ of the samples"
    )


def cases(args: Args) -> Cases:
    with Lab(max((CASES[name].hosts for name in args.kinds), default=1)) as lab:
        for number in range(args.trials):
            for name in args.kinds:
                yield Case([(name, number)], partial(tried, lab, args.keep))


def tried(lab: Lab, keep: bool, keys: Sequence[Key]) -> Iterator[Outcome]:
    ((name, number),) = keys
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        raw, logs = Path(folder, "raw"), JOBS / name if keep else Path(folder, name)
        raw.mkdir()
        try:
            run(lab, CASES[name], raw)
        finally:
            lab.reset()
        write(raw, logs)
        said = concluded(logs)
        yield judged(name, number, said, time.monotonic() - began)


def judged(name: str, number: int, said: Conclusion, seconds: float) -> Outcome:
    """By `faults.yaml`, which has nothing about healthy jobs."""
    causes, truth = accusations(said), truths().get(name)
    flaws = wrong(said, truth) if truth else [f"accused: {each.symptom}" for each in causes]
    alone = not (innocents(said, truth) if truth else causes)
    named = not flaws and alone
    words = (*flaws, *(str(each.symptom) for each in causes))
    return Outcome(name, number, "", bool(causes) is bool(truth), named, alone, None, seconds, 0, words)


SERIES = Series(
    "tests.trials.logs",
    "logs-trials.jsonl",
    kinds=tuple(CASES),
    cases=cases,
    options=options,
    trials=1,
)
if __name__ == "__main__":
    sys.exit(main(SERIES, __doc__))
