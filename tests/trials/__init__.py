"""The long trials of the smoke run: every fault many times, at random places, and many healthy runs.

    python -m tests.trials --faults stuck,kill --trials 20 --out trials.jsonl

Each trial breaks one thing in a lab of real hosts, runs `doctor smoke`, and compares its report with the
fault. They take too long for the test-suite, which proves each fault once.
"""
