"""How each host is reached: the command line's flags, the user's settings for the host, then ssh_config.

paramiko evaluates ssh_config, but it knows neither Include nor all Match criteria, and treats unknown
criteria as true. So the files are read into one text without Include, in which such a Match never matches.
"""

import getpass
import glob
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from paramiko.ssh_exception import SSHException

from doctor.errors import InputErrors, UsageError
from doctor.model import Host
from doctor.text.textfile import read_bytes
from doctor.transport.errors import Destination
from doctor.transport.ssh.commands import PatientConfig
from doctor.transport.ssh.settings import DEFAULT_CONNECT_TIMEOUT, SshSettings

MATCH_KNOWN = frozenset({"all", "canonical", "final", "host", "originalhost", "user", "localuser", "exec"})
DEEPEST_INCLUDE = 16
DEEPEST_JUMP = 8
NUMBER = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")
SETTING = re.compile(r"(\w+)(?:\s*=\s*|\s+)(.+)")
KNOWS_HOSTS = ("KnownHostsCommand", "VerifyHostKeyDNS")
"""Keywords by which `ssh` knows a host, and we do not."""
LOGS_IN = {
    "GSSAPIAuthentication": ("gssapi-with-mic", "gssapi-keyex"),
    "HostbasedAuthentication": ("hostbased",),
    "PKCS11Provider": ("publickey",),
    "SecurityKeyProvider": ("publickey",),
    "ControlPath": ("password", "keyboard-interactive"),
}
"""Keywords by which `ssh` logs in, and we do not, and the methods of a server that they answer."""
NOTHING = 'originalhost "!*"'


@dataclass(frozen=True, slots=True)
class HostSettings:
    """Everything needed to dial one host. `only_ssh` are keywords that are set and that we do not have."""

    name: str
    address: str
    port: int
    user: str
    identities: tuple[str, ...] = ()
    only_identities: bool = False
    certificates: tuple[str, ...] = ()
    agent: str | None = None
    jumps: tuple[str, ...] = ()
    proxy_command: str | None = None
    alias: str | None = None
    user_known_hosts: tuple[str, ...] = ()
    global_known_hosts: tuple[str, ...] = ()
    accept_new: bool = False
    hash_known_hosts: bool = False
    connect_timeout: float = DEFAULT_CONNECT_TIMEOUT
    only_ssh: tuple[str, ...] = ()
    explicit: tuple[str, ...] = field(default=(), compare=False)

    def destination(self) -> Destination:
        return Destination(self.name, self.address, self.port, self.user, self.explicit)

    def other_logins(self, allowed: Sequence[str]) -> list[str]:
        """What may let `ssh` in if the server allows these methods; if none is known, all that is set."""
        return [
            key
            for key, methods in LOGS_IN.items()
            if key in self.only_ssh and (not allowed or set(methods) & set(allowed))
        ]


