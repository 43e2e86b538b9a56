"""Checks of texts before and after Lean: which words a proof may have, and the output of Lean.

`proof_of` accepts a proof of the requested statement if it has no word that declares, commands or
assumes. It returns the proof without comments, and only that is sent to Lean. `complete` reads the
messages of a run, `axioms_allowed` the output of `#print axioms`.

Known exploits that are stopped: a weaker theorem of the same name; additional hypotheses; notation
or instances that make the goal trivial; sorry in a macro; native_decide; a goal in a comment.

Source: https://github.com/kfdong/STP (`RL/utils/prover/lean/verifier.py`); the guard is ours.
"""

import json
import re
import unicodedata
from typing import Any

_MAX_CHARACTERS = 50_000
_ALLOWED_AXIOMS = {"propext", "Classical.choice", "Quot.sound"}
_FORBIDDEN_WORDS = (
    # assume or run
    "axiom constant opaque sorry admit native_decide unsafe implemented_by extern initialize"
    " builtin_initialize run_cmd run_tac run_elab run_meta"
    # change how text is read or elaborated
    " instance notation infix infixl infixr prefix postfix macro macro_rules syntax elab elab_rules"
    " attribute set_option import open declare_syntax_cat simproc"
    # begin something else
    " theorem lemma example def abbrev structure class inductive namespace section end variable"
    " universe mutual"
)
_FORBIDDEN = frozenset(_FORBIDDEN_WORDS.split())
# A word of Lean: letters, digits, ' ! ? and dots between; unicode letters are in \w.
_WORD = re.compile(r"#?[^\W\d][\w'!?]*")
_COMMENT = re.compile(r"/-|-/|--[^\n]*")


def proof_of(text: str, statement: str) -> str | None:
    """The proof, without comments, in a text that states and proves a theorem; None: rejected.

    Args:
      text: "theorem … := proof".
      statement: the text before := in the task, "theorem name … : …".
    """
    bare = _without_comments(text) if len(text) <= _MAX_CHARACTERS else None
    if bare is None:
        return None
    head, defined, proof = bare.partition(":=")
    if not defined or not proof.strip() or _normal(head) != _normal(statement):
        return None
    words = set(_WORD.findall(unicodedata.normalize("NFKC", proof)))
    commands = any(word.startswith("#") for word in words) or "@[" in proof
    return None if commands or words & _FORBIDDEN else proof


def complete(reply: str) -> bool | None:
    """Whether a reply of the REPL states that all is proved; None: it is not a reply.

    A reply is {"env": …, "messages": […], "sorries": […]}. An error, a sorry, or a warning that
    contains 'sorry' or "failed" makes it incomplete.
    """
    try:
        value = json.loads(reply)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or "env" not in value:
        return None
    messages, sorries = value.get("messages", []), value.get("sorries", [])
    if not isinstance(messages, list) or not isinstance(sorries, list):
        return None
    return not sorries and not any(map(_spoils, messages))


def _spoils(message: Any) -> bool:
    if not isinstance(message, dict):
        return True
    severity, data = message.get("severity"), str(message.get("data", ""))
    doubtful = "declaration uses" in data and "sorry" in data
    return severity == "error" or (severity == "warning" and (doubtful or "failed" in data))


def axioms_allowed(text: str, name: str) -> bool:
    """Whether Lean reports that this theorem uses only the three usual axioms or none."""
    text = " ".join(text.split())
    if text == f"'{name}' does not depend on any axioms":
        return True
    before, after = f"'{name}' depends on axioms: [", "]"
    if not (text.startswith(before) and text.endswith(after)):
        return False
    return {axiom.strip() for axiom in text[len(before) : -1].split(",")} <= _ALLOWED_AXIOMS


def _normal(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _without_comments(text: str) -> str | None:
    """The text without -- comments and nested /- -/ comments; None if one is not closed."""
    parts, depth, position = [], 0, 0
    while match := _COMMENT.search(text, position):
        sign = match[0]
        if depth == 0:
            parts.append(text[position : match.start()])
        if sign == "/-":
            depth += 1
            parts.append(" ")
        elif sign == "-/" and depth:
            depth -= 1
        elif depth:  # inside a comment -- hides nothing, and --/ is its end
            position = match.start() + 1
            continue
        elif sign == "-/":
            parts.append(sign)
        position = match.end()
    return None if depth else "".join([*parts, text[position:]])
