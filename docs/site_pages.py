"""What the site has besides the pages of this folder: those that are made of the code.

`mkdocs` calls the functions below. The start is the README; tasks, methods and the API are made of
the package; contributing, changelog and log are the files of the repository.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from api_pages import api_index, api_pages
from method_pages import method_index, method_page
from method_section import method_section
from mkdocs.structure.files import File
from nbconvert import MarkdownExporter

from rlvr_jax.__main__ import COMMANDS, MODULES
from rlvr_jax.analysis.evidence.rows import read_rows
from rlvr_jax.experiments.boards.definitions import BOARDS
from rlvr_jax.methods import names, themes

ROOT = Path(__file__).parents[1]
PAGES = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "log.md": "DEVLOG.md",
}
SUBPACKAGES = {
    "analysis": "reports, diagnoses and published analyses",
    "boards": "runs of several methods side by side",
    "console": "what a command prints, and where else its metrics go",
    "diagnosis": "the diagnosis of a run, or of two policies, as a command",
    "experience": "the chain that makes a batch: curricula, samplers, batch transforms",
    "judges": "models that grade",
    "kernels": "token statistics without logits, choices over a batch",
    "methods": "published methods, one file each",
    "objectives": "the chain that makes a loss",
    "parallel": "meshes and processes",
    "pods": "ahead-of-time compilation for TPU slices",
    "policy": "decoder models and their folders",
    "rollout": "the sampler",
    "runs": "settings, the training loop, run directories, checkpoints",
    "sandbox": "isolated processes for generated code",
    "tasks": "prompts and their grading",
    "tools": "tools and environments that a policy uses in its responses",
    "training": "exact gradients and updates",
    "types": "records, rollouts, statistics, recipes, cards",
    "verifiers": "text in, grade out",
}

_COMMANDS_HEAD = """# Command line

This page lists all commands with examples. A command runs in any folder:

    python -m rlvr_jax train --method dapo --task brackets --run-dir runs/dapo
    python -m rlvr_jax train --help

`rlvr-jax train` is the same command. Every command has `--help`.
"""

# Spaces of "± 0.03", "< 0.001", "1.5 GiB" and "0.1 s".
_QUANTITY = re.compile(r"(?<=±) (?=\d)|(?<=&lt;) (?=\d)|(?<=\d) (?=(?:[KMG]i?B|m?s|%)(?!\w))")


def on_files(files, config):
    """Adds the pages that are made, and takes out what is no page."""
    made = {page: _linked((ROOT / source).read_text()) for page, source in PAGES.items()}
    made |= {
        "methods/index.md": method_index(),
        "tasks.md": _tasks(),
        "command_line.md": _commands(),
        "api/index.md": api_index(SUBPACKAGES),
    }
    curves = _curves()
    for name in names():
        module = f"::: rlvr_jax.methods.{themes()[name]}.{name}"
        page = [method_page(name, curves(name)), "## Code", "", module, ""]
        made[f"methods/{name}.md"] = "\n".join(page)
    for name, text in SUBPACKAGES.items():
        made |= api_pages(name, text)
    made |= _notebooks()
    for page, text in made.items():
        if page in files.src_uris:
            files.remove(files.src_uris[page])
        files.append(File.generated(config, page, content=text))
    for file in list(files):
        if file.src_uri.endswith(".py"):
            files.remove(file)
    return files


def on_page_markdown(markdown, page, config, files):
    """Links to files of the repository lead to their pages; files without a page are named."""
    del config
    known = {file.src_uri for file in files}
    page_of = {source: made for made, source in PAGES.items()}
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
        made = page_of.get(place, re.sub(r"\.ipynb$", ".md", place))
        if made in known and (ROOT / place).exists():
            return f"[{text}]({'../' * len(here.parts)}{made}{'#' * bool(anchor)}{anchor})"
        # What is nowhere stays a link, of which the strict build complains.
        if not any((ROOT / start / path).exists() for start in ("", Path("docs") / here)):
            return match[0]
        if "`" in text:
            return text
        return f"{text} (`{place}`)" if " " in text else f"`{text}`"

    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", kept, markdown)


def on_page_content(html, page, config, files):
    """A line does not end within the name of a flag, nor a cell's line within a quantity."""
    del page, config, files
    html = re.sub(r"(?<=<code>)(--[\w-]+)", r'<span class="flag">\1</span>', html)
    return re.sub(r"<td.*?</td>", lambda cell: _QUANTITY.sub("&nbsp;", cell[0]), html)


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


def _notebooks() -> dict[str, str | bytes]:
    """The notebooks with their stored outputs, and their pictures."""
    pages: dict[str, str | bytes] = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        names = {"unique_key": path.stem, "output_files_dir": "pictures"}
        page, found = MarkdownExporter().from_filename(str(path), resources=names)
        pages[f"notebooks/{path.stem}.md"] = page
        pages |= {f"notebooks/{name}": picture for name, picture in found["outputs"].items()}
    return pages


def _commands() -> str:
    """The purpose of each command, and examples of its call."""
    lines = [_COMMANDS_HEAD, "| command | purpose |", "|---|---|"]
    lines += [f"| [`{name}`](#{name}) | {text} |" for name, text in COMMANDS.items()]
    for name in COMMANDS:
        about = ast.get_docstring(ast.parse((ROOT / "experiments" / f"{name}.py").read_text()))
        lines += ["", f"## {name}", "", about or ""]
    lines += ["", "## Modules with a command", "", "| `python -m` | purpose |", "|---|---|"]
    lines += [f"| `{name}` | {text} |" for name, text in MODULES.items()]
    return "\n".join(lines)


def _tasks() -> str:
    """The page about tasks, followed by the names of tasks."""
    from rlvr_jax.tasks import __doc__ as about

    page = (ROOT / "docs" / "tasks.md").read_text()
    return "\n".join([page, "## Names of tasks", "", *about.splitlines()[2:]])
