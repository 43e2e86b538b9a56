"""An extension of the API pages: the descriptions and ranges that the types of a part carry."""

import importlib
import re

from griffe import Extension, Function

from rlvr_jax.arguments import described


class DescribedArguments(Extension):
    """Adds the description of each argument's type to the `Args` of a part."""

    def on_function(self, *, func: Function, **_) -> None:
        if func.docstring and any(one.callable_path.endswith("part") for one in func.decorators):
            part = getattr(importlib.import_module(func.module.path), func.name)
            func.docstring.value = with_descriptions(func.docstring.value, described(part))


def with_descriptions(docstring: str, descriptions: dict[str, str]) -> str:
    """A docstring with these descriptions before its own."""
    missing = []
    for name, words in descriptions.items():
        found = re.search(rf"^  (?:\w+, )*{name}(?:, \w+)*: ", docstring, re.MULTILINE)
        if found is None:
            missing.append(f"  {name}: {words}.\n")
        elif found[0] == f"  {name}: ":
            docstring = f"{docstring[: found.end()]}{words}. {docstring[found.end() :]}"
    if missing and "Args:\n" not in docstring:
        docstring += "\n\nArgs:\n"
    return docstring.replace("Args:\n", "Args:\n" + "".join(missing))
