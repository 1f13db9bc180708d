"""Which container of a job was made from another image than the others."""

import pytest

from checks.image import IMAGE, Image, digest_differs
from doctor.api import Skip
from tests.support.captures import printed
from tests.support.cases import cases


def told(image: str) -> Image | None:
    name, _, number = image.rpartition(" ")
    return Image(name, number) if number else None


@cases
def test_images(images: dict[str, str], found: list[str]) -> None:
    """Of an image with a space, the first word is its name in the manifest."""
    problems = digest_differs.run({host: told(image) for host, image in images.items()})
    assert [f"{','.join(each.hosts)}: {each.actual} ({each.confidence.value})" for each in problems] == found


def test_hosts_without_containers() -> None:
    with pytest.raises(Skip, match="no container engine"):
        [*digest_differs.run({"a": None, "b": None})]


def test_images_that_are_told_in_two_ways() -> None:
    with pytest.raises(Skip, match="cannot be compared"):
        [*digest_differs.run({"a": Image("", "1" * 12), "b": Image("", "@" + "2" * 12), "c": None})]


def test_each_pod_has_an_image_of_its_own() -> None:
    with pytest.raises(Skip, match="no two"):
        [*digest_differs.run({"a": Image("ray:2", "@" + "1" * 12), "b": Image("ray:2-gpu", "@" + "2" * 12)})]


@pytest.mark.parametrize(
    ("text", "image"),
    [
        (f"sha256:{'ab' * 32}\n", "ab" * 6),
        (f"{'ab' * 32}\n", "ab" * 6),
        (f"docker.io/library/train@sha256:{'ab' * 32}\n", "@" + "ab" * 6),
        (f"docker-pullable://train@sha256:{'ab' * 32}\n", "@" + "ab" * 6),
        (f"docker://sha256:{'ab' * 32}\n", "ab" * 6),
        (f"train:1 docker.io/train@sha256:{'ab' * 32}\n", "train:1 @" + "ab" * 6),
        (f"train:1 init:2 train@sha256:{'ab' * 32} init@sha256:{'cd' * 32}\n", ""),
        ("train:1 train:1\n", ""),
        (f"{'ab' * 32}\n{'cd' * 32}\n", ""),
        ("\n", ""),
        ("docker.io/library/train:latest\n", ""),
        ("`docker inspect -f '{{.Image}}' train`\n", ""),
        ("sha256:12; rm -rf /\n", ""),
    ],
)
def test_what_a_container_was_told(text: str, image: str) -> None:
    name, _, number = image.rpartition(" ")
    assert printed(IMAGE, text) == (Image(name, number) if number else None)
