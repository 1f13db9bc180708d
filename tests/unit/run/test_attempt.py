"""Who ended the command: it is asked from its status and from the signals that came."""

import signal

from doctor.run.attempt import JobAttempt
from doctor.run.output import Output

TERM = int(signal.SIGTERM)


def test_a_signal_that_comes_after_the_end_counts_if_the_command_ended_by_it() -> None:
    """A scheduler ends the steps of a job before its script: srun has passed the signal up by then."""
    late: list[int] = []
    attempt = JobAttempt(Output(-1, (), ("", "", "")), 0.0, status=(128 + TERM) << 8, late=late)
    assert attempt.by_signal == 0
    late.append(TERM)
    assert attempt.by_signal == TERM
    attempt.status = 1 << 8
    assert attempt.by_signal == 0
