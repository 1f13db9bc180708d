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


def test_images_that_are_told_in_two_ways() -> None:
    with pytest.raises(Skip, match="cannot be compared"):
        [*digest_differs.run({"a": "1" * 12, "b": "@" + "2" * 12, "c": ""})]


@pytest.mark.parametrize(
    ("text", "image"),
    [
        (f"sha256:{'ab' * 32}\n", "ab" * 6),
        (f"{'ab' * 32}\n", "ab" * 6),
        (f"docker.io/library/train@sha256:{'ab' * 32}\n", "@" + "ab" * 6),
        (f"docker-pullable://train@sha256:{'ab' * 32}\n", "@" + "ab" * 6),
        (f"docker://sha256:{'ab' * 32}\n", "ab" * 6),
        (f"a@sha256:{'ab' * 32} b@sha256:{'cd' * 32}\n", ""),
        (f"{'ab' * 32}\n{'cd' * 32}\n", ""),
        ("\n", ""),
        ("docker.io/library/train:latest\n", ""),
        ("`docker inspect -f '{{.Image}}' train`\n", ""),
        ("sha256:12; rm -rf /\n", ""),
    ],
)
def test_what_a_container_was_told(text: str, image: str) -> None:
    assert printed(IMAGE, text) == image
