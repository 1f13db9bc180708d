"""Messages of agents: lines that are spoilt, lost, repeated or out of order, whatever was asked."""

import json
import time
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache, partial
from random import Random
from typing import Any

import msgspec

from doctor.hang.judge import judge
from doctor.hang.report import page_of
from doctor.live.agents import LookAgents, LookHost, LookPatience
from doctor.live.evidence import LiveEvidence, Look
from doctor.live.evidence_file import decoded, encoded
from doctor.live.sight import evidence_of
from doctor.mesh import plan_mesh
from doctor.mesh.run import MeshPatience, run_mesh
from doctor.report.files import envelope
from doctor.report.html.page import as_html
from doctor.report.markdown.page import as_markdown
from doctor.report.page.card import Page
from doctor.report.terminal.cards import print_page
from doctor.slow import evidence_file as slow_file
from doctor.slow.judge import judge as judge_slow
from doctor.slow.report import page_of as page_of_slow
from doctor.slow.report_json import slow_report
from doctor.smoke.run import SmokeRun
from doctor.transport import Line, SessionEnd
from tests.support.envelopes import as_json
from tests.support.hang.trials import trials
from tests.support.recordings import HEALTHY, heard, recording
from tests.support.slow.recorded import recorded
from tests.support.smoke.session import QUICK, Cluster, small
from tests.trials.fuzz.mutate import spoilt, spoilt_tree
from tests.trials.fuzz.recordings import HERE, judged, refuse_broken, show
from tests.trials.fuzz.target import printed, refuse_unsafe

NAMES = ["node1", "node2", "node3"]
SHORT: dict[str, Any] = {"start": 0.05, "beat": 0.02, "stop": 0.05}


def seeds() -> Sequence[bytes]:
    return [b""]


def another_seed(dice: Random, _: bytes, __: Sequence[bytes]) -> bytes:
    """The messages depend on the requests, so a case is a way to spoil them."""
    return dice.randbytes(8).hex().encode()


class Spoiler:
    """One line of an agent -> the lines that arrive in its place, now or later."""

    def __init__(self, seed: bytes) -> None:
        self.dice = Random(seed)
        self.share = self.dice.choice((0.02, 0.1, 0.5))
        self.said: list[bytes] = [b""]
        self.kept: list[bytes] = []

    def __call__(self, line: bytes) -> Iterator[bytes]:
        dice = self.dice
        self.said.append(line)
        if dice.random() >= self.share:
            yield line
        else:
            match dice.randrange(6):
                case 0:
                    self.kept.append(line)
                case 1:
                    yield from [line] * dice.choice((2, 300))
                case 2:
                    yield dice.choice(self.said)
                case 3:
                    yield spoilt(dice, line, self.said)[:100_000].replace(b"\n", b"")
                case _:
                    yield spoilt_tree(dice, line, self.said)[:1_000_000].replace(b"\n", b"")
        if self.kept and dice.random() < 0.2:
            yield self.kept.pop(0)


class Feed:
    """A session with functions as agents: a request -> their answers."""

    def __init__(self, seed: bytes) -> None:
        self.spoil = Spoiler(seed)
        self.queue: deque[Line | SessionEnd] = deque()

    def answers(self, host: str, line: bytes) -> Iterator[bytes]:
        raise NotImplementedError

    def send(self, host: str, line: bytes) -> None:
        for said in self.answers(host, line):
            self.queue += [Line(host, each) for each in self.spoil(said)]
            if self.spoil.dice.random() < 0.002:
                self.queue.append(SessionEnd(host, 1, b"\x1b[2Jkilled\n\xff"))
        if line in (b"stop", b'{"do":"stop"}'):
            self.queue.append(SessionEnd(host, 0, b""))

    def receive(self, timeout: float) -> Line | SessionEnd | None:
        if not self.queue:
            time.sleep(min(max(timeout, 0.0), 0.005))
            return None
        return self.queue.popleft()

    def end(self, host: str) -> None: ...

    def close(self) -> None: ...


class MeshFeed(Feed):
    def answers(self, _: str, line: bytes) -> Iterator[bytes]:
        word, *rest = line.decode().split()
        if word == "hello":
            yield b'{"say":"ready","agent":"python3.11"}'
        elif word == "listen":
            yield json.dumps({"say": "listener", "id": int(rest[0]), "port": 40000 + int(rest[0])}).encode()
        elif word == "connect":
            said = {"say": "link", "id": int(rest[0]), "outcome": "ok", "ms": 0.3, "tries": 1}
            yield json.dumps({**said, "detail": "", "unresolved": []}).encode()


