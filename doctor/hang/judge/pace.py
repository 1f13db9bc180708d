"""How long the steps of a job take, so that a step that is always long is not taken for a hang."""

import re
from dataclasses import dataclass

from doctor.hang.judge.judgement import Judgement
from doctor.live.evidence import LiveEvidence
from doctor.live.jobs.job import RunningJob

TIMES = 2.0
"""A step may take this many times as long as the steps before it."""
SOURCE = "step-pace"
_SECONDS = re.compile(r"\d{1,5}\.\d{3}\Z")


def logged_pace(evidence: LiveEvidence, job: RunningJob) -> float:
    """Seconds for a step, by the logs of the job's ranks; 0 if they do not show it."""
    ranks = {(rank.host, rank.pid) for rank in job.ranks}
    texts = [
        said.text
        for host in evidence.hosts
        for said in host.libraries
        if said.source == SOURCE and (host.host, said.pid) in ranks
    ]
    return min((float(text) for text in texts if _SECONDS.match(text)), default=0.0)


@dataclass(slots=True)
class StepPace:
    """The steps of a job that is looked at again and again."""

    step: int | None = None
    since: float | None = None
    """When `step` began; None if it had begun before the first look."""
    longest: float = 0.0
    """Seconds for a step, by the looks so far."""

    def add(self, seen: Judgement, now: float) -> None:
        step = max((each.step for each in seen.stands.ranks if each.step is not None), default=None)
        if step is None or step == self.step:
            return
        if self.step is not None and self.step < step and self.since is not None:
            self.longest = max(self.longest, (now - self.since) / (step - self.step))
        self.since = None if self.step is None else now
        self.step = step

    def limit(self, wished: float) -> float:
        return max(wished, TIMES * self.longest)
