"""The names in braces that doctor fills in, so that the command starts on the healthy hosts."""

import contextlib
import os
import re
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence

from doctor.errors import UsageError
from doctor.job.launch.forms import Go
from doctor.text.nodeset import fold

_NAMES = ("hosts", "hostfile", "nnodes", "nproc", "master_addr", "master_port", "node_rank")
_HELD = re.compile("{(" + "|".join(_NAMES) + ")}")
OF_HOSTS = frozenset({"hosts", "hostfile"})


def named_in(words: Iterable[str]) -> frozenset[str]:
    """The placeholders of a command."""
    return frozenset(name for word in words for name in _HELD.findall(word))


def filled(words: Sequence[str], going: Go, hostfile: Callable[[Go], str]) -> list[str]:
    """The command with its placeholders filled in; other braces stay. `hostfile` writes that file."""
    wanted = named_in(words)
    values: dict[str, str] = {
        "hosts": ",".join(going.hosts),
        "nnodes": str(len(going.hosts)),
        "master_addr": going.address,
        "master_port": str(going.port),
    }
    if "nproc" in wanted:
        values["nproc"] = _nproc(going)
    if "node_rank" in wanted:
        values["node_rank"] = str(own_place(going.hosts))
    if "hostfile" in wanted:
        values["hostfile"] = hostfile(going)
    return [_HELD.sub(lambda found: values[found[1]], word) for word in words]


def _nproc(going: Go) -> str:
    if going.each is None:
        counts = ", ".join(f"{number} on {host}" for host, number in going.ranks.items())
        raise UsageError(f"{{nproc}} cannot be filled in: there are {counts} ranks.", "Use {hostfile}.")
    return str(going.each)


def own_place(hosts: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    """The place of this machine among the hosts."""
    own = {environ.get("SLURMD_NODENAME", ""), socket.gethostname()}
    own |= {name.partition(".")[0] for name in own}
    for place, host in enumerate(hosts):
        if host in own or host.partition(".")[0] in own:
            return place
    for place, host in enumerate(hosts):
        if is_here(host):
            return place
    raise UsageError(
        f"{{node_rank}} cannot be filled in: this machine, {socket.gethostname()}, does not take part"
        f" in the job on {fold(hosts)}.",
        "Start the command on these hosts only.",
    )


def is_here(host: str) -> bool:
    """Whether an address of this machine has that name."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return False
    for family, kind, protocol, _, address in found:
        with contextlib.suppress(OSError), socket.socket(family, kind, protocol) as one:
            one.bind(address)
            return True
    return False
