"""How two ranks verify that both belong to the job, and what vouches for their later messages.

The listening side speaks first, so that we send nothing to another program's port:

    rank 0  MAGIC nonce
    member  nonce address port proof     the address that it connected to
    rank 0  address port proof           the address of its own socket

Each side proves that it knows the job's token, which never crosses the network, for both nonces and for an
address and port that the other side compares with its own, so messages relayed between two honest ranks
satisfy neither. From then on each frame is sealed with a key of this connection. Pure: no sockets here.
"""

import hmac
import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

HANDSHAKE = 10.0
"""Seconds for two ranks to recognise each other, from the first byte to the last."""
PROTOCOL = b"cluster-doctor in-job "
MAGIC = PROTOCOL + b"2"
LONGEST_LINE = 200
SEAL_SIZE = 16
HEAD, MEMBER = b"head", b"member"


class Stranger(Exception):
    """The other side does not belong to this job. The text says why, if there is more to say."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address and a port."""

    address: str
    port: int

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


def endpoint(name: Sequence[object]) -> Endpoint:
    """The endpoint from a socket's name; IPv4 may come through an IPv6 socket."""
    address = ipaddress.ip_address(str(name[0]).partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return Endpoint(str(mapped or address), int(str(name[1])))


def _nonce() -> bytes:
    return secrets.token_hex(16).encode()


@dataclass(slots=True)
class Seal:
    """Vouches for the frames of one direction: unchanged, complete, in order, none missing."""

    key: bytes
    side: bytes
    """The side that speaks."""
    count: int = 0

    def of(self, frame: bytes) -> bytes:
        """The seal of the next frame."""
        number = self.count.to_bytes(8, "big")
        self.count += 1
        return hmac.digest(self.key, self.side + b"\0" + number + frame, "sha256")[:SEAL_SIZE]

    def fits(self, frame: bytes, seal: bytes) -> bool:
        return hmac.compare_digest(self.of(frame), seal)


@dataclass(frozen=True, slots=True)
class Seals:
    out: Seal
    into: Seal


@dataclass(slots=True)
class Greeting:
    """The listening side: send `opening`, then the `answer` to the line that arrives."""

    token: bytes
    here: Endpoint
    nonce: bytes = field(default_factory=_nonce)
    seals: Seals | None = None
    """Set once the other side has proved itself."""

    @property
    def opening(self) -> bytes:
        return b"%s %s\n" % (MAGIC, self.nonce)

    def answer(self, line: bytes) -> bytes:
        """The reply. Raises Stranger. If `seals` is still unset, the two do not see the same connection."""
        theirs, there, proof = _words(line)
        if not hmac.compare_digest(proof, _proof(self.token, MEMBER, self.nonce, theirs, there)):
            raise Stranger
        here = _encode_endpoint(self.here)
        if there == here:
            self.seals = _seals(self.token, self.nonce, theirs, HEAD, MEMBER)
        return b"%s %s\n" % (here, _proof(self.token, HEAD, self.nonce, theirs, here))


@dataclass(slots=True)
class Introduction:
    """The connecting side: `answer` the first line, then `confirm` the second one. Both raise Stranger."""

    token: bytes
    there: Endpoint
    nonce: bytes = field(default_factory=_nonce)
    _theirs: bytes = b""

    def answer(self, line: bytes) -> bytes:
        magic, _, self._theirs = line.rpartition(b" ")
        if magic != MAGIC:
            other = line.startswith(PROTOCOL)
            raise Stranger("another version of cluster-doctor listens there" if other else "")
        said = _encode_endpoint(self.there)
        return b"%s %s %s\n" % (self.nonce, said, _proof(self.token, MEMBER, self._theirs, self.nonce, said))

    def confirm(self, line: bytes) -> Seals:
        _, here, proof = _words(b"- " + line)
        if not hmac.compare_digest(proof, _proof(self.token, HEAD, self._theirs, self.nonce, here)):
            raise Stranger
        if here != _encode_endpoint(self.there):
            seen = here.decode("ascii", "replace").replace(" ", " port ")
            raise Stranger(f"what comes to {self.there} arrives at {seen}: a relay or a translated address")
        return _seals(self.token, self._theirs, self.nonce, MEMBER, HEAD)


def _encode_endpoint(place: Endpoint) -> bytes:
    return f"{place.address} {place.port}".encode()


def _words(line: bytes) -> tuple[bytes, bytes, bytes]:
    """The first word, all words in the middle as one text, and the last word."""
    words = line.split(b" ")
    if len(words) != 4:
        raise Stranger
    return words[0], b" ".join(words[1:-1]), words[-1]


def _proof(token: bytes, side: bytes, head: bytes, member: bytes, place: bytes) -> bytes:
    return hmac.digest(token, b"\0".join((side, head, member, place)), "sha256").hex().encode()


def _seals(token: bytes, head: bytes, member: bytes, mine: bytes, theirs: bytes) -> Seals:
    key = hmac.digest(token, b"\0".join((b"frames", head, member)), "sha256")
    return Seals(Seal(key, mine), Seal(key, theirs))
