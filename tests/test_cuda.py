"""On a GPU: the same numbers as on the CPU, a training to a bundle, NCCL. Without one, skipped."""

import json
import subprocess
import sys
from functools import partial

import pytest
import torch

from glassformer.bundle import load_bundle
from glassformer.config import ModelConfig
from glassformer.data.batches import Batch, make_batch
from glassformer.decoding.batched import DecodingSettings, decode_sentences
from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.sampling import Sampling
from glassformer.parts import FAST, PLAIN, Packing, in_bfloat16
from glassformer.tools.inspection.capture import capture
from glassformer.tools.inspection.trace.build import trace
from glassformer.training.optimiser import Learner
from glassformer.training.setup.learner import new_optimiser
from glassformer.translator import Translator
from tests.system.test_torchrun import OPTIONS, TORCHRUN
from tests.training.fast.test_packed import corpus

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

SIZES = {"d_model": 32, "num_heads": 4, "d_ff": 48, "num_encoder_layers": 2}
SIZES |= {"num_decoder_layers": 2, "source_vocab_size": 97, "target_vocab_size": 97}
FORMS = {"plain": PLAIN, "fast": FAST}
GPU = torch.device("cuda")


def built(parts, device, dtype=torch.float64, **options):
    torch.manual_seed(3)
    model = parts.model(ModelConfig(**SIZES, **({"dropout": 0.0} | options)), parts)
    return model.to(device, dtype).eval()


def batch(rows=6, width=9):
    draw = torch.Generator().manual_seed(5)
    labels = torch.randint(4, 97, (rows, width), generator=draw)
    labels[:, -1] = 3
    labels[0, -3:] = torch.tensor([3, 0, 0])
    target = torch.cat((torch.full((rows, 1), 2), labels[:, :-1]), dim=1)
    words = int((labels != 0).sum())
    return Batch(labels, target, labels, 2 * words, words)


