"""The kinds of secrets in tests/samples, in every place where a secret may be."""

import re
from collections.abc import Iterator

from tests.support.cases import from_cases
from tests.support.paths import ROOT

SAMPLES = ROOT / "tests" / "samples"
NAMED = from_cases(__file__, "NAMED", tuple[str, ...])
ALONE = from_cases(__file__, "ALONE", tuple[str, ...])


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
