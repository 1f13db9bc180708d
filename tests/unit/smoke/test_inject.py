"""Injected faults: the requests that a person may make."""

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.errors import UsageError
from doctor.smoke import inject
from doctor.smoke.inject import KINDS, parse_injection
from doctor.smoke.result import Injection
from tests.support.cases import cases

# Requests that a person may make.


@cases
def test_an_injection_is_read(text: str, injection: Injection) -> None:
    assert parse_injection(text, 8, 30) == injection
    assert parse_injection(str(injection), 8, 30) == injection


@cases
def test_the_error_names_what_is_wrong_with_an_injection(text: str, words: str) -> None:
    with pytest.raises(UsageError) as wrong:
        parse_injection(text, 8, 30)
    assert words in f"{wrong.value.message}\n{wrong.value.hint}"


@cases
def test_a_fault_that_would_not_show_is_refused(text: str, ranks: int, replicas: int) -> None:
    with pytest.raises(UsageError, match="would change nothing"):
        parse_injection(text, ranks, 30, replicas)
    assert parse_injection(text, 4, 30, 2).rank == 0


def test_a_fault_that_takes_more_steps_to_show_is_refused() -> None:
    with pytest.raises(UsageError, match="would change nothing visible") as wrong:
        parse_injection("slow@0", 4, 13)
    assert wrong.value.hint == "it needs 14 steps; this run has fewer"
    assert parse_injection("slow@0", 4, 14).step == 4


@given(st.one_of(st.text(max_size=200), st.from_regex(r"[a-z-]+@[0-9]*:?[0-9]*", fullmatch=True)))
def test_any_text_is_an_injection_or_a_usage_error(text: str) -> None:
    try:
        injection = parse_injection(text, 4, 9)
    except UsageError:
        return
    assert injection.kind in KINDS
    assert injection.rank < 4
    assert injection.step is None or injection.step < 9


def test_hosts_know_every_kind_and_no_other() -> None:
    """The code is read, not imported, because the ranks' code needs torch."""
    source = Path(inject.__file__).parent / "onhost" / "inject.py"
    (table,) = [
        node.value
        for node in ast.parse(source.read_text()).body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "_FAULTS"
    ]
    assert isinstance(table, ast.Dict)
    assert {ast.literal_eval(key) for key in table.keys if key} == set(KINDS) - {"never-join"}
