"""Faults that differ only in their numbers are one on the screen; the JSON keeps each of them."""

from dataclasses import replace

from doctor.model import Finding, Place
from doctor.report.page.fault import fold_faults
from doctor.transport.way import Way
from tests.support.envelopes import as_data
from tests.support.reports import reports, text
from tests.unit.report.test_headline import finding


def test_64_hosts_with_one_fault_fill_no_more_than_a_screen() -> None:
    made = reports()["sixty-four-servers"]
    shown = text(made, 80)
    assert len(shown.splitlines()) <= 24
    assert shown.count("shm-small") == 4, "as an id, in the table, to be fixed first, and to look it up"
    assert "found      50 MB (node[1-" in shown
    assert " … 54 MB (node" in shown
    assert "64 of 64 hosts are faulty: memory (64)." in shown
    assert len([found for found in as_data(made)["findings"] if found["check"] == "shm-small"]) > 1


def test_verbose_shows_each_by_itself() -> None:
    assert text(reports()["sixty-four-servers"], 80, verbose=True).count("certainty ") > 1


def several(*summaries: str, **values: str) -> tuple[Finding, ...]:
    return tuple(
        finding(
            summary=summary,
            **values,
            id=f"f{number}",
            hosts=(f"node{number}",),
            where=(Place(f"node{number}"),),
        )
        for number, summary in enumerate(summaries, 1)
    )


def test_a_title_spans_numbers_that_differ() -> None:
    (fault,) = fold_faults(
        several("its clock is 12 s ahead", "its clock is 3 s ahead", "its clock is 9 s ahead")
    )
    assert fault.title == "clock is 3…12 s ahead"
    assert fault.first.nodeset == "node[1-3]"


def test_names_and_other_words_keep_faults_apart() -> None:
    assert len(fold_faults(several("node1 resolves to nothing", "node2 resolves to nothing"))) == 2
    assert len(fold_faults(several("swap is in use", "swap is slow"))) == 2
    assert len(fold_faults(several("10.0.0.1 is taken", "10.0.0.2 is taken"))) == 2


def test_a_few_values_are_all_shown() -> None:
    first, second = several("it is full", "it is full")
    (fault,) = fold_faults((replace(first, actual="64 MB"), replace(second, actual="50 MB")))
    assert fault.found == "64 MB (node1), 50 MB (node2)"


def test_of_many_values_the_least_and_the_largest_are_shown_by_what_they_are() -> None:
    found = ("1.5 GB", "512 MB", "900 kB", "2 GB")
    many = several(*("it is small" for _ in found))
    (fault,) = fold_faults([replace(each, actual=text) for each, text in zip(many, found, strict=True)])
    assert fault.found == "900 kB (node3) … 2 GB (node4)"


def test_one_command_makes_the_check_again_on_all_its_hosts() -> None:
    made = reports()["sixty-four-servers"]
    assert "verify" not in text(made, 80), "nothing says how its hosts were reached"
    reached = replace(made, run=replace(made.run, way=Way(reached=(("--user", "trainee"),))))
    (line,) = (line for line in text(reached, 80).splitlines() if "verify" in line)
    assert line == "      verify     doctor check 'node[1-64]' --only shm-small --user trainee"
    assert len(text(reached, 80).splitlines()) <= 24
