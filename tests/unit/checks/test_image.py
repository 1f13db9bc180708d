"""Which container of a job was made from another image than the others."""

import pytest

from checks.image import IMAGE, digest_differs
from doctor.api import Skip
from tests.support.captures import printed
from tests.support.cases import cases


@cases
def test_images(images: dict[str, str], found: list[str]) -> None:
    problems = digest_differs.run(images)
    assert [f"{','.join(each.hosts)}: {each.actual} ({each.confidence.value})" for each in problems] == found


def test_hosts_without_containers() -> None:
    with pytest.raises(Skip, match="no container engine"):
        [*digest_differs.run({"a": "", "b": ""})]


@pytest.mark.parametrize(
    ("text", "image"),
    [
        (f"sha256:{'ab' * 32}\n", "ab" * 6),
        (f"{'ab' * 32}\n", "ab" * 6),
        ("\n", ""),
        ("docker.io/library/train:latest\n", ""),
        ("`docker inspect -f '{{.Image}}' train`\n", ""),
        ("sha256:12; rm -rf /\n", ""),
    ],
)
def test_what_a_container_was_told(text: str, image: str) -> None:
    assert printed(IMAGE, text) == image
