"""The ranks that the JSON of `doctor hang` names, without the findings of --check."""

from collections.abc import Mapping
from typing import Any

Named = dict[str, Any]


def culprits(said: Mapping[str, Any]) -> list[Named]:
    return [each for each in said["findings"] if each["status"] == "fail" and each.get("check") is None]


def suspects(said: Mapping[str, Any]) -> list[Named]:
    return [each for each in said["findings"] if each["status"] == "unknown" and each.get("check") is None]
