"""Who wrote a file, by its name."""

import pytest

from doctor.logs.forms.names import named
from tests.support.cases import cases


@cases
def test_the_host_that_a_name_tells(path: str, host: str | None) -> None:
    assert named(path).host == host


@pytest.mark.parametrize("path", ["node1/h3-oom-after-resume.log", "node1/n7-slow.log"])
def test_a_folder_is_no_less_a_host_for_the_name_of_the_file(path: str) -> None:
    assert named(path).host == "node1"
