"""A page, in every form that was asked for, to every place that was named."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TextIO

from doctor.errors import DoctorError
from doctor.report.card import Page
from doctor.report.formats import STDOUT, Outputs
from doctor.text.console import drawn
from doctor.text.outfile import write_file
from doctor.text.terminal import coloured, put, width


def terminal_of(outputs: Outputs) -> TextIO:
    """Where the text goes: stderr, if a format takes stdout."""
    return sys.stderr if any(path == STDOUT for _, path in outputs.files()) else sys.stdout


def show_page(page: Page, outputs: Outputs) -> None:
    from doctor.report.terminal.cards import print_page

    out = terminal_of(outputs)
    show = partial(print_page, page, verbose=outputs.verbose, quiet=outputs.quiet)
    put(drawn(show, width(out), colour=coloured(out, outputs.colours)), out, drawn=True)


def write_page(page: Page, outputs: Outputs, as_json: Callable[[], bytes]) -> None:
    """A file that cannot be written loses only itself."""
    failed = []
    for form, path in outputs.files():
        data = as_json() if form.option == "--json" else _written(page, form.option)
        if path == STDOUT:
            put(data.decode(), sys.stdout)
            continue
        try:
            write_file(path, data)
        except OSError as error:
            failed.append(f"{path} could not be written: {error.strerror}.")
    if failed:
        raise DoctorError("\n".join(failed))


def _written(page: Page, option: str) -> bytes:
    """What takes long to import is imported where it is wanted."""
    if option == "--markdown":
        from doctor.report.markdown_page import as_markdown

        return as_markdown(page)
    from doctor.report.html.page import as_html

    return as_html(page)
