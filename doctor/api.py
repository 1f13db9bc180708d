"""Everything a check file may import besides `doctor.facts`: facts, run values, checks, problems, names,
plans.

A check is a function from typed facts to problems. It cannot reach a host, read a file or know the time;
the engine collects what it needs, and reports "unknown" if a need cannot be met.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeAlias, TypedDict, TypeVar, overload

from doctor.devices import AMD, ASCEND, NVIDIA, VENDORS, Vendor
from doctor.errors import UnreadableOutput
from doctor.expect import Expect
from doctor.job.needs import FolderNeed
from doctor.job.plan import (
    ASSUMED,
    GUESSES,
    INTERFACE_VARIABLES,
    NO_ACCELERATOR,
    JobPlan,
    is_loopback,
    matching_interfaces,
    missing_interfaces,
)
from doctor.model import (
    UNDECIDED,
    Backend,
    Capture,
    Confidence,
    Damage,
    Evidence,
    Framework,
    Place,
    Problem,
    Scope,
    Severity,
    Sphere,
    View,
)
from doctor.text.addresses import Holders, Stretch, fewest_networks
from doctor.text.durations import duration
from doctor.text.grouped import grouped
from doctor.text.nodeset import fold, is_host
from doctor.text.ranks import ranks_text
from doctor.text.spelling import probably

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")


class Skip(Exception):
    """Raised by a check that does not apply here; its text says why."""


class Undecided(Exception):
    """Raised by a check that has its facts but cannot decide: unknown for `hosts`, or for all by default.

    `essential`: these hosts are not proved healthy until it is decided, even if the check is not essential.
    """

    def __init__(self, reason: str, hosts: tuple[str, ...] = (), *, essential: bool = False) -> None:
        super().__init__(reason)
        self.hosts = hosts
        self.essential = essential


@dataclass(frozen=True, slots=True)
class Ask:
    """What the command of a fact may depend on, for one host."""

    host: str
    names: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    python: str | None = None
    tables: tuple[str, ...] = ()
    """Paths of rank tables."""
    paths: tuple[str, ...] = ()
    """Paths that the launch names."""
    folders: tuple[str, ...] = ()
    """Folders that the job needs."""
    read: tuple[str, ...] = ()
    """Those that must be read at some rate."""
    pings: tuple[tuple[int, str], ...] = ()
    """For each ping: this host's NPU and the address of another host's NPU."""
    framework: Framework | None = None
    """What the interpreter must have; None for torch or, on hosts without it, MindSpore."""
    pythons: tuple[str, ...] | None = None
    """Interpreters to search for it before python3 and the usual places, if no `python` is given; None
    means python3 as it is."""


@dataclass(frozen=True, slots=True)
class Group:
    """Facts of one tool, which may hang and may not bear several calls at a time.

    They are collected one after another, or, once the first has an answer, all `together`; within `seconds`,
    and only if one of the files in `where` exists. Without such a file the host has no `thing`, and a check
    that needs one of these facts does not apply.
    """

    thing: str
    where: tuple[str, ...]
    seconds: int
    tool: str = ""
    wake: str = ""
    """The remedy if the tool hangs."""
    together: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """Files of the host, as shell patterns. All Reads of a probe together cost one process on the host.

    For `there`, only the names of existing files are returned, not their text.
    """

    paths: tuple[str, ...]
    there: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of POSIX shell, or a function of `Ask` if it depends on the host or the job.

    If `only_if` is a pattern that matches no file, the command counts as having printed nothing.
    """

    shell: str | Callable[[Ask], str]
    only_if: str = ""

    def text(self, ask: Ask) -> str:
        return self.shell if isinstance(self.shell, str) else self.shell(ask)


