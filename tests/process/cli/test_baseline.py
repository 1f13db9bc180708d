"""`doctor baseline`, and a run beside it, as programs."""

import json
from pathlib import Path

from tests.support.accept_runs import accepting, shares
from tests.support.commands import doctor


def test_links_that_are_slower_than_in_the_baseline(tmp_path: Path) -> None:
    for name, slow in (("good", {}), ("slow", {"node2": 0.5})):
        (tmp_path / f"{name}.json").write_text(json.dumps(accepting(shares(slow))))
    good, report = str(tmp_path / "good.yaml"), tmp_path / "report.json"
    assert doctor("baseline", str(tmp_path / "good.json"), "--output", good).returncode == 0
    files = ("--baseline", good, "--json", str(report))
    done = doctor("accept", "--replay", str(tmp_path / "slow.json"), *files)
    told = {f["check"]: f["hosts"] for f in json.loads(report.read_bytes())["findings"]}
    assert done.returncode == 1
    assert told == {"accept-slow-link": ["node2"], "smoke-slower-than-baseline": ["node2"]}
