"""What a smoke run proves, and against whom. Pure: the same result always gives the same charges.

The judges run in the order of certainty. A run that ended early is judged by why it ended; a complete one
by its exact invariants first and by statistics last. Consequences of a fault that is already charged are left
out.
"""

from doctor.smoke.judge.charge import SmokeCharge
from doctor.smoke.result import SmokeResult

__all__ = ["SmokeCharge", "judge"]


def judge(result: SmokeResult) -> tuple[SmokeCharge, ...]:
    """Most reports have no smoke run, so only this imports the judges."""
    from doctor.smoke.judge.crash import judge_crash
    from doctor.smoke.judge.data import judge_data
    from doctor.smoke.judge.hang import judge_hang, judge_hiccups
    from doctor.smoke.judge.injections import judge_injected
    from doctor.smoke.judge.mismatch import judge_mismatch, judge_sizes
    from doctor.smoke.judge.start import judge_start

    calls = (*judge_mismatch(result), *judge_sizes(result))
    ended = (*judge_start(result), *judge_crash(result), *calls, *judge_hang(result))
    found = (*ended, *judge_data(result, ended), *judge_hiccups(result))
    return (*found, *judge_injected(result, found))