class SshConfig:
    """The settings of every host. Raises UsageError for a broken file, before any host is dialled."""

    def __init__(self, settings: SshSettings) -> None:
        self._flags = settings
        self._own_name = _own_name()
        self._lines: list[str] = []
        for file, required, base in _files(settings.config_file):
            if file.exists() or required:
                self._read(file, base, [], 0)
        try:
            self._config = PatientConfig.from_text("\n".join(self._lines))
        except (SSHException, ValueError) as error:
            raise UsageError(f"{settings.config_file or '~/.ssh/config'}: {error}") from None

    def close(self) -> None:
        """End the commands that still run."""
        self._config.commands.close()

    def of(self, host: Host) -> HostSettings:
        """`host.name` is looked up as `ssh NAME` would; HostName counts unless the user gave an address."""
        return self._settings(host, self._flags)

    def jump(self, spec: str) -> HostSettings:
        """A jump host, from [user@]host[:port] or ssh://…; ssh_config applies to it, too."""
        user, name, port = _split_jump(spec)
        flags = replace(self._flags, user=None, port=None, jump=None)
        return self._settings(Host(name, name, user=user, port=port), flags)

    def _look_up(self, name: str, address: str) -> dict[str, object]:
        try:
            found: dict[str, object] = dict(self._config.lookup(name))
            if address != name:
                found = {**self._config.lookup(address), **found}
        except (SSHException, KeyError, ValueError, ImportError) as error:
            raise UsageError(f"ssh_config cannot be evaluated for {name}: {error}") from None
        return found

    def _settings(self, host: Host, flags: SshSettings) -> HostSettings:
        name, found = host.name, self._look_up(host.name, host.address)

        def text(key: str) -> str:
            value = found.get(key)
            return "" if value is None else str(value)

        def is_set(key: str) -> bool:
            return text(key.lower()).lower() not in ("", "no", "none", "false")

        def number(key: str) -> float | None:
            value = text(key)
            if value in ("", "none"):
                return None
            if NUMBER.fullmatch(value):
                return float(value)
            raise UsageError(f"ssh_config: {key} of {name} is not a number: {value}")

        def words(key: str, default: str = "") -> list[str]:
            try:
                return shlex.split(text(key) or default)
            except ValueError as error:
                raise UsageError(f"ssh_config: {key} of {name}: {str(error).lower()}") from None

        address = str(found["hostname"]) if host.address == name else host.address
        port = flags.port or host.port or int(number("port") or 22)
        if not 0 < port < 65536:
            raise UsageError(f"ssh_config: the port of {name} is not a valid port: {port}")
        user = flags.user or host.user or text("user") or self._own_name
        tokens = {"%u": self._own_name, "%h": address, "%n": name, "%p": str(port), "%r": user}
        jump = flags.jump or host.jump
        jumps = jump if jump is not None else text("proxyjump")
        command = text("proxycommand")
        listed = found.get("identityfile")
        files = [str(f) for f in listed] if isinstance(listed, list) else []
        chosen = [*flags.identities, *(f for f in files if f.lower() != "none")]
        seconds = flags.connect_timeout or number("connecttimeout") or DEFAULT_CONNECT_TIMEOUT
        hops = tuple(hop.strip() for hop in _tokens(jumps, tokens).split(",")) if jumps else ()
        return HostSettings(
            name=name,
            address=address,
            port=port,
            user=user,
            identities=tuple(_path(_tokens(f, tokens)) for f in chosen),
            only_identities=text("identitiesonly").lower() == "yes",
            certificates=tuple(_path(_tokens(f, tokens)) for f in words("certificatefile")),
            agent=_agent(text("identityagent")),
            jumps=() if jumps.lower() == "none" else hops,
            proxy_command=None if jumps or not command else _tokens(command, tokens),
            alias=text("hostkeyalias") or None,
            user_known_hosts=_known_hosts(
                words("userknownhostsfile", "~/.ssh/known_hosts ~/.ssh/known_hosts2")
            ),
            global_known_hosts=_known_hosts(
                words("globalknownhostsfile", "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2")
            ),
            accept_new=flags.accept_new
            or text("stricthostkeychecking").lower() in ("no", "off", "accept-new"),
            hash_known_hosts=text("hashknownhosts").lower() == "yes",
            connect_timeout=seconds,
            only_ssh=tuple(key for key in (*KNOWS_HOSTS, *LOGS_IN) if is_set(key)),
            explicit=ssh_options(flags, port),
        )

    def _read(self, file: Path, base: Path, inside: list[str], depth: int) -> None:
        """Append a file's lines. `inside` are the conditions of the Include that named it."""
        if depth > DEEPEST_INCLUDE:
            raise UsageError(f"{file}: Include is nested more than {DEEPEST_INCLUDE} deep")
        try:
            text = read_bytes(file).decode("utf-8", "replace")
        except InputErrors as error:
            raise UsageError(error.message, "Name another file with --ssh-config.") from None
        condition: str | None = None
        for number, raw in enumerate(text.splitlines(), 1):
            line = raw.strip()
            if not line or line.startswith("#"):
                continue
            setting = SETTING.fullmatch(line)
            if setting is None:
                raise UsageError(f"{file}:{number}: not a keyword and its value: {line[:80]}")
            key, value = setting[1].lower(), setting[2]
            try:
                if key == "include":
                    both = [*inside, condition] if condition else inside
                    for included in _included(value, base):
                        self._read(included, base, both, depth + 1)
                    self._lines.append(_block(both))
                elif key in ("host", "match"):
                    condition = (
                        f'originalhost "{",".join(shlex.split(value))}"' if key == "host" else _match(value)
                    )
                    self._lines.append(_block([*inside, condition]))
                else:
                    self._lines.append(line)
            except ValueError as error:
                raise UsageError(f"{file}:{number}: {error}") from None
        if depth == 0:
            self._lines.append("Host *")


