"""Commands that a report suggests reach the hosts as the run did."""

import json
import shlex
from pathlib import Path

from msgspec.structs import replace

from doctor.hang.advice import advice_of
from doctor.hang.judge import judge
from doctor.hang.report import page_of
from doctor.hang.report_json import hang_part
from doctor.live.evidence import JobChoice, LiveEvidence
from doctor.live.evidence_file import decoded, encoded
from doctor.report.page.card import Step
from doctor.transport.way import Way
from tests.support.cases import cases, from_cases
from tests.support.hang.reports import NODES, text
from tests.support.hang.written import evidence

SAVED = Path("hang.json")
SLEEPS = evidence(["waits", "sleeps", "waits", "waits"], NODES)
BELOW = evidence(["waits"] * 4, NODES)
KILL = "kill -ABRT 4010    # ends the job, with an error in its log"
REACHED = from_cases(__file__, "REACHED", tuple[tuple[str, ...], ...])


def look_and_end(login: str, reached: str = "", hosts: str = "'node[1-4]' ") -> tuple[str, str]:
    """What is suggested for a rank that sleeps. `login`: what comes before the command that ends it."""
    return f"doctor hang {hosts}--pid 4010{reached}    # is it still there?", f"{login}{KILL}"


def commands(seen: LiveEvidence) -> tuple[str, ...]:
    found = judge(seen)
    assert advice_of(found).commands == hang_part(found).commands
    assert all(each in text(found, 80) for each in advice_of(found).commands)
    return advice_of(found).commands


def test_on_this_machine_alone_nothing_logs_in() -> None:
    here = evidence(["waits", "sleeps", "waits", "waits"], ("here",))
    assert commands(here) == look_and_end("ssh here ", "", "here ")
    assert commands(replace(here, local=True)) == look_and_end("", "", "here ")
    way = Way(reached=(("--local",),))
    assert commands(replace(here, local=True, way=way)) == look_and_end("", " --local", "")
    stuck = evidence(["waits", "stuck", "waits", "waits"], ("here",))
    assert commands(replace(stuck, local=True)) == ("sudo cat /proc/4010/stack",)
    alike = replace(evidence(["waits"] * 4, ("here",)), local=True, way=way)
    assert not commands(alike), "there is no network between ranks of one host"


def test_the_other_command_asks_about_the_same_job() -> None:
    """Where several jobs run, it would not know which, without the options that chose this one."""
    way, moves = Way(reached=(("--local",),)), evidence(["waits", "waits"], ("here",), silent=0.1)
    seen = replace(moves, local=True, way=way, choice=JobChoice(master_port=29500, slurm_job="7"))
    asks = Step("Too slowly? doctor slow --master-port 29500 --job 7 --local")
    assert page_of(judge(seen)).after == (asks,)
    free = replace(seen, choice=JobChoice())
    assert page_of(judge(free)).after == (Step("Too slowly? doctor slow --local"),)


def test_options_of_the_login_are_repeated() -> None:
    way = Way(reached=REACHED)
    assert commands(replace(SLEEPS, way=way)) == look_and_end(
        "ssh -F /home/bob/ssh.conf -l bob -J gate1,gate2 -p 2222 -i '/home/bob/one key' -i /home/bob/two "
        "node2 ",
        " --user bob --port 2222 --identity '/home/bob/one key' --identity /home/bob/two"
        " --jump gate1,gate2 --ssh-config /home/bob/ssh.conf",
    )
    (check,) = commands(replace(BELOW, way=way))
    assert check.startswith("doctor check 'node[1-4]' --only port-unreachable,")
    assert "--user bob --port 2222 --identity '/home/bob/one key'" in check
    assert check.endswith("--jump gate1,gate2 --ssh-config /home/bob/ssh.conf")


def test_a_user_in_front_of_a_host_is_its_own() -> None:
    way = Way(reached=(("--user", "bob"),), users={"node2": "carol"})
    assert commands(replace(SLEEPS, way=way)) == look_and_end(
        "ssh -l carol node2 ", " --user bob", "'node1,carol@node2,node[3-4]' "
    )


