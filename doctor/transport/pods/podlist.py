"""Pods as the API server lists them: what of them counts here. Pure; their names come from others."""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct, field

from doctor.errors import UsageError
from doctor.text.nodeset import is_host
from doctor.transport.errors import quoted

T = TypeVar("T")
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


class Owner(Struct):
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class Metadata(Struct):
    name: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owners: tuple[Owner, ...] = field(default=(), name="ownerReferences")
    deleted: str = field(default="", name="deletionTimestamp")


class Word(Struct):
    """What the cluster says of a pod, or of a container."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    code: int | None = field(default=None, name="exitCode")


class Container(Struct):
    name: str
    image: str = ""
    number: str = field(default="", name="imageID")
    state: Mapping[str, Word] = {}
    """Under one of: waiting, running, terminated."""


class Status(Struct):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Word, ...] = ()
    containers: tuple[Container, ...] = field(default=(), name="containerStatuses")
    init: tuple[Container, ...] = field(default=(), name="initContainerStatuses")


class Spec(Struct):
    containers: tuple[Container, ...]
    init: tuple[Container, ...] = field(default=(), name="initContainers")
    node: str = field(default="", name="nodeName")


class Node(Struct):
    metadata: Metadata

    @property
    def name(self) -> str:
        return self.metadata.name


class Pod(Node):
    spec: Spec
    status: Status

    @property
    def leaves(self) -> bool:
        return bool(self.metadata.deleted) or self.status.phase in ("Succeeded", "Failed")

    @property
    def owner(self) -> tuple[str, str]:
        """The kind, in lower case, and the name of what made it; empty if nothing did."""
        owners = ((each.kind.lower(), each.name) for each in self.metadata.owners if each.controller)
        return next(owners, ("", ""))

    def label(self, *names: str) -> str:
        """The first of these labels, or annotations, that the pod has."""
        known = {**self.metadata.annotations, **self.metadata.labels}
        return next((known[name] for name in names if name in known), "")

    def container(self, named: str | None) -> str:
        """The container that is entered: the one that was named, else the one that kubectl takes."""
        return named or self.label(DEFAULT_CONTAINER) or self.spec.containers[0].name

    def image(self, container: str) -> str:
        """The image of a container as the manifest names it, and as its node has it."""
        both = (*self.spec.containers, *self.status.containers)
        return " ".join(each.number or each.image for each in both if each.name == container)


class _List(Struct, Generic[T]):
    items: tuple[T, ...]
    metadata: Mapping[str, object] = {}


def read_pods(data: bytes) -> tuple[tuple[Pod, ...], str]:
    """The pods of one page of the list, and where the next page begins. Raises UsageError."""
    return _read(data, Pod, lambda pod: (pod.name, pod.container(None), pod.spec.node or "none"))


def read_nodes(data: bytes) -> tuple[tuple[Node, ...], str]:
    """The nodes likewise."""
    return _read(data, Node, lambda node: (node.name,))


def _read(data: bytes, kind: type[T], names: Callable[[T], Sequence[str]]) -> tuple[tuple[T, ...], str]:
    try:
        page = msgspec.json.decode(data, type=_List[kind])  # type: ignore[valid-type]
    except msgspec.MsgspecError as error:
        raise UsageError(f"Kubernetes: the answer is not the list asked for: {quoted(str(error))}.") from None
    if strange := [name for each in page.items for name in names(each) if not is_host(name)]:
        raise UsageError(f"Kubernetes: it lists a name that none has there: {quoted(strange[0])}.")
    return page.items, str(page.metadata.get("continue", ""))
