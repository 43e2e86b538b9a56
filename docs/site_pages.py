"""What the site has besides the pages of this folder: those that are made of the code.

`mkdocs` calls the functions below. The start is the README; tasks, methods and the API are made of
the package; contributing, changelog and log are the files of the repository.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from method_pages import method_index, method_page
from method_section import method_section
from mkdocs.structure.files import File

from rlvr_jax.analysis.evidence.rows import read_rows
from rlvr_jax.experiments.boards.definitions import BOARDS
from rlvr_jax.methods import names

ROOT = Path(__file__).parents[1]
PAGES = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "log.md": "DEVLOG.md",
}
ROOMS = {
    "objectives": "losses",
    "experience": "how a batch comes to be",
    "training": "the gradient of a whole batch, for anybody's model",
    "policy": "decoder models and their folders",
    "rollout": "the sampler",
    "tasks": "questions and their grading",
    "tools": "what a policy may use while it answers",
    "verifiers": "text in, grade out",
    "judges": "models that grade",
    "analysis": "reports and diagnoses",
    "parallel": "meshes and processes",
}


def on_files(files, config):
    """Adds the pages that are made, and takes out what is no page."""
    made = {page: _linked((ROOT / source).read_text()) for page, source in PAGES.items()}
    made |= {"methods/index.md": method_index(), "tasks.md": _tasks(), "api/index.md": _rooms()}
    curves = _curves()
    made |= {f"methods/{name}.md": method_page(name, curves(name)) for name in names()}
    made |= {f"api/{room}.md": _room(room) for room in ROOMS}
    for page, text in made.items():
        if page in files.src_uris:
            files.remove(files.src_uris[page])
        files.append(File.generated(config, page, content=text))
    for file in list(files):
        if file.src_uri.endswith(".py"):
            files.remove(file)
    return files


def on_page_markdown(markdown, page, config, files):
    """Links to files of the repository that are no pages are named and lead nowhere."""
    del config
    known = {file.src_uri for file in files}
    here = Path(page.file.src_uri).parent

    def kept(match):
        text, target = match[1], match[2]
        if re.match(r"\w+:|#", target):
            return match[0]
        path, _, anchor = target.partition("#")
        place = _normal(here / path)
        if place in known:
            return match[0]
        if f"{place}/README.md" in known:
            return f"[{text}]({path.rstrip('/')}/README.md{'#' * bool(anchor)}{anchor})"
        # What is nowhere stays a link, of which the strict build complains.
        if not any((ROOT / start / path).exists() for start in ("", Path("docs") / here)):
            return match[0]
        return f"`{text}`" if "`" not in text else text

    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", kept, markdown)


def _normal(path: Path) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part not in (".", ".."):
            parts.append(part)
    return "/".join(parts)


def _linked(text: str) -> str:
    """The text of a page of the root, as if it lay in this folder."""
    text = text.replace("](docs/methods.md)", "](methods/index.md)").replace("](docs/", "](")
    for page, source in PAGES.items():
        text = text.replace(f"]({source})", f"]({page})")
    return text


def _curves():
    """(method) -> lines about what it came to on the boards of the leaderboard."""
    folder = ROOT / "docs" / "results" / "leaderboard"
    rows, curves = (read_rows(folder / f"{name}.jsonl") for name in ("results", "curves"))

    def of(method):
        lines = []
        for name, board in BOARDS.items():
            baseline = next(iter(board.entries))
            own = method_section(method, name, baseline, rows, curves, board.main)
            if own:
                link = f"[{board.title}](../results/leaderboard/{name}.md)"
                lines += [f"{link}; task `{board.task}`.", "", *own]
        return lines

    return of


def _tasks() -> str:
    """The page about tasks, followed by the names of tasks."""
    from rlvr_jax.tasks import __doc__ as said

    page = (ROOT / "docs" / "tasks.md").read_text()
    return "\n".join([page, "## Names of tasks", "", *said.splitlines()[2:]])


def _rooms() -> str:
    lines = ["# API", "", "| room | what it holds |", "|---|---|"]
    lines += [f"| [`rlvr_jax.{room}`]({room}.md) | {text} |" for room, text in ROOMS.items()]
    return "\n".join(lines)


def _room(room: str) -> str:
    """A page of the public names of a room, file by file."""
    folder = ROOT / "rlvr_jax" / room
    first = folder / "__init__.py"
    said = ast.get_docstring(ast.parse(first.read_text())) if first.is_file() else None
    lines = [f"# rlvr_jax.{room}", "", *(said or ROOMS[room]).splitlines(), ""]
    for path in sorted(folder.rglob("*.py")):
        if path.stem.startswith("_"):
            continue
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        lines += [f"::: {module}", ""]
    return "\n".join(lines)
