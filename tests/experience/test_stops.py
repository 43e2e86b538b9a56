"""Responses pause where their text contains a stop, in the tokens of any tokenizer."""

import random
from dataclasses import dataclass, field

import jax
import numpy as np
import pytest
import training_runs
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE, WordLevel
from transformers import PreTrainedTokenizerFast

from rlvr_jax import policy
from rlvr_jax.experience import experience, turns
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.stops import completes, stops_of, token_bytes
from rlvr_jax.objectives import TOOL
from rlvr_jax.runs.step import collect
from rlvr_jax.tools import between, calculator, code_steps, fenced, json_calls, tags, toolbox


def spelled(text):
    """A text as a byte-level tokenizer spells it."""
    spelling = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return spelling.pre_tokenize_str(text)[0][0]


def fast(model, decoder=None, **special):
    plain = Tokenizer(model)
    plain.decoder = decoder
    return PreTrainedTokenizerFast(tokenizer_object=plain, eos_token="<eos>", **special)


def byte_level(*tokens):
    """A tokenizer of byte-level pieces, every byte among them."""
    every = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *map(spelled, tokens)]
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys(every))}
    return fast(BPE(vocabulary, []), decoders.ByteLevel())


def with_fallback(*tokens):
    """A tokenizer that writes what it does not know in bytes, as Llama's and Gemma's do."""
    segments = [token.replace(" ", "▁") for token in tokens]
    every = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *dict.fromkeys(segments)]
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    model = BPE({token: number for number, token in enumerate(every)}, [], byte_fallback=True)
    return fast(model, decoders.Sequence(steps))


def words(*tokens):
    return fast(WordLevel({token: n for n, token in enumerate(["?", *tokens])}, unk_token="?"))


def ids_of(tokenizer, segments):
    """The tokens with these bytes, one for each."""
    known = {text: number for number, text in enumerate(token_bytes(tokenizer))}
    return [
        known[segment if isinstance(segment, bytes) else segment.encode()] for segment in segments
    ]


def pauses(tokenizer, texts, ids):
    """Behind which tokens a row would pause."""
    stops = stops_of(tokenizer, texts, len(tokenizer) + 3)
    return [
        end
        for end in range(1, len(ids) + 1)
        if stops.found[stops.after(ids[: end - 1]), stops.kind[ids[end - 1]]] >= 0
    ]


STYLES = {
    "tags": tags({"code": "python", "calc": "calculator"}).stops,
    "fenced": fenced().stops,
    "between": between("[", "]]", "calculator", "", "").stops,
    "r1_searcher": ("<|end_of_query|>",),
    "code_steps": code_steps().stops,
    "json_calls": json_calls().stops,
}

# Style, the pieces of a response, and behind which of them it pauses; None: nowhere.
WRITTEN = [
    ("tags", ["print(1", ")</", "code", ">", " then"], 4),
    ("tags", ["(3", ")</", "calc", ">"], 4),
    ("tags", [" </", "code", ">"], 3),
    ("tags", ["print(1)", "</code>\n"], 2),
    ("tags", ["x</code", "><b>"], 2),
    ("tags", ["</co", "d", "e", " >", "</code>"], 5),
    ("tags", ["</code", "</code", ">"], 3),
    ("tags", ["</", "codes", ">"], None),
    ("fenced", ["print(1", ")\n", "```"], 3),
    ("fenced", ["1)\n", "```\n", "\n"], 2),
    ("fenced", ["1)\n``", "`"], 2),
    ("fenced", ["1\n", "``", "``"], 3),
    ("fenced", ["1", "```"], None),
    ("between", ["[1]", "]"], 2),
    ("between", ["[[1]", "]] "], 2),
    ("between", ["[1] ", "]"], None),
    ("r1_searcher", ["Malta?<|", "end_of", "_query|>\n"], 3),
    ("r1_searcher", ["<|end", "_of_query", "|", ">"], 4),
    ("code_steps", ["a = 1<", "end_of", "_step>\n"], 3),
    ("code_steps", ["print(a)<end", "_of_code>"], 2),
    ("json_calls", ["}", "}</", "tool", "_call>\n"], 4),
    ("json_calls", ["}</tool", "_calls>"], None),
]


@pytest.mark.parametrize(("style", "segments", "at"), WRITTEN)
@pytest.mark.parametrize("made", [byte_level, with_fallback])
def test_a_response_pauses_at_the_piece_that_completes_a_stop(made, style, segments, at):
    tokenizer, texts = made(*segments), STYLES[style]
    ids = ids_of(tokenizer, segments)
    found = pauses(tokenizer, texts, ids)
    assert (found or [None])[0] == at
    by_text = [end for end in range(1, len(ids) + 1) if completes(tokenizer, ids[:end], texts)]
    assert by_text == found


PARTS = "答案".encode()


