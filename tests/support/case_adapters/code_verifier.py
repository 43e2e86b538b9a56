from rlvr_jax.verifiers import Check, examine

MODULE = "rlvr_jax.verifiers.programs.python.code"
# Stopped programs are stopped sooner than by default; wall time is ample for a busy machine.
CHECK = Check(f"{MODULE}:check", f"{MODULE}:extract", {"cpu_seconds": 0.2, "wall_seconds": 10.0})


def verdict(response, tests):
    found = examine(CHECK, response, tests)
    return {"strict": int(found.info.get("strict", 0)), "share": found.info.get("fraction", 0.0)}