class Need(Generic[T]):
    """Something a check can ask for; `T` is the type that its function receives."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Fact(Need[T]):
    """One thing to know about a host: how to get it and parse it. `parse` raises only UnreadableOutput.

    `slow` facts may hang (network file systems, DNS, drivers): they run beside the others, so that one that
    never ends costs only itself. `cap` limits the output, in bytes; output that was cut off there or by the
    timeout counts as missing, unless `partial` says that its beginning is useful too. `ends` says that a
    command with a cap does not print endlessly, so that its full size may be measured. A `later` fact depends
    on the first answers of all hosts, and is collected in a second round.
    """

    name: str
    command: Read | Run
    parse: Callable[[Capture], T]
    timeout: int = 5
    needs_root: bool = False
    slow: bool = False
    ok_rc: tuple[int, ...] = (0,)
    cap: int | None = None
    partial: bool = False
    group: Group | None = None
    later: bool = False
    ends: bool = False


@dataclass(frozen=True, slots=True)
class RunValue(Need[T]):
    """A value of the run or of the host being judged, computed by the controller, not printed by a host.

    `of_hosts`: it is computed from the answers of hosts, and means nothing if no host answered. `of_one`: it
    is about the host being judged, and the same whoever else is examined.
    """

    name: str
    of_hosts: bool = False
    of_one: bool = False


@dataclass(frozen=True, slots=True)
class OptionalNeed(Need["T | None"], Generic[T]):
    """A need that a check can do without: its value is None if it cannot be had."""

    need: Fact[T] | RunValue[T]


def maybe(need: Fact[T] | RunValue[T]) -> Need[T | None]:
    return OptionalNeed(need)


@dataclass(frozen=True, slots=True)
class Here:
    """The host being judged."""

    name: str
    is_head: bool


PLAN: RunValue[JobPlan] = RunValue("plan")
EXPECT: RunValue[Expect] = RunValue("expect", of_one=True)
EXPECTS: RunValue[Mapping[str, Expect]] = RunValue("expects")
"""Host -> what is expected of it, for checks that compare hosts."""
HERE: RunValue[Here] = RunValue("here")
NEEDED: RunValue[int] = RunValue("needed-hosts")
"""How many of the hosts the job needs at least: --need-hosts, or else all of them."""
RANKS: RunValue[int] = RunValue("ranks", of_one=True)
"""The number of ranks on the host being judged."""


@dataclass(frozen=True, slots=True)
class Check:
    """A fault that can be recognised. `causes` are the ids of checks whose findings explain this one's."""

    id: str
    title: str
    needs: tuple[Need[Any], ...]
    scope: Scope
    run: Callable[..., Iterator[Problem]]
    doc: str
    origin: str
    severity: Severity = Severity.FAIL
    damage: Damage | None = None
    remedy: str | None = None
    causes: tuple[str, ...] = ()
    backends: tuple[Backend, ...] = ()
    vendor: Vendor | None = None
    several_hosts: bool = False
    tools: tuple[Group, ...] = ()
    """If one of these tools hangs on a host, this check reports a fault: the driver does not answer."""
    sphere: Sphere | None = None
    """None: the result is about whatever was asked, even a container."""

    @property
    def wanted(self) -> tuple[Need[Any], ...]:
        """What it needs, and what it can do without."""
        return tuple(need.need if isinstance(need, OptionalNeed) else need for need in self.needs)

    @property
    def of_one_host(self) -> bool:
        """Whether what it finds on a host is the same whoever else is examined. Its needs decide that,
        because it knows nothing else.
        """
        limited = self.backends or self.vendor or self.several_hosts
        return self.scope is Scope.HOST and not limited and all(map(_of_one_host, self.wanted))


def _of_one_host(need: Need[Any]) -> bool:
    if isinstance(need, Fact):  # a command that is made for the job asks about its names, ports or tables
        return not need.later and (isinstance(need.command, Read) or isinstance(need.command.shell, str))
    return isinstance(need, RunValue) and need.of_one


class Options(TypedDict, total=False):
    """What `check` takes besides the id, the needs and the scope; every option has a default."""

    severity: Severity
    damage: Damage
    remedy: str | None
    causes: tuple[str, ...]
    backends: tuple[Backend, ...]
    vendor: Vendor
    several_hosts: bool
    tools: tuple[Group, ...]
    sphere: Sphere | None


class HostCheckOptions(Options, total=False):
    scope: Literal[Scope.HOST]


class ClusterCheckOptions(Options):
    scope: Literal[Scope.CLUSTER]


P = ParamSpec("P")
Problems = Iterator[Problem]
Maker: TypeAlias = Callable[[Callable[P, Problems]], Check]


