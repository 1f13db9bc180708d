"""Containers of a job that were made from different images."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from doctor.api import (
    Capture,
    Confidence,
    Damage,
    Evidence,
    Fact,
    Problem,
    Run,
    Scope,
    Severity,
    Skip,
    check,
    fold,
    maybe,
)
from doctor.rules.machines import votes_of

SHOWN = 12


class Image(NamedTuple):
    name: str
    number: str


def _image(capture: Capture) -> Image | None:
    """The name in the manifest of a pod, and the number of its content or, after `@`, in a registry."""
    form = r"(?:(\S+) )?(?:docker://|\S+(@))?(?:sha256:)?([0-9a-f]{12,64})"
    found = re.fullmatch(form, capture.stdout.strip())
    return Image(found[1] or "", f"{found[2] or ''}{found[3][:SHOWN]}") if found else None


IMAGE = Fact("image", Run('printf "%s\\n" "$CLUSTER_DOCTOR_IMAGE"'), _image)
"""The image of the container that is entered, as its engine or cluster tells it; None if it tells none."""


@check(
    "digest-differs",
    maybe(IMAGE),
    damage=Damage.RISK,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    several_hosts=True,
)
def digest_differs(images: Mapping[str, Image | None]) -> Iterator[Problem]:
    """The containers of the job were made from different images.

    Why it matters: one host kept an older image under the same name (`latest`, `train`): its ranks run other
    code and other libraries than the rest, and nothing in the launch shows it.

    How it is known: the engine is asked on each host for the image of the container that `--enter` names (not
    crictl); the cluster, for the image of each pod. Pods whose manifests name different images are not
    compared, as the head and the workers of Ray. The number is that of the image's content, or of its
    manifest in the registry; its name does not count. Files of apptainer are not compared.

    What to do: pull the image on the hosts that differ, and start their containers anew. In a cluster, name
    the image by its digest, or have it pulled each time (`imagePullPolicy: Always`).
    """
    named: dict[str, dict[str, str]] = {}
    for host, image in images.items():
        if image:
            named.setdefault(image.name, {})[host] = image.number
    if not named:
        raise Skip("no container engine tells an image")
    if any(len({number[0] == "@" for number in known.values()}) > 1 for known in named.values()):
        raise Skip("some images are told by their content, others by their registry: they cannot be compared")
    if max(map(len, named.values())) < 2:
        raise Skip("no two of the containers were to be made from the same image")
    for known in named.values():
        yield from _among(known)


def _among(known: Mapping[str, str]) -> Iterator[Problem]:
    """Of hosts whose containers were to be made from the same image."""
    votes, tie = votes_of(known)
    if tie:
        sides = "; ".join(f"{image} on {fold(hosts)}" for image, hosts in votes)
        summary, same = "the containers were made from different images", "the same image on all hosts"
        yield _made(summary, same, sides, known, Confidence.SUSPECT)
        return
    for image, odd in votes[1:]:
        usual = f"{votes[0][0]}, as on {len(votes[0][1])} hosts"
        yield _made("its container was made from another image", usual, image, odd, Confidence.STRONG)


def _made(summary: str, expected: str, actual: str, hosts: Iterable[str], sure: Confidence) -> Problem:
    if "@" in actual:
        source = "kubectl get pod -o jsonpath={.status.containerStatuses[*].imageID}"
        commands: tuple[str, ...] = (
            "# Name the image by its digest, or set imagePullPolicy: Always, and start the pods anew.",
        )
    else:
        source = "docker inspect -f {{.Image}}"
        again = "# Pull the image of the others, and start the container anew."
        commands = ("docker images --digests", again)
    return Problem(
        summary,
        expected=expected.replace("@", ""),
        actual=actual.replace("@", ""),
        hosts=tuple(hosts),
        confidence=sure,
        evidence=(Evidence(source, actual),),
        commands=commands,
    )
