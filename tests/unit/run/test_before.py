"""What is known of the hosts without a pre-flight, for the placeholders of the command."""

import pytest

from doctor.errors import UsageError
from doctor.exam.request import HostFlags, JobFlags, Request
from doctor.run.before import _list


def test_the_number_of_ranks_is_filled_in_only_if_somebody_says_it() -> None:
    who = HostFlags(hosts=("a", "b"))
    with pytest.raises(UsageError, match="cannot be filled in"):
        _list(Request("run", who=who), ("./start", "{nproc}"))
    known = _list(Request("run", who=who, job=JobFlags(ranks_per_host=3)), ("./start", "{nproc}")).going
    unasked = _list(Request("run", who=who), ("./start", "{hosts}")).going
    assert known
    assert unasked
    assert (known.ranks, unasked.ranks) == ({"a": 3, "b": 3}, {"a": 1, "b": 1})
