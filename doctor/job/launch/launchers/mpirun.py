"""mpirun of Open MPI, of MPICH and its derivatives, and of MVAPICH.

It starts the ranks on all hosts; MASTER_ADDR decides where they meet. Open MPI tells every rank where mpirun
itself runs, and on which nodes.
"""

import re
from collections.abc import Mapping

from doctor.job.launch.allocation import nodes
from doctor.job.launch.forms import LaunchForm, LaunchParts, shell_line
from doctor.job.launch.launcher import launcher_of, options_of
from doctor.text.nodeset import is_host

MOST_HEADS = 16
TRANSPORTS = "OMPI_MCA_orte_precondition_transports"
"""Open MPI draws a random value for each job."""


def _heads(environ: Mapping[str, str]) -> tuple[str, ...]:
    found = (
        *_uri(environ.get("OMPI_MCA_orte_hnp_uri", "")),
        *_nodes(environ.get("OMPI_MCA_orte_node_regex", "")),
    )
    return tuple(dict.fromkeys(found))[:MOST_HEADS]


def _uri(text: str) -> tuple[str, ...]:
    """The addresses of mpirun's own host: `123.0;tcp://10.0.0.1,10.1.0.1:4711;tcp6://[fd00::1]:4712`."""
    found: list[str] = []
    for addresses in re.findall(r"tcp6?://\[?([0-9A-Fa-f:.,]{2,400}?)\]?:[0-9]{1,5}(?:;|$)", text[:4000]):
        found += addresses.split(",")
    return tuple(address for address in found if is_host(address))


def _nodes(text: str) -> tuple[str, ...]:
    """The names of mpirun's nodes, as ranks on other hosts receive them: `node[1:1-3]@0(3)`.

    A name without a folded part stands for itself.
    """

    def padded(match: re.Match[str]) -> str:
        return f"[{re.sub('[0-9]+', lambda number: number[0].zfill(int(match[1])), match[2])}]"

    whole = re.sub(r"\[([0-9]):([0-9,-]+)\]", padded, text[:4000].partition("@")[0])
    parts = re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", whole)  # one that is cut off takes no other with it
    return tuple(name for part in parts for name in nodes(part))


def _line(start: LaunchParts) -> list[str]:
    going = start.going
    where = ["--host", ",".join(f"{host}:{going.ranks[host]}" for host in going.hosts)]
    if start.hostfile is not None:
        where = ["--hostfile", str(start.hostfile)]
    words = ["-np", str(going.world), "-x", f"MASTER_ADDR={going.address}", "-x", f"MASTER_PORT={going.port}"]
    return [shell_line("mpirun", *where, *words)]


MPIRUN = launcher_of(
    "mpirun", heads=_heads, options=options_of("mpirun"), forms={"mpirun": LaunchForm(_line)}
)
