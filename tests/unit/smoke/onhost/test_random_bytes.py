"""The data and the draws of the smoke run: the same on every machine, and known without torch."""

from __future__ import annotations

import ast
import struct
import sys
from array import array
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import doctor.smoke.onhost
from doctor.smoke.onhost import corpus, random_bytes
from doctor.smoke.onhost.parameters import VOCABULARY, initial_parameters, parameters
from doctor.smoke.onhost.shape import CellShape
from tests.support.cases import cases

ONHOST = Path(doctor.smoke.onhost.__file__).parent
SHAPE = CellShape(dp=2, tp=2, hosts=(4,), steps=30, seed=7)
SEEDS = st.integers(0, 2**40)
STEPS = st.integers(0, 10_000)

REFERENCE_BATCH = ("48c0f3f1ec0cae3d", "94938f303b2cccb3", "8ee740cf70ad29bb")
REFERENCE_INIT = "906709c451ecc20d"
REFERENCE_VALUES = (0.17440614104270935, 0.04945951700210571, -0.004479348659515381)


def unpacked(data: bytes) -> list[int]:
    return list(array("q", data))


def test_a_hash_is_the_same_everywhere() -> None:
    assert random_bytes.hashed(b"") == "7f9c2ba4e88f827d"  # the test vector of SHAKE128 for empty input


@given(st.text(max_size=50), st.integers(0, 300), st.integers(0, 300))
def test_a_stream_continues_where_it_was_cut(key: str, short: int, more: int) -> None:
    assert random_bytes.drawn(key, short + more)[:short] == random_bytes.drawn(key, short)


@given(st.integers(1, 2**20), st.integers(0, 2**32 - 1))
def test_a_number_is_below_its_limit(limit: int, word: int) -> None:
    assert 0 <= random_bytes.below(limit, word) < limit


def test_every_number_below_a_limit_is_drawn() -> None:
    assert {random_bytes.below(5, word) for word in random_bytes.words("five", 200)} == set(range(5))


@pytest.mark.parametrize(("probability", "expected"), [(0.0, 0), (0.25, 250), (1.0, 1000)])
def test_a_chance_has_its_probability(probability: float, expected: int) -> None:
    hits = sum(random_bytes.chance(probability, word) for word in random_bytes.words("coins", 1000))
    assert hits == pytest.approx(expected, abs=60 if 0 < expected < 1000 else 0)


@settings(max_examples=25)
@given(SEEDS, STEPS, st.integers(0, 63))
def test_a_batch_hides_some_tokens_of_each_sequence_and_asks_for_them(seed: int, step: int, dp: int) -> None:
    batch = corpus.batch_of(SHAPE._replace(seed=seed), step, dp)
    tokens, labels = unpacked(batch.tokens), unpacked(batch.labels)
    assert len(tokens) == len(labels) == len(batch.mask) == corpus.SEQUENCES * corpus.LENGTH
    assert all(0 < token < VOCABULARY for token in tokens)
    assert set(batch.mask) <= {0, 1}
    assert labels == [token * hidden for token, hidden in zip(tokens, batch.mask, strict=True)]
    rows = [batch.mask[i : i + corpus.LENGTH] for i in range(0, len(tokens), corpus.LENGTH)]
    assert all(any(row) for row in rows)


def test_a_sequence_without_a_hidden_token_gets_one() -> None:
    mask = [0] * corpus.LENGTH + [0, 1] * (corpus.LENGTH // 2)
    assert corpus.one_each(mask) == [1] + [0] * (corpus.LENGTH - 1) + [0, 1] * (corpus.LENGTH // 2)


@settings(max_examples=25)
@given(SEEDS, STEPS, st.integers(1, 63))
def test_replicas_steps_and_seeds_differ_and_peers_do_not(seed: int, step: int, dp: int) -> None:
    shape = CellShape(dp=64, tp=2, hosts=(128,), steps=30, seed=seed)
    own = corpus.reference_batch(shape, step, 2 * dp)
    assert own == corpus.reference_batch(shape, step, 2 * dp + 1)
    for other in (
        corpus.reference_batch(shape, step, 2 * dp - 1),
        corpus.reference_batch(shape, step + 1, 2 * dp),
        corpus.reference_batch(shape._replace(seed=seed + 1), step, 2 * dp),
    ):
        assert not set(own) & set(other)


def test_most_tokens_are_their_sequence_s_theme() -> None:
    share = 0.0
    for step in range(20):
        tokens = corpus.tokens_of(SHAPE, step, 0)
        for first in range(0, len(tokens), corpus.LENGTH):
            row = tokens[first : first + corpus.LENGTH]
            share += max(map(row.count, row)) / len(row) / corpus.SEQUENCES / 20
    assert share == pytest.approx(1 - corpus.NOISE, abs=0.02)
    assert pytest.approx(0.728, abs=0.001) == corpus.FLOOR


def test_another_salt_gives_another_mask() -> None:
    assert corpus.mask_of(SHAPE, 3, 0) != corpus.mask_of(SHAPE, 3, 0, " salt")


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_parameters_are_drawn_within_their_range(tp: int) -> None:
    shape = CellShape(dp=1, tp=tp, hosts=(tp,), steps=1, seed=3)
    layout = parameters(tp)
    values = memoryview(initial_parameters(shape, tp - 1)).cast("f")
    assert len(values) == sum(parameter.elements for parameter in layout)
    start = 0
    for parameter in layout:
        part = values[start : start + parameter.elements].tolist()
        start += parameter.elements
        if parameter.fill is not None:
            assert set(part) == {parameter.fill}
        else:
            assert 0.99 * 2**parameter.reach < max(part) < 2**parameter.reach
            assert -(2**parameter.reach) <= min(part) < -0.99 * 2**parameter.reach
            assert abs(sum(part) / len(part)) < 0.05 * 2**parameter.reach


def test_replicas_start_alike_and_peers_share_unsplit_parameters() -> None:
    of = [initial_parameters(SHAPE, place) for place in range(4)]
    assert of[0] == of[2]
    assert of[1] == of[3]
    start = 0
    for parameter in parameters(2):
        end = start + 4 * parameter.elements
        assert (of[0][start:end] == of[1][start:end]) == parameter.shared, parameter.name
        start = end


def test_references_do_not_change() -> None:
    """Hosts and controllers with different versions, and on different machines, must draw the same."""
    assert corpus.reference_batch(SHAPE, 3, 2) == REFERENCE_BATCH
    assert corpus.reference_init(SHAPE, 1) == REFERENCE_INIT
    assert struct.unpack("<3f", initial_parameters(SHAPE, 1)[:12]) == REFERENCE_VALUES


@cases
def test_ranks_run_on_python_3_8_and_import_nothing_else(module: str) -> None:
    tree = ast.parse((ONHOST / f"{module}.py").read_text(), feature_version=(3, 8))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {name for name in names if name.startswith("doctor.")}
    assert {name.split(".")[0] for name in names - ours} <= {
        *sys.stdlib_module_names,
        "torch",
        "mindspore",
        "numpy",
    }
    assert all(name.startswith(("doctor.smoke.onhost", "doctor.agents.onhost")) for name in ours)
