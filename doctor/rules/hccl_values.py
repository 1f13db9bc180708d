"""The values that HCCL takes for its variables."""

from doctor.text.hostprogram import sections

_ENDS = {name: ends.split() for name, ends in sections(__file__, "hccl_values.txt")["ranges"].items()}
RANGES = {name: (int(least), int(most)) for name, (least, most) in _ENDS.items()}
"""HCCL refuses other values with EI0001."""
