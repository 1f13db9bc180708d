"""A job is ended only for its own losses: the data that it prints may quote those of others."""

from collections.abc import Sequence

import pytest

from doctor.exam.request import HostFlags, Request
from doctor.run.why import losses_of
from tests.unit.run.test_losses import FALLING, Printed, Text

LOCAL = Request("run", who=HostFlags(local=True))
OWN = [f"step {step} loss {loss:.5f} lr 0.001" for step, loss in enumerate(FALLING)]
NAN = [f"step {step} loss nan lr 0.001" for step in range(50, 60)]
SAME = [f"step {step} loss 4.123457" for step in range(300)]
QUOTED = [f"sample {n}: iter {n} loss = nan" for n in range(200, 240)]
HIGH = [f"step {step} loss {3.0 * 1.2**step:.3f}" for step in range(40)]
"""The log of another training, as a text that a job may print."""
LOW = [f"step {step} loss {0.2 + step / 1000:.4f} acc 0.9" for step in range(30)]
LATER = [f"step {100 * step} loss {9 - step / 10:.3f} lr 0.001" for step in range(1, 30)]
MEGATRON = "iteration {} / 9000 | consumed samples: 12 | elapsed time per iteration (ms): 90.1 |"
REST = " loss scale: 1.0 | number of skipped iterations: 0 | number of nan iterations: {} |"
BAR = "\r".join(f"{n}%|{'█' * (n // 10)}| {n}/100 [00:{n}<01:00, 9.1it/s, loss=nan]" for n in range(1, 60))
TRAINER = "{{'loss': {}, 'grad_norm': {}, 'learning_rate': 1e-05, 'epoch': {}}}"


def looked(before: Sequence[str], since: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """What is told when all was printed, and whether the job is ended if it was bad after `before`."""
    first = "".join(f"{line}\n" for line in before).encode()
    whole = first + "".join(f"{line}\n" for line in since).encode()
    output = Printed({"stdout": Text(whole), "stderr": Text(b"loss nan is what we fear\n")})
    look = losses_of(LOCAL, output, (), {"stdout": len(first), "stderr": 0})  # type: ignore[arg-type]
    return look.says, look.lasts


@pytest.mark.parametrize(
    ("before", "since"),
    [
        (OWN[:50] + NAN[:1], NAN[1:]),
        ([], NAN),
        (OWN[:50] + HIGH[30:32], [f"step {50 + n} loss {3 * 1.2**n:.3f} lr 0.001" for n in range(40)]),
        (SAME[:200], SAME[200:]),
        ([TRAINER.format(2 - n / 90, 1.5, n / 9) for n in range(90)], [TRAINER.format(0.0, "nan", 12)] * 3),
        (
            [(MEGATRON + " lm loss: 2.5E+00 |" + REST).format(n, 0) for n in range(90)],
            [(MEGATRON + REST).format(n, 1) for n in range(90, 99)],
        ),
        ([], [BAR]),
    ],
    ids=["NaN", "NaN from the start", "rises", "frozen", "Trainer", "Megatron", "a bar"],
)  # fmt: skip
def test_a_bad_loss_that_lasts_is_one(before: Sequence[str], since: Sequence[str]) -> None:
    says, lasts = looked(before, since)
    assert says
    assert lasts


@pytest.mark.parametrize(
    ("before", "since"),
    [
        (OWN[:50], ["the loss: nan", "why is my loss nan?", "RT @x: loss = nan after 3 days"]),
        (OWN[:50], [*QUOTED[:20], OWN[51], *QUOTED[20:]]),
        (OWN[:9], [OWN[9], *HIGH]),
        (LOW, LATER),
        ([], [*HIGH, OWN[0]]),
        (OWN[:-1], [*["loss: nan"] * 9, OWN[-1]]),
        ([line for n in range(0, 100, 25) for line in (*OWN[n : n + 25], "step 1 loss nan")], OWN[100:]),
    ],
    ids=[
        *("prose", "samples between", "another log", "another log before it", "a log at the start"),
        *("one line again", "again and again, and sound since"),
    ],
)
def test_a_quoted_loss_ends_no_job(before: Sequence[str], since: Sequence[str]) -> None:
    _, lasts = looked(before, since)
    assert not lasts
