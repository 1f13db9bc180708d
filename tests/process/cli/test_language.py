"""The language of `doctor explain`, as the locale and the option choose it."""

from __future__ import annotations

import pytest

from tests.support.commands import doctor

UNSET = {"LC_ALL": "", "LC_MESSAGES": "", "LANG": "C.UTF-8", "PYTHONUTF8": "1"}


@pytest.mark.parametrize(
    ("env", "options", "first"),
    [
        ({}, [], "swap-active: a warning"),
        ({"LANG": "zh_CN.UTF-8"}, [], "swap-active：告警"),
        ({"LC_ALL": "zh_CN.UTF-8"}, [], "swap-active：告警"),
        ({"LC_MESSAGES": "zh_CN.UTF-8"}, [], "swap-active：告警"),
        ({"LC_ALL": "C.UTF-8", "LANG": "zh_CN.UTF-8"}, [], "swap-active: a warning"),
        ({"LANG": "zh_CN.UTF-8"}, ["--lang", "en"], "swap-active: a warning"),
        ({}, ["--lang", "zh"], "swap-active：告警"),
    ],
)
def test_the_language_of_a_page(env: dict[str, str], options: list[str], first: str) -> None:
    shown = doctor("explain", "swap-active", *options, env={**UNSET, **env})
    assert shown.stdout.startswith(first), shown.stderr
    assert shown.returncode == 0


def test_a_terminal_without_chinese_gets_english() -> None:
    env = {**UNSET, "LANG": "zh_CN", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    assert doctor("explain", "swap-active", env=env).stdout.startswith("swap-active: a warning")


def test_no_such_language() -> None:
    shown = doctor("explain", "swap-active", "--lang", "de")
    assert shown.returncode == 2
    assert "'de'" in shown.stderr
