"""A parsed page: its tags, its texts, and whether every opened tag is closed."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "wbr"}
Attributes = dict[str, str | None]


@dataclass
class Node:
    name: str
    attributes: Attributes
    inner: list[Node | str] = field(default_factory=list)

    def all(self, *names: str) -> list[Node]:
        """The elements inside with one of these names, in order; without names, all of them."""
        found: list[Node] = []
        for each in self.inner:
            if isinstance(each, Node):
                found += [each] if not names or each.name in names else []
                found += each.all(*names)
        return found

    def one(self, name: str, **attributes: str) -> Node:
        wanted = {key.rstrip("_"): value for key, value in attributes.items()}
        fitting = (each for each in self.all(name) if wanted.items() <= each.attributes.items())
        return next(fitting)

    @property
    def text(self) -> str:
        return "".join(each if isinstance(each, str) else each.text for each in self.inner)


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Node("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"<{tag}> has an attribute twice"
        node = Node(tag, dict(attrs))
        self.open[-1].inner.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].name == tag, f"</{tag}> closes <{self.open[-1].name}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].inner.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def parsed(page: bytes) -> Node:
    """The whole page; raises AssertionError if a tag is not closed."""
    parser = _Parser()
    parser.feed(page.decode())
    parser.close()
    assert [node.name for node in parser.open] == [""]
    return parser.open[0]
