"""The controller's side of SSH: keys, known_hosts, and a configuration that knows every host."""

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from .errors import LabError
from .spec import Spec


def make_keys(paths: Iterable[Path]) -> None:
    """Make an ed25519 key pair at each path, all at once because ssh-keygen starts slowly."""
    running = [
        subprocess.Popen(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(path)])
        for path in paths
    ]
    if any(process.wait() for process in running):
        raise LabError("ssh-keygen failed")


def public_key(path: Path) -> str:
    return path.with_name(path.name + ".pub").read_text()


def known_hosts(specs: Sequence[Spec]) -> str:
    """The right key of every host, by name and by address."""
    return "".join(f"{spec.name},{spec.address} {public_key(spec.key)}" for spec in specs)


def ssh_config(directory: Path, specs: Sequence[Spec]) -> str:
    blocks = [f"Host {spec.name}\n  HostName {spec.address}\n" for spec in specs]
    return "".join(blocks) + (
        "Host *\n"
        "  User root\n"
        f"  IdentityFile {directory}/id_ed25519\n"
        "  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {directory}/known_hosts\n"
        "  GlobalKnownHostsFile /dev/null\n"
        "  StrictHostKeyChecking yes\n"
    )
