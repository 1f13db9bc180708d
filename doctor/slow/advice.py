"""What to do about a rank or a link that the others wait for, and about a look that did not decide."""

import math
from collections.abc import Iterator

from doctor.live.reach import Reach
from doctor.slow.judge import STEPS
from doctor.slow.judge.judgement import Lag, LateReason, SlowCulprit, SlowJudgement, SlowState
from doctor.text.hostprogram import sections

BY_REASON = {LateReason[name]: do for name, do in sections(__file__, "advice.txt")["reasons"].items()}
LONGER = 60
"""Seconds of the next look, if this one did not decide."""


def advice(late: SlowCulprit, reach: Reach) -> Iterator[str]:
    """Commands; a sentence begins with #."""
    if late.is_link:
        yield "# Look for errors, drops and the speed of the interface at each end."
        yield from (reach.on(host, "ip -s link") for host in (late.host, *late.peers))
    elif late.reason is LateReason.EVERYTHING:
        yield "# Compare the size of its batch with the others'; if it is equal, its host: clocks, memory."
        yield reach.check(late.hosts)
    elif late.reason is None:
        yield f"# Look at its lines for longer: {reach.other('slow')} --for {LONGER}"
    elif late.lag is Lag.STAGE and late.reason in (LateReason.UNEVEN, LateReason.COMPUTES):
        yield "# Give it fewer layers, or less work at this line, if it is not so by design."
    else:
        yield f"# {BY_REASON[late.reason]}"
    if late.reason is LateReason.NICE and late.pid is not None:
        yield reach.on(late.host, f"sh -c 'renice -n 0 $(ls /proc/{late.pid}/task)'")


def next_look(judgement: SlowJudgement) -> str:
    """What to type if nothing was decided; empty if there is nothing more to see."""
    if judgement.state is SlowState.UNKNOWN and judgement.more:
        needed = STEPS * judgement.seconds / judgement.steps if judgement.steps else 2 * judgement.seconds
        return f"{judgement.hang.reach.other('slow')} --for {max(LONGER, math.ceil(needed))}"
    return ""
