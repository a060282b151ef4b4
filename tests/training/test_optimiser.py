"""One update: micro-batches against one big batch, clipping, and a loss that is not finite."""

import math
from functools import partial

import pytest
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from glassformer.config import ModelConfig
from glassformer.data.batches import Batch
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST, PLAIN
from glassformer.training.fast.loss import projected_losses
from glassformer.training.fast.mixed_precision import working_copy
from glassformer.training.optimiser import Learner, NotFiniteError, adam_of

VOCAB = 11


def toy_model(parts=PLAIN, **changes):
    torch.manual_seed(3)
    settings = {"d_model": 8, "num_heads": 2, "d_ff": 12, "dropout": 0.0}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    sizes = {"source_vocab_size": VOCAB, "target_vocab_size": VOCAB}
    return Transformer(ModelConfig(**{**settings, **layers, **sizes, **changes}), parts)


def batch_of(lengths, *, seed):
    """Random sentences of these lengths as a batch, padded to the longest."""
    draw = torch.Generator().manual_seed(seed)
    width = max(lengths) + 1
    source, target, labels = (torch.zeros(len(lengths), width, dtype=torch.long) for _ in range(3))
    for row, length in enumerate(lengths):
        ids = torch.randint(4, VOCAB, (length,), generator=draw)
        source[row, :length], source[row, length] = ids, 3
        target[row, 0], target[row, 1 : length + 1] = 2, ids
        labels[row, :length], labels[row, length] = ids, 3
    target_tokens = sum(lengths) + len(lengths)
    return Batch(source, target, labels, 2 * target_tokens, target_tokens)


def joined(batches):
    """All rows as one batch."""
    width = max(batch.source.size(1) for batch in batches)

    def wide(name):
        rows = [getattr(batch, name) for batch in batches]
        return torch.cat([F.pad(row, (0, width - row.size(1))) for row in rows])

    sums = (sum(getattr(b, name) for b in batches) for name in ("tokens", "target_tokens"))
    return Batch(wide("source"), wide("target"), wide("labels"), *sums)


# One short sentence, and several long ones: the mean of the batches' means is another number.
MICRO_BATCHES = [batch_of([2], seed=1), batch_of([7, 9, 8, 5], seed=2), batch_of([4, 1], seed=3)]


def updated(batches, *, rate=0.01, **options):
    """The model after one update, and loss, plain loss and gradient norm before it."""
    model = toy_model()
    learner = Learner(model, adam_of(list(model.parameters())), **options)
    return model, learner.update(batches, rate=rate).read()


def gradients(model):
    return {name: weight.grad for name, weight in model.named_parameters()}


def moved(model):
    """The weights, but for the keys' biases: softmax ignores them, so their gradient is rounding,
    and Adam makes whole steps of it."""
    return {n: w for n, w in model.state_dict().items() if not n.endswith("key.bias")}


