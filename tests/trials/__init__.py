"""The long trials: faults, and sound hosts and jobs, many times over, at places and moments that are drawn.

    python -m tests.trials --faults stuck,kill --trials 20 --out trials.jsonl

Each series breaks things on real hosts of the lab, asks doctor, and compares its answer with the truth. It
tells `runner.py` its kinds, and how a case is made and judged. The same command goes on where it was cut
short. These trials take too long for the test-suite, which proves each fault once.
"""
