"""The numbers of charges, each as a golden text: what a rank, a loss, a link or a collective is charged with.

`UPDATE_GOLDEN=1 pytest` on this file writes them again: read the difference before committing it.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from textwrap import shorten

from doctor.smoke.judge.charge import SmokeCharge
from doctor.smoke.judge.data import judge_data
from doctor.smoke.judge.links import judge_links
from doctor.smoke.judge.speed import judge_speed
from doctor.smoke.result import Exit
from tests.support.golden import compare
from tests.support.paths import ROOT
from tests.support.smoke.frozen import died, extra, frozen, skipped, stuck
from tests.support.smoke.results import with_host, with_rank
from tests.support.smoke.spoilt import run_of
from tests.unit.smoke.judge import test_data, test_hang, test_loss, test_speed

GOLDEN = ROOT / "tests/golden/smoke/charges.txt"
EIGHT = test_hang.EIGHT


def stopped() -> Iterator[SmokeCharge]:
    """Runs that hang or crash, earlier and later."""
    for step in (10, 20):
        there = test_hang.position(EIGHT, 3, "train", "dp", step)
        hung = frozen(EIGHT, {3: stuck(there)})
        yield from test_hang.judged(hung)
        yield from test_hang.judged(died(hung, 3, code=step))
        yield from test_hang.judged(with_rank(died(hung, 3), 3, exit=Exit(None, 9, step / 2)))
        for fault in (skipped(there), extra(there)):
            yield from test_hang.judged(frozen(EIGHT, {3: fault}, kind="mismatch"))


def slow() -> Iterator[SmokeCharge]:
    """Ranks, processors and links that are slower by two factors."""
    for factor in (1.5, 3.0):
        run = test_speed.run_of(4)
        yield from judge_speed(test_speed.computing(run, 5, factor))
        loaded = with_host(test_speed.waiting(run, "n3", factor), "n3", load=20.0 * factor, cores=8)
        yield from judge_speed(loaded)
        yield from judge_links(test_speed.carrying(run, test_speed.at("n3", factor=1 / factor)))
        yield from judge_links(
            test_speed.carrying(run, lambda *_: 1.0, test_speed.at("n3", factor=100 * factor))
        )


def spoilt() -> Iterator[SmokeCharge]:
    for shape, spoil, _ in test_data.CASES.values():
        yield from judge_data(spoil(run_of(shape)))
    for name, curve, _ in test_loss.CURVES:
        for steps in (30, 60):
            hosts = 4 if "four" in name else 2
            yield from judge_data(test_loss.curved(test_loss.run_of(hosts, steps=steps), curve))


def texts(charges: Iterable[SmokeCharge]) -> Iterator[str]:
    """All but hashes, and digits of losses that may depend on the processor."""
    for charge in charges:
        quotes = [each for each in charge.evidence if not each.source.startswith("hashes")]
        seen = (f"{each.source}: {shorten(each.text, 200)}" for each in quotes)
        told = "\n    ".join((f"{charge.check}: {charge.summary}", charge.expected, charge.actual, *seen))
        yield re.sub(r"(\d\.\d{9})\d+", r"\1", told)


def test_the_numbers_of_charges() -> None:
    made = "\n".join(dict.fromkeys(texts(chain(spoilt(), stopped(), slow())))) + "\n"
    compare(GOLDEN, made)
