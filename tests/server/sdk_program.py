"""The SDK, unmodified, against a server of brackets; prints what it got as JSON.

python tests/server/sdk_program.py        # TINKER_BASE_URL and TINKER_API_KEY are set
"""

import json

import numpy as np
import tinker
from tinker import types

RNG = np.random.default_rng(0)
PROMPT = types.ModelInput.from_ints([3, 9, 4, 15, 108])


def datum(**inputs):
    """A sequence of random tokens."""
    tokens = RNG.integers(3, 15, 11)
    sent = {name: draw(10) for name, draw in inputs.items()}
    model_input = types.ModelInput.from_ints(tokens[:-1].tolist())
    return types.Datum(model_input, {"target_tokens": tokens[1:], **sent})


def refusal(call):
    """The sentence of a call that is refused."""
    try:
        call()
    except (tinker.TinkerError, ValueError) as error:
        return str(error)
    return None


def main():
    service = tinker.ServiceClient()
    found = {
        "info": service.create_lora_training_client("brackets", rank=4)
        .result()
        .get_info()
        .model_name
    }
    training = service.create_lora_training_client("brackets", rank=4, seed=1).result()
    adam = types.AdamParams(learning_rate=0.01)
    taught = [datum(weights=lambda n: np.ones(n, np.float32)) for _ in range(5)]
    rated = [
        datum(
            logprobs=lambda n: np.full(n, -1.0, np.float32),
            advantages=lambda n: RNG.normal(size=n).astype(np.float32),
        )
        for _ in range(5)
    ]
    found["losses"] = []
    for _ in range(3):
        forward, step = (
            training.forward_backward(taught, "cross_entropy"),
            training.optim_step(adam),
        )
        found["losses"].append(forward.result().metrics["loss:sum"])
        step.result()
    found["fields"] = sorted(forward.result().loss_fn_outputs[0])

    path = training.save_state("half").result().path
    models = [
        service.create_training_client_from_state_with_optimizer(path).result() for _ in range(2)
    ]
    config = training.holder._client_config
    small = config.model_copy(update={"fwdbwd_max_chunk_len": 2})
    found["chunks"] = []
    for model, own in zip(models, (config, small), strict=True):
        model.holder._client_config = own
        forward = model.forward_backward(
            rated, "rlvr:clip_cov", {"fraction": 0.1, "covariance_low": 0.0}
        )
        metrics = model.optim_step(adam).result().metrics
        found["chunks"].append([metrics["loss"], metrics["covariance"], metrics["gradient_norm"]])
        found["outputs"] = len(forward.result().loss_fn_outputs)
    training.holder._client_config = config

    sampler = training.save_weights_and_get_sampling_client().result()
    wanted = types.SamplingParams(max_tokens=24, seed=3)
    found["sampled"] = [
        [sequence.tokens for sequence in sampler.sample(PROMPT, 2, wanted).result().sequences]
    ]
    training.forward_backward(taught, "cross_entropy").result()
    training.optim_step(adam).result()
    found["sampled"].append(
        [sequence.tokens for sequence in sampler.sample(PROMPT, 2, wanted).result().sequences]
    )
    found["prompt"] = sampler.compute_logprobs(PROMPT).result()
    named = training.save_weights_for_sampler("named").result().path
    sampler = service.create_sampling_client(model_path=named).result()
    top = sampler.sample(PROMPT, 1, wanted, topk_sample_logprobs=2).result().sequences[0]
    found["top"] = [list(np.shape(top.topk_logprobs_np.token_ids)), len(top.tokens)]

    def squares(data, logprobs):
        total = sum((one**2).sum() for one in logprobs)
        return total, {"squares": float(total)}

    custom = training.forward_backward_custom(taught, squares).result()
    found["custom"] = [custom.metrics["squares"], custom.metrics["loss:sum"]]
    training.optim_step(adam).result()
    found["refused"] = [
        refusal(lambda: service.create_lora_training_client("../brackets").result()),
        refusal(lambda: training.forward_backward(rated, "gspo").result()),
        refusal(lambda: tinker.ServiceClient(api_key="tml-wrong").holder),
    ]
    service.close("success").result()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
