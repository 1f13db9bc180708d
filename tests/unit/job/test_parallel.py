"""Reading the parallel plan: --plan and the inventory's `plan:`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.errors import UsageError
from doctor.job.parallel import DTYPES, KEYS, LONGEST, Layout, layout_of, read_key, read_layout
from tests.support.cases import cases
from tests.support.paths import ROOT


@cases
def test_each_plan_is_read(texts: Sequence[str], layout: Layout) -> None:
    assert read_layout(texts) == layout


@cases
def test_texts_that_are_not_a_plan(texts: Sequence[str], message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_layout(texts)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_plan_may_not_be_too_long() -> None:
    with pytest.raises(UsageError, match=f"is longer than {LONGEST} characters"):
        read_layout(["x" * (LONGEST + 1)])


@cases
def test_a_lone_bracket_is_not_a_mistake_of_another_key(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_layout([text])


def test_the_inventory_says_the_same_in_texts_and_in_values() -> None:
    plan = Layout(dp=4, lr=0.1, strategy=((4, 2), (2, 1)), dtype="float32")
    assert layout_of({"dp": "4", "lr": "0.1", "strategy": "((4,2),(2,1))", "dtype": "fp32"}) == plan
    assert layout_of({"dp": 4, "lr": 0.1, "strategy": [[4, 2], [2, 1]], "dtype": "fp32"}) == plan


@pytest.mark.parametrize("value", [True, None, {}, [1, 2], 2.0])
def test_values_of_the_wrong_kind(value: object) -> None:
    with pytest.raises(UsageError, match=r"^dp must be a whole number, 1 or more, not "):
        layout_of({"dp": value})


def test_the_inventory_says_nothing() -> None:
    with pytest.raises(UsageError, match=r"^it is empty$"):
        layout_of({})


def test_every_key_is_explained() -> None:
    page = (ROOT / "docs" / "parallel-plan.md").read_text()
    assert [key for key in KEYS if f"`{key}`" not in page] == []


@pytest.mark.parametrize("key", KEYS)
def test_no_key_accepts_arbitrary_text(key: str) -> None:
    with pytest.raises(UsageError, match=rf"^{key} must be "):
        read_key(key, "\x1b[31m, (")


@cases
def test_a_recording_cannot_hold_what_the_command_line_refuses(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, Layout)


def test_the_factors_are_those_that_were_given() -> None:
    assert Layout(tp=2, dp=4, ep=8).factors == {"dp": 4, "tp": 2}


def attempt(texts: Sequence[str]) -> Layout | str:
    """The plan, or the error."""
    try:
        return read_layout(texts)
    except UsageError as error:
        return error.message


@given(st.lists(st.text(max_size=60), max_size=4))
def test_any_text_is_a_plan_or_a_mistake(texts: list[str]) -> None:
    said = attempt(texts)
    assert isinstance(said, Layout) or said.startswith("--plan: ")


@given(st.sampled_from(list(KEYS)), st.text("0123456789(),[].eE-=abp ", max_size=80))
def test_any_value_is_understood_or_refused(key: str, text: str) -> None:
    said = attempt([f"{key}={text}"])
    if isinstance(said, Layout):
        assert attempt([str(said)]) == said
    else:
        assert said.startswith("--plan: ")


COUNTS = st.none() | st.integers(1, 10**12 - 1)
PLANS = st.builds(
    Layout,
    dp=st.integers(1, 10**12 - 1),
    tp=COUNTS,
    pp=COUNTS,
    cp=COUNTS,
    ep=COUNTS,
    world=COUNTS,
    framework=st.just("mindspore"),
    mode=st.sampled_from([None, "graph", "pynative"]),
    parallel_mode=st.none() | st.from_regex(r"[a-z_.]{1,20}", fullmatch=True),
    strategy=st.none()
    | st.lists(st.lists(st.integers(1, 64), max_size=4).map(tuple), min_size=1, max_size=3).map(tuple),
    dtype=st.sampled_from([None, *DTYPES]),
    batch=COUNTS,
    batch_per=st.sampled_from(["device", "global"]),
    lr=st.none() | st.floats(1e-9, 10),
    devices_before=COUNTS,
)


@given(PLANS)
def test_a_plan_is_written_as_it_is_read(plan: Layout) -> None:
    assert read_layout([str(plan)]) == plan


def test_a_default_is_not_written() -> None:
    assert str(replace(Layout(dp=4), batch_per="device")) == "dp=4"
    assert str(Layout(dp=4, batch_per="global")) == "dp=4,batch_per=global"
