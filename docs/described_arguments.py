"""An extension of the API pages: the descriptions and ranges that types of arguments carry."""

import importlib
import inspect
import re

from griffe import Class, Extension, Function

from rlvr_jax.arguments import described

_RANGE = r"(?:in|at|above|below|positive|finite)\b"
_SECTIONS = r"^(Metrics|Source|Left out|Reports|Traps): "


class DescribedArguments(Extension):
    """Adds the description of each argument's type to the `Args` of parts and other functions."""

    def on_function(self, *, func: Function, **_) -> None:
        if not func.docstring:
            return
        if func.parent.is_module and func.module.path.startswith("rlvr_jax."):
            function = getattr(importlib.import_module(func.module.path), func.name, None)
            if words := described(function) if inspect.isfunction(function) else {}:
                func.docstring.value = with_descriptions(func.docstring.value, words)
        docstring = re.sub(_SECTIONS, r"\n**\1:** ", func.docstring.value, flags=re.MULTILINE)
        func.docstring.value = one_per_line(docstring)

    def on_class(self, *, cls: Class, **_) -> None:
        """Fields of a record become a table: mkdocstrings calls them attributes."""
        if cls.docstring:
            docstring = re.sub(r"^Fields:$", "Attributes:", cls.docstring.value, flags=re.MULTILINE)
            cls.docstring.value = one_per_line(docstring, "Attributes:\n")


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
            own = re.sub(
                r"^[a-z](?=[a-z]* )", lambda first: first[0].upper(), docstring[found.end() :]
            )
            docstring = f"{docstring[: found.end()]}{words}. {own}"
    if missing and "Args:\n" not in docstring:
        docstring += "\n\nArgs:\n"
    return docstring.replace("Args:\n", "Args:\n" + "".join(missing))
