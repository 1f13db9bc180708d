"""Secrets are hidden, ordinary text is not touched, and neither takes long."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.text.redact import HIDDEN, redact, redact_values

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("HF_TOKEN=abc", "HF_TOKEN=#"),
        ("DB_PASSWORD=p;x/y", "DB_PASSWORD=#"),
        ("password: hunter2", "password: #"),
        ("passwd2 = x rest", "passwd2 = # rest"),
        ("passphrase='two words'", "passphrase=#"),
        ('{"password":"a b\\"c", "x":1}', '{"password":#, "x":1}'),
        ('{"api_key": "k", "accessToken": "t"}', '{"api_key": #, "accessToken": #}'),
        ("AWS_SECRET_ACCESS_KEY=a/b+c==", "AWS_SECRET_ACCESS_KEY=#"),
        ("found AKIAIOSFODNN7EXAMPLE in the log", "found # in the log"),
        ("https://x/?token=abc&page=2", "https://x/?token=#&page=2"),
        ("git clone https://user:p@ss@host/path@x", "git clone https://user:#@host/path@x"),
        ("redis://:pw@host:6379/0", "redis://:#@host:6379/0"),
        ("mysql --password s3cret -h db", "mysql --password # -h db"),
        ("wandb login --api-key=k1 --verbose", "wandb login --api-key=# --verbose"),
        ("run --hf-token 'a b' --steps 3", "run --hf-token # --steps 3"),
        ("Authorization: Bearer abc", "Authorization: Bearer #"),
        ("authorization: Basic dXNlcjpwYXNz", "authorization: Basic #"),
        ("'Authorization': 'Bearer abc'", "'Authorization': 'Bearer #'"),
        ("curl -H bearer 0123456789abcdef0", "curl -H bearer #"),
        ("login hf_AbCdEfGhIjKlMnOpQrStUv", "login #"),
        ("ghp_AbCdEfGhIjKlMnOpQrStUv01", "#"),
        ("glpat-AbCdEfGhIjKlMnOpQrSt", "#"),
        (f"cookie {JWT}", "cookie #"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nmore",
            "-----BEGIN RSA PRIVATE KEY-----#-----END RSA PRIVATE KEY-----\nmore",
        ),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\ncut off", "-----BEGIN OPENSSH PRIVATE KEY-----#"),
    ],
)
def test_hidden(text: str, shown: str) -> None:
    assert redact(text) == shown.replace("#", HIDDEN)


@pytest.mark.parametrize(
    "text",
    [
        "tokenizer=bert-base-chinese",
        "--tokenizer bert --max-tokens 512",
        "max_tokens 512 tokens_per_batch=4096 num_tokens: 7",
        "MASTER_PORT=29500",
        "sudo: a password is required",
        "Permission denied (publickey,password).",
        "Enter passphrase for key '/root/.ssh/id_rsa':",
        "public_key=abc key=5 primary_key: id",
        "basic configuration, a bearer network",
        "http://[::1]:8080/x@y ssh://host:22/a",
        "disk-scheduler-with-a-long-name asia-northeast1-b",
        "/usr/share/secrets/readme",
        "设备不存在 token",
    ],
)
def test_untouched(text: str) -> None:
    assert redact(text) == text


def test_variables() -> None:
    variables = {"HF_TOKEN": "abc def", "HCCL_IF_IP": "10.0.0.1", "PROXY": "http://u:pw@proxy:1"}
    assert redact_values(variables) == {
        "HF_TOKEN": HIDDEN,
        "HCCL_IF_IP": "10.0.0.1",
        "PROXY": f"http://u:{HIDDEN}@proxy:1",
    }


PARTS = st.sampled_from(["password", "token", "=", ": ", '"', "'", "\\", "://u:", "@h", "--", " ", "x", "\n"])


@given(st.lists(PARTS, max_size=20).map("".join))
def test_redacting_twice_hides_no_less_and_keeps_line_ends(text: str) -> None:
    once = redact(text)
    assert redact(once).count("\n") == once.count("\n") == text.count("\n")


UNITS = (
    *(
        "token",
        "a",
        "password ",
        "://a:",
        "--a-",
        "secret=",
        "'",
        '\\"',
        "-----BEGIN PRIVATE KEY-----",
        "eyJ",
    ),
    *(
        "authorization: ",
        "bearer ",
        'password="\\',
        "a_",
        "--token",
        "hf_",
        "eyJaaaaaaaaaaa.",
        "x@",
        "\t",
        "key",
    ),
)


@pytest.mark.parametrize("unit", UNITS)
def test_linear_time(unit: str) -> None:
    began = time.process_time()
    redact("password " + unit * (400_000 // len(unit)))
    assert time.process_time() - began < 10
