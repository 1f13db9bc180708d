"""`python -m tests.lab up` boots a lab to play with; `sweep` removes what killed labs left."""

import argparse
import contextlib
import signal
from pathlib import Path

from . import demo, found, record
from .lab import Lab
from .needs import sweep


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="boot hosts and keep them until Ctrl-C")
    up.add_argument("--hosts", type=int, default=4)
    commands.add_parser("demo", help="examine four hosts, two of them sick")
    again = commands.add_parser("record", help="make the recordings of `doctor demo` again")
    again.add_argument("names", nargs="*")
    seen = commands.add_parser("found", help="which checks found no fault in the runs of all tests")
    seen.add_argument("folder", type=Path)
    commands.add_parser("sweep", help="remove the labs whose owner is dead")
    args = parser.parse_args()
    if args.command == "demo":
        code, shown, _ = demo.examine()
        print(shown, end="")
        if code != 1:
            raise SystemExit("the two sick hosts were not found")
        return
    if args.command == "record":
        record.record(args.names)
        return
    if args.command == "found":
        raise SystemExit(found.told(args.folder))
    if args.command == "sweep":
        for directory in sweep():
            print(f"removed {directory}")
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # even if a script started this in the background
    with Lab(args.hosts) as lab, contextlib.suppress(KeyboardInterrupt):
        print(f"{len(lab.hosts)} hosts are up: {', '.join(lab.names)}.\n")
        print("Log in:        " + " ".join(lab.enter(["ssh", "-F", str(lab.ssh_config), lab.names[0]])))
        print("Be there:      " + " ".join(lab.hosts[0].enter(["bash"])))
        print("Examine them:  " + " ".join(lab.enter(lab.doctor_argv("check", *lab.names))))
        print("\nCtrl-C ends them.", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
