"""Compares a run directory with the pages that describe it, only by the standard library.

    python -I -S described_run.py docs/run_directory.md docs/metrics.md RUN

prints the files and keys that the pages lack, those that they describe and the run lacks (unseen:
those that not every run has, as the pages say), and the names of the policy's tensors, as JSON.
"""

import json
import re
import struct
import sys
from pathlib import Path

CONDITIONAL = re.compile(r"\bonly (with|where|of|while)\b|, (if|with) ")
"""The condition in the row of a file or a key that not every run has."""


def sections(page):
    """The rows of tables by the heading above them, each as a list of cells."""
    found, heading = {}, ""
    for line in page.read_text().splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ").strip("`")
        elif line.startswith("| `"):
            found.setdefault(heading, []).append(line.strip("| ").split(" | "))
    return found


def names(row):
    """The names in the first cell of a row."""
    return re.findall(r"`([^`]+)`", row[0])


def pattern(name, placeholder):
    """The expression of a name in which `<…>` is any text."""
    parts = re.split(r"<[^>]+>|…", name)
    return re.compile(placeholder.join(map(re.escape, parts)))


def keys(value, known, prefix=""):
    """The keys of an object, nested ones with a dot; a key that is known is not looked into."""
    for name, inner in value.items():
        key = prefix + name
        if isinstance(inner, dict) and not any(each.fullmatch(key) for each in known):
            yield from keys(inner, known, f"{key}.")
        else:
            yield key


def objects(path):
    """The objects of a JSON file, or of the lines of one."""
    text = path.read_text()
    return list(map(json.loads, text.splitlines() if path.suffix == ".jsonl" else [text]))


def is_conditional(row):
    return bool(CONDITIONAL.search(" | ".join(row)))


def compared(page, keys_page, run):
    """The differences; see the module. The second page has sections of files and others."""
    differences = ("undescribed", "absent", "undescribed keys", "absent keys", "unseen")
    found = {name: [] for name in differences}
    described = sections(page)
    there = {str(path.relative_to(run)): path for path in run.rglob("*") if path.is_file()}
    files = {}
    for row in described.pop("Run directory"):
        for name in names(row):
            files[name] = pattern(name, ".+")
            if not any(map(files[name].fullmatch, there)):
                found["unseen" if is_conditional(row) else "absent"].append(name)
    for place in there:
        if not any(each.fullmatch(place) for each in files.values()):
            found["undescribed"].append(place)
    more = sections(keys_page)
    described |= {name: rows for name, rows in more.items() if name in files}
    evaluations = [each["step"] for each in objects(run / "held_out.jsonl")]
    for name, rows in described.items():
        known = {key: pattern(key, "[^.]+") for row in rows for key in names(row)}
        known |= {"step": re.compile("step")} if "jsonl" in name else {}
        every = [
            (f"{place} {number}", each, list(keys(each, known.values())))
            for place, path in there.items()
            if files[name].fullmatch(place)
            for number, each in enumerate(objects(path))
        ]
        for place, _, own in every:
            strange = [k for k in own if not any(one.fullmatch(k) for one in known.values())]
            found["undescribed keys"] += [f"{place}: {key}" for key in strange]
        for row in rows:
            for key in names(row):
                has = [any(map(known[key].fullmatch, own)) for _, _, own in every]
                if is_conditional(row):
                    found["unseen"] += [] if any(has) else [f"{name}: {key}"]
                    continue
                for (place, each, _), seen in zip(every, has, strict=True):
                    step = each.get("step")
                    needed = {"steps": step != 0, "evaluations": step in evaluations}
                    if seen != needed.get(row[-1], True):
                        found["absent keys"].append(f"{place}: {key}")
    return found


def tensors(path):
    """The header of a safetensors file: its length in 8 bytes, then JSON."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return sorted(json.loads(content[8 : 8 + length]).keys() - {"__metadata__"})


if __name__ == "__main__":
    *pages, folder = map(Path, sys.argv[1:])
    told = compared(*pages, folder)
    print(json.dumps(told | {"tensors": tensors(folder / "policy/model.safetensors")}))