def read_mesh(case: bytes) -> None:
    plan = plan_mesh(
        {name: f"10.0.0.{n}" for n, name in enumerate(NAMES, 1)}, head=NAMES[0], master_port=29500
    )
    patience = MeshPatience(connect=0.01, answer=0.01, again=0.01, answer_again=0.01, slack=0.03, **SHORT)
    met = run_mesh(MeshFeed(case), plan, patience)
    _, report = judged(recording(NAMES, mesh=met), "check")
    refuse_broken(report)
    show(report)


class SpoiltCluster(Cluster):
    def __init__(self, seed: bytes) -> None:
        super().__init__(small())
        self.spoil = Spoiler(seed)

    def poll(self) -> None:
        before = len(self.heard)
        super().poll()
        new = [self.heard.pop() for _ in range(len(self.heard) - before)][::-1]
        for event in new:
            if isinstance(event, Line):
                self.heard += [Line(event.host, each) for each in self.spoil(event.text)]
            else:
                self.heard.append(event)


def read_smoke(case: bytes) -> None:
    cluster = SpoiltCluster(case)
    run = SmokeRun(cluster, cluster.plan, pythons={}, env={}, timeout=2.0, patience=QUICK)
    run.conduct()
    names = list(cluster.plan.hosts)
    torch = HEALTHY["python"] + "package torch 2.13.0\n"
    answers = {name: heard(n, names, python=torch) for n, name in enumerate(names, 1)}
    trained = recording(names, heard=answers, smoke_wanted=True, smoke=(run.result(),))
    _, report = judged(trained, "preflight")
    refuse_broken(report)
    show(report)


# A job that hangs.


@cache
def evidences() -> tuple[LiveEvidence, ...]:
    return tuple(trial.evidence for trial in trials()[::7])


class HangFeed(Feed):
    def __init__(self, seed: bytes) -> None:
        super().__init__(seed)
        self.evidence = self.spoil.dice.choice(evidences())

    def answers(self, host: str, line: bytes) -> Iterator[bytes]:
        what = json.loads(line)["do"]
        seen = next((each for each in self.evidence.hosts if each.host == host), None)
        if seen is None or what not in ("find", "look"):
            return
        if what == "find":
            for member in seen.members:
                bare = msgspec.structs.replace(member, a=None, b=None, between=())
                yield _said("member", member=bare)
            yield _said("found", ranks=len(seen.members), machine="x86_64")
        else:
            for member in seen.members:
                looks: list[tuple[str, Look | None]] = [("a", member.a), ("b", member.b)]
                looks += [("between", each) for each in member.between]
                yield from (_said("look", which=which, look=look) for which, look in looks if look)
            yield from (_said("library", text=each) for each in seen.libraries)
            yield _said("seen", at=seen.at, apart=seen.apart, root=seen.root, stacks=seen.stacks)
        yield _said("done", what=what)


def _said(word: str, **fields: Any) -> bytes:
    return msgspec.json.encode({"say": word, **fields})


def read_hang_agents(case: bytes) -> None:
    feed = HangFeed(case)
    names = [each.host for each in feed.evidence.hosts]
    patience = LookPatience(**SHORT, whole=0.05)
    agents = LookAgents[LookHost](feed, names, patience, time.monotonic() + 30)
    agents.find(lambda: None)
    agents.look(0.01, lambda: None)
    agents.stop()
    _judge(evidence_of(agents))


def hang_recordings() -> Sequence[bytes]:
    return [encoded(each) for each in evidences()]


def read_hang(case: bytes) -> None:
    _judge(decoded(case, HERE))


def _judge(evidence: LiveEvidence) -> None:
    _refuse_unsafe_report(page_of(judge(evidence)), as_json(evidence))


def slow_recordings() -> Sequence[bytes]:
    return [slow_file.encoded(recorded(name)) for name in ("loader", "nobody")]


def read_slow(case: bytes) -> None:
    evidence = slow_file.FILE.decoded(case, HERE)
    found = judge_slow(evidence)
    _refuse_unsafe_report(page_of_slow(found), envelope.as_json(slow_report(found, evidence)))


def _refuse_unsafe_report(page: Page, data: bytes) -> None:
    refuse_unsafe(printed(partial(print_page, page)))
    refuse_unsafe(as_html(page).decode())
    refuse_unsafe(as_markdown(page).decode())
    refuse_unsafe(data.decode())
    json.loads(data)
