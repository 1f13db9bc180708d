"""Which caller's interpreter is looked for on the hosts."""

from doctor.exam.examination import own_interpreters
from tests.support.cases import cases


@cases
def test_the_activated_one_then_that_of_the_doctor(
    environ: dict[str, str], prefix: str, found: tuple[str, ...]
) -> None:
    assert own_interpreters(environ, prefix) == found
