"""The logs of several jobs: each is judged on its own, and those that failed are reported together."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from doctor.logs.judge import conclude
from doctor.logs.judge.job_facts import JobFacts
from doctor.logs.model import Conclusion, LogCause, LogOutcome, Logs

Curves = Callable[[Logs], Sequence[LogCause]]
_WORST = (LogOutcome.NAMED, LogOutcome.UNKNOWN, LogOutcome.CLEAN)
_OF = {
    LogOutcome.CLEAN: "nothing in it complains",
    LogOutcome.UNKNOWN: "something is wrong in it, but the cause is unknown",
}


def conclude_all(logs: Logs, known: JobFacts | None, curves: Curves) -> Conclusion:
    """The conclusion about all jobs. `curves` gives the charges from the losses of a job."""
    if not logs.jobs:
        return conclude(logs, known, curves(logs))
    jobs = [replace(job, missed=logs.missed) for job in logs.jobs]
    each = [(job.job, conclude(job, known, curves(job))) for job in jobs]
    outcome = min((said.outcome for _, said in each), key=_WORST.index)
    told = [(job, said) for job, said in each if said.outcome is outcome]
    charges: list[LogCause] = []
    for job, said in told:
        first = len(charges)
        for charge in said.charges:
            because = None if charge.because is None else charge.because + first
            charges.append(replace(charge, job=job, because=because))
    beside = [f"{job}: {text}" for job, said in told for text in said.beside]
    beside += [f"{job}: {_OF.get(said.outcome, '')}" for job, said in each if (job, said) not in told]
    several = len(told) > 1
    story = [(at, f"{job}: {text}" if several else text) for job, said in told for at, text in said.story]
    return Conclusion(
        outcome,
        tuple(charges),
        story=tuple(sorted(story, key=lambda one: (one[0] is None, one[0] or 0.0))),
        odd=tuple(line for _, said in told for line in said.odd),
        telling=next((said.telling for _, said in told if said.odd), ""),
        open=tuple(dict.fromkeys(f"{job}: {text}" for job, said in told for text in said.open)),
        hosts=tuple(dict.fromkeys(host for _, said in told for host in said.hosts)),
        checks=tuple(dict.fromkeys(check for _, said in told for check in said.checks)),
        read="; ".join(f"{job}: {said.read}" for job, said in each),
        beside=tuple(beside),
    )
