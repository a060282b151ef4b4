"""The lesson `causal` with solutions as people write them, by the way of a learner's file."""

import textwrap

import pytest

from glassformer.tools.learn.examine import verdict_on
from glassformer.tools.learn.lesson import lesson
from glassformer.tools.learn.worker import answer_on

HOLE = "    raise NotImplementedError\n"
RIGHT = (
    "return torch.ones(length, length, dtype=torch.bool).tril()",
    "return padding_mask(tokens, pad) & subsequent_mask(tokens.size(1))",
    "return torch.cat((torch.full_like(labels[:, :1], bos), labels[:, :-1]), dim=1)",
)


@pytest.fixture
def verdict_of(tmp_path):
    """The verdict on the lesson's file with right bodies in its holes, but for those given."""

    def verdict(**bodies):
        text = lesson("causal").template
        for hole, right in zip(("subsequent", "target", "shift"), RIGHT, strict=True):
            body = textwrap.dedent(bodies.get(hole, right))
            text = text.replace(HOLE, textwrap.indent(body, "    ") + "\n", 1)
        file = tmp_path / "03_causal.py"
        file.write_text(text, encoding="utf-8")
        return verdict_on(lesson("causal"), file, answer_on(file, "causal"))

    return verdict


def test_an_unusual_right_solution(verdict_of):
    """Comparisons in place of a triangle, loops in place of slices."""
    verdict = verdict_of(
        subsequent="places = torch.arange(length)\nreturn places[None, :] <= places[:, None]",
        target="""
            mask = torch.zeros(tokens.shape[0], 1, tokens.shape[1], tokens.shape[1])
            for b, row in enumerate(tokens):
                for i in range(len(row)):
                    for j in range(i + 1):
                        mask[b, 0, i, j] = float(row[j] != pad)
            return mask > 0
        """,
        shift="""
            rows = []
            for row in labels.tolist():
                row.insert(0, bos)
                row.pop()
                rows.append(row)
            return torch.tensor(rows)
        """,
    )
    assert (verdict.outcome, verdict.lines) == ("right", ())


@pytest.mark.parametrize(
    ("hole", "body", "mistake"),
    [
        # the mask of torch.nn.Transformer: True = hidden
        (
            "subsequent",
            "return torch.triu(torch.ones(length, length), diagonal=1).bool()",
            ("causal-inverted",),
        ),
        # range(i) stops before i
        (
            "subsequent",
            """
            mask = torch.zeros(length, length).bool()
            for i in range(length):
                for j in range(i):
                    mask[i, j] = True
            return mask
            """,
            ("causal-self-hidden",),
        ),
        ("subsequent", "return torch.tril(torch.ones(length, length))", ("causal-as-numbers",)),
        # all float, and off by one
        (
            "subsequent",
            "return 1 - torch.triu(torch.ones(length, length), 2)",
            ("causal-next-visible", "causal-as-numbers"),
        ),
        # the sum of two boolean masks is an "or"
        (
            "target",
            "return padding_mask(tokens, pad) + subsequent_mask(len(tokens[0]))",
            ("target-or",),
        ),
        ("target", "return padding_mask(tokens, pad)", ("causal-missing",)),
        (
            "target",
            "return subsequent_mask(tokens.size(1))[None, None]",
            ("target-padding-forgotten",),
        ),
        (
            "target",
            "return (tokens != pad)[:, None, :] & subsequent_mask(tokens.size(1))",
            ("target-without-heads",),
        ),
        # the habit of files whose targets begin with bos already
        ("shift", "return labels[:, :-1]", ("shift-without-bos",)),
        ("shift", "out = labels.roll(1, 1)\nreturn out", ("shift-rolled",)),
        (
            "shift",
            "labels[:, 1:] = labels[:, :-1].clone()\nlabels[:, 0] = bos\nreturn labels",
            ("shift-changes-labels",),
        ),
    ],
)
def test_a_mistake_as_people_make_it(verdict_of, hole, body, mistake):
    verdict = verdict_of(**{hole: body})
    assert verdict.mistakes == (mistake,)


def test_the_length_of_the_batch_is_no_length_of_a_sentence(verdict_of):
    """`len` of a tensor is its first axis: an error, which no known mistake explains."""
    verdict = verdict_of(target="return padding_mask(tokens, pad) & subsequent_mask(len(tokens))")
    assert (verdict.outcome, verdict.mistakes) == ("error", ())


def test_a_triangle_of_numpy_is_no_tensor(verdict_of):
    verdict = verdict_of(
        subsequent="import numpy as np\nreturn np.tril(np.ones((length, length), dtype=bool))"
    )
    assert "Your mask is a tensor: False; right is True." in verdict.lines[0]


@pytest.mark.parametrize(
    ("shift", "evidence"),
    [
        (
            "out = torch.zeros_like(labels)\nout[:, 1:] = labels[:, :-1]\nreturn out",
            "The decoder's input begins with bos. With bos 2, your first input is 0.",
        ),
        (  # bos in the place of the first label
            "out = labels.clone()\nout[:, 0] = bos\nreturn out",
            "The decoder does not read the label that it has to predict."
            " At step 1 the decoder reads 8, and has to predict 8.",
        ),
    ],
)
def test_a_shift_that_breaks_a_law(verdict_of, shift, evidence):
    assert verdict_of(shift=shift).lines[0] == evidence


def test_a_solution_that_no_list_knows_breaks_a_law(verdict_of):
    """A triangle from the other corner."""
    verdict = verdict_of(
        subsequent="return torch.ones(length, length, dtype=torch.bool).tril().flip(1)"
    )
    assert verdict.outcome == "law"
    assert verdict.lines[0] == (
        "No position attends to a later one. With length 3, position 0 may attend to position 2."
    )


def test_the_answers_to_the_questions():
    """The padding behind the words changes only its own rows."""
    import torch

    from glassformer import subsequent_mask, target_mask

    tokens = torch.tensor([[2, 7, 8, 0, 0]])
    changed = (target_mask(tokens, 0)[0, 0] != subsequent_mask(5)).any(dim=1)
    assert changed.tolist() == [False, False, False, True, True]
