"""The keys that we offer: read once for all hosts, and only if a host asks for them."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from paramiko.agent import AgentSSH
from paramiko.message import Message
from paramiko.pkey import PublicBlob

from doctor.errors import InputErrors
from doctor.text.textfile import read_bytes
from doctor.transport.errors import shortage
from doctor.transport.ssh.config import HostSettings

DEFAULTS = ("id_ed25519", "id_ecdsa", "id_rsa")
PUBLIC = (b"ssh-", b"ecdsa-", b"sk-")
AGENT_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class KeyOffer:
    """One key to try. `label` names it for the user and holds no secret."""

    label: str
    key: paramiko.PKey


@dataclass(frozen=True, slots=True)
class KeyFile:
    """The contents of a file: keys to offer (with its certificate first), or why there are none."""

    offers: tuple[KeyOffer, ...] = ()
    public: bytes | None = None
    problem: str = ""
    locked: bool = False


class UnusableKey(Exception):
    """No key of a file can be used; the text says why."""


class KeyRing:
    """All keys that can be offered. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._files: dict[tuple[str, tuple[str, ...]], KeyFile] = {}
        self._agents: dict[str, _Agent | None] = {}
        self._worked: paramiko.PKey | None = None

    def worked(self, offer: KeyOffer) -> None:
        """Note a key that worked, to try it first on the next host: clusters often use one key for all."""
        self._worked = offer.key

    def close(self) -> None:
        with self._lock:
            agents = list(self._agents.values())
            self._agents.clear()
        for agent in agents:
            if agent is not None:
                agent.hang_up()

    def offers(self, settings: HostSettings, unusable: dict[str, str]) -> Iterator[KeyOffer]:
        """Keys in the order to try; nothing is read before it is needed. Fills `unusable` (file: why)."""
        in_order = self._in_order(settings, unusable)
        later: list[KeyOffer] = []
        for offer in in_order if (worked := self._worked) else ():
            if offer.key is worked:
                yield offer
                break
            later.append(offer)
        yield from later
        yield from in_order

    def _in_order(self, settings: HostSettings, unusable: dict[str, str]) -> Iterator[KeyOffer]:
        home = os.path.expanduser("~/.ssh")
        named = bool(settings.identities)
        files = settings.identities or tuple(os.path.join(home, name) for name in DEFAULTS)
        offered: set[bytes] = set()

        def fresh(offer: KeyOffer) -> bool:
            mark = _identity(offer.key)
            if mark in offered:
                return False
            offered.add(mark)
            return True

        def from_files() -> Iterator[KeyOffer]:
            for name in files:
                found = self._file(name, settings.certificates)
                if found.offers:
                    yield from found.offers
                elif found.public is not None and (held := self._from_agent(settings.agent, found.public)):
                    yield held
                elif found.problem and (named or found.locked):
                    unusable[name] = found.problem

        if named:
            yield from filter(fresh, from_files())
        if not settings.only_identities:
            yield from filter(fresh, self._agent(settings.agent))
        if not named:
            yield from filter(fresh, from_files())

    def _from_agent(self, agent: str | None, public: bytes) -> KeyOffer | None:
        return next((o for o in self._agent(agent) if o.key.asbytes() == public), None)

    def _file(self, name: str, certificates: tuple[str, ...]) -> KeyFile:
        with self._lock:
            known = self._files.get((name, certificates))
            if known is None:
                known = self._files[name, certificates] = _load(Path(name), certificates)
            return known

    def _agent(self, path: str | None) -> tuple[KeyOffer, ...]:
        if not path:
            return ()
        with self._lock:
            if path not in self._agents:
                self._agents[path] = _reach_agent(path)
            agent = self._agents[path]
        return () if agent is None else agent.offers


class _Agent(AgentSSH):
    """An agent that answers in time or not at all, shared by all connections."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._lock = threading.Lock()
        conn = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            conn.settimeout(AGENT_SECONDS)
            conn.connect(path)
            self._connect(conn)  # type: ignore[attr-defined]
            names = (
                (" ".join(str(key.comment).split())[:60] or key.get_name(), key) for key in self.get_keys()
            )
            self.offers = tuple(KeyOffer(f"{name} (agent)", key) for name, key in names)
        except BaseException:
            conn.close()
            raise
        self._socket = conn

    def hang_up(self) -> None:
        self._socket.close()

    def _send_message(self, msg: Message | bytes) -> tuple[int, Message]:
        with self._lock:
            try:
                answer: tuple[int, Message] = super()._send_message(msg)  # type: ignore[misc]
            except OSError as error:
                raise paramiko.SSHException(f"the SSH agent does not answer: {error}") from None
            return answer


def _reach_agent(path: str) -> _Agent | None:
    try:
        return _Agent(path)
    except (OSError, paramiko.SSHException, ValueError, IndexError):
        # A dead or foreign agent offers nothing; a login that fails for lack of keys says so.
        return None


def _identity(key: paramiko.PKey) -> bytes:
    blob: PublicBlob | None = getattr(key, "public_blob", None)
    return blob.key_blob if blob is not None else key.asbytes()


def _load(path: Path, certificates: tuple[str, ...]) -> KeyFile:
    try:
        text = read_bytes(path)
    except InputErrors as error:
        if isinstance(error.__cause__, OSError) and shortage(error.__cause__) is not None:
            raise error.__cause__ from None
        return KeyFile(problem=error.mistakes[0].message)
    public = _public(path, text)
    if text.startswith(PUBLIC):
        return KeyFile(public=public, problem="only the public half, and no agent has the other")
    try:
        plain = _parse(path, text)
    except paramiko.PasswordRequiredException:
        return KeyFile(public=public, problem="needs a passphrase, and no agent has it", locked=True)
    except UnusableKey as error:
        return KeyFile(public=public, problem=str(error))
    offers = [KeyOffer(str(path), plain)]
    for certificate in dict.fromkeys([str(path.with_name(path.name + "-cert.pub")), *certificates]):
        if os.path.isfile(certificate):
            try:
                signed = _parse(path, text)
                signed.load_certificate(certificate)
            except (ValueError, OSError, IndexError, paramiko.SSHException, UnusableKey):
                # A certificate of another key, or not a certificate: the key alone is still good.
                continue
            offers.insert(0, KeyOffer(certificate, signed))
    return KeyFile(offers=tuple(offers), public=plain.asbytes())


def _parse(path: Path, text: bytes) -> paramiko.PKey:
    """A private key. Raises PasswordRequiredException for an encrypted one, UnusableKey for a bad one."""
    tried = [_parse_as(kind, path) for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey)]
    for key in tried:
        if isinstance(key, paramiko.PKey):
            return key
    if b"PRIVATE KEY" not in text:
        raise UnusableKey("not a private key")
    raise UnusableKey(f"not readable as a key: {tried[-1]}")


def _parse_as(kind: type[paramiko.PKey], path: Path) -> paramiko.PKey | Exception:
    try:
        return kind.from_private_key_file(str(path))
    except paramiko.PasswordRequiredException:
        raise
    except (paramiko.SSHException, ValueError, IndexError, UnsupportedAlgorithm) as error:
        return error


def _public(path: Path, text: bytes) -> bytes | None:
    """The public half: from FILE.pub, or from FILE if that is itself a public key."""
    with contextlib.suppress(InputErrors, ValueError, paramiko.SSHException):
        if not text.startswith(PUBLIC):
            text = read_bytes(path.with_name(path.name + ".pub"))
        if text.startswith(PUBLIC):
            return PublicBlob.from_string(text.decode("utf-8", "replace")).key_blob
    return None
