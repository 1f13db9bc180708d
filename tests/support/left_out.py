"""Lists the tests that a run left out, with the reasons, at its end."""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = reason.removeprefix("Skipped: ")
        reasons[reason] = reasons.get(reason, 0) + 1
    terminalreporter.section("left out", sep="-")
    if not reasons:
        terminalreporter.line("nothing")
    for reason, count in sorted(reasons.items()):
        terminalreporter.line(f"{count} {'test' if count == 1 else 'tests'}: {reason}")
