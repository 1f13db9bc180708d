"""How the hosts are reached: by SSH, through Slurm, or directly if the host is this machine."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.errors import InputErrors, UsageError, suggest
from doctor.exam.request import WayFlags
from doctor.job.wishes import SLURM
from doctor.model import Host
from doctor.targets.inputkind import refuse_other
from doctor.targets.inventory import Targets
from doctor.text.nodeset import check_jump, check_user, fold, unfold
from doctor.text.textfile import read_text, shown
from doctor.text.trace import began
from doctor.transport.ssh.settings import SshSettings

if TYPE_CHECKING:
    from doctor.transport import Transport
    from doctor.transport.slurm.allocation import Allocation


_PUBLIC_KEY = re.compile(r"(?:ssh|ecdsa|sk)-[\w@.-]+ AAAA")


def _identities(paths: Sequence[str]) -> tuple[str, ...]:
    """The key files. Raises UsageError for a file that does not exist or is not a private key."""
    for path in paths:
        file = Path(path).expanduser()
        if not file.is_file():
            raise UsageError(f"--identity: there is no file {path!r}.")
        try:
            text = read_text(file)
        except InputErrors:  # SSH explains better why a key cannot be read
            continue
        refuse_other(path, text)
        if _PUBLIC_KEY.match(text):
            raise UsageError(
                f"--identity: {path} is a public key.", f"Give the private one: {file.with_suffix('')}."
            )
    return tuple(paths)


def choose_transport(
    way: WayFlags, targets: Targets, hosts: Sequence[Host], environ: Mapping[str, str] = os.environ
) -> Transport:
    """The transport to these hosts. `environ` names the Slurm job whose nodes are reached by srun."""
    if way.trace:
        began[:] = [time.monotonic()]
    if targets.way is not None:
        return targets.way(hosts, way.fanout)
    if way.via is not None:
        _refuse_beside_gateways(way, targets, hosts)
    if way.transport == "local" and not targets.local:
        raise UsageError("--transport local examines this machine only.", "Name no hosts, or use --local.")
    if targets.local and way.transport not in ("ssh", "openssh", "srun"):
        from doctor.transport.local import LocalTransport

        return LocalTransport()
    if way.allocate and way.transport != "srun":
        raise UsageError("--allocate takes nodes from Slurm, for srun.", "Type: --transport srun --allocate")
    if way.transport == "srun" or (
        way.transport == "auto" and targets.source == SLURM and _by_srun(way, hosts, environ)
    ):
        from doctor.transport.slurm.transport import SlurmTransport

        given = _allocated(way, hosts, environ) if way.allocate else None
        environ = given.environ(environ) if given else environ
        _refuse_srun(hosts, environ)
        return SlurmTransport(hosts, environ, given)
    settings = SshSettings(
        user=check_user(way.user) if way.user else None,
        port=way.port,
        identities=_identities(way.identities),
        jump=check_jump(way.jump) if way.jump else None,
        config_file=way.ssh_config,
        accept_new=way.accept_new,
        fanout=way.fanout,
        connect_timeout=way.connect_timeout,
    )
    if way.via is not None:
        from doctor.transport.gateways import GatewayTransport, read_gateways

        return GatewayTransport(hosts, settings, read_gateways(way.via, hosts))
    from doctor.transport.routing import RoutedTransport

    return RoutedTransport(hosts, settings, way.transport)


def _refuse_beside_gateways(way: WayFlags, targets: Targets, hosts: Sequence[Host]) -> None:
    """Refuse what leads to the hosts without the gateways."""
    others = {
        f"--transport {way.transport}": way.transport not in ("auto", "ssh"),
        "--local": targets.local,
        "--jump": way.jump or any(host.jump for host in hosts),
        "a container that is entered from here": any(host.enter_from == "controller" for host in hosts),
    }
    if clash := next((name for name, given in others.items() if given), ""):
        raise UsageError(
            f"--via cannot be combined with {clash}: the gateways log in to the hosts.",
            "Leave one of them out.",
        )


def _by_srun(way: WayFlags, hosts: Sequence[Host], environ: Mapping[str, str]) -> bool:
    """Whether srun is used: inside an allocation, unless an option asks for another way."""
    return bool(environ.get("SLURM_JOB_ID") and shutil.which("srun")) and not (
        way.asks_for_ssh() or any(host.jump or host.enter_from == "controller" for host in hosts)
    )


def _allocated(way: WayFlags, hosts: Sequence[Host], environ: Mapping[str, str]) -> Allocation:
    """The nodes, taken from Slurm for this run."""
    from doctor.transport.slurm.allocation import Allocation

    if number := environ.get("SLURM_JOB_ID"):
        hint = "Without --allocate its nodes are examined."
        raise UsageError(f"--allocate: this is Slurm job {shown(number)} already.", hint)
    return Allocation([host.name for host in hosts], way.deadline, environ)


def _refuse_srun(hosts: Sequence[Host], environ: Mapping[str, str]) -> None:
    """Refuse hosts outside the Slurm job: srun only reaches the nodes of its own job."""
    if not environ.get("SLURM_JOB_ID"):
        hint = (
            "Run it in an sbatch script or in salloc's shell, put SLURM_JOB_ID=NUMBER before it, "
            "let --allocate take the nodes, or use --transport ssh."
        )
        raise UsageError("--transport srun works inside a Slurm allocation only.", hint)
    if not shutil.which("srun"):
        raise UsageError("--transport srun: there is no srun on the PATH.", "--transport ssh needs none.")
    listed = environ.get("SLURM_JOB_NODELIST", "")
    nodes = set(unfold(listed)) if listed else set()
    strange = [host.name for host in hosts if nodes and host.name not in nodes]
    if strange:
        hint = "Name nodes as SLURM_JOB_NODELIST does, or use --transport ssh."
        hint = f"{suggest(strange[0], sorted(nodes))} {hint}".strip()
        raise UsageError(f"--transport srun: {fold(strange)} is not in the allocation.", hint)
