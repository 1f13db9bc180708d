"""Forms and families in which strangers' logs say what happened: who is named, and what is said."""

from pathlib import Path

import pytest

from doctor.logs.explanation import Explanation, why_unknown
from doctor.logs.forms.complaint import may_complain
from doctor.logs.model import LogOutcome
from doctor.logs.report_json import logs_report
from tests.support.cases import from_cases
from tests.support.fault_logs import concluded, pasted

LOGS = from_cases(__file__, "LOGS", dict[str, dict[str, str]])


@pytest.mark.parametrize("name", LOGS)
def test_what_is_said(name: str, tmp_path: Path) -> None:
    case = LOGS[name]
    found = pasted(tmp_path, case["log"])
    first = found.charges[0] if found.charges else None
    said = (found.outcome.value, first.says if first else "")
    assert said == (case["outcome"], case["says"])
    assert "symptom" not in case or (first and first.symptom == case["symptom"])
    assert "look" not in case or "".join(each.text for each in found.odd) == case["look"]


@pytest.mark.parametrize("name", ["victim", "ranks whose neighbour is gone", "quota"])
def test_who_only_waited_or_was_left_is_not_named(name: str, tmp_path: Path) -> None:
    report = logs_report(Explanation(pasted(tmp_path, LOGS[name]["log"])))
    assert report.exit_code == 1
    assert report.logs.outcome is (LogOutcome.NAMED if name == "quota" else LogOutcome.UNKNOWN)


def test_what_only_passes_an_exception_on_is_not_looked_at(tmp_path: Path) -> None:
    log = LOGS["processes that torch spawned, with a traceback that is cut off"]["log"]
    assert pasted(tmp_path, log).odd == ()


@pytest.mark.parametrize(
    ("last", "says"),
    [
        ("**Killed**", "A program was killed (SIGKILL)"),
        ("[rank3]: 2026-01-09 11:12:00,123 ERROR:", "Something is wrong"),
        ("Aborted", "No rule knows the cause; most telling: Aborted"),
        (
            "2026-03-02 10:11:12.131415: E external/own/pjrt/own_client.cc:2086] replica 0 is gone",
            "No rule knows the cause; most telling: replica 0 is gone",
        ),
    ],
)
def test_what_a_shell_says_of_an_end(last: str, says: str, tmp_path: Path) -> None:
    explained = Explanation(pasted(tmp_path, f"iter 143, loss 0.61\niter 144, loss 0.58\n{last}\n"))
    assert why_unknown(explained).startswith(says)


def test_a_host_key_accuses_no_host_whose_log_it_is(tmp_path: Path) -> None:
    log = tmp_path / "node5.log"
    log.write_text(
        "Host key for node9 has changed and you have requested strict checking.\n"
        "Host key verification failed.\n"
    )
    assert {each.host for each in concluded(log).charges[0].who} == {"node9", None}


def test_an_error_of_glog_with_a_year_may_complain() -> None:
    assert may_complain(b"E20261208 11:52:44.736321 69197 embedding.cpp:96] the operation is null")


def test_a_build_that_could_not_be_configured_is_noticed(tmp_path: Path) -> None:
    error = "CMake Error at CMakeLists.txt:12 (find_package):\n  Could not find a package\n"
    found = pasted(tmp_path, f"-- Performing Test HAVE_FOO - Failed\n{error}")
    assert [each.text.partition(":")[0] for each in found.odd] == ["CMake Error at CMakeLists.txt"]


KERNEL = from_cases(__file__, "KERNEL", list[str])


@pytest.mark.parametrize("line", KERNEL)
def test_what_kernels_say_of_faults_is_noticed(line: str, tmp_path: Path) -> None:
    found = pasted(tmp_path, f"[12345.678901] {line}\n")
    assert found.charges, found.outcome


CALM = from_cases(__file__, "CALM", list[str])


@pytest.mark.parametrize("line", CALM)
def test_what_sound_kernels_say_is_not(line: str, tmp_path: Path) -> None:
    assert not pasted(tmp_path, f"[12345.678901] {line}\n").charges
