"""What a script makes of the name of the host that runs it: it is read once for each host."""

import re
from collections.abc import Sequence
from functools import lru_cache

from doctor.job.launch.by_number import LONG, Reader, number_of
from doctor.job.launch.one_launch import one_launch
from doctor.job.launch.shell_flow import ShellCommand
from doctor.job.launch.slips import ByHost, Slip
from doctor.text.redact import redact

_ASKS = re.compile(r"\bhostname\b(?!\s+-[iIfA])|\bHOSTNAME\b|\buname -n\b")
_MOST = 60_000
"""The most characters that are read for all hosts together: a second."""
_NAMED = re.compile(r"\$\{?([A-Za-z_]\w*)")


def by_host(text: str, file: str, lines: Sequence[ShellCommand], read: Reader) -> ByHost | None:
    """How hosts get their numbers by their names, in a script `file` that each of them runs."""
    asks, always = _ASKS.search(text), {*map(number_of, lines)}
    chooses = always == {""} or len(always) > 1
    if asks is None or not chooses or LONG.search(text) or any(one.on for one in lines):
        return None

    @lru_cache(None)
    def number(host: str) -> str | None:
        started = one_launch(read({"HOSTNAME": host}))[0]
        return number_of(started[0]) if started else None

    said = [one.command.options.get("node_rank", "") for one in lines]
    named = [name for each in said for name in _NAMED.findall(each) if name != "HOSTNAME"]
    named += [name for one in lines for name in ("NODE_RANK", "RANK") if name in one.names]
    at = text[: asks.start()].count("\n")
    words = redact(text.splitlines()[at].strip())
    slip = Slip("host", named[0] if named else "--node_rank", at + 1, words, file=file)
    return ByHost(slip, number, _MOST // len(text))
