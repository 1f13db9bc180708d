"""Scripts of users go on working: within a schema, JSON loses no field, and what is always written stays so.

`UPDATE_GOLDEN=1 pytest` on this file adds new fields to its list; it takes none away.
"""

import os
from collections.abc import Iterator
from typing import Any

from tests.support.envelopes import schema
from tests.support.paths import ROOT

KNOWN = ROOT / "tests/unit/cases/json-fields-of-schema-2.txt"


def fields(
    part: dict[str, Any], whole: dict[str, Any], path: str, above: tuple[str, ...] = ()
) -> Iterator[str]:
    """The path of each field below a part of the schema; `!` behind it if it is always written."""
    name = part.get("$ref", "").rpartition("/")[2]
    if name in above:
        return
    inside = whole["$defs"][name] if name else part
    for each in (*inside.get("anyOf", ()), *inside.get("prefixItems", ())):
        yield from fields(each, whole, path, (*above, name))
    for key in ("items", "additionalProperties"):
        if isinstance(inside.get(key), dict):
            yield from fields(inside[key], whole, f"{path}[]", (*above, name))
    for field, about in inside.get("properties", {}).items():
        yield f"{path}.{field}{'!' * (field in inside.get('required', ()))}"
        yield from fields(about, whole, f"{path}.{field}", (*above, name))


def test_no_field_of_the_json_has_vanished() -> None:
    whole = schema()
    now = {
        line
        for kind in whole["anyOf"]
        for line in fields(kind, whole, kind["$ref"].rpartition("/")[2].lower())
    }
    known = set(KNOWN.read_text().splitlines()) if KNOWN.exists() else set()
    if os.environ.get("UPDATE_GOLDEN"):
        KNOWN.write_text("".join(f"{line}\n" for line in sorted(known | now)))
    assert len(now) > 500
    gone = [line for line in sorted(known) if not {line, f"{line}!"} & now]
    assert gone == [], "scripts read these fields: keep them, or raise the schema"
    assert sorted(now - known) == [], f"new fields belong into {KNOWN.name}: UPDATE_GOLDEN=1"