def _files(chosen: str | None) -> Iterator[tuple[Path, bool, Path]]:
    """Each file, whether it must exist, and the folder that its Include is relative to."""
    home = Path("~/.ssh").expanduser()
    if chosen is None:
        yield home / "config", False, home
        yield Path("/etc/ssh/ssh_config"), False, Path("/etc/ssh")
    elif chosen.lower() not in ("none", "/dev/null"):
        yield Path(chosen).expanduser(), True, home


def _included(value: str, base: Path) -> Iterator[Path]:
    for pattern in shlex.split(value):
        for name in sorted(glob.glob(str(base / os.path.expanduser(pattern)))):
            if os.path.isfile(name):
                yield Path(name)


def _match(value: str) -> str:
    words = shlex.split(value)
    criteria: list[str] = []
    while words:
        word = words.pop(0)
        kind = word.lstrip("!").lower()
        takes_value = kind not in ("all", "canonical", "final")
        if takes_value and not words:
            raise ValueError(f"Match {word} lacks its value")
        argument = shlex.quote(words.pop(0)) if takes_value else ""
        if kind not in MATCH_KNOWN:
            criteria.append(NOTHING)
        elif kind != "all":
            criteria.append(f"{'!' if word.startswith('!') else ''}{kind} {argument}".strip())
    return " ".join(criteria)


def _block(conditions: list[str]) -> str:
    joined = " ".join(c for c in conditions if c)
    return f"Match {joined}" if joined else "Host *"


def _split_jump(spec: str) -> tuple[str | None, str, int | None]:
    user, _, place = spec.removeprefix("ssh://").rstrip("/").rpartition("@")
    found = re.fullmatch(r"(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?", place)
    if found is None:
        # An IPv6 address without brackets cannot carry a port.
        return user or None, place, None
    return user or None, found[1] or found[2], int(found[3][:9]) if found[3] else None


def _own_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may not know its user
        return str(os.getuid())


def _tokens(value: str, tokens: dict[str, str]) -> str:
    local = {"%%": "%", "%d": os.path.expanduser("~"), **tokens}
    return re.sub(r"%.", lambda found: local.get(found[0], found[0]), value)


def _path(value: str) -> str:
    return os.path.expandvars(os.path.expanduser(value))


def _agent(value: str) -> str | None:
    if value in ("", "SSH_AUTH_SOCK"):
        return os.environ.get("SSH_AUTH_SOCK")
    return None if value == "none" else _path(value)


def _known_hosts(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(_path(name) for name in names if name.lower() != "none")


def ssh_options(flags: SshSettings, port: int) -> tuple[str, ...]:
    """The options that make `ssh` do what we did."""
    words: list[str] = []
    if flags.config_file is not None:
        words += ["-F", os.path.abspath(flags.config_file)]
    if port != 22:
        words += ["-p", str(port)]
    for identity in flags.identities:
        words += ["-i", identity]
    if flags.jump:
        words += ["-J", flags.jump]
    return tuple(words)


def default_known_hosts() -> str:
    return os.path.expanduser("~/.ssh/known_hosts")
