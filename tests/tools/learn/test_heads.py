"""The lesson `heads` with solutions as people write them, by the way of a learner's file."""

import textwrap

import pytest
import torch
from torch.nn import functional as F

from glassformer import ModelConfig, MultiHeadAttention, Transformer
from glassformer.parts import rebuilt
from glassformer.tools.learn.examine import verdict_on
from glassformer.tools.learn.lesson import lesson
from glassformer.tools.learn.parts import Part, own_parts
from glassformer.tools.learn.worker import answer_on, load_module

HOLE = "        raise NotImplementedError\n"
RIGHT = {
    "split": """
        d_head = joint.size(-1) // self.num_heads
        return joint.reshape(*joint.shape[:-1], self.num_heads, d_head).transpose(-3, -2)
    """,
    "merge": "return heads.transpose(-3, -2).flatten(-2)",
    "project_keys_and_values": "return self.split(self.key(key)), self.split(self.value(value))",
    "attend": """
        queries = self.split(self.query(query))
        heads, _ = scaled_dot_product_attention(queries, keys, values, mask)
        return self.output(self.merge(heads))
    """,
}


def file_with(**bodies):
    """The lesson's file with right bodies in its holes, but for those given."""
    text = lesson("heads").template
    for body in (RIGHT | bodies).values():
        text = text.replace(HOLE, textwrap.indent(textwrap.dedent(body), " " * 8) + "\n", 1)
    return text


@pytest.fixture
def verdict_of(tmp_path):
    """The verdict on such a file."""

    def verdict(**bodies):
        file = tmp_path / "04_heads.py"
        file.write_text(file_with(**bodies), encoding="utf-8")
        return verdict_on(lesson("heads"), file, answer_on(file, "heads"))

    return verdict


def test_unusual_right_solutions(verdict_of):
    """Chunks and lists in place of reshape, loops over heads, einsum for the projections."""
    verdict = verdict_of(
        split="""
            import torch
            return torch.stack(joint.chunk(self.num_heads, dim=2), dim=1)
        """,
        merge="""
            import torch
            return torch.cat([heads[:, h] for h in range(heads.shape[1])], dim=-1)
        """,
        attend="""
            import torch
            q = torch.einsum("bqi,oi->bqo", query, self.query.weight) + self.query.bias
            q = self.split(q)
            results = []
            for h in range(self.num_heads):
                only = mask
                if mask is not None and mask.dim() == 4:
                    only = mask[:, 0]
                results.append(
                    scaled_dot_product_attention(q[:, h], keys[:, h], values[:, h], only)[0]
                )
            return self.output(torch.cat(results, -1))
        """,
    )
    assert (verdict.outcome, verdict.lines) == ("right", ())


@pytest.mark.parametrize(
    ("hole", "body", "mistake"),
    [
        (
            "split",
            "b, n, d = joint.shape\nreturn joint.view(b, self.num_heads, n, d // self.num_heads)",
            "split-by-view",
        ),
        (
            "split",
            "b, n, d = joint.shape\nreturn joint.view(b, n, self.num_heads, -1)",
            "split-without-transpose",
        ),
        (
            "split",
            "b, n, d = joint.shape\nx = joint.view(b, n, -1, self.num_heads)"
            "\nreturn x.permute(0, 3, 1, 2)",
            "split-interleaved",
        ),
        (
            "merge",
            "b, h, n, d = heads.shape\nreturn heads.contiguous().view(b, n, h * d)",
            "merge-by-view",
        ),
        ("merge", "return heads.mean(dim=1)", "merge-averaged"),
        (
            "project_keys_and_values",
            "kv = [self.split(self.key(x)) for x in (key, key)]\nreturn kv[0], kv[1]",
            ("heads-one-for-keys-and-values", "heads-values-of-key"),
        ),
        (
            "attend",
            """
            q = self.split(self.query(query))
            out, w = scaled_dot_product_attention(q, keys, values)
            return self.output(self.merge(out))
            """,
            "heads-mask-not-used",
        ),
        (
            "attend",
            """
            import torch.nn.functional as F
            q = self.split(self.query(query))
            return self.merge(F.scaled_dot_product_attention(q, keys, values, attn_mask=mask))
            """,
            "heads-output-missing",
        ),
        (
            "attend",
            """
            import math
            q = self.split(self.query(query))
            scores = q @ keys.transpose(2, 3) / math.sqrt(query.shape[-1])
            if mask is not None:
                scores = scores.masked_fill(mask == 0, -1e9)
            return self.output(self.merge(scores.softmax(-1) @ values))
            """,
            "heads-scale-of-d_model",
        ),
    ],
)
def test_a_mistake_as_people_make_it(verdict_of, hole, body, mistake):
    verdict = verdict_of(**{hole: body})
    assert verdict.mistakes == ((mistake,) if isinstance(mistake, str) else mistake,)


def test_a_view_after_a_transpose_is_an_error_with_its_line(verdict_of):
    verdict = verdict_of(
        merge="b, h, n, d = heads.shape\nreturn heads.transpose(1, 2).view(b, n, h * d)"
    )
    assert (verdict.outcome, verdict.mistakes) == ("error", ())
    assert "return heads.transpose(1, 2).view(b, n, h * d)" in verdict.lines[0]
    assert "heads is (1, 2, 3, 2)" in verdict.lines


def test_no_list_knows_this_one_and_the_law_that_it_breaks(verdict_of):
    """The heads in reversed order."""
    verdict = verdict_of(split=RIGHT["split"].rstrip() + ".flip(1)")
    assert verdict.outcome == "law"
    assert verdict.lines[0] == (
        "Each head has its own part of every position's features. Position 0 has the features"
        " [0, 1, 2, 3]; its head 0 of 2 should be [0, 1], and is [2, 3]."
    )


def test_a_call_with_the_query_alone_is_self_attention(tmp_path):
    file = tmp_path / "04_heads.py"
    file.write_text(file_with(), encoding="utf-8")
    attention, x = load_module(file).MultiHeadAttention(4, 2), torch.randn(1, 3, 4)
    torch.testing.assert_close(attention(x), attention(x, x, x))


def test_weights_are_seen_if_a_learners_attend_calls_no_attention():
    def inline(self, query, keys, values, mask=None):
        queries = self.split(self.query(query))
        return self.output(self.merge(F.scaled_dot_product_attention(queries, keys, values, mask)))

    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 16}
    model = Transformer(ModelConfig(source_vocab_size=11, target_vocab_size=13, **sizes)).eval()
    own = own_parts([Part("model.attention.MultiHeadAttention.attend", inline, "heads")])
    x = torch.randn(1, 3, 8)
    seen, expected = (
        each.encoder.blocks[0].self_attention.sublayer.with_weights(x)
        for each in (rebuilt(model, own), model)
    )
    torch.testing.assert_close(seen, expected)


def test_the_answers_to_the_questions():
    counts = {
        sum(weight.numel() for weight in MultiHeadAttention(512, heads).parameters())
        for heads in (8, 1)
    }
    assert counts == {1_050_624}

    attention, x = MultiHeadAttention(15, 3), torch.randn(2, 7, 15)
    before = attention(x, x, x)
    order = torch.tensor([*range(5, 10), *range(5), *range(10, 15)])
    with torch.no_grad():
        for projection in (attention.query, attention.key, attention.value):
            projection.weight.copy_(projection.weight[order])
            projection.bias.copy_(projection.bias[order])
        attention.output.weight.copy_(attention.output.weight[:, order])
    torch.testing.assert_close(attention(x, x, x), before)
