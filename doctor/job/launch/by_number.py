"""What a script makes of the number that each host is given, or of its name: it is read again with each."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from doctor.job.launch.endpoint_mentions import EndpointMention
from doctor.job.launch.launchers import MASTERS, PORTS, RANK_NAMES
from doctor.job.launch.one_launch import one_launch
from doctor.job.launch.shell_flow import ShellCommand
from doctor.job.launch.slips import READERS, ByHost, Slip
from doctor.text.redact import redact

Reader = Callable[[Mapping[str, str]], Sequence[ShellCommand]]
"""The commands of a script that starts with these variables."""
_NUMBER = re.compile(r"\$\{?([1-3])\b|\b([A-Z_]{0,20}(?:NODE|RANK|PROCID)[A-Z_]{0,20})\b")
_OF_A_HOST = r"(?i:node|machine)(?:_?(?i:rank|id|idx|index|no|num|number))?"
_SHARED = ("master_addr", "master_port", "rdzv_endpoint", *MASTERS, *PORTS)
_MOST = 6
_LONG = re.compile(r"(?s)\A.{20000}|\bwhile\s+(?:true|:)")
"""What takes long to read several times."""
_DIGITS = re.compile(r"\d+")
_ASKS = re.compile(r"\bhostname\b(?!\s+-[iIfA])|\bHOSTNAME\b|\buname -n\b")
_MOST_READ = 60_000
"""The most characters that are read for all hosts together: a second."""
_NAMED = re.compile(r"\$\{?([A-Za-z_]\w*)")


def by_number(
    text: str, lines: list[ShellCommand], read: Reader
) -> tuple[list[ShellCommand], list[EndpointMention]]:
    """The commands of one job, those marked that wait for others, and what is wrong between two hosts."""
    words = _NUMBER.findall(text) if not _LONG.search(text) and not all(map(_number, lines)) else ()
    for name in [*dict.fromkeys(one or other for one, other in words)][:_MOST]:
        pair = [one_launch(read({name: number}))[0] for number in "01"]
        first, other = ([*map(_number, each)] for each in pair)
        if first != other and len(first) == len(other) == len(lines) and all((*first, *other)):
            rows = zip(lines, *pair, strict=True)
            wrong = [*_compared(*pair), *_numbered(name, text, pair[0], first, other)]
            return [replace(one, behind=one.behind or at.behind) for one, at, _ in rows], wrong
    return lines, []


def by_host(text: str, file: str, lines: Sequence[ShellCommand], read: Reader) -> ByHost | None:
    """How hosts get their numbers by their names, in a script `file` that each of them runs."""
    asks, always = _ASKS.search(text), {*map(_number, lines)}
    chooses = always == {""} or len(always) > 1
    if asks is None or not chooses or _LONG.search(text) or any(one.on for one in lines):
        return None

    said = [one.command.options.get("node_rank", "") for one in lines]
    named = [name for each in said for name in _NAMED.findall(each) if name != "HOSTNAME"]
    named += [name for one in lines for name in ("NODE_RANK", "RANK") if name in one.names]

    def number(host: str) -> str:
        started = one_launch(read({"HOSTNAME": host}))[0]
        own = started[0].command.options.get("node_rank", "$") if started else ""
        given = own != "$" and not _NAMED.search(own)  # such as by an argument
        return (_number(started[0]) or "?" * given) if started else "-"

    at = text[: asks.start()].count("\n")
    words = redact(text.splitlines()[at].strip())
    own, name = redact(text[asks.start() :][:400]), (*named, "--node_rank")[0]
    slip = Slip("host", name, at + 1, words, file=file, like=own)
    READERS[slip] = number
    return ByHost(slip, _MOST_READ // len(text))


def _number(one: ShellCommand) -> str:
    """The number of its host, or that of its rank; "" if it is not known."""
    known = [one.command.options.get("node_rank", ""), *(one.env.get(name, "") for name in RANK_NAMES)]
    return next((text for text in known if text.isdecimal()), "")


def _compared(first: Sequence[ShellCommand], other: Sequence[ShellCommand]) -> Iterator[EndpointMention]:
    for one, two in zip(first, other, strict=True):
        own, theirs = ({**each.env, **each.command.options} for each in (one, two))
        alone = "1" in (own.get("nnodes"), own.get("WORLD_SIZE"))
        for name in _SHARED:
            value, another = own.get(name, "$"), theirs.get(name, "$")
            alike = _DIGITS.sub("", value) == _DIGITS.sub("", another)
            if value != another and alike and "$" not in value + another and not alone:
                said = (
                    f"{name if name.isupper() else f'--{name}'}={value} on one host and {another} on the next"
                )
                yield EndpointMention("apart", "", one.line, said)


def _numbered(
    name: str, text: str, lines: Sequence[ShellCommand], first: Sequence[str], other: Sequence[str]
) -> Iterator[EndpointMention]:
    """The ranks of two hosts that have one number, and numbers of Slurm's tasks that do not begin at 0."""
    of_host = re.fullmatch(_OF_A_HOST, name) or re.search(rf"\b{_OF_A_HOST}=[\"']?\$\{{?{name}\b", text)
    if {*first} & {*other} and of_host and not any(one.command.launcher for one in lines):
        said = f"RANK={','.join(first)} on one host and {','.join(other)} on the next"
        yield EndpointMention("same ranks", "", lines[0].line, said)
    if name in ("SLURM_NODEID", "SLURM_PROCID") and (first[0], other[0]) == ("1", "2"):
        yield EndpointMention("late number", "", lines[0].line, f"{first[0]} where {name} is 0")
