"""The kinds of secrets in tests/samples, in every place where a secret may be."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.support.paths import ROOT

SAMPLES = ROOT / "tests" / "samples"
NAMED = (
    "[rank3]: 2025-03-01 10:00:00 ERROR {n}: {v} was refused",
    "{n} = {v}",
    "{n}：{v}",
    "python train.py --{d}={v} --steps 3",
    "python train.py --{d} {v} --steps 3",
    "Command '['train.py', '--{d}', '{v}', '--steps']' returned 1",
    "{u}={v} python train.py",
    "+ export {u}='{v}'",
    "  {n}: {v}",
    '  {n}: "{v}"',
    '{{"{n}": "{v}", "rank": 0}}',
    'body={{\\"{n}\\": \\"{v}\\"}}',
    "Namespace(rank=0, {n}='{v}')",
    "Config(rank=0, {n}={v})",
    '[{{"name": "{u}", "value": "{v}"}}]',
    "<{n}>{v}</{n}>",
    "GET https://host/path?page=2&{n}={v} HTTP/1.1",
)
ALONE = (
    "[rank3]: 2025-03-01 10:00:00 ERROR {v} was refused",
    "python train.py --config={v}",
    "python train.py --config {v} --steps 3",
    "X={v} python train.py",
    "  x: {v}",
    '{{"x": "{v}"}}',
    "login('{v}', x='{v}')",
    "GET https://host/path?x={v}&y=1",
    "GET https://host/{v}/y",
)


def rows() -> list[str]:
    """Lines with their secrets between ⟦ and ⟧, and ordinary lines."""
    return _lines("secrets.txt")


def in_a_line() -> list[str]:
    """The rows that are found behind any words. An indented row is found only as a whole line."""
    return [row for row in rows() if "⟦" in row and not row[0].isspace()]


def marked(row: str) -> list[str]:
    """The secrets of a row, without the quotes around them."""
    return [found.strip("'\"") for found in re.findall("⟦(.*?)⟧", row)]


def bare(row: str) -> str:
    return re.sub("[⟦⟧]", "", row)


def kinds() -> list[tuple[str, str, str]]:
    """The kind, the name of its secret ("" if its form identifies it), and a value that no other kind has."""
    made = []
    for row in _lines("secret_kinds.txt"):
        kind, *name, value = row.split(" | ")
        made.append((kind, "".join(name), value))
    return made


def in_places(name: str, value: str) -> Iterator[str]:
    """Lines that contain such a secret."""
    for place in NAMED if name else ALONE:
        dashed, upper = name.replace("_", "-"), re.sub("[.-]", "_", name).upper()
        yield place.format(n=name, d=dashed, u=upper, v=value)


def _lines(file: str) -> list[str]:
    made_up = (SAMPLES / file).read_text().replace("·", "").splitlines()
    return [row for row in made_up if row and not row.startswith("# ")]
