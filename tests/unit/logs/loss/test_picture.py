"""The curves as pictures: in every width, with and without colour, and in HTML."""

import io
import random
import re
from math import nan
from pathlib import Path

import pytest
from rich.console import Console

from doctor import cli
from doctor.logs.loss.drawing import drawing
from doctor.logs.loss.judge import judge_curves
from doctor.logs.model import Curve, Party
from doctor.report.html.losses import losses_figure
from doctor.report.terminal.losses import LEAST, MARGIN, print_losses
from tests.support.each import each
from tests.unit.logs.loss.curves import curve, falling


def healthy(seed: int = 1, many: int = 200) -> list[float]:
    return falling(random.Random(seed), many, 0.03)


def drawn(curves: list[Curve], width: int = 80) -> str:
    out = io.StringIO()
    if made := drawing(curves, judge_curves(curves)):
        print_losses(made, Console(file=out, width=width, color_system=None), 2)
    return out.getvalue()


def figure(curves: list[Curve]) -> str:
    made = drawing(curves, judge_curves(curves))
    return losses_figure(made) if made else ""


NAN = [curve([*healthy()[:120], *[nan] * 80], 2), curve(healthy(3), 0), curve(healthy(4), 1)]
EXPLODES = [curve([*healthy()[:140], *(2.6 * 1.1**n for n in range(60))])]


def test_the_guilty_step_and_the_guilty_rank_are_marked() -> None:
    text = drawn(NAN)
    lines = text.splitlines()
    mark = next(line for line in lines if "▲ step 1,210" in line)
    assert all(line[mark.index("▲")] in "┊x*·" for line in lines[1:10])
    assert "* rank 2  · rank 0, rank 1  x not a number" in text
    assert lines[1].rstrip().endswith("x" * 20)


def test_a_loss_that_explodes_is_drawn_on_a_logarithmic_axis() -> None:
    text = drawn(EXPLODES)
    assert "logarithmic" in text
    assert "▲ step 1,4" in text


def test_healthy_curves_have_no_mark() -> None:
    text = drawn([curve(healthy())])
    assert "* rank 0" in text
    assert not set("▲┊x") & set(text)


@pytest.mark.parametrize("curves", [NAN, EXPLODES], ids=("nan", "explodes"))
@each("width", range(40, 201, 8))
def test_every_width_is_kept(curves: list[Curve], width: int) -> None:
    assert max(map(len, drawn(curves, width).splitlines())) <= width


def test_a_narrow_terminal_gets_no_picture() -> None:
    assert drawn(NAN, 24) == ""


@pytest.mark.parametrize(
    "losses",
    [
        [],
        [nan],
        [nan, nan, nan],
        [2.0],
        [1e308, -1e308, 1e308],
        [0.0] * 40,
        [1e-320, 1e300] * 20,
        [-3.0, 3.0] * 9,
    ],
)
def test_absurd_losses_are_drawn_or_not_but_break_nothing(losses: list[float]) -> None:
    drawn([curve(losses)])
    figure([curve(losses)])


def test_many_ranks_are_not_all_drawn() -> None:
    curves = [curve([*healthy(rank, 80), *([nan] if rank == 33 else [])], rank) for rank in range(40)]
    text = drawn(curves)
    assert "* rank 33" in text
    assert "and 32 more" in text


def test_the_figure_says_in_words_what_it_shows() -> None:
    page = figure(NAN)
    assert page.count("<polyline") == 3
    assert page.count('class="curve odd"') == 1
    assert '<desc id="losses-desc">The loss of rank 2 is NaN since step 1210.</desc>' in page
    assert 'class="odd-name">1,210<' in page


def test_names_in_the_figure_are_harmless() -> None:
    evil = Curve("<script>\x1b[31m", NAN[0].who.__class__(), (1, 2, 3), (3.0, 2.0, nan), lines=(1, 2, 3))
    page = figure([evil])
    assert "<script>" not in page
    assert "\x1b" not in page


def test_two_losses_with_which_nothing_is_wrong_are_not_drawn() -> None:
    few = Curve("train.log", Party(), (10, 20), (0.2, 0.1), total=2)
    assert drawing([few], ()) is None


def test_the_first_and_the_last_loss_have_all_their_digits() -> None:
    losses = [2.718281, *healthy()[1:-1], 0.0123456]
    assert "went from 2.718281 to 0.0123456" in figure([curve(losses)])


def test_the_narrowest_terminal_that_gets_a_picture() -> None:
    narrowest = LEAST + MARGIN + 3
    assert drawn(NAN, narrowest)
    assert drawn(NAN, narrowest - 1) == ""


def test_a_short_curve_is_drawn_with_all_its_points() -> None:
    page = figure([curve([*healthy()[:40], *[nan] * 5])])
    drawn_points = [len(points.split()) for points in re.findall(r'<polyline points="([^"]*)"', page)]
    assert max(drawn_points) == 40


RISES_AGAIN = (4.757, 4.406, 4.034, 3.965, 4.003, 4.261, 4.199, 4.293)
FALLS_ON = (4.757, 4.406, 4.034, 3.965, 3.903, 3.861, 3.799, 3.793)
HAS_FALLEN = (4.757, 2.406, 1.034, 0.965, 0.903, 0.861, 0.999, 0.993)


@pytest.mark.parametrize(
    ("losses", "asks"), [(RISES_AGAIN, True), (FALLS_ON, False), (HAS_FALLEN, False)], ids=str
)
def test_a_loss_that_hardly_falls_leads_to_what_may_be_wrong(
    losses: tuple[float, ...], asks: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {20 * at:4}  loss {loss}\n" for at, loss in enumerate(losses)))
    assert cli.run(["explain", str(log)]) == 0
    assert ("doctor explain loss-stalled" in capsys.readouterr().out) is asks
