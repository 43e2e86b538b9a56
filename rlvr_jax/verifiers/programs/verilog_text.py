"""Verilog as text: refuses sources before a tool reads them, finds the top module and its ports.

Tools get the checked text without comments and attributes. In an answer these are refused: any
$name except $signed, $unsigned and $clog2, any directive except `timescale and `default_nettype,
and calls of C. So an answer cannot print, end a run, or open a file. All functions are linear in
the text, because they run in the caller's process.
"""

import itertools
import re
from typing import NamedTuple

_MAX_CHARACTERS = 50_000
_MOST_MODULES = 50
# A string that is not closed ends with its line.
_COMMENT_OR_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|//[^\n]*|/\*.*?(?:\*/|$)', re.DOTALL)
_SENSITIVE = re.compile(r"\s*\)")  # the rest of @(*), which is not an attribute
_SYSTEM = re.compile(
    r"(?<![\w$])\$(?!(?:signed|unsigned|clog2)\b)|`(?!(?:timescale|default_nettype)\b)"
)
_FOREIGN = re.compile(r'"DPI')
_EDGE = re.compile(r"\b(?:macro)?module\s+([A-Za-z_][\w$]*)|\bendmodule\b")
_LOCAL_EDGE = re.compile(r"\b(end)?(?:function|task)\b")
_DIRECTION = re.compile(r"\b(?:input|output|inout)\b.*", re.DOTALL)
_WORDS = re.compile(
    r"\b(?:wire|reg|logic|signed|unsigned|var|tri|tri0|tri1|wand|wor|supply0|supply1|bit)\b"
)
_RANGE = re.compile(r"\[[^\]]*\]")
_NAME = re.compile(r"[A-Za-z_][\w$]*")


class Module(NamedTuple):
    """One module.

    Fields:
      name: as declared.
      ports: (name, direction, range as written without blanks), as a set.
      body: the text between its name and its end.
    """

    name: str
    ports: frozenset[tuple[str, str, str]]
    body: str


def plain(source: str) -> str:
    """A source without comments and attributes; strings do not change."""
    without = _COMMENT_OR_TEXT.sub(lambda m: m[0] if m[0][0] == '"' else " ", source)
    parts, position = [], 0
    start = without.find("(*")
    while start >= 0:
        end = without.find("*)", start + 2)
        if end < 0:
            break
        if _SENSITIVE.match(without, start + 2):
            start = without.find("(*", start + 2)
            continue
        parts += [without[position:start], " "]
        position = end + 2
        start = without.find("(*", position)
    return "".join([*parts, without[position:]])


def refused(source: str) -> bool:
    """Whether a plain source of a model is refused: it is too long, or it calls the outside."""
    return len(source) > _MAX_CHARACTERS or bool(_SYSTEM.search(source) or _FOREIGN.search(source))


def modules(source: str) -> list[Module]:
    """The modules of a plain source, in order."""
    found, name, start = [], None, 0
    for edge in _EDGE.finditer(source):
        if edge[1] is None and name is not None:
            body = source[start : edge.start()]
            found.append(Module(name, _ports(body), body))
        name, start = edge[1], edge.end()
    return found


def top_module(found: list[Module]) -> Module | None:
    """The only module that no other one instantiates; None if there is none, or several."""
    names = [module.name for module in found]
    if len(names) > _MOST_MODULES:
        return None
    used = {
        name
        for module in found
        for name in names
        if name != module.name and _instance(name).search(module.body)
    }
    tops = [module for module in found if module.name not in used]
    return tops[0] if len(tops) == 1 and len(set(names)) == len(names) else None


def renamed(source: str, suffix: str) -> str:
    """A plain source with a suffix to its modules' names, so that two can be in one design."""
    for module in modules(source):
        new = module.name + suffix
        declared = re.compile(rf"(\b(?:macro)?module\s+){re.escape(module.name)}\b")
        source = declared.sub(lambda match, new=new: match[1] + new, source)
        source = _instance(module.name).sub(new, source)
        source = re.sub(r"\bendmodule\s*:\s*\w+", "endmodule", source)
    return source


def _instance(name: str) -> re.Pattern[str]:
    """A module's name where it is instantiated: parameters or an instance's name follow."""
    follows = r"(?=\s*#\s*[(\d]|\s+[A-Za-z_][\w$]*\s*(?:\[[^\]]{0,100}\]\s*)?\()"
    return re.compile(rf"(?<![\w$.])(?<!module ){re.escape(name)}{follows}")


def _ports(rest: str) -> frozenset[tuple[str, str, str]]:
    """The ports of a module, declared in its header or, the older way, in its body."""
    header, _, body = rest.partition(";")
    brackets = _brackets(header)
    listed = brackets[-1] if brackets else ""
    if re.search(r"\b(?:input|output|inout)\b", listed):
        return frozenset(_declared(listed))
    found: set[tuple[str, str, str]] = set()
    for statement in _without_locals(body).split(";")[:-1]:
        if declared := _DIRECTION.search(statement):
            found |= set(_declared(declared[0]))
    return frozenset(found)


def _without_locals(body: str) -> str:
    """A body without its functions and tasks, which have separate ports."""
    parts, position, inside = [], 0, False
    for edge in _LOCAL_EDGE.finditer(body):
        if not inside:
            parts.append(body[position : edge.start()])
        position, inside = edge.end(), edge[1] is None
    return "".join(parts if inside else [*parts, body[position:]])


def _brackets(header: str) -> list[str]:
    """The contents of the outermost brackets: parameters, if any, and ports."""
    found, depth, start = [], 0, 0
    for place, sign in enumerate(header):
        if sign == "(":
            depth += 1
            start = place + 1 if depth == 1 else start
        elif sign == ")":
            depth -= 1
            if depth == 0:
                found.append(header[start:place])
    return found


def _declared(text: str) -> list[tuple[str, str, str]]:
    """Ports between commas; one that names no direction or range has those before it."""
    ports = []
    direction = width = ""
    for item in _split(text):
        words = re.match(r"\s*(input|output|inout)\b(.*)", item, re.DOTALL)
        rest = _WORDS.sub(" ", words[2] if words else item).partition("=")[0]
        name = _NAME.search(_RANGE.sub(" ", rest))
        if not name:
            continue
        ranges = "".join("".join(found.split()) for found in _RANGE.findall(rest))
        if words:
            direction, width = words[1], ranges
        elif ranges:
            width = ranges
        ports.append((name[0], direction, width))
    return ports


def _split(text: str) -> list[str]:
    """At the commas outside of brackets."""
    depths = itertools.accumulate((sign in "([{") - (sign in ")]}") for sign in text)
    commas = [n for n, depth in enumerate(depths) if depth == 0 and text[n] == ","]
    return [text[a + 1 : b] for a, b in itertools.pairwise([-1, *commas, len(text)])]
