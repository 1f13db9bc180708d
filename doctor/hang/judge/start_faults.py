"""Why a job with launchers does not start, and what to type. A rule that may not apply says nothing."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from posixpath import basename

from doctor.hang.judge.activity import doing
from doctor.hang.judge.judgement import Cause, HangConfidence, HangCulprit, StartFault
from doctor.live.jobs import starting
from doctor.live.jobs.starters import Starter
from doctor.text.grouped import grouped
from doctor.text.nodeset import fold
from doctor.text.ranks import ranges


def faults(job: starting.StartingJob, apart: float, unreached: Sequence[str]) -> Iterator[StartFault]:
    """All faults, the one that explains the most first."""
    yield from _names(job)
    yield from _addresses(job)
    yield from _ports(job)
    yield from _numbers(job)
    yield from _not_there(job, apart)
    yield from _absent(job, unreached)
    yield from _unreachable(job)


def _named(each: Starter, cause: Cause, words: str) -> HangCulprit:
    return HangCulprit(None, each.host, None, cause, words)


def _names(job: starting.StartingJob) -> Iterator[StartFault]:
    """The name of the master, where it has no address."""
    lost = [(each, why) for each in job.starters if (why := starting.unresolved(job, each))]
    if lost:
        said = "cannot resolve {}, which its {} calls: {}"
        named = tuple(
            _named(each, Cause.NAME, said.format(each.master.address, job.name, why)) for each, why in lost
        )
        yield StartFault(named, do=tuple(_address(job, [each for each, _ in lost])))


def _address(job: starting.StartingJob, whom: Sequence[Starter]) -> Iterator[str]:
    """The option to give, if it is known where the others meet."""
    head = job.head
    home = head.host if head else ""
    if not home:
        known = [
            str(t.host)
            for each in job.starters
            if (t := starting.target_of(job, each)) and not t.itself and t.host
        ]
        home = starting.most_common(known) if known else ""
    if not home:
        return
    option, address = whom[0].launcher.options.spelled("master_addr"), starting.address_of(job.host(home))
    if whom[0].master.said.endswith("rdzv_endpoint"):
        option, address = whom[0].launcher.options.spelled("rdzv_endpoint"), f"{address}:{job.port}"
    why = f", an address of {home}" + (", which has node rank 0" if head else "")
    yield f"start it on {fold([each.host for each in whom])} with {option.replace('_', '-')}={address}{why}"


def _addresses(job: starting.StartingJob) -> Iterator[StartFault]:
    targets = [(each, target) for each in job.starters if (target := starting.target_of(job, each))]
    head, complete = job.head, len(job.starters) >= job.nodes
    if len(targets) == len(job.starters) > 1 and len({str(target) for _, target in targets}) == 1:
        target = targets[0][1]
        if not target.host and complete:
            words = f"has a {job.name} that calls {_place(targets[0][0])}, which is not a host of this job"
        elif target.host and head and target.host != head.host:
            words = f"has a {job.name} that calls {target.host}, but node rank 0 runs on {head.host}"
        else:
            return
        yield _wrong(job, list(job.starters), [words] * len(job.starters))
        return
    right = _right(job, targets)
    wrong = [(each, target) for each, target in targets if right and str(target) != right]
    if wrong:
        yield _wrong(job, [each for each, _ in wrong], [_calls(job, *one, right) for one in wrong])


def _wrong(job: starting.StartingJob, whom: list[Starter], words: Sequence[str]) -> StartFault:
    named = tuple(_named(each, Cause.ADDRESS, said) for each, said in zip(whom, words, strict=True))
    return StartFault(named, lasts=True, do=tuple(_address(job, whom)))


def _right(job: starting.StartingJob, targets: Sequence[tuple[Starter, starting.Target]]) -> str:
    """The host that they should call: that of node rank 0 if somebody calls it, else the one of most."""
    head = job.head
    others = [str(target) for each, target in targets if each is not head]
    if head and (head.host in others or any(target.host == head.host for _, target in targets)):
        return head.host
    votes = Counter(others).most_common(2)
    return votes[0][0] if votes and (len(votes) == 1 or votes[0][1] > votes[1][1]) else ""


def _calls(job: starting.StartingJob, each: Starter, target: starting.Target, right: str) -> str:
    if target.itself:
        return f"has a {job.name} that calls {target.address}, which is {each.host} itself"
    where = f"{target.host} ({_place(each)})" if target.host else _place(each)
    return f"has a {job.name} that calls {where}; the others call {right}"


def _place(each: Starter) -> str:
    return f"{each.master.address}:{each.master.port}"


def _ports(job: starting.StartingJob) -> Iterator[StartFault]:
    right = job.port
    wrong = [each for each in job.starters if each.master.port != right]
    if wrong:
        words = [
            f"has a {job.name} that calls port {each.master.port}; the others call {right}" for each in wrong
        ]
        option = wrong[0].launcher.options.spelled("master_port").replace("_", "-")
        where = fold([each.host for each in wrong])
        do = f"start it on {where} with the port {right}, by {option} or in the endpoint"
        yield replace(_wrong(job, wrong, words), do=(do,))


def _missing(job: starting.StartingJob) -> list[int]:
    """Numbers of launchers that nobody has."""
    if any(each.node is None for each in job.starters):
        return []
    return sorted(set(range(job.nodes)) - {each.node for each in job.starters})


def _nobody_has(numbers: Sequence[int]) -> str:
    several = "s" if len(numbers) > 1 else ""
    return f"nobody has node rank{several} {', '.join(ranges(tuple(numbers))[:8])}" if numbers else ""


def _numbers(job: starting.StartingJob) -> Iterator[StartFault]:
    """Two launchers with one number."""
    for number, same in grouped((each.node, each) for each in job.starters if each.node is not None).items():
        if len(same) > 1:
            rest = _nobody_has(_missing(job))
            named = tuple(
                _named(each, Cause.NUMBER, f"has node rank {number}, as another host has") for each in same
            )
            do = f"give each host of {fold([each.host for each in same])} a node rank of its own"
            yield StartFault(named, lasts=True, do=(f"{do}: {rest}" if rest else do,))


def _not_there(job: starting.StartingJob, apart: float) -> Iterator[StartFault]:
    """Launchers that do not wait for the others yet, while others do."""
    late = [each for each in job.starters if starting.has_come(each) is False]
    if not late or len(late) == len(job.starters):
        return
    does = [(each, doing(each.member, (), apart)) for each in late]
    named = tuple(
        HangCulprit(None, each.host, None, one.cause, f"its {job.name} {one.words}", one.place, one.frames)
        for each, one in does
    )
    yield StartFault(
        named,
        works=all(one.works for _, one in does),
        unproved=any(one.unproved for _, one in does),
        confidence=HangConfidence.STRONG,
    )


def _absent(job: starting.StartingJob, unreached: Sequence[str]) -> Iterator[StartFault]:
    lacking = job.nodes - len(job.starters)
    if lacking < 1 or len({each.node for each in job.starters} - {None}) not in (0, len(job.starters)):
        return
    numbers = _missing(job)
    nobody = _nobody_has(numbers) or f"{len(job.starters)} of {job.nodes} are there"
    free = [host for host in job.seen if host.host not in job.hosts]
    may_be = [host.host for host in free if job.user in host.may_be]
    do = "start the missing one" + (": with the same arguments" if numbers else "")
    commands = tuple(_line(job.starters[0], number) for number in numbers[:4]) or (_line(job.starters[0]),)
    called = [each for each in job.starters if (t := starting.target_of(job, each)) and not t.host]
    if unreached or may_be or called or len(free) != lacking:
        why = f"{fold(unreached)} did not answer" if unreached else ""
        if called and not why:
            why = f"{called[0].master.address}, which they call, is not one of the hosts that were asked"
        if may_be and not why:
            why = f"a Python program of {job.user} on {fold(may_be)} may be it"
        elsewhere = "" if why or free else "; no other host was asked"
        said = f"{job.name} on {fold(job.hosts)} waits for {lacking} more: {nobody}"
        yield StartFault((), f"{said}{f'; {why}' if why else elsewhere}.", do=(do,), commands=commands)
        return
    named = tuple(
        HangCulprit(None, host.host, None, Cause.ABSENT, f"has no {job.name}: {nobody}") for host in free
    )
    where = fold([host.host for host in free])
    yield StartFault(named, do=(f"start it on {where}, with the same arguments",), commands=commands)


def _line(like: Starter, number: int | None = None) -> str:
    """The command line of another launcher, with this number. The program's arguments are not known."""
    words, names = list(like.member.words), like.launcher.options
    at = next((i for i, word in enumerate(words) if basename(word) in like.launcher.commands), None)
    made, skip = words[: words.index("-m") + 2 if "-m" in words else 1], False
    if at is not None:
        made = [basename(words[at]), *([name] if (name := like.launcher.subcommand) else [])]
    end = (at or 0) + len(made)
    option, rest = names.spelled("node_rank"), []
    for word in words[end:]:
        name, equals, _ = word.partition("=")
        if skip or names.values.get(name.lstrip("-").replace("-", "_")) == "node_rank":
            option, skip = option if skip else name, not skip and not equals
            continue
        rest.append(word)
    made += [*([] if number is None else [f"{option}={number}"]), *rest]
    return f"{shlex.join(made)}    # and the arguments of the program, if it has any"


