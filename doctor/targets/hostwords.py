"""Refuses words of a command line that should be hosts, but are files, URLs or hosts with a port."""

import re
import shlex
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from doctor.errors import InputErrors, UsageError
from doctor.targets.inputkind import InputKind, input_kind
from doctor.text.nodeset import pieces
from doctor.text.textfile import read_text, shown

_URL = re.compile(r"(?:ssh|https?|tcp|sftp)://([^/:\s]+|\[[^\]]+\])(?::(\d{1,5}))?(?:/.*)?")
_NUMBERED = re.compile(r"([^:\s]+|[^:\s]*\[[0-9A-Fa-f:]+\]):(\d{1,5})")
_SCRIPT = re.compile(r".+\.(?:sh|bash|slurm|sbatch|pbs|env)")
_FILE = re.compile(
    r".+\.(?:json|ya?ml|log|txt|ini|cfg|conf|csv|html|out|err|gz|sh|bash|slurm|sbatch|pbs|env|py)(?:\.gz|\.\d+)?",
    re.IGNORECASE,
)
_NEVER_A_HOST = re.compile(r".+\.(?:json|ya?ml|log|txt|ini|csv|html)(?:\.gz)?", re.IGNORECASE)
"""Names that no host has, whether or not there is such a file."""
_NO_ASCII = str.maketrans(
    {**dict.fromkeys("–—−‐‑", "-"), **dict.fromkeys("“”„‘’", ""), "、": ",", "\u00a0": " "}
)
_LARGEST_SLOTS = 128
"""A larger number behind a host is a port."""
_OPTION = {
    InputKind.RANK_TABLE: "--rank-table {}",
    InputKind.HOSTFILE: "--hostfile {}",
    InputKind.INVENTORY: "--inventory {}",
}
"""The option that takes a file of this kind beside or instead of hosts."""


def refuse_other_words(texts: Iterable[str], *, listed: bool = False) -> None:
    """Raises UsageError for a text that names no host; `listed`: by an inventory, so a number may be one."""
    for text in texts:
        plain = unicodedata.normalize("NFKC", re.sub("^[–—](?=[a-z])", "--", text)).translate(_NO_ASCII)
        if plain != text and plain.isascii() and plain.isprintable():
            message = (
                f"{shown(text)} has characters that only look like ASCII, as word processors write them."
            )
            raise UsageError(message, f"did you mean {shlex.quote(plain)}?")
        if "$" in text or "`" in text:
            hint = "Between single quotes nothing is replaced; between double quotes it is."
            raise UsageError(f"{shown(text)} was not replaced by the shell.", hint)
        _refuse_file(text)
        for word in pieces(text):
            if word.isascii() and word.isdigit() and not listed:
                hint = f"A process: doctor hang --pid {word}. A job of Slurm: doctor hang --job {word}."
                raise UsageError(f"{shown(word)} is a number, not a host.", hint)
            _refuse_url(word)
            _refuse_number(word)
            _refuse_file(word)


def _refuse_url(word: str) -> None:
    if found := _URL.fullmatch(word):
        port = f" --port {found[2]}" if found[2] and word.startswith("ssh:") else ""
        raise UsageError(f"{shown(word)} is a URL, not a host.", f"did you mean {found[1]}{port}?")


def _refuse_number(word: str) -> None:
    if found := _NUMBERED.fullmatch(word):
        number = int(found[2])
        ranks = f" Ranks: --ranks-per-host {number}." if 0 < number <= _LARGEST_SLOTS else ""
        raise UsageError(f"{shown(word)} has a number after the host.", f"SSH port: --port {number}.{ranks}")


def _refuse_file(word: str) -> None:
    if found := file_word(word):
        raise UsageError(f"{shown(word)} is {found.called}.", found.hint)


@dataclass(frozen=True, slots=True)
class FileWord:
    """A file that was named in the place of a host or a command."""

    called: str
    hint: str
    """Advice on what to type instead."""
    command: str = ""
    """A command that takes the file; empty if there is no such file."""


def file_word(word: str) -> FileWord | None:
    """The file or folder that the word names; None if the word may be a host."""
    try:
        path = Path(word).expanduser()
        is_file, is_folder = path.is_file(), path.is_dir()
    except (OSError, ValueError, RuntimeError):  # NUL, too long, no such home
        return None
    if is_folder and ("/" in word or not word.strip(".")):
        explain = f"doctor explain {shlex.quote(word)}"
        return FileWord("a folder, not a host", f"If it holds logs: {explain}", explain)
    if is_file and ("/" in word or _FILE.fullmatch(word) or not re.search(r"\d", word)):
        return _of_file(word, path)
    if not is_file and _NEVER_A_HOST.fullmatch(word):
        called = "the name of a file, and there is no such file here"
        return FileWord(called, "Hosts are typed as node1 or 'node[1-4]'.")
    return None


def _of_file(word: str, path: Path) -> FileWord | None:
    typed = shlex.quote(word)
    try:
        kind = input_kind(read_text(path), str(path))
    except InputErrors:  # too large or not text
        kind = None
    if kind is None and _SCRIPT.fullmatch(word):
        option = f"--launch {typed}"
        return FileWord("a file, not a host", f"If it starts the job: {option}", f"doctor check {option}")
    if kind is None:
        explain = f"doctor explain {typed}"
        is_file = _FILE.fullmatch(word) or "/" in word
        return FileWord("a file, not a host", f"If it is a log: {explain}", explain) if is_file else None
    option = _OPTION[kind].format(typed) if kind in _OPTION else kind.command(word)
    return FileWord(f"{kind.called}, not a host", f"Type: {option}", kind.command(word))
