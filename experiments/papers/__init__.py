"""Published settings as experiments, one file each.

    python -m experiments.papers.dapo_32b --data parquet:maths.parquet --model ~/Qwen2.5-32B
    python -m experiments.papers.dapo_32b --compile v5e-256
    python -m experiments.papers.dapo_32b --laptop

Every number has its source. A number that was not found is ours and is marked "unknown".
"""
