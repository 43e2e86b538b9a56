"""The layers of this machine: `python -m rlvr_jax.sandbox`.

Prints the layers that are on and the missing ones, with reasons. Then it runs hostile programs
inside the sandbox and prints those that escape. The exit code is 0 if none does.
"""

import os
import socket
import sys

from rlvr_jax.pipes import quiet_pipe
from rlvr_jax.sandbox.client import Sandbox
from rlvr_jax.sandbox.interpreter import resolved
from rlvr_jax.sandbox.layers import LAYERS, holds
from rlvr_jax.sandbox.limits import Limits
from rlvr_jax.sandbox.programs import ESCAPED, HONEST, HOSTILE

_LIMITS = Limits(wall_seconds=2.0, cpu_seconds=1.0, memory_mb=256, processes=12, disk_mb=16)


def main() -> int:
    """Prints the layers and the trials; returns the exit code."""
    print(f"{resolved()} as user {os.geteuid()}\n")
    with Sandbox(_LIMITS, unsafe_local=True) as sandbox:
        missing = sandbox.missing
        for layer, what in LAYERS.items():
            state = f"missing  {what}: {missing[layer]}" if layer in missing else f"on       {what}"
            print(f"{layer:14} {state}")
        print()
        wrong = 0
        with socket.create_server(("127.0.0.1", 0)) as listener:
            arguments = [str(os.getpid()), str(listener.getsockname()[1])]
            for program in HOSTILE:
                outcome = sandbox.run(program.source, argv=arguments)
                escaped = ESCAPED in outcome.stdout
                wrong += escaped
                print(f"{program.name:42} {'GETS OUT' if escaped else 'stopped'}")
        for program in HONEST:
            outcome = sandbox.run(program.source, program.stdin)
            right = (outcome.status, outcome.stdout) == (0, program.stdout)
            wrong += not right
            print(f"{program.name:42} {'runs' if right else f'FAILS: {outcome}'}")
    safe = holds(set(LAYERS) - missing.keys())
    print(f"\nUntrusted programs are {'run here' if safe else 'refused here'}.")
    return 1 if wrong else 0


if __name__ == "__main__":
    with quiet_pipe():
        sys.exit(main())
