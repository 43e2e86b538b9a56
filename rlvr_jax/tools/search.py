"""Search in a corpus of texts as a tool (BM25)."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from rlvr_jax.tools.base import Tool, ToolError

_WORD = re.compile(r"\w+")


def read_corpus(path: str | Path) -> list[str]:
    """The texts of a corpus, in a fixed order.

    Args:
      path: a JSONL file whose lines are texts or objects with "text" and optionally "title", or a
        folder of .txt and .md files.
    Raises:
      ValueError: there is no such file or folder, or a line has another form.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.suffix in (".txt", ".md"))
        return [each.read_text(encoding="utf-8") for each in files]
    if not path.is_file():
        raise ValueError(f"search: corpus must be a JSONL file or a folder, got {str(path)!r}")
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        try:
            entry = json.loads(line) if line.strip() else None
        except ValueError:
            entry = {}
        if entry is None:
            continue
        text = entry.get("text") if isinstance(entry, dict) else entry
        if not isinstance(text, str):
            raise ValueError(
                f"search: each line of the corpus must be a text or have one, got {line[:80]!r} in"
                f" line {number} of {str(path)!r}"
            )
        title = entry.get("title") if isinstance(entry, dict) else None
        found.append(f"{title}: {text}" if title else text)
    return found


def search(corpus: Sequence[str] | str | Path, k: int = 3, name: str = "search") -> Tool:
    """Shows the k texts of a corpus that match a query best, numbered; ties are in their order.

    Args:
      corpus: texts, or the path for `read_corpus`.
      k: number of texts of a reply, at least 1.
    Raises:
      ValueError: the corpus has no texts or words, k is below 1, or bm25s is not installed.
    """
    if k < 1:
        raise ValueError(f"search: k must be at least 1, got {k}")
    import bm25s  # an extra; the caller reports that it is missing

    texts = read_corpus(corpus) if isinstance(corpus, str | Path) else list(corpus)
    if not texts:
        raise ValueError("search: corpus must have texts, got none")
    words_of = [_words(text) for text in texts]
    if not any(words_of):
        raise ValueError(f"search: corpus must have words, got none in {len(texts)} texts")
    index = bm25s.BM25()
    index.index(words_of, show_progress=False)

    def run(arguments, state):
        words = [word for word in _words(str(arguments["query"])) if word in index.vocab_dict]
        if not words:
            raise ToolError("no text has a word of this query")
        scores = index.get_scores(words)
        # Ties are ordered by position in the corpus, on every machine.
        best = sorted(range(len(texts)), key=lambda place: (-float(scores[place]), place))[:k]
        found = [place for place in best if scores[place] > 0]
        return state, "\n".join(f"({n}) {texts[place]}" for n, place in enumerate(found, 1))

    schema = {"query": {"type": "string"}}
    return Tool(name, f"Shows the {k} texts that fit a query best.", schema, run)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
