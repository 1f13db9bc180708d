"""Every kind of secret, in every place where it may occur."""

from doctor.text.redact import redact
from tests.support.secrets import in_places, kinds


def test_every_kind_in_every_place() -> None:
    left = [line for _, name, value in kinds() for line in in_places(name, value) if value in redact(line)]
    assert left == []


def test_there_are_enough_kinds() -> None:
    values = [value for _, _, value in kinds()]
    assert len(values) >= 120
    assert len(set(values)) == len(values)
