"""The command that enters a container, and what it tells the container about its image."""

import pytest

from doctor.model import Host
from doctor.transport.containers.command import entered_with_image


@pytest.mark.parametrize(
    ("enter", "engine", "name"),
    [
        ("docker exec -i train", "docker", "train"),
        ("sudo -n docker exec -i train-{host}", "sudo -n docker", "train-node1"),
        ("/usr/bin/podman exec -i -u 0 train", "/usr/bin/podman", "train"),
    ],
)
def test_an_engine_is_asked_for_the_image(enter: str, engine: str, name: str) -> None:
    command = entered_with_image(Host("node1", "node1", enter=enter))
    image = f"`{engine} inspect -f '{{{{.Image}}}}' {name} 2>/dev/null`"
    before, _, after = enter.replace("{host}", "node1").partition(" exec ")
    assert command == f'{before} exec -e "CLUSTER_DOCTOR_IMAGE={image}" {after}'


@pytest.mark.parametrize(
    "enter",
    [
        "docker compose exec -T train",
        "docker --context far exec -i train",
        "docker exec -i 'two words'",
        "docker exec -i train chroot /mnt",
        "kubectl exec -i train --",
        "apptainer exec /images/train.sif",
        "crictl exec -i 1f73f2d81bf98",
        "nsenter -t 4711 -m",
        "sh -c 'mount /x; exec \"$@\"' sh",
        "sh -c 'cd /; docker exec -i train'",
    ],
)
def test_what_is_entered_as_it_was_typed(enter: str) -> None:
    assert entered_with_image(Host("node1", "node1", enter=enter)) == enter
