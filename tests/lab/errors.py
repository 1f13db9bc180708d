"""What goes wrong in the lab itself, as opposed to what it makes go wrong on purpose."""

from __future__ import annotations


class LabError(Exception):
    """The lab could not do what it was asked; the text says which command said what."""
