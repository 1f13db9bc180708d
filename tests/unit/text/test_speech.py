"""Sentences are recognised by their templates and said in Chinese; the catalogue is sound.

A sentence without a translation fails nothing: the last test lists what is left.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import pytest

from doctor.hang import report as hang
from doctor.logs import report as logs
from doctor.report import faults
from doctor.report.card import CardKind
from doctor.slow import report as slow
from doctor.text import speech
from doctor.text.catalogue import HOLE, Template, read_catalogue, read_po
from doctor.text.language import Language
from doctor.text.speech import CATALOGUE, speaking, t, t_list, translated
from tests.support.sentences import sentences, untranslated

WRONG = {
    "挂住": "卡住, 卡死",
    "指控": "误报, 定位到",
    "故障源": "根因, 根因节点",
    "与众不同": "与其他主机不一致",
    "网络接口": "网口, 网卡",
    "弄坏": "注入故障",
}
"""Words that are not used, and what is used in their place."""
ENTRIES = read_catalogue(CATALOGUE)


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("its link is down", "网口链路断开（DOWN）"),
        ("Its link is down.", "网口链路断开（DOWN）。"),
        ("ok on all: memory", "全部正常：内存"),
        ("Faults also in: memory", "另有故障：内存"),
        (
            "rank 0 on node1 ended with exit code 1 (a-b, 2 lines)",
            "node1 上的 rank 0 以退出码 1 退出（a-b，2 行）",
        ),
        ("The job moves", "作业在正常推进"),
        ("--checks: more: it is not a folder", "--checks：more：不是目录"),
        (
            "2 (no torch is expected (--expect torch=any asks for it))",
            "2（不要求有 torch（--expect torch=any 可要求检查））",
        ),
        (
            "! Unlike the others: node2 (device links up); node[5,7-8] (reserved ports).",
            "! 与其他主机不一致：node2（设备链路连通）；node[5,7-8]（保留端口）。",
        ),
        (
            "npu-ports of node[1-3] could not be read: its command is not installed there",
            "无法读取 node[1-3] 的 npu-ports：主机上没有安装其命令",
        ),
        (
            "rank 5 on node3: stopped in step 10 before a tp all_reduce; rank 1 waits for it (smoke-hang)",
            "node3 上的 rank 5：停在第 10 步，未进入 tp all_reduce；rank 1 在等它（smoke-hang）",
        ),
        ("its link is down (port 1) (2 lines)", "网口链路断开（DOWN）（端口 1）（2 行）"),
        ("Try 'doctor check -h' for help.", "执行 'doctor check -h' 查看帮助。"),
        ("3 faults", "3 个故障"),
        ("1 fault", "1 个故障"),
        ("rank 3 on node2", "node2 上的 rank 3"),
        ("8 hosts · 64 ranks", "8 台主机 · 64 个 rank"),
        ("2 of 4 hosts are faulty: node2 (memory).", "4 台主机中有 2 台故障：node2（内存）。"),
        ("no move for 3.7 s; its process is stopped", "3.7 秒没有进展；其进程已暂停"),
        ("ok on all: firewall", "全部正常：防火墙"),
        ("4 hosts: 2 healthy, 1 faulty, 1 unexamined", "4 台主机：2 台健康，1 台故障，1 台未检查"),
        (
            "a GPU fell off the bus (PCI 0:1); then a GPU fell off the bus (PCI 0:2)",
            "GPU 掉卡（从总线上掉线）（PCI 0:1）；随后 GPU 掉卡（从总线上掉线）（PCI 0:2）",
        ),
        (
            "rank 5 on node3: stopped in step 12 before a tp all_reduce; ranks 1, 3-4 wait for it",
            "node3 上的 rank 5：停在第 12 步，未进入 tp all_reduce；rank 1, 3-4 在等它",
        ),
    ],
)
def test_a_sentence_is_recognised(english: str, chinese: str) -> None:
    assert translated(english) == chinese


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("There are gpus, hang, healthy, loader.", "可选：gpus, hang, healthy, loader。"),
        ("Did you mean 'healthy' or 'hang'?", "您是不是要用 'healthy' 或 'hang'？"),
        ("There is no demo 'healthy'.", "没有名为 'healthy' 的演示。"),
        ("What to do with a job that hangs. Default: report.", "作业卡死时如何处理。默认：report。"),
        (
            "memory   is killed by SIGKILL\n  healthy  sleeps forever",
            "memory   被 SIGKILL 终止\n  healthy  永久休眠",
        ),
    ],
)
def test_names_that_can_be_typed_stay(english: str, chinese: str) -> None:
    assert translated(english) == chinese


@pytest.mark.parametrize(
    "quoted",
    [
        "RuntimeError: it broke at this point",
        "sudo hccn_tool -i 3 -link -g",
        "nothing that anybody has translated may be put together from halves on the way",
    ],
)
def test_anything_else_stays_as_it_is(quoted: str) -> None:
    with speaking(Language.ZH):
        assert t(quoted) == quoted


@pytest.mark.parametrize("words", [hang.WORDS, slow.WORDS, logs._WORDS, faults.VERDICTS])
def test_every_verdict_of_a_page_is_translated(words: dict[object, tuple[str, CardKind]]) -> None:
    assert all(translated(word) for word, _ in words.values())


@pytest.mark.parametrize(
    "word", ["Hangs", "Cause", "Possible cause", "Named", "Suspected", "Fixed", "Interrupted"]
)
def test_every_other_word_of_a_page_is_translated(word: str) -> None:
    assert translated(word)


def test_english_is_not_touched() -> None:
    assert t("its link is down") == "its link is down"
    assert t_list("its link is down, 3 faults") == "its link is down, 3 faults"


def test_blanks_around_a_sentence_stay() -> None:
    with speaking(Language.ZH):
        assert t("  3 faults ") == "  3 个故障 "


def test_a_hole_for_a_number_takes_nothing_else() -> None:
    template = Template("{n} host{s|}", "{n} 台主机")
    assert template.pattern.fullmatch("1,024 hosts")
    assert template.pattern.fullmatch("1 host")
    assert not template.pattern.fullmatch("all hosts")


def test_a_catalogue_is_gettexts() -> None:
    text = 'msgid ""\nmsgstr "Language: zh_CN\\n"\n\n# said\nmsgid "a "\n"\\"b\\""\nmsgstr "甲"\n'
    assert list(read_po(text)) == [("", "Language: zh_CN\n"), ('a "b"', "甲")]


@pytest.mark.parametrize("path", sorted(CATALOGUE.glob("*.po")), ids=lambda path: path.name)
def test_no_entry_is_broken(path: object) -> None:
    entries = [pair for pair in read_po(path.read_text()) if pair[0]]  # type: ignore[attr-defined]
    wrong = []
    for english, chinese in entries:
        known = {name for name in HOLE.findall(english) if "|" not in name}
        if set(HOLE.findall(chinese)) != known:
            wrong.append(f"{english}: holes")
        Template(english, chinese).pattern  # noqa: B018  # it compiles
        wrong += [
            f"{english}: {word} is not used: {better}" for word, better in WRONG.items() if word in chinese
        ]
    assert not wrong


def test_no_sentence_has_two_translations() -> None:
    """Neither in one file nor in two: only one of them would be used, and nobody sees which."""
    places = defaultdict(list)
    for path in CATALOGUE.glob("*.po"):
        for english, _ in read_po(path.read_text(encoding="utf-8")):
            if english:
                places[english].append(path.name)
    assert not {english: names for english, names in places.items() if len(names) > 1}


def test_no_sentence_of_the_catalogue_is_taken_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence without holes is found whole; one with holes fills all of them."""
    monkeypatch.setattr(speech, "_learnt", {})  # titles that other tests loaded come before the catalogue
    speech._index.cache_clear()
    speech._said.cache_clear()
    for english, chinese in ENTRIES.items():
        if "{" not in english:
            assert re.sub(" ", "", translated(english) or "") == re.sub(" ", "", chinese)


@pytest.mark.slow
def test_what_is_left_in_english(capsys: pytest.CaptureFixture[str]) -> None:
    every, left = sentences(), untranslated()
    assert len(every) > 2000, "the sentences are not found any more"
    assert len(left) < len(every), "nothing is translated"
    with capsys.disabled():
        print(f"\n{len(left)} of {len(every)} sentences have no Chinese text:")
        for place, number in Counter(where for where, _ in left).most_common(10):
            print(f"{number:>5}  {place}")
