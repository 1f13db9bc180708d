"""Jobs of frameworks, each with a fault that FAULT, VICTIM and AT choose."""

BEFORE = -1
"""The step before a job's first collective."""
