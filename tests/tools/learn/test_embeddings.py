"""The lesson on embeddings: solutions as people write them, and the numbers in its text."""

from types import SimpleNamespace

import pytest
import torch

from glassformer import ScaledEmbedding, sinusoidal_positions
from glassformer.tools.learn.check import measure
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import lesson

HOLE = "        raise NotImplementedError\n"
EMBED = "        return self.weight[tokens] * math.sqrt(self.weight.size(1))\n"
PROJECT = "        return states @ self.target_embedding.weight.T\n"
INIT = "        self.target_embedding = ScaledEmbedding(vocab_size, d_model)\n"


def verdicts(embed=EMBED, project=PROJECT, init=""):
    """Each hole's outcome and mistakes, for the lesson's file with these bodies."""
    source = lesson("embeddings").template.replace(INIT, INIT + init)
    for body in (embed, project):
        source = source.replace(HOLE, body, 1)
    names = {"__name__": "embeddings"}
    exec(compile(source, "embeddings.py", "exec"), names)
    judges = [Judge.of(lesson("embeddings"), hole) for hole in lesson("embeddings").holes]
    found = [judge.verdict(measure(judge.probes, SimpleNamespace(**names))) for judge in judges]
    return [verdict and (verdict.outcome, *verdict.mistakes) for verdict in found]


def test_a_right_solution():
    assert verdicts() == [("right",), ("right",)]


ONE_HOT = """
        vocab, d_model = self.weight.shape
        hot = (tokens[..., None] == torch.arange(vocab)).to(self.weight.dtype)
        return torch.einsum("blv,vd->bld", hot, self.weight) * d_model**0.5
"""
ROW_BY_ROW = """
        table = self.target_embedding.weight
        return torch.stack([(states * row).sum(-1) for row in table], -1)
"""
TIED_LINEAR = """
        return self.output(states)
"""


def test_unusual_solutions_are_right_too():
    assert verdicts(ONE_HOT, ROW_BY_ROW) == [("right",), ("right",)]
    tie = (
        "        self.output = nn.Linear(d_model, vocab_size, bias=False)\n"
        "        self.output.weight = self.target_embedding.weight\n"
    )
    assert verdicts(project=TIED_LINEAR, init=tie)[1] == ("right",)


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("        return self.weight[tokens]\n", "embedding-not-scaled"),
        ("        return self.weight.data[tokens] * self.weight.shape[1] ** 0.5\n", None),
        ("        return self.weight[tokens] * len(self.weight) ** 0.5\n", "root-of-vocab"),
    ],
)
def test_wrong_embeddings(body, verdict):
    outcome, mistake = verdicts(embed=body)[0]
    assert outcome == "mistake"
    assert mistake[0].endswith(verdict or "embedding-detached")
    assert len(mistake) == 1


LINEAR = "        self.output = nn.Linear(d_model, vocab_size, bias=False)\n"


@pytest.mark.parametrize(
    ("init", "body", "mistake"),
    [
        (LINEAR, TIED_LINEAR, "projection-own-table"),
        (
            LINEAR
            + "        self.output.weight.data = self.target_embedding.weight.data.clone()\n",
            TIED_LINEAR,
            "projection-own-table",
        ),
        (
            "        self.output = nn.Parameter(self.target_embedding.weight.data)\n",
            "        return states @ self.output.T\n",
            "projection-shares-numbers",
        ),
        (
            "",
            "        return states @ self.target_embedding.weight.detach().T\n",
            "projection-detached",
        ),
        (
            "",
            "        w = self.target_embedding.weight * math.sqrt(states.shape[-1])\n"
            "        return states @ w.T\n",
            "projection-scaled",
        ),
    ],
)
def test_wrong_projections(init, body, mistake):
    assert verdicts(project=body, init=init)[1] == ("mistake", (mistake,))


def test_a_matrix_on_the_wrong_side_is_an_error():
    assert verdicts(project="        return states @ self.target_embedding.weight\n")[1] is None


@torch.no_grad()
def test_the_numbers_in_the_text():
    torch.manual_seed(0)
    embedding = ScaledEmbedding(37_000, 512)
    embedded = embedding(torch.arange(100)[None])
    assert float(embedding.weight.std()) == pytest.approx(0.044, abs=0.001)
    assert float(embedded.std()) == pytest.approx(1.0, abs=0.02)
    assert float(sinusoidal_positions(100, 512).square().mean().sqrt()) == pytest.approx(
        0.707, 0.01
    )
    logits = embedded[0] @ embedding.weight.T
    assert logits.argmax(-1).tolist() == list(range(100))
    assert float(logits.diagonal().mean()) == pytest.approx(22.6, abs=0.5)
