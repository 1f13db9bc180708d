"""What to do about a rank or a link that the others wait for, and about a look that did not decide."""

import math
from collections.abc import Iterator

from doctor.live.reach import Reach
from doctor.slow.judge import STEPS
from doctor.slow.judge.judgement import Lag, LateReason, SlowCulprit, SlowJudgement, SlowState

BY_REASON = {
    LateReason.LOADER: "Give its data loader more workers, or look at where its data comes from.",
    LateReason.READS: "Put what it reads where it is read as fast as by the others, or read it once for all.",
    LateReason.WRITES: "Write less often, or in a thread of its own: all ranks wait meanwhile.",
    LateReason.CHECKPOINT: "Save less often, or in the background: all ranks wait meanwhile.",
    LateReason.EVALUATION: "Evaluate less often, or on all ranks: they wait meanwhile.",
    LateReason.GC: "Collect garbage on all ranks at the same steps: gc.disable(), and gc.collect() at times.",
    LateReason.COMPUTES: "Give it no more work than the others at this line, or less often.",
    LateReason.UNEVEN: "Compare what the ranks get at this line: size of a batch, length of a sample.",
    LateReason.ELSEWHERE: "Take this line out of the step, or make what it waits for faster.",
    LateReason.QUOTA: "Raise the CPU quota of its group (cpu.max), or ask the scheduler for more processors.",
    LateReason.STOPPED: "Find what stops it: a script (kill -STOP), a debugger, a scheduler that suspends.",
    LateReason.HOGS: "End or move what runs beside it, or ask the scheduler for processors of its own.",
    LateReason.NICE: "Give it the priority of the others, and start it without nice the next time.",
    LateReason.GIL: "Move the work of that thread into a process of its own.",
    LateReason.CLOCK: "Look at the cooling and the power of its host: something holds the clock down.",
}
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
        yield "# Give this stage fewer layers, if it is not so by design."
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
