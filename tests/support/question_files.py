"""Small files of questions, and what a task made of them."""

import json

from rlvr_jax.tasks import Response


def write(path, rows):
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def sums(count):
    return [{"prompt": f"What is {i} + 1?", "answer": i + 1} for i in range(count)]


def outcomes(task, prompt, *texts):
    return [g.outcome for g in task.verify([prompt] * len(texts), [Response(t) for t in texts])]


def every(task):
    return [*task.train, *task.test]
