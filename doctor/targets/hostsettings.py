"""The settings of a host in an inventory: the values of each key, safe to quote, and what is refused."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from doctor.errors import UsageError, suggest
from doctor.model import Backend
from doctor.text.nodeset import check_host, check_jump, check_number, check_user
from doctor.text.textfile import shown
from doctor.transport.containers import check_entry

MOST_RANKS = 1024
"""No host has more."""


def check_text(text: str) -> str:
    if not text.isprintable():
        raise UsageError(f"{shown(text)} has control characters in it")
    return text


def check_program(text: str) -> str:
    if not check_text(text) or text.startswith("-"):
        raise UsageError(f"{shown(text)} is not the path of a program")
    if text.startswith("~"):
        raise UsageError(f"{shown(text)}: ~ is not expanded on the hosts; give the whole path")
    return text


def check_place(text: str) -> str:
    if text not in ("host", "controller"):
        raise UsageError(f"{shown(text)} is neither 'host' nor 'controller'")
    return text


def check_backend(text: str) -> Backend | None:
    if text == "auto":
        return None
    names = [backend.value for backend in Backend]
    if text not in names:
        raise UsageError(f"{shown(text)} is not one of auto, {', '.join(names)}", suggest(text, names))
    return Backend(text)


check_port = partial(check_number, low=1, high=65535)
check_ranks = partial(check_number, low=1, high=MOST_RANKS)

SETTINGS: Mapping[str, Callable[[str], Any]] = {
    "address": check_host,
    "data": check_host,
    "user": check_user,
    "port": check_port,
    "jump": check_jump,
    "enter": check_entry,
    "enter_from": check_place,
    "ranks": check_ranks,
    "devices": partial(check_number, low=0, high=MOST_RANKS),
    "python": check_program,
}
HOST_KEYS = (*SETTINGS, "expect")
OF_ONE_HOST = ("address", "data")
