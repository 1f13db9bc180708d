"""`python -m tests.mutate`: draws changes, asks the tests, and writes the page of those that live.

A run that was cut short goes on. `--again` asks those again that lived; `--page` asks nothing.
"""

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Event

from tests.mutate import record
from tests.mutate.ask import Answer, Asker, stages
from tests.mutate.calls import Map
from tests.mutate.change import Change
from tests.mutate.draw import drawn
from tests.mutate.page import summary, write
from tests.mutate.tree import Tree, copied
from tests.support.paths import ROOT

FOLDERS = ("doctor", "checks")


def main() -> int:
    args = _arguments()
    paths = sorted(
        str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")
    )
    changes = drawn(ROOT, [path for path in paths if args.only in path], args.seed, args.draw)
    answers = dict(record.load(args.out))
    if not args.page:
        again = {key for key, answer in answers.items() if args.again and not answer.stage}
        left = [change for change in changes if change.key not in answers or change.key in again]
        for change, answer in _asked(left, args.jobs, Map(args.out.with_suffix(".calls.json"))):
            record.append(args.out, change, answer)
            answers[change.key] = answer
            _tell(change, answer)
    known = {change: answers[change.key] for change in changes if change.key in answers}
    if args.page:
        write(known, args.seed)
    print(summary(known))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("--draw", type=int, default=200, help="so many changes, earlier ones included")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="of files whose path contains this")
    parser.add_argument("--jobs", type=int, default=2, help="so many at a time")
    parser.add_argument("--out", type=Path, default=ROOT / "mutations.jsonl", help="added to line by line")
    parser.add_argument("--again", action="store_true", help="ask those again that lived")
    parser.add_argument("--page", action="store_true", help="ask nothing, write tests/mutate/alive.md")
    return parser.parse_args()


def _asked(changes: Sequence[Change], jobs: int, calls: Map) -> Iterator[tuple[Change, Answer]]:
    if not changes:
        return
    stopped, free = Event(), SimpleQueue[Tree]()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the copies are removed then too
    with TemporaryDirectory(prefix="mutate-", ignore_cleanup_errors=True) as folder:
        asker = Asker(copied(ROOT, Path(folder, "sound"), stopped))
        trees = [copied(ROOT, Path(folder, str(number)), stopped) for number in range(jobs)]

        def ask(number: int) -> Answer:
            tree = free.get()
            try:
                return asker.ask(
                    changes[number], tree, number + 1, stages(changes[number], calls.callers(changes[number]))
                )
            finally:
                free.put(tree)

        with ThreadPoolExecutor(jobs) as pool:
            try:
                _map(calls, trees, pool)
                for tree in trees:
                    free.put(tree)
                futures = {pool.submit(ask, number): number for number in range(len(changes))}
                for future in as_completed(futures):
                    yield changes[futures[future]], future.result()
            finally:
                stopped.set()
                pool.shutdown(cancel_futures=True)


def _map(calls: Map, trees: Sequence[Tree], pool: ThreadPoolExecutor) -> None:
    parts = [calls.stale(ROOT)[number :: len(trees)] for number in range(len(trees))]
    for part, found in zip(
        parts, pool.map(lambda tree, part: tree.calls(part) if part else {}, trees, parts), strict=True
    ):
        calls.learn(ROOT, part, found)


def _tell(change: Change, answer: Answer) -> None:
    said = f"noticed by {answer.stage}: {answer.by}" if answer.stage else "ALIVE"
    what = f"{change.path}:{change.line} {change.before} -> {change.after}"
    print(f"{answer.seconds:6.1f} s  {what}\n          {said}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
