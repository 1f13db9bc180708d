"""`doctor accept`: judged by floor, baseline and peers in this order; what nothing judged is no pass."""

import contextlib
import csv
import hashlib
import html
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from doctor import cli
from doctor.report.page.training import BY_SIZE
from doctor.smoke.onhost.sweepplan import TIMED
from tests.support.accept_runs import RATE, Run, accepting, alone, losing, shares, timed
from tests.support.cases import cases
from tests.support.envelopes import wrong
from tests.support.html_page import parsed

CHECK = "accept-slow-link"


def run(*words: str) -> tuple[int, str, str]:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = cli.run(words)
    return code, out.getvalue(), err.getvalue()


def judged(tmp_path: Path, data: Run, *words: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit code, and the findings about links."""
    (tmp_path / "run.json").write_text(json.dumps(data))
    code, out, err = run("accept", "--replay", str(tmp_path / "run.json"), *words, "--json", "-")
    assert out, err
    said = json.loads(out)
    assert wrong(said) == []
    return code, [each for each in said["findings"] if each["check"] in (CHECK, "smoke-slow-link")]


@cases
def test_the_smallest_explanation(
    tmp_path: Path, slow: dict[str, float], floor: str, code: int, told: list[str]
) -> None:
    """Each finding as its status, the culprits, the place, and the summary."""
    given = []
    if floor:
        (tmp_path / "accept.yaml").write_text(f"floors: [{floor}]")
        given = ["--floor", str(tmp_path / "accept.yaml")]
    found = judged(tmp_path, accepting(shares(slow), noise=0.0), *given)
    lines = [f"{f['status']} {','.join(f['hosts'])} {f['subject'] or '-'}: {f['summary']}" for f in found[1]]
    assert (found[0], lines) == (code, told)


@cases
def test_who_loses_what_links_carry(
    tmp_path: Path, lost: dict[str, float], more: dict[str, Any], code: int, told: list[str]
) -> None:
    """Each finding as its culprits, the place, and the summary; `more`: who is slow, and what all lose."""
    run = accepting(shares(more.get("slow", {})), noise=0.0, hosts=more.get("hosts", 4))
    found = judged(tmp_path, losing(run, lost, more.get("usual", 0.0005)))
    known = [each for each in found[1] if each["status"] != "unknown"]
    lines = [f"{','.join(f['hosts'])} {f['subject'] or '-'}: {f['summary']}" for f in known]
    assert (found[0], lines) == (code, told)


@cases
def test_numbers_that_nothing_judged_are_no_pass(
    tmp_path: Path, slow: dict[str, float], noise: float, code: int, why: str
) -> None:
    found = judged(tmp_path, accepting(shares(slow), noise=noise))
    assert found[0] == code
    assert [each["status"] for each in found[1]] == (["unknown"] if why else [])
    assert all(why in each["summary"] for each in found[1])


def test_a_host_that_was_slow_and_then_was_not_is_no_pass(tmp_path: Path) -> None:
    data = accepting(shares({"node2": 0.5}), noise=0.0)
    for told in (told for rank in data["smoke"][0]["ranks"] for told in rank["pairs"]):
        told["bytes"] = int(0.1 * RATE) if told["stage"] > 5 else told["bytes"]
    code, (found,) = judged(tmp_path, data)
    assert (code, found["status"]) == (3, "unknown")
    assert found["summary"] == "node2 carried less than the others, but not each time"


@cases
def test_pairs_that_were_not_measured_are_no_pass(
    tmp_path: Path, way: tuple[str, str], both: bool, turns: int, hosts: list[str]
) -> None:
    """Only so many turns of this way, or of both ways of the pair, came to their end."""
    data = accepting(shares({}))
    names = {seat["rank"]: seat["host"] for seat in data["smoke"][0]["plan"]["seats"]}
    for rank in data["smoke"][0]["ranks"]:
        own = names[rank["rank"]]
        rank["pairs"] = [
            told
            for told in rank["pairs"]
            for ends in [(own, names[told["peer"]])[:: 1 if told["way"] == "out" else -1]]
            if told["stage"] <= turns or not (ends == way or (both and ends == way[::-1]))
        ]
    floor = tmp_path / "accept.yaml"
    floor.write_text("floors: [pair >= 1 Gbit/s]")
    for words in ((), ("--floor", str(floor))):
        code, (found,) = judged(tmp_path, data, *words)
        assert (code, found["status"], found["hosts"]) == (3, "unknown", hosts)


def test_a_floor_that_some_turns_meet_decides_nothing(tmp_path: Path) -> None:
    (tmp_path / "accept.yaml").write_text("floors: [pair >= 8.03 Gbit/s]")
    data = accepting(shares({}), noise=0.04)
    code, (found,) = judged(tmp_path, data, "--floor", str(tmp_path / "accept.yaml"))
    assert (code, found["status"]) == (3, "unknown")
    assert "in most turns, but not in all" in found["summary"]


def test_a_host_that_is_far_away_is_named(tmp_path: Path) -> None:
    _, (found,) = judged(tmp_path, accepting(shares({}), trip="node3"))
    assert (found["check"], found["hosts"]) == ("smoke-slow-link", ["node3"])


def test_a_baseline_judges_what_peers_cannot(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text(json.dumps(accepting(shares({}))))
    good = str(tmp_path / "good.yaml")
    assert run("baseline", str(tmp_path / "good.json"), "--output", good)[0] == 0
    assert judged(tmp_path, accepting(shares({})), "--baseline", good) == (0, [])
    later = accepting(shares({"node1": 0.7, "node2": 0.7, "node3": 0.7}))
    (tmp_path / "run.json").write_text(json.dumps(later))
    code, out, _ = run("accept", "--replay", str(tmp_path / "run.json"), "--baseline", good, "--json", "-")
    worse = [each for each in json.loads(out)["findings"] if each["check"] == "smoke-slower-than-baseline"]
    assert code == 1
    assert {each["status"] for each in worse} == {"fail"}


@cases
def test_what_the_baseline_judges(
    tmp_path: Path, then: dict[str, float], now: dict[str, float], swings: str, code: int, told: list[str]
) -> None:
    """`swings`: what this host sends carries a little or a lot."""
    floor = {"value": 1e8, "text": "pair >= 0.8 Gbit/s"}
    (tmp_path / "good.json").write_text(json.dumps({**accepting(shares(then)), "floor": floor}))
    good = str(tmp_path / "good.yaml")
    assert run("baseline", str(tmp_path / "good.json"), "--output", good)[0] == 0
    data = accepting(shares(now))
    names = {seat["rank"]: seat["host"] for seat in data["smoke"][0]["plan"]["seats"]}
    for rank in data["smoke"][0]["ranks"]:
        for each in rank["pairs"]:
            if names[rank["rank"] if each["way"] == "out" else each["peer"]] == swings:
                each["bytes"] = int(
                    each["bytes"] * (0.02, 0.10, 0.03, 0.06, 0.12, 0.04, 0.08)[each["stage"] - 1]
                )
    (tmp_path / "run.json").write_text(json.dumps(data))
    got, out, _ = run("accept", "--replay", str(tmp_path / "run.json"), "--baseline", good, "--json", "-")
    found = [f"{f['status']} {f['check']} {f['nodeset']}" for f in json.loads(out)["findings"]]
    assert (got, found) == (code, told)


def test_two_hosts_can_have_a_baseline(tmp_path: Path) -> None:
    """Nothing judges the links of the first test of two hosts; it makes what judges those of the next."""
    (tmp_path / "good.json").write_text(json.dumps(accepting(shares({}), noise=1.2)))
    assert judged(tmp_path, accepting(shares({}), noise=1.2))[0] == 3
    code, out, err = run("baseline", str(tmp_path / "good.json"))
    assert (code, err, out.count("kind: cpu-0")) == (0, "", 4)


def test_what_is_undecided_keeps_no_slow_host_in_a_baseline(tmp_path: Path) -> None:
    data = accepting(shares({"node2": 0.3}), noise=0.0)
    data["floor"] = {"value": 7e9 / 8, "text": "pair >= 7 Gbit/s"}
    for rank in data["smoke"][0]["ranks"]:
        for told in rank["pairs"] if rank["rank"] in (4, 6) else ():
            if {rank["rank"], told["peer"]} == {4, 6} and told["stage"] <= 4:
                told["bytes"] = int(told["bytes"] * 0.8)
    assert {each["status"] for each in judged(tmp_path, data)[1]} == {"fail", "unknown"}
    code, out, err = run("baseline", str(tmp_path / "run.json"))
    assert (code, "node2: {" in out, "node2 left out" in err) == (0, False, True)


@cases
def test_a_file_of_floors_that_is_none(tmp_path: Path, text: str, said: list[str]) -> None:
    (tmp_path / "run.json").write_text(json.dumps(accepting(shares({}))))
    (tmp_path / "f.yaml").write_text(text)
    code, out, err = run(
        "accept", "--replay", str(tmp_path / "run.json"), "--floor", str(tmp_path / "f.yaml")
    )
    assert (code, out) == (2, "")
    assert [line for line in said if line not in err] == []


def test_a_floor_in_a_recording_is_judged_again(tmp_path: Path) -> None:
    data = {**accepting(shares({}), noise=0.0), "floor": {"value": 2e9, "text": "pair >= 2 GB/s"}}
    slow = {"name": "inter broadcast 4MB", "value": 2e9, "text": "inter broadcast 4MB >= 2 GB/s"}
    floor = {"value": 0.0, "text": "", "collectives": [slow]}
    assert held(tmp_path, {**timed(data), "floor": floor}, [])[0] == 1
    wrong = {**floor, "collectives": [{**slow, "value": -1.0}]}
    assert run("accept", "--replay", saved(tmp_path, {**data, "floor": wrong}))[0] == 2
    code, (found,) = judged(tmp_path, data)
    assert (code, found["hosts"]) == (1, ["node1", "node2", "node3", "node4"])
    (tmp_path / "run.json").write_text(json.dumps({**data, "floor": {"value": -1.0, "text": "x"}}))
    assert run("accept", "--replay", str(tmp_path / "run.json"))[0] == 2


@cases
def test_who_asks_for_a_judgement_of_links_gets_one(
    tmp_path: Path, recorded: str, words: list[str], floor: bool, code: int
) -> None:
    data = {**accepting(shares({})), "command": recorded, "exam": recorded}
    (tmp_path / "run.json").write_text(json.dumps(data))
    (tmp_path / "accept.yaml").write_text("floors: [pair >= 1 Gbit/s]")
    given = ["--floor", str(tmp_path / "accept.yaml")] if floor else []
    got, _, err = run("accept", "--replay", str(tmp_path / "run.json"), *words, *given)
    assert (got, "judges links" in err) == (code, code == 2)


def saved(tmp_path: Path, data: Run) -> str:
    (tmp_path / "run.json").write_text(json.dumps(data))
    return str(tmp_path / "run.json")


def test_collectives_are_shown_in_every_format(tmp_path: Path) -> None:
    recording = saved(tmp_path, timed(accepting(shares({})), inside={"node3": 0.5}))
    pages = {name: tmp_path / name for name in ("html", "markdown", "csv", "json")}
    files = [word for name, path in pages.items() for word in (f"--{name}", str(path))]
    code, out, _ = run("accept", "--replay", recording, *files)
    assert code == 0
    rows = [line.split() for line in out.splitlines() if line.split()[:1] in (["intra"], ["inter"], ["all"])]
    assert len(rows) == 18
    assert " ".join(rows[0]).startswith("intra all_reduce 4MB 2 (node3) 0.0499 0.108 0.12 0.361")
    assert max(map(len, out.splitlines())) <= 100
    for name in ("html", "markdown"):
        assert "intra all_reduce" in pages[name].read_text().replace("`", "")
    told = json.loads(pages["json"].read_text())["smoke"]["collectives"]
    table = list(csv.DictReader(io.StringIO(pages["csv"].read_text())))
    assert len(told) == len(table) == 6 * 7 * (4 + 1 + 1)
    assert [{k: "" if v is None else str(v) for k, v in each.items()} for each in told] == table
    assert told[0]["host"] == "node1"
    assert all(
        each["algorithm_bytes_per_second"] >= each["bus_bytes_per_second"] or each["ranks"] > 2
        for each in told
    )


def held(tmp_path: Path, data: Run, floors: list[str], *words: str) -> tuple[int, str, list[str]]:
    """The exit code, the page, and what is said about collectives."""
    (tmp_path / "accept.yaml").write_text("floors:\n" + "".join(f"- {each}\n" for each in floors))
    given = ("--floor", str(tmp_path / "accept.yaml"), *words) if floors else words
    report = tmp_path / "report.json"
    code, out, err = run("accept", "--replay", saved(tmp_path, data), *given, "--json", str(report))
    assert out, err
    found = json.loads(report.read_text())["findings"]
    return (
        code,
        out,
        [
            f"{f['status']} {','.join(f['hosts']) or '-'} {f['subject'] or '-'}: {f['summary']}"
            for f in found
            if f["check"] == "accept-slow-collective"
        ],
    )


@cases
def test_floors_of_collectives(
    tmp_path: Path, floors: list[str], inside: dict[str, float], code: int, told: list[str]
) -> None:
    got, out, said = held(tmp_path, timed(accepting(shares({}), noise=0.0), inside=inside), floors)
    assert (got, said) == (code, told)
    assert "No floor judges them" not in out


def test_collectives_without_a_floor_are_shown_and_judged_by_nothing(tmp_path: Path) -> None:
    code, out, said = held(tmp_path, timed(accepting(shares({})), rate=1e3), [])
    assert (code, said) == (0, [])
    assert "No floor judges them (--floor)." in out
    results = json.loads((tmp_path / "report.json").read_text())["results"]
    assert "accept-slow-collective" not in {row["check"] for row in results}


def test_all_ranks_are_the_only_group_of_hosts_with_one_rank(tmp_path: Path) -> None:
    data = timed(accepting(shares({}), noise=0.0))
    for rank in data["smoke"][0]["ranks"]:
        rank["sweep"] = [each for each in rank["sweep"] if each["scope"] == "inter"]
    assert held(tmp_path, data, ["all broadcast 4MB >= 90 MB/s"])[::2] == (0, [])
    assert held(tmp_path, data, ["all broadcast 4MB >= 120 MB/s"])[0] == 1
    assert held(tmp_path, data, ["intra broadcast 4MB >= 1 MB/s"])[0] == 3


def test_a_floor_of_collectives_where_none_was_timed(tmp_path: Path) -> None:
    code, _, (said,) = held(tmp_path, accepting(shares({})), ["inter broadcast 4MB >= 1 MB/s"])
    assert (code, said.partition(": ")[2]) == (
        3,
        "the floor inter broadcast 4MB >= 1 MB/s judged nothing: its size was not reached",
    )


def test_numbers_from_a_hostile_host_are_no_numbers(tmp_path: Path) -> None:
    for field, value in (
        ("bytes", 0),
        ("bytes", 2**31),
        ("ranks", 1),
        ("seconds", [0.0, 1.0, 1.0]),
        ("seconds", [1e-300] * 3),
    ):
        data = timed(accepting(shares({})))
        data["smoke"][0]["ranks"][0]["sweep"][0][field] = value
        assert run("accept", "--replay", saved(tmp_path, data))[0] == 2


def test_html_draws_the_bandwidth_of_collectives_by_size(tmp_path: Path) -> None:
    """One drawing for each place; of those inside hosts, the slowest host."""
    page = tmp_path / "page.html"
    recording = saved(tmp_path, timed(accepting(shares({})), inside={"node2": 0.5}))
    run("accept", "--replay", recording, "--html", str(page))
    figures = [each for each in parsed(page.read_bytes()).all("figure") if "Bus bandwidth" in each.text]
    assert [figure.one("figcaption").text for figure in figures] == [*BY_SIZE.values()]
    for figure, top in zip(figures, ("0.0499", "0.0998", "0.0999"), strict=True):
        curves = figure.all("polyline")
        assert [curve.one("title").text for curve in curves] == [*TIMED]
        assert {len(str(curve.attributes["points"]).split()) for curve in curves} == {7}
        labels = [each.text for each in figure.all("text")]
        assert {"1KB", "64KB", "4MB", "size", top, *TIMED} <= {*labels}
    run("accept", "--replay", recording, "--html", str(page), "--lang", "zh")
    assert "主机之间各集合通信按大小的总线带宽" in page.read_text()
    run("accept", "--replay", saved(tmp_path, accepting(shares({}))), "--html", str(page))
    assert "Bus bandwidth" not in page.read_text()


@pytest.mark.parametrize("number", ["0", "1", "-2", "two", "2.5", ""])
def test_so_many_hosts_do_not_meet(number: str) -> None:
    code, out, said = run("accept", "node[1-4]", "--hosts-at-once", number)
    sentence, advice = said.splitlines()
    assert (code, out, advice.strip()) == (2, "", "Try 'doctor accept -h' for help.")
    assert sentence.startswith("doctor: --hosts-at-once: ")


def test_hosts_at_once_are_of_an_acceptance_test_alone(tmp_path: Path) -> None:
    for command in ("check", "smoke", "preflight"):
        code, _, said = run(command, "node[1-4]", "--hosts-at-once", "2")
        assert (code, "It is an option of doctor accept" in said) == (2, True)
    recording = saved(tmp_path, accepting(shares({})))
    assert run("accept", "--replay", recording, "--hosts-at-once", "2")[0] == 2


@pytest.mark.parametrize(("pairs", "code"), [(1, 1), (-1, 2), (10**7, 2)])
def test_pairs_at_once_of_a_recording(tmp_path: Path, pairs: int, code: int) -> None:
    """A run whose links were measured a pair at a time is judged like any other."""
    data = accepting(shares({"node2>": 0.5}))
    data["smoke"][0]["plan"]["pairs_at_once"] = pairs
    assert run("accept", "--replay", saved(tmp_path, data))[0] == code


def test_two_outputs_for_one_stream_or_file(tmp_path: Path) -> None:
    recording = saved(tmp_path, timed(accepting(shares({}))))
    assert run("accept", "--replay", recording, "--csv", "-")[1].startswith("scope,op,bytes,")
    for words in (("--csv", "-", "--json", "-"), ("--csv", recording), ("--csv", "/nowhere/x.csv")):
        code, out, err = run("accept", "--replay", recording, *words)
        assert (code, out, bool(err)) == (2, "", True), words


@pytest.mark.parametrize("suffix", [".md", ".html"])
def test_a_certificate_says_what_was_measured_on_which_machines(tmp_path: Path, suffix: str) -> None:
    data = timed(accepting(shares({}), noise=0.0))
    floors = ["pair >= 7 Gbit/s", "all all_reduce 4MB >= 90 MB/s", "inter all_gather 1MB >= 150 MB/s"]
    page = tmp_path / f"certificate{suffix}"
    code, _, _ = held(tmp_path, data, [*floors, "intra send_recv 64MB >= 8 MB/s"], "--certificate", str(page))
    told = " ".join(re.sub(r"<[^>]*>|[`|]", " ", html.unescape(page.read_text())).split())
    assert hashlib.sha256((tmp_path / "run.json").read_bytes()).hexdigest() in told
    for said in (
        f"faulty, exit code {code}",
        "pair >= 7 Gbit/s 8.00 Gbit/s met",
        "all all_reduce 4MB >= 90 MB/s 99.9 MB/s met",
        "inter all_gather 1MB >= 150 MB/s 98.7 MB/s below",
        "intra send_recv 64MB >= 8 MB/s - not decided",
        "node4 not read (--sudo)",
        "torch 2.13.0+cpu",
    ):
        assert said in told, said


def test_a_certificate_without_floors_has_no_floor_that_was_met(tmp_path: Path) -> None:
    page = tmp_path / "c.md"
    held(tmp_path, accepting(shares({}), noise=0.0), [], "--certificate", str(page))
    assert "| pair | 8.00 Gbit/s | no floor |" in page.read_text()
    assert "met" not in page.read_text().split()


def test_a_certificate_of_a_floor_whose_check_was_left_out(tmp_path: Path) -> None:
    page, data = tmp_path / "c.md", timed(accepting(shares({}), noise=0.0))
    words = ("--certificate", str(page), "--skip", "accept-slow-collective")
    held(tmp_path, data, ["inter all_gather 1MB >= 150 MB/s"], *words)
    assert "| inter `all_gather` 1MB >= 150 MB/s | 98.7 MB/s | not decided |" in page.read_text()


@pytest.mark.parametrize(
    ("path", "said"), [("/nowhere/c.md", "cannot be written"), ("run.json", "same file")]
)
def test_a_certificate_that_cannot_be_written_is_told_before_the_run(
    tmp_path: Path, path: str, said: str
) -> None:
    recording = saved(tmp_path, timed(accepting(shares({}))))
    code, out, err = run("accept", "--replay", recording, "--certificate", str(tmp_path / path))
    assert (code, out, said in err) == (2, "", True)


def test_a_certificate_needs_a_recording(tmp_path: Path) -> None:
    for more in ((), ("--save", "/dev/null")):
        code, out, err = run("accept", "--local", "--certificate", str(tmp_path / "c.md"), *more)
        assert (code, out, "names the recording" in err) == (2, "", True)


def test_other_commands_measure_no_pairs(tmp_path: Path) -> None:
    data = {**accepting(shares({"node2": 0.1})), "command": "preflight", "exam": "preflight"}
    (tmp_path / "run.json").write_text(json.dumps(data))
    _, out, _ = run("preflight", "--replay", str(tmp_path / "run.json"), "--json", "-")
    assert CHECK not in {row["check"] for row in json.loads(out)["results"]}


def of_host(tmp_path: Path, data: Run, *floors: str) -> tuple[int, list[str]]:
    """The exit code, and what is said of what hosts do alone."""
    code, out, _ = held(tmp_path, data, list(floors))
    assert "alone" in out
    found = json.loads((tmp_path / "report.json").read_text())["findings"]
    return code, [
        f"{f['status']} {','.join(f['hosts'])}: {f['summary']}"
        for f in found
        if f["check"] == "accept-slow-host"
    ]


@cases
def test_what_a_host_does_alone(
    tmp_path: Path,
    slow: dict[str, float],
    more: dict[str, Any],
    floors: list[str],
    code: int,
    told: list[str],
) -> None:
    assert of_host(tmp_path, alone(accepting(shares({})), slow, **more), *floors) == (code, told)


def test_two_hosts_have_no_peers_and_a_folder_may_be_closed(tmp_path: Path) -> None:
    data = alone(accepting(shares({})), {})
    for rank in data["smoke"][0]["ranks"][4:]:
        rank["alone"] = []
    assert of_host(tmp_path, data)[1] == []
    results = json.loads((tmp_path / "report.json").read_text())["results"]
    (row,) = (row for row in results if row["check"] == "accept-slow-host")
    assert (row["status"], row["reason"][:29]) == ("skip", "fewer than three hosts have n")
    data = alone(accepting(shares({})), {})
    closed = {"ev": "alone", "what": "write", "folder": "/data", "rates": [], "why": "Read-only file system"}
    data["smoke"][0]["ranks"][2]["alone"] = [closed]
    code, (told,) = of_host(tmp_path, data)
    assert (code, told) == (1, "fail node2: nothing can be stored in /data: Read-only file system")


def test_what_hosts_do_alone_is_in_the_json_and_on_the_certificate(tmp_path: Path) -> None:
    data, page = alone(accepting(shares({}), noise=0.0), {"node2 copy": 0.5}), tmp_path / "certificate.md"
    floors = ["host copy >= 15 GB/s", "host write /data >= 300 MB/s", "host read /other >= 1 MB/s"]
    code, out, _ = held(tmp_path, data, floors, "--certificate", str(page))
    told = json.loads((tmp_path / "report.json").read_text())["smoke"]["alone"]
    assert (code, len(told), told[0]["host"], told[-1]["what"]) == (1, 2 * 8 + 3 * 4 + 8, "node1", "dns")
    text = " ".join(re.sub(r"[`|]", " ", page.read_text()).split())
    for said in (
        "host copy >= 15 GB/s 9.93 GB/s below",
        "host write /data >= 300 MB/s 397 MB/s met",
        "host read /other >= 1 MB/s - not decided",
    ):
        assert said in text
    (least,) = (line for line in out.splitlines() if line.split()[:1] == ["copy"])
    assert (len(least) <= 100, least.split()[1:4]) == (True, ["9.93", "GB/s", "node2"])


def test_a_host_that_the_repeated_run_lacks_is_still_judged(tmp_path: Path) -> None:
    data = alone(accepting(shares({})), {"node2 matmul": 0.25})
    repeated = alone(accepting(shares({})), {})["smoke"][0]
    code, (told,) = of_host(tmp_path, {**data, "smoke": [*data["smoke"], repeated]})
    assert (code, told) == (1, "fail node2: matmul: 24.9 GFLOP/s, 25% of 99.9 GFLOP/s")
