"""`python -m tests.exam`: what each answer to foreign logs, jobs and clusters is worth.

The cases of the half `unseen` are counted and not listed. `--weigh PATH` switches each condition of a judge
off, alone, and says what it is for; it goes on where FILE ends, and sums up the whole file.
"""

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.exam.answers import Answer, answerer, read_all
from tests.exam.cases import FOLDER, Case, cases
from tests.exam.clusters import ClusterCase, cluster_cases, read_clusters
from tests.exam.jobs import JobCase, job_answerer, job_cases, read_jobs
from tests.exam.weigh import Weighing, conditions
from tests.support.paths import ROOT
from tests.support.recordings import report


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.exam", description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="other cases of the same form")
    parser.add_argument("--weigh", metavar="PATH", help="for example doctor/logs/judge")
    parser.add_argument("--draw", type=int, default=0, help="so many conditions, drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file", type=Path, default=ROOT / "weights.jsonl")
    options = parser.parse_args()
    if options.weigh:
        weigh(options)
        sum_up(options.file)
    else:
        asked, jobs, clusters = cases(options.folder), job_cases(), cluster_cases()
        tell("logs", answers(asked, read_all(asked), answerer()))
        tell("jobs", answers(jobs, read_jobs(jobs), job_answerer()))
        recorded = read_clusters(clusters)
        tell("clusters", ((case, case.worth(report(recorded[case.name]))) for case in clusters))


def answers(
    asked: Sequence[Case | JobCase], read: Mapping[str, Any], answer: Callable[[Any], Answer]
) -> Iterator[tuple[Case | JobCase, str]]:
    for case in asked:
        given = answer(read[case.name])
        yield case, case.worth(given.code, given.text)


def tell(title: str, worths: Iterable[tuple[Case | JobCase | ClusterCase, str]]) -> None:
    sums = Counter[str]()
    for case, worth in worths:
        sums[f"{case.half:7} {worth}"] += 1
        if worth != "right" and case.half == "seen":
            print(f"{case.name}  {case.kind:18} {worth}")
    for each, count in sorted(sums.items()):
        print(f"{count:5} {title} {each}")


def weigh(options: argparse.Namespace) -> None:
    files = _files(options.weigh)
    changes = conditions(files)
    if options.draw:
        changes = random.Random(options.seed).sample(changes, min(options.draw, len(changes)))
    known = options.file.read_text().splitlines() if options.file.exists() else []
    done = {json.loads(line)["key"] for line in known}
    weighing = _weighing(options, files)
    with options.file.open("a") as out:
        for change in changes:
            if change.key not in done:
                weight = weighing.weigh(change)
                out.write(json.dumps({"key": change.key, **weight.told()}) + "\n")
                out.flush()


def _weighing(options: argparse.Namespace, files: Sequence[str]) -> Weighing:
    """The exam that asks the judge of these files."""
    if options.weigh.startswith("doctor/logs"):
        asked = cases(options.folder)
        return Weighing(asked, read_all(asked), answerer, files)
    jobs = job_cases()
    return Weighing(jobs, read_jobs(jobs), job_answerer, files)


def _files(path: str) -> list[str]:
    place = ROOT / path
    found = [place] if place.is_file() else sorted(place.rglob("*.py"))
    return [str(file.relative_to(ROOT)) for file in found]


def sum_up(file: Path) -> None:
    """For each source, how many of its conditions change what."""
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for line in file.read_text().splitlines():
        row = json.loads(line)
        sums[row["place"].partition(":")[0]][row["for"]] += 1
    for place, counts in sorted(sums.items()):
        print(f"{place:45}", ", ".join(f"{count} {kind}" for kind, count in counts.most_common()))


if __name__ == "__main__":
    main()
