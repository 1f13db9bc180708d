"""Whatever a host prints, a parser returns a value or reports that it did not understand, in bounded time."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.api import Capture, Fact, Read
from doctor.errors import UnreadableOutput
from tests.support.captures import as_read, every_fact, sample
from tests.support.cases import from_cases
from tests.support.limits import within

FACTS = every_fact()
LONG = 200_000
PATHS = sorted({path for f in FACTS.values() if isinstance(f.command, Read) for path in f.command.paths})
SAMPLES = ("ip_o4_addr", "ss_lntp", "df_kP_dev_shm_64M")
SEEDS = (
    *(sample(f"host/{name}.txt") for name in SAMPLES),
    sample("version/driver_version.info"),
    sample("dmesg/host_messages_oom_ext4_conntrack.txt"),
    *from_cases(__file__, "ANSWERS", tuple[str, ...]),
    as_read(dict.fromkeys(PATHS, "1024 2048")),
    as_read(dict.fromkeys(PATHS, "unlimited\nMemTotal: 5 kB\nversion=8.0")),
)
NONSENSE = (
    "",
    "\n",
    "[N/A]",
    "命令未找到：请联系管理员",
    "\x1b[2J\x1b[31mred\x1b[0m",
    "\0\0",
    "\ud800",
    "٣" * 12,
)
UNITS = (*from_cases(__file__, "UNITS", tuple[str, ...]), "9" * 4400 + "\n")


def tolerate(fact: Fact[Any], text: str) -> None:
    with contextlib.suppress(UnreadableOutput):
        fact.parse(Capture(fact.name, 0, text))


@pytest.mark.parametrize("name", FACTS)
def test_nonsense_is_understood_or_refused(name: str) -> None:
    for text in NONSENSE:
        tolerate(FACTS[name], text)
        tolerate(FACTS[name], as_read(dict.fromkeys(PATHS, text)))


@pytest.mark.parametrize("name", FACTS)
def test_an_answer_cut_at_every_byte(name: str) -> None:
    for seed in SEEDS[:-2]:
        data = seed.encode()
        for end in range(len(data)):
            tolerate(FACTS[name], data[:end].decode(errors="replace"))


@pytest.mark.parametrize("name", FACTS)
@given(text=st.text(max_size=300))
def test_any_text(name: str, text: str) -> None:
    tolerate(FACTS[name], text)
    tolerate(FACTS[name], as_read(dict.fromkeys(PATHS, text)))


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A real answer with some parts replaced, repeated or removed."""
    text = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 30)))
        piece = draw(st.sampled_from([*NONSENSE, text[start:end] * 2, "-1", "9" * 30, "0x", ":", "%"]))
        text = text[:start] + piece + text[end:]
    return text


@pytest.mark.slow
@pytest.mark.parametrize("name", FACTS)
@given(text=mutated())
def test_damaged_answers(name: str, text: str) -> None:
    tolerate(FACTS[name], text)


@pytest.mark.slow
@pytest.mark.parametrize("name", FACTS)
def test_long_hostile_text_is_read_soon(name: str) -> None:
    for unit in UNITS:
        with within(5):
            tolerate(FACTS[name], unit * (LONG // len(unit)))


@pytest.mark.slow
@pytest.mark.parametrize("name", FACTS)
def test_long_hostile_files_are_read_soon(name: str) -> None:
    fact = FACTS[name]
    for path in fact.command.paths if isinstance(fact.command, Read) else ():
        for unit in UNITS:
            with within(5):
                tolerate(fact, as_read({path: unit * (LONG // len(unit))}))
