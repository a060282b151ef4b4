"""The same states and logits as Hugging Face's Marian and BART, from small random models.

Their weights come into ours by the tables of `import`; a name with no counterpart fails the test.
"""

import pytest
import torch
from torch import Tensor, nn

from glassformer.config import ModelConfig
from glassformer.model.transformer import Transformer
from glassformer.tools.interchange.hugging_face.families import FAMILIES, weight_table

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

SIZES = {
    "d_model": 14,
    "vocab_size": 23,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 7,
    "decoder_attention_heads": 7,
    "encoder_ffn_dim": 19,
    "decoder_ffn_dim": 19,
    "max_position_embeddings": 31,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "decoder_start_token_id": 2,
    "eos_token_id": 3,
    "forced_eos_token_id": 3,
}
OURS = {
    "source_vocab_size": 23,
    "target_vocab_size": 23,
    "d_model": 14,
    "num_heads": 7,
    "d_ff": 19,
    "num_encoder_layers": 2,
    "num_decoder_layers": 3,
    "max_length": 31,
    "output_bias": True,
}
OTHER = {
    "marian": {"activation": "swish", **FAMILIES["marian"].options},
    "bart": {  # a row that import has not: its tokenizer is of another kind
        "activation": "gelu",
        "scale_embeddings": False,
        "positions": "learned",
        "position_offset": 2,
        "embedding_norm": True,
    },
}

CASES = {
    "marian": (
        transformers.MarianMTModel,
        transformers.MarianConfig(**SIZES, activation_function="swish", scale_embedding=True),
    ),
    "bart": (transformers.BartForConditionalGeneration, transformers.BartConfig(**SIZES)),
}


def random_model(case: str) -> nn.Module:
    """No bias or norm at the value with which it begins; the sinusoids as they are."""
    kind, config = CASES[case]
    torch.manual_seed(0)
    model = kind(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.requires_grad and not (case == "marian" and "positions" in name):
                parameter += 0.2 * torch.randn_like(parameter)
        model.final_logits_bias += torch.randn_like(model.final_logits_bias)
    return model


def converted(theirs: nn.Module, case: str) -> Transformer:
    config = ModelConfig(**OURS, **OTHER[case])
    ours, table = Transformer(config).eval(), weight_table(config)
    weights: dict[str, Tensor] = {}
    for name, tensor in theirs.state_dict().items():
        if (target := table[name]) is not None:
            weights[target] = tensor.squeeze(0) if target == "output_bias" else tensor
    weights["target_embedding.weight"] = weights["source_embedding.weight"]
    ours.load_state_dict(weights)  # strict: each of ours is given, each given is ours
    return ours


def batch() -> tuple[Tensor, Tensor]:
    torch.manual_seed(4)
    source, target = torch.randint(4, 23, (3, 11)), torch.randint(4, 23, (3, 7))
    target[:, 0] = 2
    for row, (source_length, target_length) in enumerate([(11, 3), (2, 7), (5, 5)]):
        source[row, source_length:], target[row, target_length:] = 0, 0
    return source, target


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-6)])
def test_states_and_logits(case, dtype, tolerance):
    theirs = random_model(case)
    ours = converted(theirs, case).to(dtype)
    source, target = batch()
    with torch.no_grad():
        expected = theirs.to(dtype)(
            input_ids=source,
            attention_mask=(source != 0).long(),
            decoder_input_ids=target,
            decoder_attention_mask=(target != 0).long(),
        )
        states, logits = ours.encode(source).states, ours(source, target)
    close = {"atol": tolerance, "rtol": tolerance}
    real = source != 0
    torch.testing.assert_close(states[real], expected.encoder_last_hidden_state[real], **close)
    torch.testing.assert_close(logits[target != 0], expected.logits[target != 0], **close)


@pytest.mark.parametrize("case", CASES)
def test_decoding_step_by_step_follows_their_cache(case):
    theirs = random_model(case)
    ours = converted(theirs, case)
    source, target = batch()
    mask, cache = (source != 0).long(), None
    with torch.no_grad():
        encoded = theirs.get_encoder()(input_ids=source, attention_mask=mask)
        state = ours.start(ours.encode(source))
        for position in range(3):  # as long as every row has words
            tokens = target[:, position]
            logits, state = ours.step(tokens, state)
            expected = theirs(
                encoder_outputs=encoded,
                attention_mask=mask,
                decoder_input_ids=tokens[:, None],
                past_key_values=cache,
                use_cache=True,
            )
            cache = expected.past_key_values
            torch.testing.assert_close(logits, expected.logits[:, 0], atol=1e-5, rtol=1e-5)
