"""Secrets that are recognized without a name: by their shape, their place, or the program that takes them.

The keys of each table are words in lower case; every text that a pattern finds contains one of its words. The
words are searched for first, which is many times faster. Every pattern is bounded, so that hostile text costs
linear time.
"""

import re

from doctor.text.late import late

HIDDEN = "[hidden]"

VALUE = (
    r"""(?:\w{1,20}\()?(?:\\{1,7}"[^"\\\n]{0,4096}\\{1,7}"|"(?:[^"\\\n]|\\.){0,4096}"|'[^'\n]{0,4096}')"""
    r"""|["'“‘「]?(?:[^\s"'&，。；、）】」”’<]|<(?!/))+"""
)
"""The value after a name or an option: a quoted text, or the rest of a word."""

SHAPES = {
    "hf_ api_org_": r"(?:hf|api_org)_[A-Za-z0-9]{16,}",
    "ghp_ gho_ ghu_ ghs_ ghr_": r"gh[pousr]_[A-Za-z0-9]{16,}",
    "github_pat": r"github_pat_\w{16,}",
    "glpat glrt gldt": r"gl(?:pat|rt|dt)-[\w-]{16,}",
    "gr1348941": r"GR1348941[\w-]{8,}",
    "sk-": r"sk-(?!ssh-|ecdsa-)[\w-]{20,}",
    "pk-lf-": r"pk-lf-[\w-]{16,}",
    "k_live k_test": r"[rs]k_(?:live|test)_\w{16,}",
    "whsec_": r"whsec_\w{16,}",
    "xox": r"xox[abeprs]-[\w-]{10,}",
    "xapp": r"xapp-[\w-]{10,}",
    ":aa": r"\d{8,11}:AA[\w-]{30,}",
    "nvapi": r"nvapi-[\w-]{16,}",
    "aiza": r"AIza[\w-]{30,}",
    "gocspx-": r"GOCSPX-[\w-]{16,}",
    "1//0": r"1//0[\w-]{24,}",
    "ya29": r"ya29\.[\w-]{16,}",
    "akia asia": r"(?-i:AKIA|ASIA)[A-Z0-9]{12,}",
    "ltai akid aklt": r"(?-i:LTAI|AKID|AKLT)[A-Za-z0-9]{12,}",
    "altak": r"(?:bce-v3/)?ALTAK-?[A-Za-z0-9]{16,}(?:/[a-f0-9]{16,})?",
    "8q~": r"[\w~.-]{3}8Q~[\w~.-]{24,}",
    "sg.": r"SG\.[\w-]{16,64}\.[\w-]{16,}",
    "key- xkeysib-": r"(?:xkeysib-[\w-]{20,}|key-[a-f0-9]{32})",
    "npm_": r"npm_[A-Za-z0-9]{30,}",
    "pypi-": r"pypi-[\w-]{16,}",
    "rubygems_": r"rubygems_[a-f0-9]{20,}",
    "akcp cmvmdgtu": r"(?:AKCp\d|cmVmdGtu)[\w=]{20,}",
    "dckr_": r"dckr_[po]at_[\w-]{16,}",
    "dop_v1": r"dop_v1_[a-f0-9]{16,}",
    "hvs. hvb.": r"hv[sb]\.[\w-]{16,}",
    "s.": r"(?-i:s\.(?=[A-Za-z]{0,23}\d)(?=[a-z\d]{0,23}[A-Z])[A-Za-z0-9]{24,26})\b",
    "atlasv1": r"[A-Za-z0-9]{10,64}\.atlasv1\.[\w-]{20,}",
    "dp.": r"dp\.(?:st|pt|ct|sa)\.[\w.-]{20,}",
    "pul- bkua_ ccipat_ pmak- nrak": r"(?:pul-|bkua_|CCIPAT_|PMAK-|NRAK-?)[\w-]{20,}",
    "figd_ ntn_ sbp_ nfp_ pscale_": r"(?:figd|ntn|sbp|nfp|pscale_(?:tkn|pw|oauth))_[\w-]{20,}",
    "shpat_ shpss_": r"shp(?:at|ss)_\w{20,}",
    "atatt3 atbb": r"AT(?:ATT3|BB)[\w=-]{20,}",
    "glsa_ glc_ sntry": r"(?:glsa|glc|sntry[su])_[\w+/=-]{16,}",
    "gsk_": r"gsk_[A-Za-z0-9]{30,}",
    "xai- pplx- csk-": r"(?:xai|pplx|csk)-[A-Za-z0-9]{24,}",
    "tgp_v1 fw_ r8_ jina_": r"(?:tgp_v1|fw|r8|jina)_[A-Za-z0-9-]{20,}",
    "lsv2_ pcsk_ wandb_v1": r"(?:lsv2_[ps][tk]|pcsk|wandb_v1)_\w{16,}",
    "ms-": r"ms-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}",
    "tskey": r"tskey-[\w-]{10,}",
    "dapi": r"dapi[a-f0-9]{20,}(?:-\d)?",
    "lin_api": r"lin_api_\w{16,}",
    "ops_ey": r"ops_eyJ[\w=+/-]{20,}",
    "age-secret": r"AGE-SECRET-KEY-[A-Z0-9]{10,}",
    "munge:": r"MUNGE:[\w+/=]{16,}",
    "eyj": r"eyJ[\w-]{10,}\.[\w.-]{10,}",
}
"""Tokens with a prefix that their issuer gives them."""