@overload
def check(id: str, a: Need[A], /, **rest: Unpack[HostCheckOptions]) -> Maker[[A]]: ...
@overload
def check(id: str, a: Need[A], b: Need[B], /, **rest: Unpack[HostCheckOptions]) -> Maker[[A, B]]: ...
@overload
def check(
    id: str, a: Need[A], b: Need[B], c: Need[C], /, **rest: Unpack[HostCheckOptions]
) -> Maker[[A, B, C]]: ...
@overload
def check(
    id: str, a: Need[A], b: Need[B], c: Need[C], d: Need[D], /, **rest: Unpack[HostCheckOptions]
) -> Maker[[A, B, C, D]]: ...
@overload
def check(
    id: str, a: Need[A], b: Need[B], c: Need[C], d: Need[D], e: Need[E], /, **rest: Unpack[HostCheckOptions]
) -> Maker[[A, B, C, D, E]]: ...
@overload
def check(
    id: str, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, /, *more: Any, **rest: Unpack[HostCheckOptions]
) -> Maker[...]: ...
@overload
def check(id: str, a: Fact[A], /, **rest: Unpack[ClusterCheckOptions]) -> Maker[[Mapping[str, A]]]: ...
@overload
def check(
    id: str, a: Fact[A], b: RunValue[B], /, **rest: Unpack[ClusterCheckOptions]
) -> Maker[[Mapping[str, A], B]]: ...
@overload
def check(
    id: str, a: Fact[A], b: RunValue[B], c: RunValue[C], /, **rest: Unpack[ClusterCheckOptions]
) -> Maker[[Mapping[str, A], B, C]]: ...
@overload
def check(id: str, a: RunValue[A], /, **rest: Unpack[ClusterCheckOptions]) -> Maker[[A]]: ...
@overload
def check(
    id: str, a: RunValue[A], b: RunValue[B], /, **rest: Unpack[ClusterCheckOptions]
) -> Maker[[A, B]]: ...
@overload
def check(id: str, /, *needs: Need[Any], **rest: Unpack[ClusterCheckOptions]) -> Maker[...]: ...
def check(id: str, /, *needs: Need[Any], scope: Scope = Scope.HOST, **options: Unpack[Options]) -> Maker[...]:
    """Turn a function that yields a Problem for each fault into a `Check`; nothing is registered.

    In cluster scope a fact arrives as a mapping host -> value, for the hosts that have it. A host without it
    makes the result unknown, unless the need is a `maybe`. `backends`, `vendor` and `several_hosts` limit the
    jobs to which the check applies (default: all). The docstring is the check's manual: its first line is the
    title.
    """

    if "vendor" in options:
        options.setdefault("backends", (options["vendor"].backend,))

    def make(function: Callable[..., Problems]) -> Check:
        doc = inspect.getdoc(function) or ""
        title, origin = doc.partition("\n")[0].rstrip("."), inspect.getsourcefile(function) or "?"
        return Check(id, title, needs, scope, function, doc, origin, **options)

    return make


_PATH = re.compile(r"(?:/sys/bus/pci/devices/[0-9a-f:.]+)?[^:]*")
"""Only paths of PCI devices contain colons."""
_LONG = 1000
"""Longer lines are not cached: they are data, and rarely the same on two hosts."""


def path_and_text(line: str) -> tuple[str, str]:
    """A line of a Read: the path of the file and, after a colon, a line of its text. Cached, because hosts of
    one cluster print mostly the same lines.
    """
    return _split(line) if len(line) <= _LONG else _split.__wrapped__(line)


@lru_cache(4096)
def _split(line: str) -> tuple[str, str]:
    match = _PATH.match(line)
    path = match[0] if match else ""
    return path, line[len(path) + 1 :]


def files(capture: Capture) -> dict[str, str]:
    """The files of a Read, by path, without their last newline. A line without a path is damage."""
    found: dict[str, list[str]] = {}
    for line in filter(None, capture.stdout.split("\n")):
        path, text = path_and_text(line)
        if not path.startswith("/"):
            raise UnreadableOutput(f"one of its lines belongs to no file: {line[:80]!r}")
        found.setdefault(path, []).append(text)
    return {path: "\n".join(lines) for path, lines in found.items()}
