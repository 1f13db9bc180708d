"""The language of everything that is said: --lang, then the user's own defaults, then the locale.

It is chosen before the command line is understood, since that may end in a message too.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from doctor.text.language import Language, language, wished
from doctor.text.option import any_option

CONFIG = "cluster-doctor/config.yaml"
LANGUAGE_HELP = "The language, en or zh. Default: that of the locale."
_LINE = re.compile(r"^lang: *['\"]?(en|zh)['\"]? *(?:#.*)?$", re.MULTILINE)
LONGEST = 100_000


@dataclass(frozen=True, slots=True)
class LanguageWish:
    """The option that every command has."""

    lang: Language | None = any_option("--lang en|zh", LANGUAGE_HELP, values=tuple(Language))


def chosen(arguments: Sequence[str], environ: Mapping[str, str], encoding: str | None) -> Language:
    return wished(arguments) or _configured(environ) or language(environ, encoding)


def _configured(environ: Mapping[str, str]) -> Language | None:
    """The language in the user's defaults; the command that uses the other defaults refuses a wrong file."""
    path = config_path(environ)
    try:
        if path is None or not path.is_file():
            return None
        with path.open(encoding="utf-8", errors="replace") as file:
            found = _LINE.search(file.read(LONGEST))
    except OSError:
        return None
    return Language(found[1]) if found else None


def config_path(environ: Mapping[str, str]) -> Path | None:
    """The file of the user's defaults, by the XDG specification: a relative folder is ignored."""
    folder, home = environ.get("XDG_CONFIG_HOME", ""), environ.get("HOME", "")
    if folder.startswith("/"):
        return Path(folder, CONFIG)
    return Path(home, ".config", CONFIG) if home.startswith("/") else None
