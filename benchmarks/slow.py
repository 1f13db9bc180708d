"""`python -m benchmarks.slow`: what `doctor slow` costs the job that it looks at.

The steps of a real training over gloo on this machine, while it is looked at and while it is not, in turn;
and the processor time of what runs on a host: the agent and py-spy.
"""

import argparse
import math
import resource
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import mean, median

from msgspec.structs import replace

from doctor.live.evidence import JobChoice
from doctor.live.look import narrowed
from doctor.live.sight import HostsToSee
from doctor.model import Host
from doctor.slow.judge import judge
from doctor.slow.options import SlowWishes
from doctor.slow.plan import following
from doctor.slow.run import see
from doctor.transport.local import LocalTransport
from tests.support.slow.ranks import JOB, SlowJob

HEAD = "| round | step alone, median ms | while it is looked at | processor time a rank |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slow", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--base-ms", default="60")
    args = parser.parse_args()
    print(HEAD, "|---|---|---|---|", sep="\n")
    with tempfile.TemporaryDirectory() as folder:
        job = SlowJob(Path(folder), args.ranks, script=JOB)
        try:
            job.begin(BASE_MS=args.base_ms)
            found = [_round(job, number, args.seconds) for number in range(1, args.rounds + 1)]
        finally:
            job.end()
    more = mean(after / before - 1 for before, after, _ in found)
    print(f"\nStep time {more:+.1%}; {mean(cpu for *_, cpu in found):.1%} of a processor a rank.")
    return 0


def _round(job: SlowJob, number: int, seconds: float) -> tuple[float, float, float]:
    since = time.monotonic()
    time.sleep(seconds)
    alone = _step(job, since, time.monotonic())
    wishes = SlowWishes(seconds=seconds, master_port=job.port)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    asked = HostsToSee(
        (Host("here", "127.0.0.1"),), LocalTransport(), choose=lambda evidence: narrowed(evidence, wishes)
    )
    sight = see(asked, partial(following, wishes=wishes), JobChoice(master_port=job.port))
    ended = time.monotonic()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    made = judge(replace(sight.evidence, choice=wishes.choice()))
    if math.isclose(made.seconds, 0.0):
        sys.exit(f"nothing was seen: {made.sentence}")
    looked = _step(job, began, ended)
    cpu = (after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime) / (ended - began) / job.world
    print(f"| {number} | {1000 * alone:.1f} | {1000 * looked:.1f} | {cpu:.1%} |", flush=True)
    return alone, looked, cpu


def _step(job: SlowJob, since: float, until: float) -> float:
    steps = [done - began for began, _, _, done in job.steps(0) if since <= began and done <= until]
    return median(steps)


if __name__ == "__main__":
    sys.exit(main())
