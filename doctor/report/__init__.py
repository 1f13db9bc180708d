"""Ways to show a report. None of them decides a verdict or an exit code."""
