"""A file of py-spy's record mode as counts of equal stacks."""

from typing import Any

from doctor.slow.onhost.record import PARTS, profile

FRAMES = [{"name": "thread (0x7)"}, {"name": "train"}, {"name": "load"}, {"name": "read"}]


def recorded(**samples: list[list[int]]) -> dict[str, Any]:
    profiles = [{"name": name, "samples": stacks} for name, stacks in samples.items()]
    return profile({"shared": {"frames": FRAMES}, "profiles": profiles}, 5)


def test_the_samples_of_the_main_thread_are_counted_apart() -> None:
    found = recorded(MainThread=[[0, 1]] * PARTS, loader=[[0, 2, 3]] * 3 * PARTS)
    assert (found["pid"], found["samples"], found["main"]) == (5, 3 * PARTS, [1] * PARTS)
    names = [each["name"] for each in found["frames"]]
    told = [(each["main"], [names[n] for n in each["frames"]], each["counts"]) for each in found["stacks"]]
    assert told == [(False, ["read", "load"], [3] * PARTS), (True, ["train"], [1] * PARTS)]


def test_a_stack_of_a_part_of_the_time() -> None:
    found = recorded(MainThread=[[1]] * 4 + [[2]] * 4)
    assert found["main"] == [1] * PARTS
    assert [each["counts"] for each in found["stacks"]] == [
        [1, 1, 1, 1, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 1, 1, 1],
    ]
