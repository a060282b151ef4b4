"""Full-size translators of others, random weights: import, and speed beside the other programs.

``python -m benchmarks.bridges SHAPE SOURCES TARGETS``: SHAPE is opus (MarianMT with 58,101
subwords, 6+6 blocks, width 512) or nllb (600 million weights, 256,206 subwords, 12+12 blocks, width
1,024). The text teaches the SentencePiece models; names without a use fill the vocabularies up.
Random weights hardly ever write the end symbol: so the speeds are target tokens a second.
"""

import io
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import sentencepiece
import torch
import transformers

from benchmarks.machine import facts
from glassformer.data.sentencepiece_model import Piece, SentencePieceModel
from glassformer.decoding.engine import Job, SearchOptions
from glassformer.interchange.ctranslate2.engine import CTranslate2Engine
from glassformer.text_engine import torch_engine
from glassformer.translator import Translator

SENTENCES = 4
ROUNDS = 2
EXTRA = 50  # target tokens beyond the source's


def main() -> None:
    shape, *names = sys.argv[1:]
    sides = [Path(name).read_text("utf-8").splitlines() for name in names]
    texts = sides[0][:SENTENCES]
    with tempfile.TemporaryDirectory() as place:
        theirs, ours = Path(place, "theirs"), Path(place, "ours")
        theirs.mkdir()
        {"opus": write_opus, "nllb": write_nllb}[shape](theirs, sides)
        print(json.dumps(facts(threads=torch.get_num_threads()), default=str))
        weights = (theirs / "model.safetensors").stat().st_size
        print(f"weights {weights / 1e9:.2f} GB")
        measure_import(theirs, ours, shape)
        measure_speed(theirs, ours, texts)
        measure_look(ours, texts[0])


def write_opus(place: Path, sides: list[list[str]]) -> None:
    """A directory of MarianTokenizer and a random MarianMTModel."""
    pieces: list[str] = []
    for name, lines in zip(("source.spm", "target.spm"), sides, strict=True):
        pieces += _sentencepiece(place / name, lines)
    texts = ["</s>", "<unk>", *dict.fromkeys(pieces)]
    texts += [f"<filler {number}>" for number in range(58_100 - len(texts))]
    table = {text: index for index, text in enumerate([*texts, "<pad>"])}
    (place / "vocab.json").write_text(json.dumps(table))
    options = {"tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "de"}
    (place / "tokenizer_config.json").write_text(json.dumps(options))
    config = transformers.MarianConfig(
        vocab_size=58_101,
        d_model=512,
        encoder_layers=6,
        decoder_layers=6,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        max_position_embeddings=512,
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=58_100,
        eos_token_id=0,
        decoder_start_token_id=58_100,
    )
    torch.manual_seed(1)
    transformers.MarianMTModel(config).save_pretrained(place)


def write_nllb(place: Path, sides: list[list[str]]) -> None:
    """A directory of NllbTokenizer and a random M2M100 model in the shape of NLLB-200's 600M."""
    codes = transformers.models.nllb.tokenization_nllb.FAIRSEQ_LANGUAGE_CODES
    lines = [line for side in sides for line in side]
    path = place / "sentencepiece.bpe.model"
    _sentencepiece(path, lines)
    model = SentencePieceModel.parse(path.read_bytes())
    more = [Piece(f"▁filler{number}", -99.0) for number in range(256_000 - len(model.pieces))]
    path.write_bytes(model.with_pieces([*model.pieces, *more], {}).serialized())
    options = {"tokenizer_class": "NllbTokenizer", "legacy_behaviour": False}
    (place / "tokenizer_config.json").write_text(json.dumps(options))
    tokens = {"additional_special_tokens": codes, "mask_token": "<mask>"}
    (place / "special_tokens_map.json").write_text(json.dumps(tokens))
    config = transformers.M2M100Config(
        vocab_size=256_206,
        d_model=1024,
        encoder_layers=12,
        decoder_layers=12,
        encoder_attention_heads=16,
        decoder_attention_heads=16,
        encoder_ffn_dim=4096,
        decoder_ffn_dim=4096,
        max_position_embeddings=1024,
        scale_embedding=True,
    )
    torch.manual_seed(1)
    transformers.M2M100ForConditionalGeneration(config).save_pretrained(place)


def _sentencepiece(path: Path, lines: list[str]) -> list[str]:
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=written, vocab_size=7_000, minloglevel=2
    )
    path.write_bytes(written.getvalue())
    model = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
    return [model.id_to_piece(index) for index in range(3, model.get_piece_size())]


