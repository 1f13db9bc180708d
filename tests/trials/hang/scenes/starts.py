"""Jobs that do not start: launchers of torchrun on three hosts, and no rank anywhere."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from tests.support.cases import from_cases
from tests.support.injob import torchrun_argv
from tests.trials.hang import BEFORE
from tests.trials.hang.scenes.frameworks import job
from tests.trials.hang.scenes.scene import HangScene, ScenePlace, SceneTruth

SIZE = 3
NO_HOST = "198.18.0.99"
CUT = from_cases(__file__, "CUT", str)
Start = Callable[[ScenePlace, int], SceneTruth]


def launch(place: ScenePlace, node: int, *changes: tuple[str, str]) -> None:
    words = torchrun_argv(place.hosts[:SIZE], 1, node, place.port)
    for old, new in changes:
        words = [word.replace(old, new) for word in words]
    place.run(place.hosts[node], [*words, *job("plain")], {})


def rest(place: ScenePlace, *without: int) -> None:
    for node in range(SIZE):
        if node not in without:
            launch(place, node)


def accused(place: ScenePlace, nodes: Sequence[int], says: str) -> SceneTruth:
    return SceneTruth((1,), frozenset(place.hosts[node].name for node in nodes), says=says)


def missing(place: ScenePlace, node: int) -> SceneTruth:
    rest(place, node)
    return accused(place, [node], f"nobody has node rank {node}")


def wrong_address(place: ScenePlace, _: int) -> SceneTruth:
    for node in range(SIZE):
        launch(place, node, (place.hosts[0].address, NO_HOST))
    return accused(place, range(SIZE), "which is not a host of this job")


def another_port(place: ScenePlace, node: int) -> SceneTruth:
    rest(place, node)
    launch(place, node, (str(place.port), str(place.port + 1)))
    return accused(place, [node], f"calls port {place.port + 1}")


def same_number(place: ScenePlace, node: int) -> SceneTruth:
    other = 3 - node  # 1 or 2
    rest(place, node)
    launch(place, node, (f"--node-rank={node}", f"--node-rank={other}"))
    return accused(place, [node, other], f"has node rank {other}")


def no_name(place: ScenePlace, node: int) -> SceneTruth:
    rest(place, node)
    launch(place, node, (place.hosts[0].address, "trainer-0.invalid"))
    return accused(place, [node], "cannot resolve trainer-0.invalid")


def no_answer(place: ScenePlace, node: int) -> SceneTruth:
    place.hosts[node].nft(CUT % place.port)
    rest(place)
    return accused(place, [node], "SYN-SENT")


@contextmanager
def begun(place: ScenePlace, start: Start) -> Iterator[SceneTruth]:
    node = place.lot.randrange(1, SIZE)
    try:
        yield start(place, node)
    finally:
        for host in place.hosts:
            host.sh("nft delete table inet cut")


@contextmanager
def just_starts(place: ScenePlace) -> Iterator[SceneTruth]:
    """All is well, but the others come later: nobody is to be accused at the limit of doctor."""
    launch(place, 0)
    launch(place, 1)
    yield SceneTruth((0, 3), frozenset({place.hosts[2].name}))


@contextmanager
def one_does(place: ScenePlace, fault: str, codes: tuple[int, ...]) -> Iterator[SceneTruth]:
    """All launchers are there and have started their ranks, and one rank does this before it meets the
    others.
    """
    node = place.lot.randrange(1, SIZE)
    for each in range(SIZE):
        words = torchrun_argv(place.hosts[:SIZE], 1, each, place.port)
        env = {"FAULT": fault, "VICTIM": str(node), "AT": str(BEFORE)}
        place.run(place.hosts[each], [*words, *job("plain")], env)
    home = place.hosts[node]
    pid = place.until_hit(home, node)
    named = fault if 1 in codes else ""
    yield SceneTruth(codes, frozenset({home.name}), frozenset({pid}), named, rank=node)


STARTS = {
    "start missing": missing,
    "start address": wrong_address,
    "start port": another_port,
    "start number": same_number,
    "start name": no_name,
    "start no answer": no_answer,
}
SCENES = (
    *(
        HangScene(name, partial(begun, start=start), patience=60.0, size=SIZE)
        for name, start in STARTS.items()
    ),
    HangScene("start sleep", partial(one_does, fault="sleep", codes=(1,)), patience=20.0, size=SIZE),
    *(
        HangScene(f"start {fault}", partial(one_does, fault=fault, codes=(0, 3)), healthy=True, size=SIZE)
        for fault in ("long_import", "upload", "matmul")
    ),
    HangScene("start early", just_starts, limit=600.0, healthy=True, size=SIZE),
)
