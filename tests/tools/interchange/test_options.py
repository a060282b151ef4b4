"""The options of a model, and what the exports make of them."""

from glassformer.config import ModelConfig


def test_every_option_of_a_model_is_thought_of():
    """Someone who adds an option decides whether each export holds or refuses it; then adds it."""
    sizes = {"source_vocab_size", "target_vocab_size", "d_model", "num_heads", "d_ff"}
    sizes |= {"num_encoder_layers", "num_decoder_layers", "max_length", "source_max_length"}
    positions = {"positions", "position_layout", "position_frequencies", "position_offset"}
    dropouts = {"dropout", "attention_dropout", "activation_dropout"}
    norms = {"norm", "norm_epsilon", "embedding_norm"}
    ids = {"pad_id", "source_pad_id", "unk_id", "bos_id", "eos_id"}
    others = {"activation", "tying", "output_bias", "scale_embeddings"}
    known = sizes | positions | dropouts | norms | ids | others
    assert set(ModelConfig.model_fields) == known
