"""Writes a page in every format that was asked for, to every place that was named."""

import sys
from functools import partial
from typing import TextIO

from doctor.report.files.envelope import Envelope
from doctor.report.out.formats import STDOUT, Outputs, html_of, markdown_of
from doctor.report.page.card import Page
from doctor.text.console import draw


def terminal_of(outputs: Outputs) -> TextIO:
    """The stream for the text: stderr if a format uses stdout."""
    return sys.stderr if any(path == STDOUT for _, path in outputs.files()) else sys.stdout


def show_page(page: Page, outputs: Outputs) -> None:
    from doctor.report.terminal.cards import print_page

    show = partial(print_page, page, verbose=outputs.verbose, quiet=outputs.quiet)
    draw(show, terminal_of(outputs), outputs.colours)


def write_page(page: Page, outputs: Outputs, envelope: Envelope) -> None:
    """Writes the files, after the text. A file that cannot be written does not stop the others."""
    from doctor.report.out.outputs import write_formats

    pages = {"--markdown": partial(markdown_of, page), "--html": partial(html_of, page)}
    write_formats(outputs, envelope, pages)
