"""An exception of nobody known, above a launcher's report that one rank ended, is that rank's."""

from pathlib import Path

import pytest

from doctor.logs.model import LogOutcome
from tests.support.fault_logs import pasted


def raised(words: str, line: int = 28) -> str:
    return (
        "Traceback (most recent call last):\n"
        f'  File "/job/train.py", line {line}, in <module>\n'
        "    main()\n"
        f"{words}\n"
    )


ENDED = "srun: error: node3: task 5: Exited with exit code 1\n"
VALUE = "ValueError: require 2 GPUs, but only 1 is there"
OF_OTHERS = "ConnectionResetError: [Errno 104] Connection reset by peer"


def test_it_is_quoted_in_the_headline(tmp_path: Path) -> None:
    found = pasted(tmp_path, raised(VALUE) + "\n" + ENDED)
    (charge, *_) = found.charges
    assert found.outcome is LogOutcome.NAMED
    assert charge.says.startswith(f"rank 5 on node3 ended with an exception of the program: {VALUE}")
    again = pasted(tmp_path, raised(VALUE) + raised(VALUE) + ENDED)
    assert again.charges[0].says == charge.says


@pytest.mark.parametrize(
    "text",
    [
        raised(VALUE) + raised("KeyError: 'lr'", 40) + ENDED,
        raised(OF_OTHERS) + ENDED,
        ENDED + raised(VALUE),
        raised(VALUE) + "2026-03-02 10:11:12,131 INFO train: step 2/100 loss 1.9\n" + ENDED,
    ],
    ids=["two that differ", "what others cause", "below the report", "a logged step below it"],
)
def test_it_is_not_if_it_may_be_that_of_another(text: str, tmp_path: Path) -> None:
    (charge, *_) = pasted(tmp_path, text).charges
    assert charge.says == "rank 5 on node3 ended with exit code 1"


def test_two_ranks_that_ended_may_each_have_raised_it(tmp_path: Path) -> None:
    other = ENDED.replace("node3", "node4").replace("task 5", "task 9")
    found = pasted(tmp_path, raised(VALUE) + ENDED + other)
    assert all("exception of the program" not in charge.says for charge in found.charges)


HEAD = "[2026-11-20 03:53:36 TP3] Scheduler hit an exception: "
ERROR = "[ERROR] the pool lost its main process\n"


@pytest.mark.parametrize("text", [raised(VALUE) + ERROR, HEAD + raised(VALUE), HEAD + raised(VALUE) + ERROR])
def test_who_says_that_something_failed_does_not_say_why(text: str, tmp_path: Path) -> None:
    """The line above it, or a line of another process that is at level ERROR below it."""
    (charge, *_) = pasted(tmp_path, text).charges
    assert charge.says.startswith(f"the program ended with an exception: {VALUE}")


@pytest.mark.parametrize("between", ["", ERROR, 3 * ERROR])
@pytest.mark.parametrize("on", [1, 50])
def test_a_record_below_it_shows_that_the_script_goes_on(between: str, on: int, tmp_path: Path) -> None:
    text = raised(VALUE) + between + "".join(f"[INFO] answered request {n}\n" for n in range(on))
    assert not any(VALUE in charge.says for charge in pasted(tmp_path, text).charges)
