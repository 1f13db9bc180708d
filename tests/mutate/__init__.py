"""What no test notices: conditions, numbers and comparisons of the sources are changed, one at a time.

    python -m tests.mutate --draw 200 --seed 1

Each change is made in a copy of the tree and asked by the tests that belong to its file. What lives through
them is code that nobody needs, code that no test proves, or a change that changes nothing.
"""
