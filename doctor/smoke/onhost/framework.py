"""What the smoke run needs of a framework (docs/adding-a-framework.md); each has a module here, its side."""

from __future__ import annotations

import platform
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from doctor.smoke.onhost.corpus import LENGTH
from doctor.smoke.onhost.memory import free_memory
from doctor.smoke.onhost.random_bytes import hashed

if TYPE_CHECKING:  # Python 3.8 cannot evaluate these
    from collections.abc import Callable

    from doctor.smoke.onhost.corpus import TokenBatch
    from doctor.smoke.onhost.shape import CellShape

    Sums = tuple[float, float]


class TokenSample(NamedTuple):
    """A batch on the device: three matrices of 64-bit numbers, bytes, and 64-bit numbers."""

    tokens: Any
    mask: Any
    labels: Any


class Framework(Protocol):
    """A framework with one device, in one rank. The defaults are a CPU's; what has no body is needed.

    Use: `os.environ.update(environment(timeout))`, because libraries read variables when they are loaded,
    then `choose_core`, `set_up()`, `reach`, `meet` and `make_groups`.
    """

    name: str = ""
    backend: str = ""
    on_cpu: bool = True

    # What it is.

    @property
    def product(self) -> str:
        """The name of its product; only devices of one product are compared bit by bit."""
        return platform.machine()

    def environment(self, timeout: float) -> dict[str, str]:  # noqa: ARG002
        """Variables to set before `set_up`."""
        return {}

    def choose_core(self, place: int) -> None:  # noqa: ARG002
        """Bind the rank to a core, if it has to be bound."""
        return

    def set_up(self) -> None:
        """Make it the current device of this process; raises if there is no such device."""

    def be_deterministic(self) -> None:
        """Compute the same bits each time, if the device can: the CPU does so anyway."""
        return

    def share_memory(self) -> None:
        """Share memory as the workers of a data loader do; raises if /dev/shm is full."""

    def versions(self) -> dict[str, str]:
        """The version of the framework and of the device's libraries."""
        return {}

    def instructions(self) -> str:
        """The set of instructions of the CPU that it uses, if it says so: others may round differently."""
        return ""

    def evidence(self) -> str:
        """What the backend itself knows about a hang, in a few lines. Another thread may call it."""
        return ""

    # Meeting the other ranks.

    def reach(self, address: str, port: int, cell: int, timeout: float) -> None:
        """Reach the process that `serve` made."""

    def meet(self, place: int, world: int, timeout: float) -> None:
        """Join the other ranks of the cell."""

    def make_groups(self, shape: CellShape, place: int, timeout: float) -> dict[str, Any]:
        """The groups of a rank by name; None for one in which it is alone. All ranks call this at once."""

    # Collectives: in place where it says so; `into` may take the result. Whoever is meant is a place in the
    # cell. They may return before the device has finished: `synchronise` waits for it.

    def synchronise(self) -> None:
        """Wait until the device has finished all its work."""
        return

    def all_reduce(self, x: Any, group: Any, *, maximum: bool) -> None:
        """In place."""

    def broadcast(self, x: Any, group: Any, source: int) -> None:
        """In place."""

    def reduce(self, x: Any, group: Any, root: int) -> None:
        """In place at the root; what the others hold afterwards is undefined."""

    def all_gather(self, x: Any, group: Any, members: int, into: Any = None) -> Any:
        """The bytes of the result are those of all members, in the group's order."""

    def reduce_scatter(self, x: Any, group: Any, members: int, into: Any = None) -> Any:
        """The rank's own part of the sum."""

    def all_to_all(self, x: Any, group: Any, out: list[int], back: list[int], into: Any = None) -> Any:
        """Part i of the result is the part that member i had for this rank; `out` and `back`: their sizes."""

    def swap(self, out: Any, into: Any, peer: int, group: Any = None, source: int = -1, tag: int = 0) -> None:
        """Send and receive at the same time; None: only the other. `source`: from whom, if not the peer."""

    def pass_on(self, kept: int, tag: int, out: Any, into: Any, peer: int, group: Any) -> None:
        """Receive, or send and go on; of what was sent, the last `kept` may still be under way."""

    # Numbers.

    def tensor(self, data: bytes | bytearray, dtype: str) -> Any:
        """A flat tensor on the device. Types are named as in `encoding`."""

    def zeros(self, elements: int) -> Any:
        return self.tensor(bytes(4 * elements), "float32")

    def free_memory(self) -> float:
        """The bytes that are free for tensors: on the host, or on the rank's device."""
        return free_memory()

    def bytes_of(self, x: Any) -> bytes: ...

    def copies(self, data: bytes) -> tuple[Callable[[], object], Callable[[], object]]:
        """What copies these bytes to the device, and what copies them back: by the link alone, if it can."""
        there = self.tensor(data, "uint8")
        return lambda: self.tensor(data, "uint8"), lambda: self.bytes_of(there)

    def write(self, x: Any, data: bytes) -> None:
        """Replace the first bytes of a tensor."""

    def dtype_of(self, x: Any) -> str: ...

    def size_of(self, x: Any) -> int:
        """The number of its elements."""

    def first(self, x: Any, elements: int) -> Any:
        """The first elements of a flat tensor; perhaps a copy."""

    def sample(self, batch: TokenBatch) -> TokenSample:
        return TokenSample(
            self.tensor(batch.tokens, "int64").reshape(-1, LENGTH),
            self.tensor(batch.mask, "uint8").reshape(-1, LENGTH),
            self.tensor(batch.labels, "int64").reshape(-1, LENGTH),
        )

    # Computing.

    def burnt(self) -> float:
        """The seconds of CPU that computing took this process so far."""
        return time.thread_time()

    def products(self, left: bytes, right: bytes, size: int) -> tuple[bytes, bytes]:
        """Multiply two square matrices of float32, at once and with the left one in four parts."""

    def square(self, x: Any, side: int) -> Any:
        """The product of a flat tensor with itself, as a matrix with that side."""

    def projection(self, x: Any) -> Sums:
        """The sum of all numbers with fixed signs, and of their magnitudes; it multiplies no matrices."""

    def tally(self, x: Any, sums: bool) -> tuple[int, float, float]:
        """A number of all bits, and sums of all numbers and of their magnitudes, which are quick to get."""
        return int(hashed(self.bytes_of(x))[:8], 16), *(self.projection(x) if sums else (0.0, 0.0))

    def model(self, comm: Any) -> Model:
        """A rank's part of the model, with all zeros: see `Model`."""

    # Random numbers.

    def seed(self, seed: int) -> None:
        """Seed the framework's own streams, the way people do it."""

    def draw(self, count: int) -> dict[str, bytes]:  # noqa: ARG002
        """Stream of the framework -> the bytes of so many numbers drawn from it."""
        return {}

    def draw_many(self, count: int) -> dict[str, bytes]:  # noqa: ARG002
        """The same for streams that depend on the kind of device if many numbers are drawn."""
        return {}


class Model(Protocol):
    """The interface of a rank's part of the model. Parameters and gradient are flat tensors."""

    flat: Any
    grad: Any
    gather: Callable[[], None] | None = None
    """What gets the parameters before the backward pass, if replicas hold shards of them."""

    def load(self, data: bytes) -> None: ...

    def gradient(self, sample: TokenSample) -> float:
        """Leave the gradient of a batch in `grad` and return the loss."""

    def update(self, rate: float, replicas: int) -> None:
        """One step of Adam (0.9, 0.99, 1e-8) with `grad`, the sum over so many replicas."""
