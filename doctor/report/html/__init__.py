"""The report as one page that needs nothing else: no network, no script, no font."""

from doctor.report.html.page import as_html

__all__ = ["as_html"]