@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_micro_batches_are_one_big_batch(clip):
    several, done_several = updated(MICRO_BATCHES, clip=clip)
    one, done_one = updated([joined(MICRO_BATCHES)], clip=clip)

    torch.testing.assert_close(gradients(several), gradients(one), rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(moved(several), moved(one), rtol=1e-4, atol=1e-5)
    assert done_several == pytest.approx(done_one, rel=1e-5)


def test_the_tokens_are_counted():
    model = toy_model()
    done = Learner(model, adam_of(list(model.parameters()))).update(MICRO_BATCHES, rate=0.1)

    assert done.tokens == 2 * sum([3, 8, 10, 9, 6, 5, 2])


def test_the_mean_of_means_would_be_another_gradient():
    model, _ = updated(MICRO_BATCHES)
    singly = [gradients(updated([batch])[0]) for batch in MICRO_BATCHES]

    name = "source_embedding.weight"
    mean = sum(found[name] for found in singly) / len(singly)
    assert (mean - gradients(model)[name]).norm() > 0.05 * mean.norm()


def test_the_loss_is_that_of_torch():
    batch = MICRO_BATCHES[1]
    logits = toy_model()(batch.source, batch.target)
    arguments = logits.flatten(0, 1), batch.labels.flatten()

    _, (loss, plain_loss, _) = updated([batch])

    smoothed = F.cross_entropy(*arguments, label_smoothing=0.1, ignore_index=0)
    assert loss == pytest.approx(smoothed.item(), rel=1e-5)
    plain = F.cross_entropy(*arguments, ignore_index=0)
    assert plain_loss == pytest.approx(plain.item(), rel=1e-5)


def test_a_gradient_that_is_too_long_is_cut():
    free, (*_, norm) = updated([MICRO_BATCHES[1]])
    cut, (*_, norm_before) = updated([MICRO_BATCHES[1]], clip=norm / 4)

    assert norm_before == pytest.approx(norm)
    length = math.sqrt(sum(g.square().sum().item() for g in gradients(free).values()))
    assert norm == pytest.approx(length, rel=1e-5)
    expected = {name: gradient / 4 for name, gradient in gradients(free).items()}
    torch.testing.assert_close(gradients(cut), expected, rtol=1e-4, atol=1e-7)


def test_a_short_gradient_is_left_alone():
    free, (*_, norm) = updated([MICRO_BATCHES[1]])
    same, _ = updated([MICRO_BATCHES[1]], clip=2 * norm)

    torch.testing.assert_close(gradients(same), gradients(free), rtol=0, atol=0)


def test_the_first_step_of_adam_by_hand():
    before = toy_model().source_embedding.weight.detach()
    model, _ = updated([MICRO_BATCHES[1]], rate=0.01)
    weight = model.source_embedding.weight
    gradient, change = weight.grad, weight.detach() - before

    # Bias-corrected, both moments of the first step are the gradient: rate * g / (|g| + eps).
    expected = -0.01 * gradient / (gradient.abs() + 1e-9)
    torch.testing.assert_close(change, expected, rtol=1e-3, atol=1e-6)


def test_adam_has_the_papers_constants():
    [group] = adam_of(list(toy_model().parameters())).param_groups

    assert (group["betas"], group["eps"], group["weight_decay"]) == ((0.9, 0.98), 1e-9, 0)


def test_a_loss_that_is_not_finite_leaves_the_weights():
    model = toy_model()
    with torch.no_grad():
        model.source_embedding.weight[5, 0] = float("nan")
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    learner = Learner(model, adam_of(list(model.parameters())), clip=1.0)

    done = learner.update(MICRO_BATCHES, rate=0.1)

    with pytest.raises(NotFiniteError, match="loss nan, gradient norm nan"):
        done.read()
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0, equal_nan=True)
    for kept in learner.optimiser.state.values():
        assert [kept[name].abs().max() for name in ("step", "exp_avg", "exp_avg_sq")] == [0, 0, 0]


def test_an_infinite_gradient_is_not_finite_either():
    model = toy_model()
    before = model.source_embedding.weight.detach().clone()
    model.source_embedding.weight.register_hook(lambda gradient: gradient * math.inf)

    with pytest.raises(NotFiniteError, match="gradient norm"):
        Learner(model, adam_of(list(model.parameters()))).update(MICRO_BATCHES[:1], rate=0.1).read()
    assert torch.equal(model.source_embedding.weight, before)


class Waits(TorchDispatchMode):
    """Counts what makes a host wait for a GPU: values, and shapes that hang on values."""

    count = 0

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        waiting = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "item")
        self.count += any(word in str(function) for word in waiting)
        return function(*arguments, **(named or {}))


@pytest.mark.parametrize("copy", [None, working_copy], ids=["float32", "bf16"])
def test_nothing_waits_for_a_device(monkeypatch, copy):
    monkeypatch.setattr("glassformer.model.embeddings.check_ids", lambda *_, **__: None)
    model = toy_model(FAST, dropout=0.1)
    losses = partial(projected_losses, smoothing=0.1)
    learner = Learner(
        model, adam_of(list(model.parameters())), losses=losses, clip=0.1, mixed_precision=copy
    )

    with Waits() as waits:
        done = learner.update(MICRO_BATCHES, rate=0.1)
    of_the_host = len(MICRO_BATCHES)  # where the real labels are, found before they are sent
    assert waits.count == of_the_host
    with waits:
        done.losses[0].item()
    assert waits.count == of_the_host + 1  # which shows that one would have been seen


def test_an_empty_share_adds_nothing():
    empty = batch_of([2], seed=1)
    empty = Batch(empty.source[:0], empty.target[:0], empty.labels[:0], 0, 0)

    alone, done_alone = updated(MICRO_BATCHES)
    beside, done_beside = updated([*MICRO_BATCHES, empty])

    assert done_alone == done_beside
    torch.testing.assert_close(gradients(alone), gradients(beside), rtol=0, atol=0)