def _unreachable(job: starting.StartingJob) -> Iterator[StartFault]:
    """Launchers whose first packet to the port of the rendezvous stays without an answer."""
    lost = [
        (each, one)
        for each in job.starters
        if (one := starting.calls(each, each.member.b, "SYN-SENT"))
        and starting.calls(each, each.member.a, "SYN-SENT")
    ]
    if not lost:
        return
    head = job.head
    rest = [each for each in job.starters if each is not head and all(each is not one for one, _ in lost)]
    if len(lost) > 1 and not rest and head is not None:
        words = (
            f"nobody reaches {head.host} at port {job.port}: first packets stay without an answer (SYN-SENT)"
        )
        named: tuple[HangCulprit, ...] = (_named(head, Cause.CONNECTS, words),)
    else:
        named = tuple(
            _named(each, Cause.CONNECTS, f"cannot connect to {one.peer}: {_silence(one.backoff)} (SYN-SENT)")
            for each, one in lost
        )
    yield StartFault(named, confidence=HangConfidence.STRONG, check=True)


def _silence(backoff: int) -> str:
    """The kernel waits at least a second before the first retransmission, and doubles each wait."""
    seconds = 2**backoff - 1 if backoff < 16 else 0
    return "no answer" + (f" for at least {seconds} s" if seconds > 1 else "")