_WORD = "password|passwd|passphrase|passcode|secret|token|otp|api key|access key"

PLACES = (
    ("private key", r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----", r"[\s\S]*?(?=-----END|\Z)"),
    (
        "authorization",
        r"""\bauthorization["']?[ \t]{0,4}[:=][ \t]{0,4}["']?(?:\w{1,16} )?""",
        r"""[^\s"']+""",
    ),
    ("bearer", r"\bbearer ", r"[A-Za-z0-9+/=._~-]{16,}"),
    ("cookie", r"\bcookie: ?", r"""(?:[^"'\n]|(?<==)["'][^"'\n]{0,4096}["'])+"""),
    ("://", r"://", r"\w{20,256}(?::[^\s/]{1,1024})?(?=@)"),
    ("://", r"://[^\s:/@]{0,256}:", r"[^\s/]{1,1024}(?=@)"),
    ("key= sig= code=", r"[?&](?:key|sig|code)=", r"""[^\s"'&]+"""),
    (
        "hooks.slack discord webhookb2",
        r"\b(?:hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks"
        r"|webhook\.office\.com/webhookb2)/",
        r"""[^\s"'?]+""",
    ),
    (
        "hook/ hooks/",
        r"\.[a-z]{2,20}(?::\d{1,5})?/(?:[\w.-]{1,64}/){0,5}?(?:web)?hooks?/(?:catch/)?",
        r"""(?=[\w/-]{0,80}\d)[\w/-]{16,}(?![\w.-]{0,80}\.\w)""",
    ),
    (".telegram.", r"\bapi\.telegram\.org/(?:file/)?bot", r"""[^\s"'/?]+"""),
    (
        "pass secret token otp key",
        rf"\b(?:{_WORD})s?[ ](?:is|was|(?:is |was |re)?set to|changed to):?[ ]",
        r"""["'][^"'\n]{1,256}["']|(?=\D{0,80}\d)[^\s"']{6,}(?<![,.])""",
    ),
    (
        "密 口令",
        r"(?:密[码碼]|口令|密[钥鑰])(?:为|為|是)[:：]?[ ]{0,2}[“「]?",
        r"(?=[!-~])[^\s，。；、）”」]+",
    ),
    (
        "密 口令 秘",
        r"(?:密[码碼]|口令|[密秘][钥鑰])(?:[ ]?ID)?[ \t】]{0,4}[:：=＝]?[ ]{0,2}[“「]?",
        r"(?=[!-/:-~]{0,80}\d)[!-~]{6,}",
    ),
    (
        "pass secret token otp key",
        rf"\b(?:{_WORD})[ ](?:for|of)[ ][^\n:=：＝]{{1,80}}[:=：＝][ \t]{{0,4}}",
        r"(?!(?:incorrect|wrong|denied|failed|expired|required|invalid|accepted|changed|rejected|missing)\b)"
        r"""(?:[^\s"']{1,256}(?=["']?\s{0,8}\Z)|(?=\D{0,80}\d)[^\s"']{6,256})""",
    ),
    (
        "key token",
        r"\b(?:(?:api|access|secret)[ _-]?(?:key|token)|token)[ ]{1,2}[(\"']?",
        r"(?=[\w.+/=~-]{20})(?=\D{0,80}\d)(?=(?-i:[^a-z]{0,80}[a-z]))"
        r"(?=(?-i:[^A-Z\s]{0,80}[A-Z])|[a-f0-9]{32})[\w.+/=~-]+",
    ),
    ("passin", r"\bpass:(?<=\s-passin pass:)", r"\S+"),
    ("passout", r"\bpass:(?<=\s-passout pass:)", r"\S+"),
    (
        "key",
        r"""^(?:[ ]{1,32}|\t)(?:- )?["']?key["']?[ ]{0,4}[:=][ ]{0,4}["']?""",
        r"(?:[a-f0-9]{32,64}|(?=\D{0,64}\d)(?-i:(?=[^a-z]{0,64}[a-z])(?=[^A-Z]{0,64}[A-Z]))[\w+/=-]{24,64})"
        r"""(?=["',]{0,2}\s{0,8}\Z)""",
    ),
    ("password", r"^[ \t]{1,16}password[ \t]{1,4}", r"(?=\S{0,80}\d)\S{6,}(?=\s{0,8}\Z)"),
    ("login", r"\blogin[ \t]{1,4}\S{1,256}[ \t]{1,4}password[ \t]{1,4}", r"\S+"),
    ("bindpw", r"\bbindpw[ \t]{1,4}", r"\S+"),
    ("htpasswd", r"\bhtpasswd -\w{0,8}b\w{0,8} \S{1,256} \S{1,64} ", r"\S+"),
    (
        "chpasswd -stdin sudo",
        r"""\becho[ ](?:-n[ ])?["']?(?:[\w.-]{1,64}:)?""",
        r"""[^\s"'|]{1,256}(?=["']?\s{0,4}\|[^\n|]{0,80}(?:chpasswd|-stdin\b|sudo -S))""",
    ),
    ("alias host", r"\bmc (?:alias set|config host add) \S{1,100} \S{1,256} ", r"[^\n|;&]+"),
    ("wandb", r"\bwandb\b[^\n]{0,60}?\bkey[ :=]{1,3}", r"(?=[\w-]{40})[\w-]+"),
)
"""Three values each: words, the pattern of the text before a secret (it is kept), the secret's pattern."""

TAKEN = {
    "mysql mariadb 7z": (r"(?:mysql|mariadb)[\w-]*|7z[ar]?", "-p"),
    "curl http xh etcdctl": (
        "curl|https?|xh|etcdctl",
        r"(?:-[uUa]|--(?:proxy-)?user)[ \t=]{0,4}(?=[^\s:]{0,256}:)",
    ),
    "sshpass": ("sshpass", r"-p[ \t]{0,4}"),
    " login mongo cqlsh": (
        r"(?:docker|podman|nerdctl|skopeo|buildah|oras|az|swanlab|crane auth|helm registry) login"
        r"|mongo\w*|cqlsh",
        r"-[pk][ \t]{1,4}(?!\d{1,5}\b)",
    ),
    "redis-cli": ("redis-cli", r"-a[ \t]{1,4}"),
    "ldap": (r"ldap\w+", r"-w[ \t]{1,4}"),
    "sqlcmd bcp ipmitool zip mosquitto": (r"sqlcmd|bcp|ipmitool|zip|unzip|mosquitto_\w+", r"-P[ \t]{1,4}"),
    "wandb login": ("wandb login", r"(?=[\w-]{40})(?!-)"),
    "smb rpcclient": ("smbclient|smbget|rpcclient", r"-U[ \t]{0,4}[^\s%]{1,256}%"),
    "lftp": ("lftp", r"-u[ \t]{0,4}[^\s,]{1,256},"),
    "snmp": (r"snmp\w+", r"-[AXc][ \t]{1,4}"),
    "openssl": ("openssl enc", r"-k[ \t]{1,4}"),
    "configure": (r"\w{1,20} configure set", r"(?:secret\w{2,20}|token)[ \t]{1,4}"),
    "keytool": ("keytool", r"-\w{3,5}pass[ \t]{1,4}"),
    "obsutil ossutil coscmd": (r"(?:obsutil|ossutil|coscmd)[\w.-]* config", r"-[ikas](?:=|[ \t]{1,4})"),
}
"""Programs, and the option before their secret."""

_SHAPE = late(r"\b(?:" + "|".join(SHAPES.values()) + ")", re.IGNORECASE)
_PLACE = late(
    "|".join(f"(?P<p{at}>{before})(?:{secret})" for at, (_, before, secret) in enumerate(PLACES)),
    re.IGNORECASE,
)
_COMMAND = late(
    r"(?<![\w.-])(?:"
    + "|".join(f"({program})" for program, _ in TAKEN.values())
    + r")(?=[ \t])[^\n|;&]{0,2000}"
)
_OPTIONS = [late(rf"(\s{before})(?:{VALUE})") for _, before in TAKEN.values()]


HINTS = tuple(
    word for words in (*SHAPES, *TAKEN, *(words for words, _, _ in PLACES)) for word in words.split()
)


def hide_places(text: str) -> str:
    """Hides secrets that are recognized by their place, including private keys of several lines."""
    return _PLACE.sub(lambda found: found[found.lastgroup or 0] + HIDDEN, text)


def hide_shapes(line: str) -> str:
    return _COMMAND.sub(_hide_options, _SHAPE.sub(HIDDEN, line))


def _hide_options(found: re.Match[str]) -> str:
    return _OPTIONS[(found.lastindex or 1) - 1].sub(rf"\g<1>{HIDDEN}", found[0])
