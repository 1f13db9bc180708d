"""Whatever a file holds: either a table or none, flaws with places inside the file, in bounded time."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.job.ranktable import judge, read_table
from doctor.job.ranktable.flaws import MOST_FLAWS
from tests.support.cases import from_cases
from tests.support.limits import within
from tests.support.paths import ROOT

SAMPLES = ROOT / "tests" / "samples" / "rank_table"
TEXTS = [path.read_text() for path in sorted(SAMPLES.glob("*.json"))]
PRODUCTS = (None, "atlas-training", "atlas-a2", "atlas-a3", "atlas-950", "nvidia")
WORDS = from_cases(__file__, "WORDS", str)

LONGEST = 1000
"""Eighty characters, each of which may need ten to be shown."""

words = st.sampled_from(WORDS.split())
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | words
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=5),
    max_leaves=25,
)
pieces = st.lists(
    st.sampled_from([*'{}[]:,"', "\\", "'", "//", "/*", "*/", "#", "\n", " ", "0", "NaN", "\ufeff", "\ud800"])
    | words.map(json.dumps),
    max_size=40,
).map("".join)


def examine(text: str) -> None:
    """Read and judge a file; every place is inside the file, and every message is bounded."""
    read, flaws = read_table(text)
    lines = text.removeprefix("\ufeff").split("\n")
    if read is None:
        assert flaws
    else:
        assert read.hosts() is not None
        for product in PRODUCTS:
            flaws += judge(read, product)
    assert len(flaws) <= (len(PRODUCTS) + 1) * (MOST_FLAWS + 1)
    for flaw in flaws:
        assert "".join((flaw.message, flaw.expected, flaw.actual)).isprintable()
        assert max(len(flaw.message), len(flaw.expected), len(flaw.actual)) < LONGEST
        if flaw.spot:
            assert 1 <= flaw.spot.column <= len(lines[flaw.spot.line - 1]) + 1


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.text(max_size=80) | pieces)
def test_any_text(text: str) -> None:
    examine(text)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.dictionaries(words, values, max_size=6))
def test_any_json(value: object) -> None:
    examine(json.dumps(value))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_table_with_one_piece_changed(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 30)))
    examine(text[:start] + data.draw(pieces | st.text(max_size=4)) + text[end:])


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_table_with_one_value_changed(data: st.DataObject) -> None:
    document = json.loads(data.draw(st.sampled_from(TEXTS)))
    node = document
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(node[key], (dict, list)) or not node[key] or data.draw(st.booleans()):
            break
        node = node[key]
    node[key] = data.draw(values)
    examine(json.dumps(document, indent=data.draw(st.sampled_from([None, 1]))))


SIZE = 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        '"' * SIZE,
        '"' + '\\"' * (SIZE // 2) + "\\\n",
        "/*" * (SIZE // 2),
        "[" + ", " * (SIZE // 2) + "]x",
        "[" * SIZE,
        '{"server_list":' * (SIZE // 15),
        '{"server_list": [' + "[" * 900 + "]" * 900 + "]}",
        "#\n" * (SIZE // 2),
        "\n" * SIZE,
        '{"version": ' + "9" * SIZE + "}",
        '{"version": "1.0", "server_count": ' + "9" * 5000 + ', "server_list": [{}]}',
        "{" + ",".join(['"a":1'] * (SIZE // 6)) + "}",
        '{"a":[' + ",".join(["NaN"] * (SIZE // 4)) + "]}",
        '{"server_list":[' + ",".join(["{}"] * (SIZE // 3)) + "]}",
        '{"rank_list":[' + ",".join(["1"] * (SIZE // 2)) + "]}",
        "[" + "[1,]," * (SIZE // 5) + "1]",
        "// x\n" * (SIZE // 5) + "{}",
        '{"server_list":[{"server_id":"a","device":['
        + ",".join(['{"device_id":"0","rank_id":"0","device_ip":"1.1.1.1","host_port":"1"}'] * (SIZE // 70))
        + "]}]}",
        "{" * 2 + "x" * (11 * SIZE),
    ],
    ids=lambda text: text[:12] + "…",
)
def test_a_hostile_file_is_read_in_bounded_time(text: str) -> None:
    with within(30):
        examine(text)
