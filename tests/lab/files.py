"""The files in which a host differs from the machine it runs on; they become its upper layer."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.cases import from_cases

from .spec import Spec

SSHD_CONFIG = from_cases(__file__, "SSHD_CONFIG", str)

# Limits of a login: those of a machine set up for training, where this machine permits them;
# and no capability to set the clock or load modules, which belong to the machine.
START_SSHD = from_cases(__file__, "START_SSHD", str)

# Every host shares the machine's kernel ring; its own is a file.
DMESG = "#!/bin/sh\nexec cat /var/log/dmesg\n"


@dataclass(frozen=True, slots=True)
class User:
    """A user who can log in with the lab's key."""

    name: str
    uid: int
    home: str
    shell: str = "/bin/bash"


ROOT = User("root", 0, "/root")
TRAINEE = User("trainee", 4001, "/home/trainee")
USERS = {user.name: user for user in (ROOT, TRAINEE)}


def write_host(spec: Spec, names: Mapping[str, str], login_key: str) -> None:
    """Lay out `DIR/files`, which `boot.sh` copies into the host before anything runs there."""
    root = spec.directory / "files"
    for path, text, mode in (
        ("etc/hostname", f"{spec.name}\n", 0o644),
        ("etc/hosts", hosts_file(names), 0o644),
        ("etc/resolv.conf", "", 0o644),
        ("etc/passwd", passwd_file(), 0o644),
        ("etc/group", _accounts("/etc/group", ("root:x:0:", f"{TRAINEE.name}:x:{TRAINEE.uid}:")), 0o644),
        ("etc/shadow", "".join(f"{name}:*:19000:0:99999:7:::\n" for name in USERS), 0o640),
        ("etc/ssh/sshd_config", SSHD_CONFIG, 0o644),
        ("etc/ssh/ssh_host_ed25519_key", spec.key.read_text(), 0o600),
        ("etc/ssh/authorized_keys/root", login_key, 0o644),
        ("etc/ssh/authorized_keys/trainee", login_key, 0o644),
        ("usr/local/sbin/start-sshd", START_SSHD, 0o755),
        ("usr/bin/dmesg", DMESG, 0o755),
        ("var/log/dmesg", "", 0o644),
    ):
        target = root / path
        _directories(root, target.parent)
        target.write_text(text)
        target.chmod(mode)


def hosts_file(names: Mapping[str, str]) -> str:
    """The text of /etc/hosts for name -> address."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback"]
    return "\n".join([*lines, *(f"{address} {name}" for name, address in names.items())]) + "\n"


def passwd_file() -> str:
    return _accounts("/etc/passwd", tuple(passwd_line(user, user.shell) for user in USERS.values()))


def passwd_line(user: User, shell: str) -> str:
    return f"{user.name}:x:{user.uid}:{user.uid}:{user.name}:{user.home}:{shell}"


def _accounts(machine: str, ours: tuple[str, ...]) -> str:
    """The machine's system accounts, with our lines in place of lines with the same name."""
    mine = {line.split(":")[0] for line in ours}
    others = (line for line in Path(machine).read_text().splitlines() if line.split(":")[0] not in mine)
    return "\n".join([*ours, *others]) + "\n"


def _directories(root: Path, directory: Path) -> None:
    """Make `directory` and its parents readable by all, whatever the umask: they hide the machine's own."""
    if directory != root.parent:
        _directories(root, directory.parent)
        directory.mkdir(exist_ok=True)
        directory.chmod(0o755)
