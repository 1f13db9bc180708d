"""The commands of a script -> those that start one job, and what else it starts."""

from collections.abc import Sequence
from dataclasses import replace

from doctor.job.launch.command import only_looks
from doctor.job.launch.launcher import LauncherAgent
from doctor.job.launch.launchers import PORTS, RANK_NAMES
from doctor.job.launch.shell_flow import SHORT, ShellCommand

_HOSTS = ("include", "hostfile", "master_addr", "rdzv_endpoint", "rdzv_id")


def one_launch(lines: Sequence[ShellCommand]) -> tuple[list[ShellCommand], list[ShellCommand]]:
    """The commands of the last job of a script, which run side by side; and the launchers of other jobs.

    Launchers come before plain Python, Python with a rank before Python that only prepares data, and that
    before any other program.
    """
    launchers = [line for line in lines if line.command.launcher is not None]
    launchers = [line for line in launchers if not only_looks(line.command)] or launchers
    ranks = [line for line in lines if not line.bare and (line.names & RANK_NAMES or _of_many(line))]
    bare = [line for line in lines if line.bare and _of_many(line)]
    told = [line for line in lines if line.bare and not line.loop and not line.turn]
    launching = _of_several_hosts(launchers) or launchers
    chosen = launching or ranks or bare or told[-1:] or [line for line in lines if not line.bare][-1:]
    together: list[ShellCommand] = []
    for line in reversed(chosen):
        if together and _is_instead(line, together):
            continue
        if any(line.background and line.background == each.background for each in together):
            continue  # it has ended when that one starts
        parallel = (line.background or line.loop) and (not together or line.wave == together[0].wave)
        if together and line.command.program != together[0].command.program:
            break
        if together and not parallel:
            if _waits_for(together[0], line):
                together = [replace(each, behind=True) for each in together]
            break
        if any(_is_of_another_job(line, each) for each in together):
            break
        together.insert(0, line)
    if len(together) == 1 and any(_is_of_another_host(line, together[0]) for line in lines):
        together = [replace(together[0], one_of_hosts=True)]
    kept = {(line.line, line.turn, line.words) for line in together}
    others = [
        line
        for line in launchers
        if (line.line, line.turn, line.words) not in kept
        and not any(_is_alike(line, each) for each in together)
    ]
    return together, others


def _of_several_hosts(launchers: Sequence[ShellCommand]) -> list[ShellCommand]:
    """Those that say that they are for several hosts, if all others are for one: what is trained is evaluated
    there afterwards. None if a choice is between the two, or if others may be for several hosts as well.
    """
    wide = [line for line in launchers if _given(line, "nnodes") not in ("", "1")]
    narrow = [line for line in launchers if line not in wide]
    kinds = {line.command.launcher for line in launchers}
    open_choice = any(line.excludes(other) for line in narrow for other in wide)
    outer = any(known is not None and known.outer for known in kinds)
    return [] if open_choice or outer or len(kinds) > 1 else wide


def _is_alike(line: ShellCommand, other: ShellCommand) -> bool:
    """Whether both start the same job, on two hosts."""
    own, others = ({**each.command.options, "node_rank": ""} for each in (line, other))
    return own == others and line.command.launcher is other.command.launcher


def _is_of_another_host(line: ShellCommand, other: ShellCommand) -> bool:
    """Whether both start the same job, with the numbers of two hosts: each host gets its own line."""
    numbers = {
        each.command.options.get("node_rank") or each.env.get("NODE_RANK", "") for each in (line, other)
    }
    same = line.command.program == other.command.program and _is_alike(line, other)
    return same and len(numbers) == 2 and all(number.isdecimal() for number in numbers)


def _is_instead(line: ShellCommand, together: Sequence[ShellCommand]) -> bool:
    """Whether it is started in place of the others: by the branches of a block, or by what two tests say if
    it has a number of theirs. Between two tests much may change.
    """
    in_block = line.excludes(together[0], blocks=True)
    return in_block or (line.excludes(together[0]) and _numbers(line) in map(_numbers, together))


def _waits_for(rank: ShellCommand, before: ShellCommand) -> bool:
    """Whether a rank is started only after the one before it has ended: in a loop, or by ssh on its host."""
    local = "LOCAL_RANK"  # if the shell computes RANK
    ranks = [(_numbers(e), e.env.get(local), _given(e, "node_rank")) for e in (rank, before)]
    in_turn = before.line == rank.line or (before.on != "" and {*before.branches} <= {*rank.branches})
    return not before.background and in_turn and ranks[0] != ranks[1]


def _is_of_another_job(line: ShellCommand, rank: ShellCommand) -> bool:
    """Whether it starts the same rank, or a launcher for one host, but elsewhere or maybe at another time."""
    nodes = {_given(each, "node_rank") for each in (line, rank)}
    alone = line.command.launcher is not None and len(nodes) == 1 and not _of_several_hosts([line, rank])
    host = line.command.launcher is not None and len(nodes) == 1 and nodes != {""}
    elsewhere = any(
        one and other and one != other for one, other in zip(_ports(line), _ports(rank), strict=False)
    )
    hosts = [[_given(each, name).partition(":")[0] for name in _HOSTS] for each in (line, rank)]
    elsewhere |= alone and not line.apart and rank.passed - line.passed > SHORT
    elsewhere |= (alone or host) and hosts[0] != hosts[1]
    return (alone or host or bool(_numbers(line))) and _numbers(line) == _numbers(rank) and elsewhere


def _given(line: ShellCommand, name: str) -> str:
    """An option, or the variable in its place, as it is written; "" if neither is given."""
    prefix = line.command.launcher.options.variables if line.command.launcher else ""
    variable = f"{prefix}{name.upper()}" if prefix else ""
    return line.command.options.get(name) or line.env.get(variable, "$" if variable in line.names else "")


def _ports(line: ShellCommand) -> list[str | None]:
    """The ports at which its ranks meet; None for those that are not known."""
    known = line.command.launcher
    if known is None or known.master is None:
        return [line.env.get(port) for port in PORTS]
    port = known.port(LauncherAgent(known, line.command, line.env, line.names - line.env.keys()))
    return [port.text if port else None]


def _numbers(line: ShellCommand) -> dict[str, str]:
    return {name: line.env[name] for name in RANK_NAMES & line.env.keys() if line.env[name].isdecimal()}


def _of_many(line: ShellCommand) -> bool:
    """Whether a loop, or ssh to one host after the other, starts several of them side by side."""
    of_a_host = line.on != "" and bool(line.names & RANK_NAMES)
    return bool(line.background) and (line.loop or line.turn != "" or of_a_host)
