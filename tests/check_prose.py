"""Counts what can be counted of the prose that users read, and prints the worst files.

    python tests/check_prose.py [FOLDER] [--show FILE]

Pages, docstrings of public names, `--help` texts and messages are read; code, equations and the
development log are not. Kinds: numbers without a leading zero, sentences above 25 words, sentences
that begin with a "what" clause, and words of the glossary's right column (CONTRIBUTING.md), also
within public names.
"""

import argparse
import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LONGEST_SENTENCE = 25
FOLDERS = ("rlvr_jax", "kernels", "experiments")

# Words in the meaning that the glossary replaces, as far as their neighbours show it.
RIGHT_COLUMN = re.compile(
    r"""\b(?:
    log_probs|logp_old|ent|coef|loss_mask
    | told | tells? | said | says? | wants | asks?(?!\ (?:for|to)\b) | drawn
    | draws\ (?:tokens|answers) | (?:right|wrong)\ (?:answers?|responses?|ones?)
    | no\ (?:verdict|grade)s? | shares\ of | a\ share | the\ share | pieces? | seats? | waves?
    | free\ room | rooms | kept | visits | begun | joined | claimed | gives
    | of\ (?:one|your|my|their|its|his)(?:'s)?\ own | one's\ own | anybody(?:'s)? | somebody(?:'s)?
    | the\ latter | the\ former | stands? | lies
    )\b""",
    re.VERBOSE,
)
RIGHT_COLUMN_PARTS = frozenset(
    ("ask", "asks", "told", "said", "kept", "drawn", "share", "shares", "wave", "waves", "seat")
)
WHAT_CLAUSE = re.compile(r"^(?:what|whatever|that which)\b(?!.*\?$)", re.IGNORECASE)
BARE_NUMBER = re.compile(r"(?<![\w.,/)\]\"'`<-])[-+±]?\.\d+(?![\w/])")


class Finding(NamedTuple):
    file: str
    kind: str
    line: int
    text: str


def findings(root: Path) -> list[Finding]:
    """All findings below a folder of the repository."""
    return [
        found for file, line, text in prose(root) for found in findings_of(file, line, text)
    ] + [
        Finding(file, "glossary", line, name)
        for file, line, name in _public_names(root)
        if RIGHT_COLUMN_PARTS & set(name.lower().split("_"))
    ]


