"""Choice of a mesh to train on and one to sample on, if the user names none."""

from rlvr_jax.parallel.memory import update_buffers
from rlvr_jax.parallel.roofline import computed_bytes, num_parameters
from rlvr_jax.parallel.topologies import Topology
from rlvr_jax.policy import ModelConfig


def train_mesh(config: ModelConfig, topology: Topology, rows: int, tokens: int, held: int) -> str:
    """All devices on fsdp, as far as it divides the width, the rest on data.

    tensor is used where the buffers of an update would not fit without it, or where there are more
    devices than rows.

    Args:
      config: shape of the model.
      topology: the slice.
      rows: of an update.
      tokens: of one row.
      held: bytes that are stored for each parameter all the time.
    """
    devices = topology.num_devices
    parameters = num_parameters(config)

    def fits(tensor: int) -> bool:
        buffers = update_buffers(config, rows=1, tokens=tokens, parts=tensor, devices=devices)
        wanted = sum(buffers.values()) + held * parameters / devices
        # The rest is for what is not counted here.
        return wanted <= 0.88 * topology.hbm_bytes

    sizes = _tensor_sizes(config, devices)
    sizes = [n for n in sizes if rows % (devices // n) == 0] or sizes
    tensor = next(filter(fits, sizes), sizes[-1])
    left = devices // tensor
    fsdp = max(n for n in range(1, left + 1) if left % n == 0 and config.width % n == 0)
    return _mesh(data=left // fsdp, fsdp=fsdp, tensor=tensor)


def sample_mesh(config: ModelConfig, topology: Topology, prompts: int, held: int) -> str:
    """A mesh to sample on: few devices on tensor, the rest on data.

    tensor has as few devices as leave three quarters of the memory free of weights, or all that
    divide the key/value heads. It is larger if the weights take over half of the memory that
    training leaves; several devices then have the same key/value head. If the weights are still too
    large, they are split over fsdp, which gathers them for every token. tensor is also larger if
    data would not divide the prompts. Example, by the compiler's estimate: 128 x 8 responses of
    3000 tokens (1.5B, v5e-256) take 163 s over data=256, 9 s over data=128,tensor=2.

    Args:
      config: shape of the model.
      topology: the slice.
      prompts: of a batch.
      held: bytes that training stores for each parameter all the time.
    """
    devices = topology.num_devices
    parameters = num_parameters(config)
    weights = computed_bytes(config) * parameters
    left = topology.hbm_bytes - held * parameters / devices
    sizes = _tensor_sizes(config, devices)
    tensor = next((n for n in sizes if weights / n <= topology.hbm_bytes / 4), sizes[-1])
    half = topology.hbm_bytes / 2
    wider = _tensor_sizes(config, devices, shared_keys=True)
    if weights / tensor > left / 2:
        tensor = next((n for n in wider if weights / n <= left / 2), wider[-1])
    dividing = (n for n in wider if n >= tensor and prompts % (devices // n) == 0)
    tensor = next(dividing, tensor)
    fsdp = 1
    while weights / tensor / fsdp > half and tensor * fsdp < devices:
        fsdp *= 2
    return _mesh(data=devices // tensor // fsdp, fsdp=fsdp, tensor=tensor)


def _tensor_sizes(config: ModelConfig, devices: int, shared_keys: bool = False) -> list[int]:
    """Numbers of devices that divide the heads and everything else.

    Args:
      shared_keys: but for the key/value heads, which several may have.
    """
    keys = config.num_kv_heads * (config.head_size if shared_keys else 1)
    mlp = config.num_experts or config.mlp_width
    sizes = keys, config.num_heads, config.vocab_size, mlp, devices
    return [n for n in range(1, 9) if all(size % n == 0 for size in sizes)]


def _mesh(**sizes: int) -> str:
    return ",".join(f"{axis}={size}" for axis, size in sizes.items() if size > 1) or "data=1"