@pytest.mark.parametrize(
    ("segments", "at"),
    [
        (["答", "案！"], 2),
        ([PARTS[place : place + 1] for place in range(6)], 6),
        ([PARTS[:3].decode(), *(PARTS[place : place + 1] for place in range(3, 6))], 4),
    ],
)
def test_a_stop_is_found_in_parts_of_characters(segments, at):
    tokenizer = byte_level("答", "案！")
    assert pauses(tokenizer, ("答案",), ids_of(tokenizer, segments)) == [at]


@pytest.mark.parametrize(
    "tokenizer",
    [
        byte_level("=!", "é", " the", "\n\n", "日本"),
        with_fallback("▁the", "=!", "é", "▁"),
        words("a", "b.", "+"),
    ],
    ids=["byte level", "byte fallback", "words"],
)
def test_tokens_have_the_bytes_that_they_add_to_a_text(tokenizer):
    tokenizer.add_tokens([AddedToken("<|tag|>", special=True), "plain added"])
    known, draw = token_bytes(tokenizer), random.Random(0)
    # What parts of characters look like that no other part completes is the decoder's own.
    whole = [
        n for n, text in enumerate(known) if n and "\ufffd" not in text.decode(errors="replace")
    ]
    for _ in range(200):
        ids = draw.choices(whole, k=6)
        written = b"".join(known[number] for number in ids).decode()
        decoded = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
        assert written.strip() == decoded.strip()  # some drop a space before the first token


# A policy whose tokenizer merges "=" and "!", and an environment that is asked at "!".

MERGED = ["=", "!", "=!", "!=", "==", "a", "b!c", "+", " ", *"0123456789"]


@pytest.fixture(scope="module")
def merging(tmp_path_factory):
    folder = tmp_path_factory.mktemp("merging")
    vocabulary = {token: number for number, token in enumerate(["<eos>", *MERGED])}
    tokenizer = fast(BPE(vocabulary, []), decoders.Fuse())
    model = policy.Model(policy.named_config("tiny", len(tokenizer), max_positions=64))
    policy.save(folder, model, jax.jit(model.init)(jax.random.key(0)), tokenizer)
    return folder


def sampled(merging, method, **changes):
    settings = training_runs.settings(
        merging, "unused", method=f"small_environments:{method}", response_tokens=12, **changes
    )
    run = training_runs.prepared(settings)
    return collect(run, run.initial_state(), 0).batch.rollouts


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["asked_in_turns", "asked_in_branches"])
def test_an_environment_is_asked_at_every_token_with_its_stop(merging, method):
    rollouts = sampled(merging, method)
    beyond = 0
    for tokens, origin, length in zip(
        rollouts.tokens, rollouts.records["origin"], rollouts.length, strict=True
    ):
        asked = 0
        for at in range(length - 1):
            token = (["<eos>", *MERGED])[tokens[at]]
            if "!" not in token or origin[at] or asked == 4:
                continue
            # The reply has two tokens, and there is room for one more behind it.
            assert origin[at + 1] == TOOL or at + 3 >= 12
            beyond += token in ("!=", "b!c")
            asked += 1
    assert beyond > 3


@pytest.mark.thorough
def test_texts_pause_rows_that_take_turns_as_all_at_once(merging):
    one, two = (sampled(merging, "asked_in_turns", rows_at_once=n) for n in (0, 3))
    for name in ("tokens", "length", "origin", "turn", "truncated"):
        np.testing.assert_array_equal(one.get(name), two.get(name))


# A policy that writes a script, letter by letter.


class Letters(numpy_actor.Words):
    def batch_decode(self, rows, **options):
        del options
        return ["".join(map(chr, row)) for row in rows]


@dataclass(frozen=True)
class Scripted(numpy_actor.NumpyActor):
    """Writes a text, and after each reply the next one."""

    response_tokens: int = 160
    script: tuple[str, ...] = ()
    tokenizer: object = field(default_factory=Letters)

    def encode(self, text):
        return list(map(ord, text))

    def _row(self, request, sample, key):
        before = "".join(map(chr, request.given))
        text = self.script[0] if not before else self._rest(before)
        row = super()._row(request, sample, key)
        ids = [*map(ord, text), numpy_actor.STOP]
        row["tokens"][:] = 0
        row["tokens"][: len(ids)] = ids
        return row | dict(length=np.int32(len(ids)), truncated=np.bool_(False))

    def _rest(self, before):
        for part in self.script:
            _, found, behind = before.rpartition(part[:4])
            if found and part.startswith(found + behind):
                return part.removeprefix(found + behind)
        return self.script[-1]


def test_a_pause_without_a_reply_does_not_end_the_turn():
    # The opening fence ends a line before it, as the closing fence does.
    script = ("Let us see.\n```python\n6*7\n```", "It is 42.")
    world = toolbox(calculator(), style=fenced(tool="calculator"))
    chain = experience(draw=turns(world, limit=1))
    setting = numpy_actor.setting(chain)
    actor = Scripted(script=script)
    batch = chain.collect(actor, chain.init(setting), 0, setting).batch
    assert batch.responses[0].text == f"{script[0]}\n```output\n42\n```\n{script[1]}"
    assert batch.rollouts.records["turn"].max() == 2