def prose(root: Path) -> Iterator[tuple[str, int, str]]:
    """Paragraphs with their file and first line: pages, notebooks, docstrings, messages."""
    pages = [root / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    for page in [*pages, *sorted((root / "docs").rglob("*.md"))]:
        yield from _paragraphs(str(page.relative_to(root)), page.read_text())
    for notebook in sorted((root / "notebooks").glob("*.ipynb")):
        for cell in json.loads(notebook.read_text())["cells"]:
            if cell["cell_type"] == "markdown":
                yield from _paragraphs(str(notebook.relative_to(root)), "".join(cell["source"]))
    for file, tree in _modules(root):
        yield from _docstrings(file, tree)
        yield from _messages(file, tree)


def _modules(root: Path) -> Iterator[tuple[str, ast.Module]]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            if not (path.is_symlink() or any(one.is_symlink() for one in path.parents)):
                yield str(path.relative_to(root)), ast.parse(path.read_text())


def _paragraphs(file: str, page: str) -> Iterator[tuple[str, int, str]]:
    """Paragraphs, list items and cells of a page of Markdown, without code."""
    page = re.sub(r"^( *)(```|~~~).*?^ *\2", _blank, page, flags=re.DOTALL | re.MULTILINE)
    page = re.sub(r"\$\$.*?\$\$|<!--.*?-->|<style>.*?</style>", _blank, page, flags=re.DOTALL)
    block: list[str] = []
    begin = 0
    for number, line in enumerate([*page.splitlines(), ""], start=1):
        starts = re.match(r"\s*(?:[-*+]|\d+\.|#+|>)\s", line)
        if not line.strip() or line.startswith("    ") or line.lstrip().startswith("|") or starts:
            if block:
                yield file, begin, " ".join(block)
            block = []
        if line.lstrip().startswith("|"):
            for cell in line.strip().strip("|").split("|"):
                yield file, number, cell.strip()
        elif line.strip() and not line.startswith("    "):
            begin = begin if block else number
            block.append(re.sub(r"^\s*(?:[-*+]|\d+\.|#+|>)\s+", "", line).strip())


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def _docstrings(file: str, tree: ast.AST) -> Iterator[tuple[str, int, str]]:
    """Paragraphs of public docstrings, without indented lines (code, equations)."""
    if isinstance(tree, ast.Module):
        yield from _docstring(file, tree)
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            if not node.name.startswith("_"):
                yield from _docstring(file, node)
                yield from _docstrings(file, node)
        elif isinstance(node, ast.If):
            yield from _docstrings(file, node)


def _docstring(file: str, node) -> Iterator[tuple[str, int, str]]:
    text = ast.get_docstring(node)
    if text is None:
        return
    line = node.body[0].lineno
    # Examples are code; their lines stay, so that others keep their numbers.
    text = re.sub(r"(?m)^ *>>> (?:.+\n?)+", lambda found: "\n" * found[0].count("\n"), text)
    text = re.sub(r"^(?:Arg|Return|Raise|Metric|Source|Example|Field)s?:$", "", text, flags=re.M)
    # Arguments are indented by two or four; deeper lines within them belong to them.
    text = re.sub(r"(?m)^ {2,4}(\w+(?:, \w+)*(?: \([^)]*\))?): ", r"\n\1: ", text)
    for begin, paragraph in _split(text):
        yield file, line + begin, paragraph
    for inner in node.body if isinstance(node, ast.ClassDef) else ():
        constant = inner.value if isinstance(inner, ast.Expr) else None
        if inner is not node.body[0] and isinstance(getattr(constant, "value", None), str):
            yield file, inner.lineno, " ".join(constant.value.split())


def _split(text: str) -> Iterator[tuple[int, str]]:
    block: list[str] = []
    begin = 0
    for number, line in enumerate([*text.splitlines(), ""]):
        code = line.startswith("    ") and not block
        item = re.match(r"\s*[-*] ", line)
        if not line.strip() or code or item:
            if block:
                yield begin, " ".join(block)
            begin, block = number, [line.strip()] if item else []
        else:
            begin = begin if block else number
            block.append(line.strip())


def _messages(file: str, tree: ast.AST) -> Iterator[tuple[str, int, str]]:
    """Texts of exceptions, warnings and prints, and of annotations that `--help` prints."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            inside = node.exc
        elif isinstance(node, ast.Call) and _name(node.func) in {"warn", "print", "warn_once"}:
            inside = node
        elif isinstance(node, ast.Subscript) and _name(node.value) == "Annotated":
            inside = node.slice
        else:
            continue
        for string in _strings(inside):
            yield file, node.lineno, string


def _name(node: ast.AST) -> str:
    return getattr(node, "id", getattr(node, "attr", ""))


def _strings(node: ast.AST | None) -> Iterator[str]:
    if isinstance(node, ast.JoinedStr):
        yield "".join(
            str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values
        )
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str) and len(node.value.split()) > 2:
            yield node.value
    elif node is not None:
        for child in ast.iter_child_nodes(node):
            yield from _strings(child)


def _public_names(root: Path) -> Iterator[tuple[str, int, str]]:
    """Public functions, classes, fields and parameters of public modules."""
    for file, tree in _modules(root):
        if file.startswith("experiments") or "/_" in file.replace("/__init__", ""):
            continue
        nodes: list[ast.AST] = list(tree.body)
        while nodes:
            node = nodes.pop()
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                if node.name.startswith("_"):
                    continue
                yield file, node.lineno, node.name
                if isinstance(node, ast.ClassDef):
                    nodes.extend(node.body)
                else:
                    arguments = node.args
                    for one in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
                        if not one.arg.startswith("_"):
                            yield file, node.lineno, one.arg
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield file, node.lineno, node.target.id


def findings_of(file: str, line: int, text: str) -> Iterator[Finding]:
    """The findings of one paragraph."""
    for match in BARE_NUMBER.finditer(re.sub(r"`[^`]*`|https?://\S+", "code", text)):
        yield Finding(file, "number", line, match[0])
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`+[^`]*`+", "Code", text)  # with a capital, as it may begin a sentence
    text = re.sub(r"https?://\S+?(?=[.,;:)]*(?:\s|$))", "link", text)
    for match in RIGHT_COLUMN.finditer(text):
        yield Finding(file, "glossary", line, match[0])
    for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z`\"(])", text):
        words = [word for word in sentence.split() if re.search(r"\w", word) and "=" not in word]
        if len(words) > LONGEST_SENTENCE:
            yield Finding(file, "long", line, sentence)
        if WHAT_CLAUSE.match(sentence.strip()):
            yield Finding(file, "what", line, sentence)


def totals(found: list[Finding]) -> dict[str, int]:
    """Findings by kind."""
    return dict(Counter(one.kind for one in found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default=Path(__file__).parents[1], type=Path)
    parser.add_argument("--show", default="", help="print all findings of files that begin so")
    arguments = parser.parse_args()
    found = findings(arguments.folder)
    if arguments.show:
        for one in found:
            if one.file.startswith(arguments.show):
                print(f"{one.file}:{one.line}: {one.kind}: {one.text[:300]}")
        return
    print("total", len(found), totals(found))
    for file, count in Counter(one.file for one in found).most_common(40):
        print(f"{count:5d}  {file}  {totals([one for one in found if one.file == file])}")


if __name__ == "__main__":
    main()
