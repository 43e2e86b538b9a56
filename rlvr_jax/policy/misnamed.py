"""Hints for a path that is not a policy: names of a hub, adapters and run directories."""

import re
from pathlib import Path

_OF_A_HUB = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


def hint_for(path: str | Path) -> str:
    """The end of a message about a path that is not a policy; "": nothing is known of it."""
    folder, name = Path(path), str(path)
    if (folder / "policy" / "config.json").is_file():
        return f"; the policy of this run is {str(folder / 'policy')!r}"
    runs = sorted(folder.glob("*/policy/config.json"))
    if runs:
        return f"; its runs have policies, such as {str(runs[0].parent)!r}"
    if (folder / "adapter_config.json").is_file():
        return "; this is an adapter of PEFT: save what merge_and_unload() gives, with a tokenizer"
    if not folder.exists() and _OF_A_HUB.fullmatch(name):
        return f"; if that is a name of a hub, `hf download {name} --local-dir FOLDER` makes one"
    return ""
