"""An extension of the API pages: docstrings in the form that mkdocstrings reads.

Descriptions and ranges of the types of arguments are added, fields of a record become a table, and
each section begins after an empty line.
"""

import importlib
import inspect
import re

from griffe import Class, Extension, Function, Module

from rlvr_jax.arguments import described

_RANGE = r"(?:in|at|above|below|positive|finite)\b"
_HEADS = r"\n+(Args|Returns|Raises|Examples|Attributes):\n"
_NOTES = r"^(Metrics|Source|Left out|Reports|Traps): "


class DescribedArguments(Extension):
    """Changes docstrings while they are collected."""

    def on_function(self, *, func: Function, **_) -> None:
        if func.docstring is None:
            return
        docstring = func.docstring.value
        if func.parent.is_module and func.module.path.startswith("rlvr_jax."):
            function = getattr(importlib.import_module(func.module.path), func.name, None)
            words = described(function) if inspect.isfunction(function) else {}
            shown = {name: text for name, text in words.items() if name in func.parameters}
            docstring = with_descriptions(docstring, shown)
        func.docstring.value = in_sections(one_per_line(docstring))

    def on_class(self, *, cls: Class, **_) -> None:
        if cls.docstring:
            docstring = re.sub(r"^Fields:$", "Attributes:", cls.docstring.value, flags=re.MULTILINE)
            cls.docstring.value = in_sections(one_per_line(docstring, "Attributes:\n"))

    def on_module(self, *, mod: Module, **_) -> None:
        """The page of a method already has the docstring of its file, as its definition."""
        if re.fullmatch(r"rlvr_jax\.methods\.\w+\.\w+", mod.path):
            mod.docstring = None


def in_sections(docstring: str) -> str:
    """A docstring with an empty line before each section, and headings of notes in bold."""
    docstring = re.sub(_NOTES, r"\n**\1:** ", docstring, flags=re.MULTILINE)
    return re.sub(_HEADS, r"\n\n\1:\n", docstring)


def one_per_line(docstring: str, title: str = "Args:\n") -> str:
    """A docstring with one line for each of several arguments that share a description."""
    before, head, rest = docstring.partition(title)
    section = re.match(r"(?:  .*\n?|\n)*", rest)[0]
    shared = r"^  (\**\w+(?:, \**\w+)+): (.*\n?(?:    .*\n?)*)"

    def split(found: re.Match[str]) -> str:
        text = found[2].rstrip("\n")
        return "".join(f"  {name}: {text}\n" for name in found[1].split(", "))

    lines = re.sub(shared, split, section, flags=re.MULTILINE)
    return f"{before}{head}{lines}{rest[len(section) :]}"


def with_descriptions(docstring: str, descriptions: dict[str, str]) -> str:
    """A docstring with these descriptions before its own."""
    missing = []
    for name, words in descriptions.items():
        found = re.search(rf"^  (?:\w+, )*{name}(?:, \w+)*: ", docstring, re.MULTILINE)
        if found is None:
            missing.append(f"  {name}: {words}.\n")
        elif found[0] == f"  {name}: ":
            own = docstring[found.end() :]
            if re.match(_RANGE, words):
                words = f"{words}: "
            else:
                words = f"{words}. "
                own = re.sub(r"^[a-z](?=[a-z]* )", lambda first: first[0].upper(), own)
            docstring = f"{docstring[: found.end()]}{words}{own}"
    if missing and "Args:\n" not in docstring:
        docstring += "\n\nArgs:\n"
    return docstring.replace("Args:\n", "Args:\n" + "".join(missing))