def test_hosts_that_did_not_answer_are_checked_the_same_way() -> None:
    seen = evidence(["waits"] * 4, NODES, unreached={"node3": "refused", "node4": "refused"})
    assert commands(seen) == ("doctor check 'node[3-4]'",)
    way = Way(reached=(("--ssh-config", "/c"),))
    assert commands(replace(seen, way=way)) == ("doctor check 'node[3-4]' --ssh-config /c",)


@cases
def test_numbers_of_processes_are_those_inside_the_container(entry: str, typed: str) -> None:
    assert commands(replace(SLEEPS, way=Way(reached=(("--enter", entry),)))) == look_and_end(
        typed, f" --enter {shlex.quote(entry)}"
    )


def test_an_entry_of_which_a_secret_was_hidden_is_no_command() -> None:
    assert commands(replace(SLEEPS, way=Way(reached=(("--enter", "docker exec -e '[hidden]"),)))) == ()


def test_the_way_is_kept() -> None:
    seen = replace(SLEEPS, local=True, way=Way(reached=REACHED, users={"node2": "carol"}))
    assert decoded(encoded(seen), SAVED) == seen


def test_evidence_from_before_ways_were_kept_is_read() -> None:
    data = json.loads(encoded(SLEEPS))
    del data["way"], data["local"]
    assert decoded(json.dumps(data).encode(), SAVED) == SLEEPS


def test_a_hostile_file_suggests_nothing_of_its_own() -> None:
    bad = "x; rm -rf /"
    way = Way(
        reached=(
            *(("--user", bad), ("--jump", bad), ("--port", bad), ("--ssh-config", "-oProxyCommand=x")),
            *(("--enter", "sh -c x"), ("--identity", "-x"), ("--proxy", "x"), ("--user",), ()),
        ),
        users={"node2": bad},
    )
    for seen in (SLEEPS, BELOW):
        again = decoded(encoded(replace(seen, way=way)), SAVED)
        assert commands(again) == commands(seen)


class TestSlurm:
    """What is suggested for nodes that srun reached works outside the allocation as well."""

    @staticmethod
    def judged(does: list[str]) -> tuple[str, ...]:
        way = Way(reached=(("--transport", "srun"),), slurm_job="4713")
        return advice_of(judge(replace(evidence(does), way=way))).commands

    def test_a_command_is_a_step_of_the_job(self) -> None:
        (command,) = self.judged(["waits", "stopped"])
        step = "srun --jobid=4713 --overlap --nodes=1 --ntasks=1 --nodelist=node2"
        assert command == f"{step} kill -CONT 4010"

    def test_a_check_is_told_the_job_and_is_still_found(self) -> None:
        (command,) = self.judged(["waits"] * 4)
        begin = "SLURM_JOB_ID=4713 doctor check 'node[1-2]' --only "
        assert command.startswith(begin)
        assert command.endswith(" --transport srun")


def test_an_inventory_says_how_to_log_in_to_a_host() -> None:
    own = {"node2": (("address", "10.0.0.2"), ("--user", "carol"), ("--port", "2200"))}
    way = Way(reached=(("--inventory", "/home/bob/hosts.yaml"),), logins=own)
    assert commands(replace(SLEEPS, way=way)) == look_and_end(
        "ssh -l carol -p 2200 -o HostName=10.0.0.2 node2 ", " --inventory /home/bob/hosts.yaml"
    )
    typed = Way(reached=(("--user", "bob"),), logins=own)
    assert commands(replace(SLEEPS, way=typed))[1].startswith("ssh -l bob -p 2200 "), "what is typed wins"
    kept = decoded(encoded(replace(SLEEPS, way=way)), SAVED).way
    assert kept
    assert kept.logins == own
    evil = {"node2": (("address", "-oProxyCommand=x"), ("--user", "carol")), "x;y": (("--port", "1"),)}
    read = decoded(encoded(replace(SLEEPS, way=Way(logins=evil))), SAVED).way
    assert read
    assert read.logins == {"node2": (("--user", "carol"),)}
