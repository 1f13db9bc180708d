"""Which area of the report each check belongs to."""

from doctor.judge.fact_table import COLUMNS
from doctor.judge.registry import find_checks
from doctor.report.page.areas import AREAS, area_of
from tests.support.cases import cases
from tests.support.each import each


@each("id", [check.id for check in find_checks().checks])
def test_every_bundled_check_has_an_area(id: str) -> None:
    assert area_of(id) in AREAS


@cases
def test_area(id: str, area: str) -> None:
    assert area_of(id) == area


def test_no_area_is_left_without_a_check() -> None:
    assert {area_of(check.id) for check in find_checks().checks} == set(AREAS)


def test_the_facts_use_the_same_areas_in_the_same_order() -> None:
    places = [AREAS.index(column.area) for column in COLUMNS]
    assert places == sorted(places)
