"""Secrets out of text, before anything is parsed, stored or printed.

A secret is known by the name it is given (`HF_TOKEN=…`, `--wandb-key …`, `"api_key": …`), by the program that
takes it (`curl -u …`, `mysql -p…`), or by its own shape (AWS, GitHub, Hugging Face, JSON web tokens, private
keys). Names that merely look alike (`tokenizer`, `max_tokens`, `--passes`) are left alone. Every pattern is
bounded, so that hostile text costs linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

HIDDEN = "[hidden]"

_SHAPES = r"""\b(?:
    hf_[A-Za-z0-9]{16,} | gh[pousr]_[A-Za-z0-9]{16,} | github_pat_\w{16,} | gl(?:pat|rt|dt)-[\w-]{16,}
    | sk-(?!ssh-|ecdsa-)[\w-]{20,} | [rs]k_(?:live|test)_\w{16,} | xox[abeprs]-[\w-]{10,} | xapp-[\w-]{10,}
    | nvapi-[\w-]{16,} | AIza[\w-]{30,} | (?-i:AKIA|ASIA)[A-Z0-9]{12,} | ya29\.[\w-]{16,}
    | SG\.[\w-]{16,64}\.[\w-]{16,} | npm_[A-Za-z0-9]{30,} | pypi-[\w-]{16,} | dckr_pat_[\w-]{16,}
    | dop_v1_[a-f0-9]{16,} | hv[sb]\.[\w-]{16,} | gsk_[A-Za-z0-9]{30,} | tskey-[\w-]{10,} | dapi[a-f0-9]{32}
    | AGE-SECRET-KEY-[A-Z0-9]{10,} | eyJ[\w-]{10,}\.[\w.-]{10,}
    )"""
_PLACED = re.compile(
    rf"""
    (?P<pem>-----BEGIN[ ][A-Z ]{{0,40}}PRIVATE[ ]KEY-----)[\s\S]*?(?=-----END|\Z)
    | (?P<scheme>\bauthorization["']?[ \t]{{0,4}}[:=][ \t]{{0,4}}["']?(?:\w{{1,16}}[ ])?)[^\s"']+
    | (?P<bearer>\bbearer[ ])[A-Za-z0-9+/=._~-]{{16,}}
    | (?P<cookie>\bcookie:[ ]?)[^"'\n]+
    | (?P<user>://[^\s:/@]{{0,256}}:)[^\s/]{{1,1024}}(?=@)
    | (?P<login>://)\w{{20,256}}(?=@)
    | (?P<query>[?&](?:key|sig|code)=)[^\s"'&]+
    | (?P<hook>\b(?:hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks
        |webhook\.office\.com/webhookb2)/)[^\s"'?]+
    | (?P<openssl>\bpass:)(?<=\s-passin[ ]pass:)\S+ | (?P<out>\bpass:)(?<=\s-passout[ ]pass:)\S+
    | (?P<netrc>\blogin[ \t]{{1,4}}\S{{1,256}}[ \t]{{1,4}}password[ \t]{{1,4}})\S+
    | {_SHAPES}
    """,
    re.IGNORECASE | re.VERBOSE,
)
_VALUE = re.compile(r"""\\?"(?:[^"\\\n]|\\.){0,4096}"|'[^'\n]{0,4096}'|["']?[^\s"'&]+""")

_TAKEN = {
    r"(?:mysql|mariadb)[\w-]*|7z[ar]?": "-p",
    "curl": r"(?:-[uU]|--(?:proxy-)?user)[ \t=]{0,4}(?=[^\s:]{0,256}:)",
    "sshpass": r"-p[ \t]{0,4}",
    r"(?:docker|podman|oras|az) login|mongo\w*": r"-p[ \t]{1,4}",
    "redis-cli": r"-a[ \t]{1,4}",
    r"ldap\w+": r"-w[ \t]{1,4}",
    "sqlcmd|bcp|ipmitool|zip|unzip": r"-P[ \t]{1,4}",
    "wandb login": r"(?=[\w-]{40})(?!-)",
    "smbclient|smbget|rpcclient": r"-U[ \t]{0,4}[^\s%]{1,256}%",
    "keytool": r"-\w{3,5}pass[ \t]{1,4}",
}
"""Programs, and what stands before a secret of theirs."""
_COMMAND = re.compile(
    "(?<![\\w.-])(?:" + "|".join(f"({program})" for program in _TAKEN) + ")(?=[ \\t])[^\\n|;&]{0,2000}"
)
_OPTIONS = [re.compile(rf"(\s{option})(?:{_VALUE.pattern})") for option in _TAKEN.values()]

_NAMED = re.compile(
    r"""(?<!\S)--?[\w.-]+[ \t]{1,4}(?=[^\s-])"""
    r"""|(?<![\w.-])[\w.-]+(?P<quote>\\?["'])?[ \t]{0,4}(?P<sign>[=:])(?!=)[ \t]{0,4}(?=\S)"""
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ALWAYS = (
    "token",
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "secrets",
    "credential",
    "credentials",
)
_KEYS = tuple(
    f"{kind}key{plural}"
    for kind in (
        "api",
        "access",
        "private",
        "secret",
        "account",
        "shared",
        "signing",
        "auth",
        "ssh",
        "master",
    )
    for plural in ("", "s")
)
_SHORT = frozenset({"pass", "pw", "pwd", "auth", "sig", "signature"})
_JOINED = ("sshpass", "dbpass", "userpass", "rootpass", "storepass", "keypass", "userpw", "dbpw")
_BEHIND = frozenset({"id", "value", "base"})
_ABOUT = re.compile(
    r"(?:files?|path|dir|directory|folder|mount|type|kind|names?|url|uri|endpoint|host|port|len|length|count|size"
    r"|limit|num|number|per|policy|algo|algorithm|method|mode|ttl|expir(?:y|es|ation)|lifetime|timeout|age|max|min"
    r"|refresh|interval|rotation|provider|manager|store|backend|class|format|encoding|header|field|prompt|hint"
    r"|(?:en|dis)abled?|required|cache|dispatch(?:er)?|drop(?:out|ping)?|parallel(?:ism)?|level|embeddings?|shift"
    r"|merg(?:e|ing)|mask|rate|budget|groups?|index|idx|ids|order|prob)"
)
"""Words in a variable's name, behind one for a secret, that make it something else: its place, its length."""
_ALIKE = {
    "key": "public primary foreign partition sort cache group index row hash lookup routing host hot unique"
    " order search column metric label name dict map barrier",
    "token": "pad eos bos unk mask sep cls special image video audio stop start end max min num per next new"
    " first last prompt by n total word",
    "pass": "num n forward backward one two single multi first second last by low high band all test max per"
    " each",
}
"""Words before these that make them something else: a table's key, a language model's word, a round."""
_HARMLESS = re.compile(
    r"""["']?(?:\d{1,3}|true|false|yes|no|none|null|on|off|ok|auto|required|basic|bearer|digest|ntlm
    |negotiate|oauth2?|munge|ldap|pam|kerberos|gssapi|publickey|password|plain|trust|value)["']?(?:[\s,;)}\]]|\Z)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Values that no short word makes a secret."""
_PLACE = re.compile(r"[\d,.:]+(?:\s|\Z)|[\w.~$-]*/|[~$.]")
_SIGNED = re.compile(r"""["']?[\w%+/=.-]{16}""")

_HINTS = (
    *(
        "token",
        "pass",
        "pw",
        "secret",
        "credential",
        "key",
        "auth",
        "sig",
        "bearer",
        "cookie",
        "://",
        "webhook",
    ),
    *(
        "hf_",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat",
        "glpat",
        "glrt",
        "gldt",
        "sk-",
        "k_live",
        "k_test",
    ),
    *(
        "xox",
        "xapp",
        "nvapi",
        "aiza",
        "akia",
        "asia",
        "ya29",
        "sg.",
        "npm_",
        "pypi-",
        "dckr",
        "dop_v1",
        "hvs.",
        "hvb.",
    ),
    *(
        "gsk_",
        "dapi",
        "eyj",
        "hooks.slack",
        "mysql",
        "mariadb",
        "7z",
        "curl",
        " login",
        "mongo",
        "redis-cli",
        "ldap",
    ),
    *("sqlcmd", "bcp", "ipmitool", "zip", "smb", "rpcclient"),
)


def redact(text: str) -> str:
    """The same text with passwords, tokens and keys replaced; most lines have none and pass unscanned.

    Only a private key spans more than one line.
    """
    if not _suspicious(text):
        return text
    if "PRIVATE KEY" in text.upper():
        text = _PLACED.sub(_hide, text)
    return "\n".join(_redact_line(line) if _suspicious(line) else line for line in text.split("\n"))


def redact_values(variables: Mapping[str, str]) -> dict[str, str]:
    """The same variables; the values of those whose name or value says so are hidden."""
    return {n: HIDDEN if _secret(n, "=", value[:80]) else redact(value) for n, value in variables.items()}


def _suspicious(text: str) -> bool:
    """Searching for plain words is many times faster than a regular expression that ignores case."""
    folded = text.casefold()
    return any(hint in folded for hint in _HINTS)


def _redact_line(line: str) -> str:
    line = _COMMAND.sub(_hide_options, _PLACED.sub(_hide, line))
    return "".join(_without_named(line))


def _hide(match: re.Match[str]) -> str:
    return (match[match.lastgroup] if match.lastgroup else "") + HIDDEN


def _hide_options(match: re.Match[str]) -> str:
    option = _OPTIONS[(match.lastindex or 1) - 1]
    return option.sub(rf"\g<1>{HIDDEN}", match[0])


def _without_named(line: str) -> Iterator[str]:
    done = 0
    for named in _NAMED.finditer(line):
        end = named.end()
        name, sign = named[0].rstrip(" \t=:\"'\\"), named["sign"] or ""
        if named.start() < done or not _secret(name, sign, line[end : end + 80], quoted=bool(named["quote"])):
            continue
        value = _VALUE.match(line, end)
        if value:
            yield line[done:end] + HIDDEN
            done = value.end()
    yield line[done:]


def _secret(name: str, sign: str, value: str, *, quoted: bool = False) -> bool:
    """Whether a name says that its value is one. `sign` is empty between an option and its value."""
    words = [word.lower() for word in _WORDS.findall(name)]
    while len(words) > 1 and words[-1] in _BEHIND:
        words.pop()
    if _says(words, name, sign, value, quoted):
        return True
    if name != name.upper() or not (sign == "=" or quoted) or _HARMLESS.match(value):
        return False
    return _says(_of_variable(words), name, sign, value, quoted)


def _says(words: list[str], name: str, sign: str, value: str, quoted: bool) -> bool:
    """The same of these words of the name."""
    *before, last = words or [""]
    if before and before[-1] in _ALIKE.get(last, "").split():
        return False
    if last.endswith(_ALWAYS) or last.endswith(_KEYS):
        return True
    if last == "bearer":
        return (name.startswith("-") or sign == "=") and not _HARMLESS.match(value)
    if last == "key":
        alone = (not sign or (name == "KEY" and sign == "=")) and not _HARMLESS.match(value)
        return bool(before) or (alone and _PLACE.match(value) is None)
    if not (last in _SHORT or last in _JOINED) or _HARMLESS.match(value):
        return False
    if last.startswith("sig"):
        return _SIGNED.match(value) is not None
    if last == "pwd" and not before and _PLACE.match(value):
        return False
    return bool(before) or sign != ":" or quoted


def _of_variable(words: list[str]) -> list[str]:
    """The words of a variable's name up to one that tells of a secret in its middle: HF_TOKEN_READ."""
    for at in range(len(words) - 1, 0, -1):
        if "".join(words[max(0, at - 2) : at]).endswith((*_ALWAYS, *_KEYS, *_JOINED)):
            return [] if any(map(_ABOUT.fullmatch, words[at:])) else words[:at]
    return []
