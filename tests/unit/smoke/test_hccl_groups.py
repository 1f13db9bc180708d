"""Every group of every layout, compared with the groups that HCCL forms; and the types that all devices of a
run add up.
"""

from itertools import combinations

import pytest

from doctor.job.hccl import REDUCED, forms_group, reduced
from doctor.model import Backend
from doctor.smoke.onhost.collectiveplan import trials
from doctor.smoke.plan import HostDevices, NoGroup, SmokeWishes, plan_smoke
from doctor.smoke.result import SmokePlan
from tests.unit.smoke.test_plan import hosts, job

TRAINING = "atlas-training"
CHOICES = [
    *[(device,) for device in range(8)],
    *combinations(range(4), 2),
    *combinations(range(4, 8), 2),
    (0, 1, 2, 3),
    (4, 5, 6, 7),
    tuple(range(8)),
]
"""The devices that a server of an Atlas training job can have."""


def plan_on(
    product: str, count: int, devices: tuple[int, ...], tp: int | None = None, steps: int = 3
) -> SmokePlan:
    names = hosts(count, len(devices))
    known = {name: HostDevices(product, devices, devices) for name in names}
    return plan_smoke(job(names, Backend.HCCL), list(names), SmokeWishes(tp=tp, steps=steps), known)


def groups_of(plan: SmokePlan) -> list[list[set[int]]]:
    """For each group that a rank joins or enters: the devices, a set for each host."""
    found = []
    for number, cell in enumerate(plan.cells):
        shape = plan.shape(number)
        for place in range(shape.world):
            for name in shape.groups:
                chosen: dict[str, set[int]] = {}
                for member in shape.members(name, place):
                    seat = plan.seat(cell[member])
                    assert seat.device is not None
                    chosen.setdefault(seat.host, set()).add(seat.device)
                found.append(list(chosen.values()))
    return found


def may_be_created(devices: list[set[int]]) -> bool:
    """The manual of create_group for Atlas training: the same number of NPUs on each server, 1, 2, 4 or 8;
    groups of 2 or 4 all in one cluster, which is NPUs 0-3 or 4-7.
    """
    sizes = {len(chosen) for chosen in devices}
    if len(sizes) > 1 or not sizes <= {1, 2, 4, 8}:
        return False
    return all(len(chosen) in (1, 8) or max(chosen) < 4 or min(chosen) > 3 for chosen in devices)


@pytest.mark.parametrize("tp", [None, 1, 2, 4])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 9])
def test_hccl_forms_every_group_of_every_layout_on_atlas_training(count: int, tp: int | None) -> None:
    for devices in CHOICES:
        if tp is None or len(devices) % tp == 0:
            groups = groups_of(plan_on(TRAINING, count, devices, tp))
            assert groups
            assert all(map(may_be_created, groups)), (devices, tp)


@pytest.mark.parametrize("product", ["atlas-a2", "atlas-a3"])
@pytest.mark.parametrize("count", [1, 2])
def test_the_other_products_keep_groups_of_replicas(product: str, count: int) -> None:
    plan = plan_on(product, count, tuple(range(8)))
    assert not plan.dp_in_world
    assert "dp" in plan.shape(0).groups


def test_replicas_within_a_ring_keep_their_groups() -> None:
    assert not plan_on(TRAINING, 2, (4, 5, 6, 7)).dp_in_world
    assert plan_on(TRAINING, 1, tuple(range(8))).dp_in_world


def test_devices_of_an_unknown_product_are_laid_out_for_all_products() -> None:
    plan = plan_on("ascend", 1, tuple(range(8)))
    assert all(map(may_be_created, groups_of(plan)))
    assert set(plan.dtypes) == set.intersection(*map(set, REDUCED.values()))
    assert plan_on("ascend", 1, (0, 1, 2)).seats, "it may be a product that forms this group"


@pytest.mark.parametrize("devices", [(3, 4), (0, 1, 4, 5), (0, 1, 2), tuple(range(7))])
def test_a_world_that_hccl_does_not_form_is_refused_with_its_devices(devices: tuple[int, ...]) -> None:
    with pytest.raises(NoGroup, match=r"HCCL cannot form a group of NPUs .* of node1"):
        plan_on(TRAINING, 1, devices)


def test_hosts_with_different_counts_are_refused_on_atlas_training() -> None:
    names = {"node1": 8, "node2": 4}
    known = {n: HostDevices(TRAINING, tuple(range(c)), tuple(range(c))) for n, c in names.items()}
    with pytest.raises(NoGroup):
        plan_smoke(job(names, Backend.HCCL), list(names), SmokeWishes(), known)


@pytest.mark.parametrize("product", REDUCED)
def test_only_types_that_the_product_adds_up_are_tried(product: str) -> None:
    plan = plan_on(product, 1, (0, 1, 2, 3))
    used = {trial.dtype for trial in trials(plan.shape(0), 0)}
    assert used <= set(REDUCED[product])
    assert ("bfloat16" in used, "int16" in used) == (product != TRAINING, product != TRAINING)


def test_a_mixed_run_uses_what_all_its_products_add_up() -> None:
    assert set(reduced([TRAINING, "atlas-a2"])) == set(REDUCED[TRAINING])
    assert not forms_group([TRAINING, "atlas-a2"], [{0, 2, 4, 6}])


def test_ranks_use_the_devices_of_the_job() -> None:
    names = hosts(1, 2)
    known = {"node1": HostDevices("atlas-a2", (5, 7), (1, 3))}
    plan = plan_smoke(job(names, Backend.HCCL), list(names), SmokeWishes(), known)
    assert [(seat.device, seat.index) for seat in plan.seats] == [(5, 1), (7, 3)]
