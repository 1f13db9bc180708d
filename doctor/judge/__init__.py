"""From a recording to a report: facts, checks, findings, the verdict and the exit code."""