@pytest.mark.parametrize("parts", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("kind", ["adam", "muon"])
def test_updates_are_those_of_the_cpu(parts, kind):
    results = []
    for device in ("cpu", GPU):
        model = built(parts, device, torch.float32).train()
        losses = partial(parts.losses, smoothing=0.1)
        learner = Learner(model, new_optimiser(model, kind), losses=losses, clip=1.0)
        results.append([learner.update([batch()], rate=1e-3).read() for _ in range(10)])
    assert results[0][-1][0] < 0.95 * results[0][0][0]
    torch.testing.assert_close(*results, rtol=1e-3, atol=0)


@pytest.mark.parametrize("options", [{}, {"dropout": 0.1, "norm": "pre"}], ids=str)
@pytest.mark.parametrize("rounded", [torch.bfloat16, torch.float16], ids=str)
def test_fewer_bits_follow_float32(options, rounded):
    results = []
    for copied in (None, partial(FAST.mixed_precision, dtype=rounded)):
        model = built(FAST, GPU, torch.float32, **options).train()
        losses = partial(FAST.losses, smoothing=0.1)
        in_bits = copied and rounded == torch.bfloat16
        products = torch.bfloat16 if in_bits else torch.float32
        optimiser = new_optimiser(model, "muon", products=products)
        learner = Learner(model, optimiser, losses=losses, mixed_precision=copied)
        results.append([learner.update([batch()], rate=1e-3).read()[0] for _ in range(100)])
    assert results[0][-1] < 0.6 * results[0][0]
    assert results[1][-1] == pytest.approx(results[0][-1], rel=0.1)


def test_a_loss_that_is_not_finite_changes_no_weight():
    model = built(FAST, GPU, torch.float32).train()
    with torch.no_grad():
        model.output_weight[5] = torch.nan
    before = [weight.clone() for weight in model.parameters()]
    learner = Learner(model, new_optimiser(model, "adam"))

    with pytest.raises(ArithmeticError):
        learner.update([batch()], rate=1e-3).read()

    torch.testing.assert_close(list(model.parameters()), before, equal_nan=True)


PAIRS = corpus([(3 + n % 7, 2 + n % 9) for n in range(60)])
PACKING = Packing.of(PAIRS, 400)
PRECISIONS = [("float32", 1e-4), ("bfloat16", 0.05)]


def packed_learner(precision="bfloat16", *, graph=False, packing=PACKING, **options):
    """A learner of packed batches, or of padded batches without a packing."""
    model = built(FAST, GPU, torch.float32, **options).train()
    losses, copy = FAST.losses, FAST.mixed_precision if precision == "bfloat16" else None
    if packing:
        losses = packing.losses
    losses = partial(losses, smoothing=0.1)
    learner = Learner(model, new_optimiser(model, "muon"), losses=losses, mixed_precision=copy)
    if graph:
        learner.replayed = packing.replay(learner.backward, learner.model.parameters())
    return learner


def packed_batches(make=PACKING.batch):
    lengths = PAIRS.source.lengths, PAIRS.target.lengths
    plans = [PACKING.plan(*lengths, seed=1, epoch=epoch) for epoch in range(2)]
    return [make(PAIRS, rows) for plan in plans for rows in plan]


def near(found, expected, tolerance):
    whole = sum(gradient.norm() ** 2 for gradient in expected) ** 0.5
    for gradient, wanted in zip(found, expected, strict=True):
        assert (gradient - wanted).norm() <= tolerance * (wanted.norm() + 0.2 * whole)


@pytest.mark.parametrize(("precision", "tolerance"), PRECISIONS)
@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize("options", [{}, {"norm": "pre", "tying": "none", "output_bias": True}])
def test_a_packed_gradient_is_the_padded_one(precision, tolerance, graph, options):
    learner = packed_learner(precision, graph=graph, **options)
    padded = packed_learner(precision, packing=None, **options)
    rows = zip(packed_batches(), packed_batches(make_batch), strict=True)
    for ours, theirs in [*rows][:4]:
        (found, losses), (expected, their_losses) = (
            each.gradient([batch, batch]) for each, batch in ((learner, ours), (padded, theirs))
        )
        torch.testing.assert_close(losses, their_losses, rtol=tolerance, atol=tolerance)
        near(found, expected, tolerance)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_replayed_gradient_is_the_eager_one_with_the_same_dropout(precision):
    eager, graphed = (packed_learner(precision, graph=g, dropout=0.3) for g in (False, True))
    for number, batch in enumerate(packed_batches()[:5]):
        results = []
        for learner in (eager, graphed, graphed):
            torch.manual_seed(number)
            gradients, losses = learner.gradient([batch])
            results.append([*(each.clone() for each in gradients), losses.clone()])
        for other in results[1:]:  # sums of atomic additions have no order
            near(other, results[0], 1e-4 if precision == "float32" else 0.01)


@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
def test_an_update_does_not_wait_for_the_gpu(graph):
    learner, batches = packed_learner(graph=graph, dropout=0.1), packed_batches()
    learner.update(batches[:2], rate=1e-3)  # it captures, and prepares libraries
    torch.cuda.set_sync_debug_mode("error")
    try:
        updates = [learner.update([batch], rate=1e-3) for batch in batches[2:5]]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for update in updates:
        update.read()  # an error unless all numbers are finite


@pytest.mark.parametrize("beam", [1, 4])
def test_searches_find_what_they_find_on_the_cpu(beam):
    sources = [[5, 6, 7, 8], [9, 4], [], [11] * 20, [50, 60, 70]]
    found = []
    for parts, device in ((PLAIN, "cpu"), (PLAIN, GPU), (FAST, GPU)):
        model = parts.decoder(built(parts, device))
        wide = partial(parts.beam_search, beam=beam, n_best=beam)
        search = parts.greedy if beam == 1 else wide
        rules = partial(OutputRules, best_tokens=parts.best_tokens)
        settings = DecodingSettings(device=torch.device(device), max_tokens=64, cores=2)
        with torch.inference_mode():
            found.append(
                decode_sentences(model, sources, search=search, rules=rules, settings=settings)
            )
    for other in found[1:]:
        for ours, theirs in zip(found[0], other, strict=True):
            assert [one.tokens for one in ours] == [one.tokens for one in theirs]
            assert [one.score for one in theirs] == pytest.approx([one.score for one in ours])


def test_a_capture_shows_the_cpu_s_numbers():
    rows = batch()
    records = []
    for device in ("cpu", GPU):
        model = built(PLAIN, device)
        with capture(model) as seen, torch.no_grad():
            model(rows.source.to(device), rows.target.to(device))
        records.append({name: seen[name].weights.cpu() for name in seen if "attention" in name})
    assert len(records[0]) == 6
    torch.testing.assert_close(*records)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    directory = tmp_path_factory.mktemp("texts")
    lines = [" ".join("abcdef"[n * k % 6] for k in range(n % 6 + 2)) for n in range(200)]
    for name, order in (("src", 1), ("tgt", -1)):
        (directory / f"train.{name}").write_text("".join(f"{line[::order]}\n" for line in lines))
    return [str(directory / f"train.{name}") for name in ("src", "tgt")]


@pytest.mark.parametrize("batches", ["padded", "packed"])
@pytest.mark.parametrize("command", [[sys.executable], [*TORCHRUN[:-1], "1"]], ids=["one", "NCCL"])
def test_a_training_goes_on_and_its_bundle_translates_on_both_devices(
    texts, tmp_path, command, batches
):
    run = tmp_path / "run"
    options = OPTIONS | {"device": "auto", "precision": "auto", "optimiser": "muon"}
    options["batches"] = batches
    words = [*command, "-m", "glassformer", "train", *texts, "--out", str(run)]
    words += [f"--{name}={value}" for name, value in options.items()]
    words += ["--graph"] * (batches == "packed")
    for updates in (20, 40):
        process = subprocess.run([*words, f"--updates={updates}"], capture_output=True, text=True)
        assert process.returncode == 0, process.stderr
    assert " bfloat16 on cuda" in process.stderr
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert max(record.get("update", 0) for record in records) == 40
    lines = ["a b c", "", "f e d c b a"]
    on_gpu, on_cpu = (Translator.load(run, device=device) for device in ("cuda", "cpu"))
    texts_of = [[one.text for one in each.translate(lines, beam=3)] for each in (on_gpu, on_cpu)]
    assert texts_of[0] == texts_of[1]
    assert len(on_gpu.translate(lines, sampling=Sampling(seed=1))) == 3


def test_rounded_weights_translate_and_a_trace_is_the_cpu_s(bundle_directory):
    lines = ["A dog runs across the grass.", "An old hat."]
    bundle = load_bundle(bundle_directory, device=GPU)
    assert bundle.model.output_weight.is_cuda
    rough = Translator.load(bundle_directory, device="cuda", parts=in_bfloat16(FAST))
    assert len(rough.translate(lines)) == 2
    one, other = (Translator.load(bundle_directory, device=name) for name in ("cuda", "cpu"))
    assert trace(one, lines[0]).answer.text == trace(other, lines[0]).answer.text
