"""Suggested commands reach the same hosts as the run, and a recording cannot add a command of its own."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import typer

from doctor import cli
from doctor.cli import app
from doctor.exam.request import HostFlags, Request
from doctor.exam.way import ASKED, NAMED, REACHED, retyped, way_of, way_to
from doctor.job.wishes import SLURM, JobWishes
from doctor.judge.verdict import Report
from doctor.model import Finding, Host, SourcedValue, Status
from doctor.probe import HostAnswer
from doctor.report.page.rerun import again, for_the_rest, repeat, verify
from doctor.targets.inventory import read_targets
from doctor.text.option import options
from doctor.transport.way import _FORMS, Way, read_back
from tests.support.cases import cases
from tests.support.printed import misread
from tests.support.recordings import heard, recording
from tests.support.reports import NAMES, SMALL_SHM, report


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """The requests of the command lines that are run; nothing is carried out."""
    requests: list[Request] = []

    def keep(request: Request) -> int:
        requests.append(request)
        return 0

    monkeypatch.setattr("doctor.exam.examination.run_and_report", keep)
    return requests


def way(requests: list[Request], line: str, environ: dict[str, str] | None = None) -> Way:
    """The way that a command line leaves in its recording."""
    assert cli.run(shlex.split(line)) == 0
    who = requests[-1].who
    targets = read_targets(
        who.hosts, who.hostfile, who.inventory, who.local, who.exclude, environ or {}, who.rank_table
    )
    return way_of(requests[-1], targets, "local" if targets.local else "ssh")


def sick(over: Way | None, **more: object) -> Report:
    """Four hosts, one with a small /dev/shm."""
    seen = {"node2": heard(2, NAMES, spaces=SMALL_SHM)}
    return report(replace(recording(NAMES, heard=seen), way=over, **more))  # type: ignore[arg-type]


def finding(of: Report, check: str = "shm-small") -> Finding:
    (found,) = (each for each in of.findings if each.check == check)
    return found


def test_what_srun_reached_is_reached_from_outside_the_allocation(typed: list[Request]) -> None:
    """Wherever the report is read: a login node has no variables of the job."""
    assert cli.run(["check", "node[1-4]"]) == 0
    targets = read_targets(("node[1-4]",), None, None, False, (), {})
    over = way_of(typed[-1], targets, "srun", {"SLURM_JOB_ID": "7"})
    seen = sick(over)
    for line in (verify(seen, finding(seen)), again(seen, "hang"), again(seen, "slow"), again(seen, "logs")):
        assert line.startswith("SLURM_JOB_ID=7 doctor "), line
        assert line.endswith(" --transport srun")
    make = again(seen, "ranktable make")
    assert (make.startswith("SLURM_JOB_ID=7 "), make.endswith(" --transport srun")) == (True, True)
    assert read_back(over).slurm_job == "7"
    assert not read_back(replace(over, slurm_job="7; rm -rf x")).slurm_job
    by_ssh = way_of(typed[-1], targets, "ssh", {"SLURM_JOB_ID": "7"})
    assert again(sick(by_ssh), "hang").startswith("doctor hang ")


def test_all_options_that_reach_the_hosts_are_repeated(typed: list[Request], tmp_path: Path) -> None:
    config, key, python = tmp_path / "my config", tmp_path / "key", "/opt/train/bin/python"
    config.write_text("")
    found = way(
        typed,
        f"preflight 'node[1-4]' --ssh-config '{config}' --user root --port 2222 -i {key} -J a,b@c:22 --sudo "
        f"--python {python} --enter 'docker exec -i train' --accept-new --fanout 3 --json x -v",
    )
    line = again(sick(found), "check", "--only", "device-*", hosts=["node2", "node3"])
    assert line == (
        f"doctor check 'node[2-3]' --only 'device-*' --user root --port 2222 --identity {key} "
        f"--jump a,b@c:22 --ssh-config '{config}' --enter 'docker exec -i train' --python {python} --sudo "
        "--fanout 3"
    )


def test_this_machine_is_named_by_its_option(typed: list[Request]) -> None:
    for line in ("check --local", "check"):
        assert again(sick(way(typed, line)), "smoke", hosts=["node2"]) == "doctor smoke --local"


def test_files_are_named_by_their_whole_path(
    typed: list[Request], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hosts").write_text("node1\nnode2\nnode3\nnode4\n")
    Path("inv.yaml").write_text("hosts:\n  node[1-4]: {user: root}\n")
    Path("conf").write_text("")
    found = sick(way(typed, "check -F hosts --inventory inv.yaml --ssh-config conf"))
    rest = f"--inventory {tmp_path}/inv.yaml --ssh-config {tmp_path}/conf"
    assert again(found, "check") == f"doctor check --hostfile {tmp_path}/hosts {rest}"
    assert again(found, "check", hosts=["node2"]) == f"doctor check node2 {rest}"


@pytest.mark.parametrize("command", ["check", "smoke", "preflight", "facts", "ranktable make"])
def test_each_command_takes_what_is_repeated(command: str) -> None:
    """Every option that is recorded, in every command that reaches hosts."""
    whole = typer.main.get_command(app)
    for name in command.split():
        whole = whole.commands[name]  # type: ignore[attr-defined]
    known = {name for each in whole.params for name in each.opts}
    every = tuple((name, "x") for name in (*NAMED, *REACHED, *ASKED) if name not in ("--local", "--in-job"))
    line = Way(every, every, every).typed(command, NAMES, whole=True, job=True)
    assert {word for word in line.split() if word.startswith("--")} <= known


NOT_REPEATED = (
    *("HOSTS", "--job", "--accept-new", "--deadline", "--trace", "--inject", "--replay"),
    *("--color", "--no-color", "--print", "--quiet", "--verbose"),
    *("--save", "--report-dir", "--per-host", "--shadow", "--healthy-hosts", "--faulty-hosts"),
    *("--json", "--junit", "--html", "--markdown", "--prometheus"),
)
"""Hosts are written as they are chosen; the others say how a run is shown or kept, or are for one run."""


def test_every_option_is_repeated_unless_it_is_for_one_run() -> None:
    assert {each.name for each, _ in options(Request)} == {*NAMED, *REACHED, *ASKED, *NOT_REPEATED}
    assert {*NAMED, *REACHED, *ASKED} - {*_FORMS} == {"--checks"}


def test_a_user_in_front_of_a_host_stays_there(typed: list[Request]) -> None:
    found = sick(way(typed, "check root@node[1-3] node4"))
    assert again(found, "check") == "doctor check 'root@node[1-3],node4'"
    assert again(found, "check", hosts=["node2"]) == "doctor check root@node2"


def test_the_order_of_ranks_is_kept() -> None:
    assert Way().typed("check", ["node3", "node1"]) == "doctor check node3,node1"
    assert Way().typed("check", ["node3", "node4"]) == "doctor check 'node[3-4]'"
    bobs = Way(users={"node2": "bob"})
    assert bobs.typed("check", ["node1", "node2", "node3"]) == "doctor check node1,bob@node2,node3"


def test_what_a_job_was_asked_is_typed_outside_of_it() -> None:
    asked = Way(asked=(("--backend", "gloo"), ("--in-job",)))
    assert asked.typed("check", ["node1"], job=True) == "doctor check node1 --backend gloo"


def test_the_hosts_that_had_not_answered_get_the_same_examination() -> None:
    asked = Way(asked=(("--exam", "full"), ("--need-hosts", "3")), reached=(("--sudo",),))
    whole = sick(asked)
    left = replace(whole, run=replace(whole.run, outstanding=("node3", "node4")))
    assert for_the_rest(left) == f"doctor {left.run.command} 'node[3-4]' --exam full --sudo"


@cases
def test_the_whole_run_is_repeated_as_it_was_asked_for(typed: list[Request], line: str) -> None:
    found = way(typed, line)
    shown = repeat(sick(found, command=line.split()[0]))
    asked = typed[-1]
    assert way(typed, shown.removeprefix("doctor ")) == found
    assert typed[-1] == replace(asked, who=replace(asked.who, hosts=("node[1-4]",)))


def test_a_check_is_verified_with_what_was_asked_of_the_job(typed: list[Request]) -> None:
    found = sick(way(typed, "preflight 'node[1-4]' --sudo --backend gloo --need-hosts 3 --steps 40"))
    small = finding(found)
    assert verify(found, small) == "doctor check node2 --only shm-small --backend gloo --sudo"
    assert verify(found, replace(small, check="port-unreachable")) == (
        "doctor check 'node[1-4]' --only port-unreachable --backend gloo --sudo"
    )
    assert verify(found, replace(small, check="accept-soak")) == (
        "doctor accept 'node[1-4]' --for 10m --backend gloo --steps 40 --sudo"
    )
    assert verify(found, replace(small, check="smoke-hang")) == (
        "doctor smoke 'node[1-4]' --backend gloo --steps 40 --sudo"
    )


def test_a_host_that_was_misspelt_is_verified_by_its_name(typed: list[Request]) -> None:
    found = sick(way(typed, "check node1,nodd2,node3"))
    wrong = replace(finding(found), check="host-unreachable", hosts=("node2",))
    meant = verify(found, replace(wrong, summary="No such name. Did you mean node3?"))
    assert meant == "doctor check 'node[1,3-4]' --only host-unreachable"
    assert verify(found, wrong) == "doctor check 'node[1-4]' --only host-unreachable"


def test_a_slow_link_is_verified_by_another_acceptance(typed: list[Request]) -> None:
    """But for one that is below a floor, whose file is not known."""
    found = sick(way(typed, "accept 'node[1-4]'"), command="accept", exam="accept")
    slow = replace(finding(found), check="accept-slow-link")
    assert verify(found, slow) == "doctor accept 'node[1-4]'"
    assert verify(found, replace(slow, summary="it carries 1 Gbit/s at most; the floor is 9 Gbit/s")) == ""
    assert misread(verify(found, replace(slow, check="shm-small"))) == ""


def test_folders_and_hosts_at_once_are_those_of_another_acceptance_alone(typed: list[Request]) -> None:
    """Without its folder, a check of /scratch would pass whatever is wrong with it."""
    own = "--path /scratch --path /data --hosts-at-once 2"
    found = sick(way(typed, f"accept 'node[1-4]' {own}"), command="accept", exam="accept")
    slow = replace(finding(found), check="accept-slow-host")
    assert verify(found, slow) == repeat(found) == f"doctor accept 'node[1-4]' {own}"
    assert verify(found, replace(slow, check="shm-small")).startswith("doctor check node2 --only shm-small")
    assert "--path" not in verify(found, replace(slow, check="shm-small"))
    assert read_back(found.run.way or Way()) == found.run.way


def test_a_warning_is_verified_strictly(typed: list[Request]) -> None:
    """Otherwise the command would succeed while the warning is still there."""
    found = sick(way(typed, "check 'node[1-4]'"))
    small = finding(found)
    warned = replace(small, status=Status.WARN)
    assert verify(found, warned) == "doctor check node2 --only shm-small --strict"
    assert verify(found, replace(warned, check="smoke-straggler")) == "doctor smoke 'node[1-4]' --strict"


def killed(age: float) -> dict[str, HostAnswer]:
    log = f"uptime 90000.0\n[{90000 - age:.6f}] Out of memory: Killed process 7 (python) total-vm:1kB\n"
    return {"node2": heard(2, NAMES, kernel_log=log)}


def test_what_the_kernel_logged_is_verified_by_what_it_logs_from_then_on(typed: list[Request]) -> None:
    """No repair takes a line out of the log: the command could not pass for a day."""
    over = way(typed, "check 'node[1-4]' --expect kernel_log_hours=48")
    made = report(replace(recording(NAMES, heard=killed(3000.0)), way=over))
    found = finding(made, "kernel-log")
    line = verify(made, found)
    assert line == (
        "doctor check 'node[1-4]' --only kernel-log --strict"
        " --expect kernel_log_hours=48 --expect kernel_log_since=2026-11-20T09:00:02Z"
    )
    over = way(typed, line.removeprefix("doctor "))
    expect = dict(each.split("=", 1) for each in typed[-1].what.expect)
    for age, there in ((2274.0, False), (2272.0, True)):  # its answer is of 09:37:55
        seen = report(replace(recording(NAMES, heard=killed(age)), expect=expect), strict=True)
        assert any(each.check == "kernel-log" for each in seen.findings) is there
    later = report(replace(recording(NAMES, heard=killed(3000.0)), way=over, started="2026-11-20T11:00:00Z"))
    assert verify(later, found).count("kernel_log_since") == 1


def test_torch_is_expected_again_if_the_run_trained(typed: list[Request]) -> None:
    found = sick(way(typed, "preflight 'node[1-4]' --expect shm_mb=1"))
    small = finding(found)
    assert verify(found, replace(small, check="torch-missing")) == (
        "doctor check 'node[1-4]' --only torch-missing --expect shm_mb=1 --expect torch=any"
    )


def test_a_number_of_ranks_that_a_file_of_all_hosts_gives_is_not_known_of_one(
    typed: list[Request], tmp_path: Path
) -> None:
    file = tmp_path / "hosts"
    file.write_text("".join(f"{name} slots=64\n" for name in NAMES))
    hosts = tuple(replace(host, ranks=64) for host in recording(NAMES).hosts)
    found = sick(way(typed, f"check -F {file}"), hosts=hosts)
    small = finding(found)
    assert verify(found, small) == f"doctor check --only shm-small --hostfile {file}"


def test_the_ranks_that_only_the_scheduler_gave_are_typed(typed: list[Request]) -> None:
    """A command that names the hosts does not ask Slurm."""
    eight = JobWishes(ranks_per_host=SourcedValue(8, SLURM))
    found = sick(way(typed, "check 'node[1-4]'"), wishes=eight)
    small = finding(found)
    assert verify(found, small) == "doctor check 'node[1-4]' --only shm-small --ranks-per-host 8"
    asked = sick(way(typed, "check 'node[1-4]' --ranks-per-host 4"), wishes=eight)
    assert "--ranks-per-host 8" not in verify(asked, small)


def test_a_table_that_was_checked_is_named(typed: list[Request], tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    table.write_text("{}")
    found = way(typed, f"ranktable check {table} 'node[1-4]' --user root")
    made = sick(found, command="ranktable check")
    assert repeat(made) == f"doctor ranktable check {table} 'node[1-4]' --user root"
    assert repeat(sick(None, command="ranktable check")) == ""


def test_what_an_older_recording_does_not_say_is_left_out() -> None:
    assert again(sick(None), "check", hosts=["node2"]) == "doctor check node2"


def test_no_secret_is_recorded(typed: list[Request]) -> None:
    found = way(typed, "check node1 --enter 'docker exec -i -e HF_TOKEN=hf_abcdefghijklmnopqrstuvw train'")
    assert "hf_abc" not in str(found)


def test_a_recording_makes_no_command_of_its_own() -> None:
    ours = Way(
        named=(("--hostfile", "/tmp/hosts"),),
        reached=(
            ("--sudo",),
            ("--user", "root"),
            ("--ssh-config", "/tmp/c"),
            ("--enter", "docker exec -i x"),
        ),
        asked=(("--exam", "full"), ("--expect", "torch=any")),
        users={"node1": "root"},
    )
    assert read_back(ours) == ours
    theirs = Way(
        named=(("--hostfile", "hosts"), ("node9",), ()),
        reached=(
            ("--ssh-config", "conf"),
            ("--enter", "sh -c 'evil'"),
            ("--user", "-oProxyCommand=evil"),
            ("--jump", "a b"),
            ("--python", "/tmp/evil"),
            ("--accept-new",),
            ("--sudo", "evil"),
            ("--port",),
            ("--checks", "/tmp/evil"),
            ("--transport", "evil\n"),
        ),
        asked=(("--json", "/etc/passwd"), ("--only", "$(evil)"), ("--exam", "evil.yaml")),
        users={"node1": "-oProxyCommand=evil"},
    )
    assert read_back(theirs) == Way()


def test_every_word_is_quoted() -> None:
    odd = replace(sick(Way(reached=(("--ssh-config", "/tmp/a;b $(c)"),))), hosts=())
    assert shlex.split(again(odd, "check", hosts=["node1"])) == [
        "doctor", "check", "node1", "--ssh-config", "/tmp/a;b $(c)",
    ]  # fmt: skip


def test_what_an_inventory_says_of_a_login_is_kept(typed: list[Request], tmp_path: Path) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text("hosts:\n  node1:\n    address: 10.0.0.1\n    user: carol\n    port: 2200\n  node2: {}\n")
    found = way(typed, f"doctor check --inventory {file}".removeprefix("doctor "))
    assert found.logins == {"node1": (("address", "10.0.0.1"), ("--user", "carol"), ("--port", "2200"))}
    assert found.login("node1", ["true"]) == "ssh -l carol -p 2200 -o HostName=10.0.0.1 node1 true"
    assert found.login("node2", ["true"]) == "ssh node2 true"


def test_nodes_are_entered_by_their_own_pods() -> None:
    enter = (
        "kubectl exec -i -n team doctor-node-x0 -- env API_TOKEN=s3cret-4711 nsenter -t 1 -m -u -i -n -p --"
    )
    asked = Request("check", HostFlags(nodes="node/gpu00", namespace="team"))
    found = way_to(asked, [Host("gpu00", "gpu00", enter=enter, enter_from="controller")], "pods")
    typed = found.login("gpu00", ["nvidia-smi", "-q"])
    assert typed.startswith("kubectl exec -i -n team doctor-node-x0 -- env 'API_TOKEN=[hidden]' nsenter")
    assert typed.endswith(" nsenter -t 1 -m -u -i -n -p -- nvidia-smi -q")
    assert "s3cret" not in str(found)
    bare = Host("gpu00", "gpu00", enter=enter.replace("env API_TOKEN=s3cret-4711 ", ""))
    plain = way_to(asked, [bare], "pods")
    assert read_back(plain).login("gpu00", ["true"]) == plain.login("gpu00", ["true"])


def test_how_a_container_is_entered_is_not_recorded_with_its_login(
    typed: list[Request], tmp_path: Path
) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text("hosts:\n  node1: {enter: docker exec -e API_TOKEN=s3cret-4711 -i train}\n")
    found = way(typed, f"check --inventory {file}")
    assert found.logins == {}
    assert "s3cret" not in str(found)


@cases
def test_recorded_options_fill_a_request(typed: list[Request], line: str) -> None:
    found = way(typed, line)
    asked = typed[-1]
    filled = retyped(Request("check"), (*found.named, *found.reached, *found.asked))
    assert filled == replace(asked, who=replace(asked.who, hosts=()), typed=frozenset())
    kept = retyped(Request("check", typed=frozenset({"--sudo", "--user"})), found.reached)
    assert (kept.way.sudo, kept.way.user) == (False, None)


def test_pods_are_reached_through_their_cluster_again(typed: list[Request]) -> None:
    assert cli.run(shlex.split("check --pods app=train -n team --container main --context lab")) == 0
    targets = read_targets(("node[1-4]",), None, None, False, (), {})
    over = way_of(typed[-1], targets, "pods")
    where = "--namespace team --container main --context lab"
    assert again(sick(over), "hang") == f"doctor hang --pods app=train {where}"
    seen = sick(over)
    assert verify(seen, finding(seen)) == f"doctor check --pods pod/node2 --only shm-small {where}"
    assert over.login("node2", ["kill", "7"]) == (
        "kubectl exec -i --context lab -n team -c main node2 -- kill 7"
    )
    assert read_back(over) == over
    wild = replace(over, named=(("--pods", "-x"),), reached=(("--context", "-o"), ("--namespace", "a b")))
    assert (read_back(wild).named, read_back(wild).reached) == ((), ())
