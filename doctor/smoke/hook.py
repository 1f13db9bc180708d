"""Three lines in your own training script that find ranks which train on the wrong data:

    from doctor.smoke.hook import batch

    for tokens, mask, labels in loader:
        batch(tokens, mask, labels, tensor_parallel=2)

Call it on every rank, outside of anything compiled. In its first calls it compares hashes of what each rank
is about to train on: they must be equal inside a model-parallel group, and differ between replicas. It draws
no random numbers, calls no collective and leaves the tensors alone; later calls cost one comparison.

This module imports almost nothing, so that it costs a job nothing; see docs/smoke-hook.md. For hosts without
cluster-doctor, `python3 -m doctor.smoke.hook FILE.zip` writes all that it needs.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from doctor.smoke.hook_impl.verdict import Diverged, Verdict

__all__ = ["Diverged", "Verdict", "batch"]

_made = 0
_last: Verdict | None = None
_OVER = 1 << 62


def batch(
    tokens: Any = None,
    mask: Any = None,
    labels: Any = None,
    *,
    model_parallel: Any | Sequence[int] | None = None,
    data_parallel: Any | Sequence[int] | None = None,
    tensor_parallel: int | None = None,
    replicas: int | None = None,
    calls: int = 3,
    wait: float = 10.0,
    strict: bool = False,
) -> Verdict | None:
    """Compare what the ranks are about to train on. Returns the newest verdict, None if switched off.

    `tokens`, `mask`, `labels`: tensors of torch or MindSpore on any device, numpy arrays, numbers, or lists
    or dictionaries of them; None if this rank has none. `model_parallel`, `data_parallel`: the process
    groups of this rank, or lists of ranks. Without them, neighbouring ranks form a model-parallel group of
    `tensor_parallel` ranks, or one of `replicas` equal groups. The environment variables
    DOCTOR_HOOK_TENSOR_PARALLEL and DOCTOR_HOOK_REPLICAS are their defaults; without all of these, ranks with
    equal tokens form a group.

    `wait` is how many seconds a call waits for the other ranks; if they do not come, that is printed and no
    later call waits. `strict` raises `Diverged` on every rank, as DOCTOR_HOOK=strict does; DOCTOR_HOOK=off
    switches everything off.
    """
    global _made, _last
    if _made >= calls:
        return _last
    switch = os.environ.get("DOCTOR_HOOK", "").lower()
    if switch == "off":
        _made = _OVER
        return None
    from doctor.smoke.hook_impl.compare import compare

    _made += 1
    _last = compare(
        _made,
        {"tokens": tokens, "mask": mask, "labels": labels},
        model=model_parallel,
        data=data_parallel,
        tensor_parallel=tensor_parallel,
        replicas=replicas,
        wait=wait,
    )
    if _last.status == "not compared":
        _made = _OVER
    if _last.divergences and (strict or switch == "strict"):
        from doctor.smoke.hook_impl.verdict import Diverged

        raise Diverged(_last)
    return _last


def __getattr__(name: str) -> Any:
    if name in ("Diverged", "Verdict"):
        from doctor.smoke.hook_impl import verdict

        return getattr(verdict, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if __name__ == "__main__":
    from doctor.smoke.hook_impl.archive import main

    main()
