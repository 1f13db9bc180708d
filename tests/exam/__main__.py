"""`python -m tests.exam`: what each answer of `doctor explain` to the foreign logs is worth.

The cases of the half `unseen` are counted and not listed.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from tests.exam.answers import answerer, read_all
from tests.exam.cases import FOLDER, cases


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.exam", description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="other cases of the same form")
    asked = cases(parser.parse_args().folder)
    logs, sums = read_all(asked), Counter[str]()
    answer = answerer()
    for case in asked:
        given = answer(logs[case.name])
        worth = case.worth(given.code, given.text)
        sums[f"{case.half:7} {worth}"] += 1
        if worth != "right" and case.half == "seen":
            print(f"{case.name}  {case.kind:18} {worth}")
    for each, count in sorted(sums.items()):
        print(f"{count:5} {each}")


if __name__ == "__main__":
    main()
