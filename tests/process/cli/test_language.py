"""The language of `doctor explain`, as the locale and the option choose it."""

from tests.support.cases import cases
from tests.support.commands import doctor

UNSET = {"LC_ALL": "", "LC_MESSAGES": "", "LANG": "C.UTF-8", "PYTHONUTF8": "1"}


@cases
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