def measure_import(theirs: Path, ours: Path, shape: str) -> None:
    words = ["--source-language", "en", "--target-language", "de"] if shape == "nllb" else []
    begun = time.perf_counter()
    command = [sys.executable, "-m", "glassformer", "import", str(theirs), str(ours), *words]
    subprocess.run(command, check=True)
    seconds = time.perf_counter() - begun
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    print(f"import: {seconds:.1f} s, {memory:.2f} GB at most")


def measure_speed(theirs: Path, ours: Path, texts: list[str]) -> None:
    """Target tokens a second by each program, in turn; ratios to torch, as medians of rounds."""
    own = Translator.load(ours, device="cpu")
    fast = Translator.load(ours, device="cpu", engine="ctranslate2")
    other = transformers.AutoModelForSeq2SeqLM.from_pretrained(theirs).eval()
    for beam in (1, 4):
        programs: dict[str, Callable[[], int]] = {
            "torch": lambda beam=beam: _by_torch(own, texts, beam),
            "ctranslate2": lambda beam=beam: _by_ctranslate2(fast, texts, beam),
            "transformers": lambda beam=beam: _generated(other, own, texts, beam),
        }
        speeds: dict[str, list[float]] = {name: [] for name in programs}
        for turn in range(ROUNDS + 1):  # the first one warms up
            for name, run in programs.items():
                begun = time.perf_counter()
                speed = run() / (time.perf_counter() - begun)
                if turn:
                    speeds[name].append(speed)
        for name, measured in speeds.items():
            ratios = [s / o for s, o in zip(measured, speeds["torch"], strict=True)]
            speed, ratio = statistics.median(measured), statistics.median(ratios)
            print(f"beam {beam}, {name}: {speed:.0f} tokens/s, {ratio:.2f} times torch")


def _by_torch(translator: Translator, texts: list[str], beam: int) -> int:
    engine = torch_engine(translator.model, translator.tokenizers)
    job = Job(translator.source_tokenizer.encode_batch(texts))
    found = engine.submit(job, SearchOptions(beam=beam)).result()
    return sum(len(best.tokens) for best, *_ in found)


def _by_ctranslate2(translator: Translator, texts: list[str], beam: int) -> int:
    """Tokens of CTranslate2 itself: our engine would let torch decode what it leaves unfinished."""
    engine = translator.engine
    assert isinstance(engine, CTranslate2Engine)
    rows = translator.source_tokenizer.encode_batch(texts)
    begin = [engine.target_names[index] for index in engine.special.prefix_ids]
    answers = engine.workers.many.translate_batch(
        [[engine.source_names[index] for index in ids] for ids in rows],
        target_prefix=[begin] * len(rows) if begin else None,
        beam_size=beam,
        max_decoding_length=max(map(len, rows)) + EXTRA,
    )
    return sum(len(answer.hypotheses[0]) for answer in answers)


@torch.inference_mode()
def _generated(model: torch.nn.Module, own: Translator, texts: list[str], beam: int) -> int:
    """The tokens that ``generate`` writes for the ids of the imported tokenizer, in one batch."""
    tokenizer = own.source_tokenizer
    rows = [torch.tensor([*ids, tokenizer.eos_id]) for ids in tokenizer.encode_batch(texts)]
    pad = tokenizer.pad_id
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad)
    found = model.generate(  # type: ignore[operator]
        input_ids=ids,
        attention_mask=(ids != pad).long(),
        num_beams=beam,
        max_new_tokens=ids.shape[1] + EXTRA,
        forced_bos_token_id=next(iter(own.target_tokenizer.prefix_ids), None),
    )
    return int((found[:, 1:] != model.config.pad_token_id).sum())  # type: ignore[union-attr]


def measure_look(ours: Path, text: str) -> None:
    begun = time.perf_counter()
    out = ours.parent / "look.html"
    command = [sys.executable, "-m", "glassformer", "look", str(ours), "--text", text]
    subprocess.run([*command, "--out", str(out), "--beam", "2"], check=True)
    seconds = time.perf_counter() - begun
    print(f"look page: {seconds:.1f} s, {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
