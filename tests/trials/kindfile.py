"""Reads the tables of the trials, which are files of data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

T = TypeVar("T")


def entries(module: str, name: str = "kinds.yaml") -> Any:
    """What is in a file beside a module."""
    return yaml.safe_load(Path(module).with_name(name).read_text())


def kinds(module: str, kind: type[T], name: str = "kinds.yaml") -> Mapping[str, T]:
    """The kinds of a file beside a module, in its order; a word that no kind has is refused."""
    return msgspec.convert(entries(module, name), dict[str, kind])  # type: ignore[valid-type]
