"""The sentences of a judgement of `doctor slow`."""

from collections.abc import Sequence

from doctor.live.jobs.job import RunningJob
from doctor.live.wires import Key
from doctor.slow.judge.judgement import SlowCulprit
from doctor.text.nodeset import fold
from doctor.text.ranks import ranks_text

MOST = 6


def percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def between(low: float, high: float) -> str:
    one, other = percent(low), percent(high)
    return one if one == other else f"{one.removesuffix(' %')} to {other}"


def milliseconds(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def keys_words(job: RunningJob, keys: Sequence[Key]) -> str:
    """ "rank 5 on node3", "ranks 4-7 on node2" """
    ranks = sorted(m.rank for m in job.ranks if (m.host, m.pid) in keys and m.rank is not None)
    hosts = fold(dict.fromkeys(host for host, _ in keys))
    if len(ranks) == len(keys):
        return f"{ranks_text(ranks, most=MOST)} on {hosts}"
    return f"process {keys[0][1]} on {hosts}" if len(keys) == 1 else f"{len(keys)} processes on {hosts}"


def who(late: SlowCulprit) -> str:
    """ "rank 5 on node3 (pid 20411)", "link of node4" """
    hosts = fold(late.hosts)
    if late.is_link:
        return f"link of {hosts}"
    if late.whole_host:
        return f"{hosts} ({ranks_text(late.ranks, most=MOST)})" if late.ranks else hosts
    named = (
        ranks_text(late.ranks, most=MOST) if late.ranks else "process" if late.pid else "several processes"
    )
    return f"{named} on {hosts}" + (f" (pid {late.pid})" if late.pid is not None else "")


def lateness_words(share: float, least: float, step: float | None) -> str:
    """ "the others wait for it 41 % of the time, 55 ms a step", or from the least to the most of both"""
    often = between(least, share) if least > 0 else f"at most {percent(share)}"
    said = f"the others wait for it {often} of the time"
    if not step:
        return said
    low, high = milliseconds(least * step), milliseconds(share * step)
    if low.rpartition(" ")[2] == high.rpartition(" ")[2]:
        low = low.rpartition(" ")[0]
    return f"{said}, {high if least in (0.0, share) else f'{low} to {high}'} a step"
