"""The answers, one JSON line each, so that a run goes on where it was cut short."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from tests.mutate.ask import Answer
from tests.mutate.change import Change


def append(path: Path, change: Change, answer: Answer) -> None:
    with path.open("a") as file:
        file.write(json.dumps({"key": change.key, **asdict(answer)}) + "\n")


def load(path: Path) -> Mapping[str, Answer]:
    """The last answer to each change."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {kept.pop("key"): Answer(**kept) for kept in map(json.loads, lines)}
