"""Whatever could not be seen of some ranks, no innocent rank is accused and nothing crashes."""

import random

import pytest
from msgspec.structs import replace

from doctor.hang.judge import judge
from doctor.hang.judge.judgement import Cause
from doctor.hang.report_json import hang_part
from doctor.live.evidence import HostEvidence, JobMember, LiveEvidence, Look
from tests.support.hang.reports import text
from tests.support.hang.trials import Trial, over_two_hosts, trials

ROUNDS = 10
MARGIN = 0.5
"""Seconds: a limit below the time between the looks would take two equal looks for a hang."""
NEVER = {"none", "slow", "ckpt", "skip", "order", "kill", "extra"}


def torn(evidence: LiveEvidence, dice: random.Random) -> LiveEvidence:
    """The evidence without some stacks, threads, connections, looks, ranks or hosts."""
    if dice.random() < 0.3:
        evidence = over_two_hosts(evidence, later=dice.randrange(3_000))

    def look(each: Look | None) -> Look | None:
        if each is None or dice.random() < 0.03:
            return None
        if dice.random() < 0.3:
            each = replace(each, python=(), unread=("Python stack: no answer",))
        if dice.random() < 0.2:
            each = replace(each, threads=tuple(replace(t, syscall=(), waits="") for t in each.threads))
        if dice.random() < 0.1:
            each = replace(each, threads=each.threads[:1])
        if dice.random() < 0.2:
            few = dice.randrange(5)
            why = f"connections: only the first {few} were kept"
            each = replace(each, connections=each.connections[:few], unread=(*each.unread, why))
        if dice.random() < 0.03:
            each = replace(each, state="", threads=(), python=(), connections=(), unread=("/proc: slow",))
        return each

    def member(each: JobMember) -> JobMember:
        rank = None if each.helps is None and dice.random() < 0.05 else each.rank
        return replace(each, rank=rank, a=look(each.a), b=look(each.b))

    def host(each: HostEvidence) -> HostEvidence:
        kept = [one for one in each.members if dice.random() > 0.03]
        return replace(each, members=tuple(map(member, kept)))

    lost = {each.host: "no route" for each in evidence.hosts[1:] if dice.random() < 0.2}
    hosts = tuple(host(each) for each in evidence.hosts if each.host not in lost)
    return replace(evidence, hosts=hosts, unreached=lost)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(trials())))
def test_no_innocent_rank_is_accused(number: int) -> None:
    trial: Trial = trials()[number]
    guilty = {each.pid for host in trial.evidence.hosts for each in host.members if each.rank in trial.victim}
    limit = trial.evidence.hosts[0].apart + MARGIN
    dice = random.Random(number)
    for _ in range(ROUNDS):
        seen = torn(trial.evidence, dice)
        found = judge(seen, limit=limit)
        accused = {each.pid for each in found.culprits if each.cause is not Cause.GONE}
        assert accused <= (set() if trial.fault in NEVER else guilty), (trial.mode, trial.fault, found.named)
        assert bool(found.culprits) == (found.exit_code == 1)
        assert text(found, 80, verbose=True)
        assert hang_part(found).state is found.verdict
