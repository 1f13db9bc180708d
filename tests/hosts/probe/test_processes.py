"""The cost of the probe for a host, in processes: a preflight runs while other jobs work."""

import subprocess

import pytest

from doctor.api import Ask
from doctor.judge.examine import facts_of
from doctor.judge.playbook import load_exam, select
from doctor.judge.registry import find_checks
from doctor.model import Answer, AnswerEnd
from doctor.probe import HostAnswer, read, script
from tests.lab import Host, Lab
from tests.support.probing import HERE, SHELLS, TOKEN

MOST = 30
"""sshd adds two if it is asked over SSH: 32 processes in all."""


def made(host: Host) -> int:
    """The id of the newest process; each call itself adds one."""
    return int(host.ask("read -r _ _ _ _ newest </proc/loadavg; echo $newest").stdout)


@pytest.mark.parametrize("shell", HERE)
@pytest.mark.parametrize("name", ["host", "preflight"])
def test_an_exam_starts_few_processes(
    lab: Lab, name: str, shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted on a healthy host, whose answer is complete."""
    monkeypatch.setattr("doctor.probe.ask.QUICK_SECONDS", 60)
    exam = load_exam(name, found := find_checks().checks)
    chosen, _ = select(found, exam, (), ())
    facts = facts_of(chosen)
    host = lab.hosts[0]
    asked = script(facts, Ask(host.name, lab.names, (29500,)), TOKEN)
    counts = []
    for _ in range(3):  # if a process of the host happens to be in state D, ps is called for it
        before = made(host)
        process = subprocess.Popen(
            host.enter([*SHELLS[shell]]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdin
        assert process.stdout
        process.stdin.write(asked.stdin)
        process.stdin.flush()
        output = b""
        for line in process.stdout:
            output += line
            if line == asked.last_line + b"\n":
                break
        rc = process.wait(20)
        process.stdin.close()
        process.stdout.close()
        counts.append(made(host) - before - 1)
        heard = read(Answer(host.name, output, b"", rc, AnswerEnd.DONE, 0.0, 1.0), facts, TOKEN)
        assert isinstance(heard, HostAnswer)
        assert heard.complete
        assert not [missing for missing in heard.missing.values() if not missing.absent]
    assert min(counts) <= MOST
    assert min(counts) > 10  # it did query the NPUs
