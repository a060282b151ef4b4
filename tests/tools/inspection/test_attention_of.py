import jaxtyping
import pytest
import torch

from glassformer.support.errors import UsageError
from glassformer.tools.inspection.attention_of import attention_of
from glassformer.tools.inspection.trace.subwords import token_labels


def test_attention_of_each_part(parts):
    source, target = "two men", "zwei"
    with torch.no_grad():
        parts.model.train()
        cross = attention_of(parts, source, target)
        again = attention_of(parts, source, target)
        assert parts.model.training
    torch.testing.assert_close(cross.weights, again.weights)  # no dropout
    assert cross.weights.shape == (1, 3, 2, 3)
    assert (cross.query_labels, cross.key_labels) == (["zwei", "</s>"], ["two", "men", "</s>"])
    decoder = attention_of(parts, source, target, part="decoder")
    assert decoder.query_labels == decoder.key_labels == ["<s>", "zwei"]
    assert decoder.weights[:, :, 0, 1].eq(0).all()
    encoder = attention_of(parts, source, "", part="encoder")
    assert encoder.weights.shape == (2, 3, 3, 3)
    torch.testing.assert_close(encoder.weights.sum(dim=-1), torch.ones(2, 3, 3))


def test_labels_of_subwords(parts):
    tokenizer = parts.source_tokenizer
    ids = [tokenizer.bos_id, *tokenizer.encode("two twomen 漢"), tokenizer.eos_id]
    labels = token_labels(tokenizer, ids)
    assert labels[:3] == ["<s>", "two", "two"]
    assert labels[-4:-1] == [f"<0x{byte:02X}>" for byte in "漢".encode()]
    assert "▁" not in "".join(labels[:4])
    assert any(label.startswith("·") for label in labels)


def test_an_unknown_part_names_the_nearest(parts, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # the code's own message
    with pytest.raises(UsageError, match=r"part 'decodr': .*did you mean 'decoder'"):
        attention_of(parts, "two", "zwei", part="decodr")
