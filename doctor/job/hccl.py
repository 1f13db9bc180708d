"""What HCCL supports on each product: the data types it reduces and the groups of devices it forms."""

from collections.abc import Collection, Mapping, Sequence

from doctor.job.ranktable.grouping import ATLAS_950, ATLAS_A2, ATLAS_A3, ATLAS_TRAINING

REDUCED: Mapping[str, tuple[str, ...]] = {
    ATLAS_TRAINING: ("int8", "int32", "int64", "float16", "float32"),
    ATLAS_A2: ("int8", "int16", "int32", "int64", "float16", "float32", "bfloat16"),
    ATLAS_A3: ("int8", "int16", "int32", "int64", "float16", "float32", "bfloat16"),
    ATLAS_950: (
        "int8", "int16", "int32", "int64", "uint64", "float16", "float32", "float64", "bfloat16",
    ),
}  # fmt: skip
"""Data types that HCCL reduces: the lists of HcclAllReduce.md, HcclReduce.md and HcclReduceScatter.md, which
agree, in docs/zh/api_ref/comm_op_interface of https://github.com/hicann/hccl at 09300b70 (August 2026)."""

RING = 4
"""Devices 0-3 and 4-7 of an Atlas training server form two rings."""
_COUNTS = (1, 2, 4, 8)


def reduced(products: Collection[str]) -> tuple[str, ...]:
    """The data types that all of these products reduce. An unknown product may be any of them."""
    lists = [REDUCED[product] for product in products if product in REDUCED]
    if len(lists) < len(products) or not lists:
        lists += REDUCED.values()
    return tuple(dtype for dtype in lists[0] if all(dtype in listed for listed in lists))


def forms_group(products: Collection[str], devices: Sequence[Collection[int]]) -> bool:
    """Whether HCCL can form a group of these devices (one collection per server).

    On Atlas training, every server of a group must have the same number of devices: 1, 2, 4 or 8; two or four
    devices must be in one ring (the manual of create_group, CANN 8.0 to 9.0). Other products take any
    devices.
    """
    if products and ATLAS_TRAINING not in products and all(product in REDUCED for product in products):
        return True
    counts = {len(set(chosen)) for chosen in devices}
    if len(counts) != 1 or not counts <= set(_COUNTS):
        return False
    return counts <= {1, 8} or all(len({device // RING for device in chosen}) == 1 for chosen in devices)
