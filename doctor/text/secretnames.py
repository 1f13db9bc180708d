"""Decides by a name whether its value is a secret: HF_TOKEN, --wandb-key, "api_key", OBS_SK, 密码.

Names that only look similar (`tokenizer`, `max_tokens`, `--passes`, `sk` for a language) do not count.
"""

import re

from doctor.text.hostprogram import sections
from doctor.text.late import late

_WORDS = late(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ALWAYS = (
    *("token", "password", "passwd", "passphrase", "passcode", "secret", "secrets"),
    *("secretid", "credential", "credentials", "passwort", "kennwort"),
)
_KINDS = ("api", "access", "private", "secret", "account", "shared", "signing", "auth", "ssh", "master")
_KEYS = tuple(f"{kind}key{plural}" for kind in _KINDS for plural in ("", "s", "id"))
_SHORT = frozenset({"creds", "pass", "pw", "pwd", "auth", "sig", "signature"})
_JOINED = ("sshpass", "dbpass", "userpass", "rootpass", "storepass", "keypass", "userpw", "dbpw")
_CODES = frozenset({"otp", "totp", "psk"})
_PAIR = frozenset({"ak", "sk", "aksk"})
"""Cloud providers' names for an access key and its secret."""
_BEHIND = frozenset({"id", "value", "base"})
_DATA = (("key", "data"), ("authority", "data"), ("certificate", "data"))
"""The ends of names of secrets in a kubeconfig."""
_TOLD = sections(__file__, "secretnames.txt")
_ABROAD = late(_TOLD["patterns"]["abroad"], re.IGNORECASE)
"""Words for a secret in other languages, at the end of a name."""
_ABOUT = late(_TOLD["patterns"]["about"])
"""Words that, after a secret's word in a variable's name, make the value harmless: its path, its length."""
_ALIKE = _TOLD["alike"]
"""Words before these that make them harmless: a table's key, a model's token, a pass over data."""
_END = r"""\\{0,7}["']?(?:[\s,;)}\]&|]|\Z)"""
_NOTHING = late(
    rf"""["']?(?:true|false|null|none|nil|VALUE\.?|<[\w -]{{1,30}}>){_END}|secrets?\s+["']""", re.IGNORECASE
)
"""Values that are never a secret: a switch, a placeholder of a manual, a name in the middle of a sentence."""
_HARMLESS = late(
    rf"""["']?(?:\d{{1,3}}|true|false|yes|no|none|null|on|off|ok|auto|required|basic|bearer|digest|ntlm
    |negotiate|oauth2?|munge|ldap|pam|kerberos|gssapi|publickey|password|plain|trust|value){_END}""",
    re.IGNORECASE | re.VERBOSE,
)
"""Values that are not a secret if the name is only a short word."""
_AMOUNT = late(rf"[-+]?(?:\d{{1,5}}|\d{{1,9}}\.\d{{1,9}}(?:e[-+]?\d{{1,3}})?)(?:\s?(?:m?s|k|/s))?{_END}")
"""A number, as of a language model's tokens or of tokens per second."""
_NUMBER = rf"""["']?(?:0x[\da-f]+|[-+]?[\d.,:x_/]{{1,40}}(?:e[-+]?\d+)?){_END}"""
_PLAIN = late(
    rf"""{_NUMBER}|["']?(?:(?-i:[A-Z]?[a-z]{{0,14}}|[A-Z]{{0,5}})|(?:bf|fp|u?int|b?float)\d+
    |[a-z]{{2,3}}-[a-z]{{2,4}}|[a-z]{{1,9}}(?:_[a-z]{{1,9}}){{1,3}}){_END}
    |["']?(?:[^\w"'+/=-]|[a-z_]\w*(?:\.[a-z_]|[(\[]))""",
    re.IGNORECASE | re.VERBOSE,
)
"""Values of ak and sk that are not keys: numbers, words, languages, types, calls."""
_COUNT = late(_NUMBER, re.IGNORECASE)
_PLACE = late(r"[\d,.:]+(?:\s|\Z)|[\w.~$-]*/|[~$.]")
_KEPT_IN = late(r"""["']?(?:/(?:etc|var|root|home|run|opt|usr|tmp|mnt|data|secrets)/|~/|\./)""")
"""A path: a key may be given as a file."""
_SIGNED = late(r"""["']?[\w%+/=.-]{16}""")
_LATIN = late(r"""["'“‘「]?[!-~]""")

HINTS = (
    *("token", "pass", "pw", "secret", "credential", "creds", "key", "auth", "sig", "otp", "kennwort"),
    *("-data", "_data"),
    *(pair + sign for pair in ("ak", "sk") for sign in "=:：＝>\"' \t\\"),
    *("密", "秘", "私", "金", "口令", "令牌", "權杖", "凭", "憑", "授权码", "验证码"),
    *("パスワード", "비밀번호", "пароль", "contraseña"),
)
"""Every text with the name of a secret contains one of these, in lower case."""


def is_secret(name: str, sign: str, value: str, *, quoted: bool = False) -> bool:
    """Whether a name marks its value as a secret. `sign` is empty between an option and its value."""
    if not name.isascii() and (abroad := _ABROAD.search(name)) and abroad.end() == len(name):
        return _LATIN.match(value) is not None and not _AMOUNT.match(value)
    words = [word.lower() for word in _WORDS.findall(name)]
    while len(words) > 1 and words[-1] in _BEHIND:
        words.pop()
    if _words_mark_secret(words, name, sign, value, quoted):
        return True
    if name != name.upper() or not (sign == "=" or quoted) or _HARMLESS.match(value):
        return False
    return _words_mark_secret(_of_variable(words), name, sign, value, quoted)


def _words_mark_secret(words: list[str], name: str, sign: str, value: str, quoted: bool) -> bool:
    """Whether these words of the name mark the value as a secret."""
    *before, last = words or [""]
    if _NOTHING.match(value):
        return False
    if before and before[-1] in _ALIKE.get(last, "").split():
        return False
    if last == "token" and name.islower() and sign and _AMOUNT.match(value):
        return False
    if last.endswith((*_ALWAYS, *_KEYS)) or last in _CODES:
        return True
    if last in _PAIR and (name.startswith("-") or (before and name.isupper())):
        return not (_HARMLESS.match(value) or _COUNT.match(value))
    if last in _PAIR or tuple(words[-2:]) in _DATA:
        return not _PLAIN.match(value)
    if last == "bearer":
        return (name.startswith("-") or sign == "=") and not _HARMLESS.match(value)
    if last == "key":
        alone = (not sign or (name == "KEY" and sign == "=")) and not _HARMLESS.match(value)
        return not _KEPT_IN.match(value) if before else alone and _PLACE.match(value) is None
    if not (last in _SHORT or last in _JOINED) or _HARMLESS.match(value):
        return False
    if last.startswith("sig"):
        return _SIGNED.match(value) is not None
    if last == "pwd" and not before and _PLACE.match(value):
        return False
    return bool(before) or sign != ":" or quoted


def _of_variable(words: list[str]) -> list[str]:
    """The words of a variable's name up to a word for a secret in its middle: HF_TOKEN_READ."""
    for at in range(len(words) - 1, 0, -1):
        if "".join(words[max(0, at - 2) : at]).endswith((*_ALWAYS, *_KEYS, *_JOINED)):
            return [] if any(map(_ABOUT.fullmatch, words[at:])) else words[:at]
    return []
