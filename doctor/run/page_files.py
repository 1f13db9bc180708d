"""A page in the forms that a run's folder holds."""

import sys
from functools import partial

from doctor.report.files.envelope import Envelope, as_json
from doctor.report.html.page import as_html
from doctor.report.page.card import Page
from doctor.report.terminal.cards import print_page
from doctor.text.console import drawn
from doctor.text.terminal import width


def in_files(page: Page, data: Envelope) -> tuple[str, dict[str, bytes]]:
    """The page as a text that fits on stderr, and its files by their suffixes. `data` says the same for
    programs.
    """
    text = drawn(partial(print_page, page, verbose=False, quiet=False), width(sys.stderr), colour=False)
    return text, {".txt": text.encode(errors="replace"), ".html": as_html(page), ".json": as_json(data)}
