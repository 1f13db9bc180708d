"""What is known of the hosts without a pre-flight, for the placeholders of the command."""

import pytest

from doctor.errors import UsageError
from doctor.exam.request import HostFlags, JobFlags, Request
from doctor.run.before import _list, with_hosts


def test_the_number_of_ranks_is_filled_in_only_if_somebody_says_it() -> None:
    who = HostFlags(hosts=("a", "b"))
    with pytest.raises(UsageError, match="cannot be filled in"):
        _list(Request("run", who=who), ("./start", "{nproc}"))
    known = _list(Request("run", who=who, job=JobFlags(ranks_per_host=3)), ("./start", "{nproc}")).going
    unasked = _list(Request("run", who=who), ("./start", "{hosts}")).going
    assert known
    assert unasked
    assert (known.ranks, unasked.ranks) == ({"a": 3, "b": 3}, {"a": 1, "b": 1})


def test_pods_are_the_hosts_of_the_command() -> None:
    request = Request("run", who=HostFlags(pods="app=train"))
    for words in (["true"], ["mpirun", "-H", "a,b", "./train"]):
        assert with_hosts(request, words).who == request.who
