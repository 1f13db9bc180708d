"""After the handshake: whether this is the right host, and whether it lets us in."""

import shlex
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import paramiko
from paramiko.auth_handler import AuthHandler
from paramiko.ssh_exception import PartialAuthentication

from doctor.transport import errors
from doctor.transport.errors import cannot
from doctor.transport.ssh import errors as ssh_errors
from doctor.transport.ssh.config import KNOWS_HOSTS, HostSettings, default_known_hosts
from doctor.transport.ssh.keys import KeyOffer, KeyRing
from doctor.transport.ssh.known_hosts import KeyJudgement, KnownHosts, fingerprint, known_as
from doctor.transport.ssh.paramiko_transport import ParamikoTransport


@dataclass(slots=True)
class SharedState:
    """What all connections of one transport share. `closing` is set once, at the end."""

    warn: Callable[[str], None]
    known_hosts: KnownHosts = field(default_factory=KnownHosts)
    keys: KeyRing = field(default_factory=KeyRing)
    closing: threading.Event = field(default_factory=threading.Event)


class HostIdentity:
    """The identity that known_hosts gives a host."""

    def __init__(self, settings: HostSettings, shared: SharedState) -> None:
        self._settings = settings
        self._shared = shared
        files = (*settings.user_known_hosts, *settings.global_known_hosts)
        self.known = shared.known_hosts.known(self._names(), files)

    def check(self, wire: ParamikoTransport) -> None:
        """Runs before we send anything: a wrong host sees no user name and no key. Raises CannotReach."""
        settings = self._settings
        to = settings.destination()
        key = wire.get_remote_server_key()
        blob = key.asbytes()
        judgement, entry = self.known.judge(blob)
        if judgement is KeyJudgement.KNOWN:
            return
        name = self._names()[0]
        shown = ssh_errors.PresentedKey(key.get_name(), fingerprint(blob), name)
        if judgement is KeyJudgement.REVOKED and entry is not None:
            path = shlex.quote(entry.file)
            raise cannot("key revoked", str(shown), to, file=entry.file, line=entry.line, path=path)
        if judgement is KeyJudgement.CHANGED and entry is not None:
            old = f"{entry.kind} {fingerprint(entry.key)}"
            default = entry.file == default_known_hosts()
            raise ssh_errors.key_changed(to, shown, old, entry.file, entry.line, default)
        files = settings.user_known_hosts
        if not settings.accept_new or self.known.only_authority():
            file = files[0] if files else default_known_hosts()
            others = [key for key in KNOWS_HOSTS if key in settings.only_ssh]
            raise ssh_errors.key_unknown(to, shown, file, self.known.only_authority(), others)
        if files:
            self._remember(name, key.get_name(), blob, files[0])

    def _remember(self, name: str, kind: str, blob: bytes, file: str) -> None:
        try:
            self._shared.known_hosts.add(name, kind, blob, file, self._settings.hash_known_hosts)
        except OSError as error:
            self._shared.warn(f"{file}: new host keys were not saved: {error.strerror}")

    def _names(self) -> list[str]:
        settings = self._settings
        if settings.alias:
            return [settings.alias]
        return [known_as(name, settings.port) for name in dict.fromkeys((settings.address, settings.name))]


def log_in(wire: ParamikoTransport, settings: HostSettings, keys: KeyRing, left: Callable[[], float]) -> None:
    """Offer keys until one is accepted. `left` returns the seconds that remain. Raises CannotReach."""
    to = settings.destination()
    unusable: dict[str, str] = {}
    offered: list[KeyOffer] = []
    allowed: list[str] = []
    for offer in keys.offers(settings, unusable):
        if not wire.is_active():
            # The server hangs up after MaxAuthTries refused keys.
            break
        offered.append(offer)
        error = _ask(wire, to, partial(wire.auth_publickey, settings.user, offer.key), left)
        if wire.is_authenticated():
            keys.worked(offer)
            return
        if isinstance(error, PartialAuthentication):
            others = settings.other_logins(error.allowed_types)
            raise ssh_errors.second_factor(to, offer.label, error.allowed_types, others)
        if isinstance(error, paramiko.BadAuthenticationType):
            allowed = error.allowed_types
            break
    if wire.is_active() and not allowed:
        error = _ask(wire, to, partial(_without_key, wire, settings.user), left)
        if wire.is_authenticated():
            return
        allowed = getattr(error, "allowed_types", [])
    words = (wire.farewell or (0, ""))[1]
    if not (offered or unusable or allowed or words) and not wire.is_active():
        raise errors.lost(to, "the login")
    problems = [f"{name} ({why})" for name, why in unusable.items()]
    locked = [name for name, why in unusable.items() if "passphrase" in why]
    others = settings.other_logins(allowed)
    raise ssh_errors.login_refused(to, [o.label for o in offered], problems, allowed, words, locked, others)


def _ask(
    wire: ParamikoTransport,
    to: errors.Destination,
    ask: Callable[[threading.Event], object],
    left: Callable[[], float],
) -> Exception | None:
    answered = threading.Event()
    seconds = left()
    try:
        ask(answered)
    except (paramiko.SSHException, EOFError, OSError) as error:
        return error
    if not answered.wait(max(seconds, 0.0)):
        raise errors.handshake_slow(to, seconds, "the login")
    left()
    return wire.get_exception()


def _without_key(wire: ParamikoTransport, user: str, answered: threading.Event) -> None:
    """Ask to be let in without a key: the answer names what the server allows."""
    wire.auth_handler = AuthHandler(wire)
    wire.auth_handler.auth_none(user, answered)
