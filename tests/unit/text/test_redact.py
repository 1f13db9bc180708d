"""Secrets are hidden, ordinary text is not touched, and neither takes long."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.text.redact import redact, redact_values
from doctor.text.secretshapes import HIDDEN
from tests.support.cases import cases
from tests.support.each import each
from tests.support.limits import within
from tests.support.secrets import bare, in_a_line, rows

ROWS = rows()


@each("row", ROWS)
def test_what_is_marked_is_hidden_and_nothing_else(row: str) -> None:
    assert redact(bare(row)) == re.sub("⟦.*?⟧", HIDDEN, row)


def test_there_are_enough_of_both_kinds() -> None:
    secret = [row for row in ROWS if "⟦" in row]
    assert len(secret) >= 150
    assert len(ROWS) - len(secret) >= 120


@cases
def test_lines(text: str, shown: str) -> None:
    assert redact(text) == shown.replace("#", HIDDEN)


@given(st.text(alphabet="aZ0_-=:/ .%", min_size=1), st.sampled_from(in_a_line()))
def test_a_secret_is_found_behind_any_words(before: str, row: str) -> None:
    """Whatever stands before it on its line, as long as that is another word."""
    shown = redact(f"{before} ; {re.sub('[⟦⟧]', '', row)}")
    assert shown.endswith(re.sub("⟦.*?⟧", HIDDEN, row))


def test_variables() -> None:
    variables = {
        "HF_TOKEN": "abc def",
        "MYSQL_PWD": "/x y",
        "PWD": "/root",
        "HCCL_IF_IP": "10.0.0.1",
        "PROXY": "http://u:pw@proxy:1",
    }
    assert redact_values(variables) == {
        "HF_TOKEN": HIDDEN,
        "MYSQL_PWD": HIDDEN,
        "PWD": "/root",
        "HCCL_IF_IP": "10.0.0.1",
        "PROXY": f"http://u:{HIDDEN}@proxy:1",
    }


PARTS = st.sampled_from(["password", "token", "=", ": ", '"', "'", "\\", "://u:", "@h", "--", " ", "x", "\n"])


@given(st.lists(PARTS, max_size=20).map("".join))
def test_redacting_twice_hides_no_less_and_keeps_line_ends(text: str) -> None:
    once = redact(text)
    assert redact(once).count("\n") == once.count("\n") == text.count("\n")


@pytest.mark.slow
@cases
def test_linear_time(unit: str) -> None:
    with within(10):
        redact("password " + unit * (400_000 // len(unit)))
