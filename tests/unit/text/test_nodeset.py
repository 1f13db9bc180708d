"""Node sets: how they unfold and fold, and which names are valid for hosts."""

import shlex

import pytest
from ClusterShell.RangeSet import RangeSet, RangeSetParseError
from hypothesis import assume, given
from hypothesis import strategies as st

from doctor.errors import UsageError, suggest
from doctor.text.nodeset import check_host, check_jump, check_user, fold, quoted, unfold, unfold_users
from tests.support.cases import cases
from tests.support.limits import within

LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
NAME = (
    st.lists(LABEL, min_size=1, max_size=3).map(".".join).filter(lambda n: not n.replace(".", "").isdigit())
)


@cases
def test_unfold(text: str, names: list[str]) -> None:
    assert unfold(text, {"rack1": ("a", "b"), "rack2": ("b", "d")}) == names


@cases
def test_refused_with_the_offending_text(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        unfold_users(text)
    assert said in caught.value.message


def test_what_is_too_long_is_refused() -> None:
    with pytest.raises(UsageError, match="names more than 100,000 hosts"):
        unfold_users("node" + "[1-2]" * 5000)
    with pytest.raises(UsageError, match="it has 300 characters, and 253 is the most"):
        unfold_users("x" * 300)


@pytest.mark.slow
def test_absurd_sizes_are_refused_before_they_are_built() -> None:
    with within(10):
        for text in (
            "n[1-" + "9" * 150 + "]",
            "n" + "[1-9]" * 100_000,
            "n[1-100000]" * 3,
            ",".join(["n[1-99999]"] * 999),
        ):
            with pytest.raises(UsageError, match="more than 100,000 hosts"):
                unfold(text)


def test_unknown_group_names_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        unfold("@trian", {"train": ("a",)})
    assert caught.value.message == "the inventory has no group 'trian'"
    assert caught.value.hint == "did you mean 'train'?"


def test_users_stay_with_their_piece() -> None:
    assert [(n.user, n.hosts) for n in unfold_users("root@n[1-2],b")] == [
        ("root", ("n1", "n2")),
        (None, ("b",)),
    ]
    with pytest.raises(UsageError, match="no place in front of a host"):
        unfold("root@node1")


@pytest.mark.parametrize("user", ["root", "svc_train", "j.doe", "LAB\\anna", "anna@lab.example", "host$"])
def test_users(user: str) -> None:
    assert check_user(user) == user


@pytest.mark.parametrize("jump", ["bastion", "root@bastion:2222", "a,b@c", "[fd00::1]:22", "fd00::1"])
def test_jumps(jump: str) -> None:
    assert check_jump(jump) == jump


@pytest.mark.parametrize("jump", ["", "-J", "a,,b", "a:0", "a:x", "a b", "a;b", "x@-o", "a\n"])
def test_bad_jumps(jump: str) -> None:
    with pytest.raises(UsageError):
        check_jump(jump)


@cases
def test_fold(names: list[str], text: str) -> None:
    assert fold(names) == text
    assert fold(reversed(names)) == text


@given(st.lists(st.text(), max_size=8))
def test_fold_takes_any_strings(names: list[str]) -> None:
    assert isinstance(fold(names), str)


@pytest.mark.slow
@given(st.sets(NAME, min_size=1, max_size=30), st.randoms())
def test_fold_and_unfold_are_inverse(names: set[str], random: object) -> None:
    shuffled = sorted(names, key=lambda _: random.random())  # type: ignore[attr-defined]
    text = fold(names)
    assert fold(shuffled) == text
    assert set(unfold(text)) == names


@given(st.text(alphabet="ab1290,-/[]@:.! ", max_size=30))
def test_any_text_unfolds_or_is_refused(text: str) -> None:
    try:
        names = unfold_users(text, {"a": ("a1",)})
    except UsageError:
        return
    assert all(check_host(name) == name for named in names for name in named.hosts)


@given(st.integers(0, 99999), st.integers(0, 300), st.integers(1, 9), st.integers(1, 6), st.integers(1, 6))
def test_ranges_are_those_of_clustershell(first: int, more: int, step: int, left: int, right: int) -> None:
    assume(first + more > 0)  # ClusterShell takes `0-00`
    text = f"{first:0{left}d}-{first + more:0{right}d}/{step}"
    try:
        expected = [f"n{number}" for number in RangeSet(text).striter()]
    except RangeSetParseError:
        with pytest.raises(UsageError):
            unfold(f"n[{text}]")
    else:
        assert unfold(f"n[{text}]") == expected


@given(st.integers(0, 99999), st.integers(-9, 300), st.integers(1, 6), st.integers(1, 6))
def test_dots_are_a_range_without_brackets(first: int, more: int, left: int, right: int) -> None:
    """Neither form may mean more than the other, or be refused alone."""
    ends = f"{first:0{left}d}", f"{abs(first + more):0{right}d}"

    def made(text: str) -> list[str] | str:
        try:
            return unfold(text)
        except UsageError as error:
            return error.message.partition(" is not a node set: ")[2]

    assert made(f"n[{ends[0]}-{ends[1]}].lab") == made(f"n{ends[0]}..{ends[1]}.lab")


@pytest.mark.parametrize("names", [["node1"], ["node1", "node2"], ["a b"], ["r1-n1", "r2-n1", "x;y"]])
def test_quoted_is_one_word_of_a_shell(names: list[str]) -> None:
    assert shlex.split(quoted(names)) == [fold(names)]
    assert quoted(names).startswith("'") is (names != ["node1"])


@pytest.mark.slow
def test_folding_stays_fast_where_names_have_many_numbers() -> None:
    names = [f"ip-10-{i * 7 % 251}-{i * 13 % 241}-{i * 17 % 239}" for i in range(10_000)]
    with within(10):
        text = fold(names)
    assert set(unfold(text)) == set(names)


def test_suggest() -> None:
    assert suggest("nod1", ["node1", "gpu"]) == "did you mean 'node1'?"
    assert suggest("zebra", ["node1"]) == ""
