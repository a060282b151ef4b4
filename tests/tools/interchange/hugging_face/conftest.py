"""Tiny random models of transformers with hand-made SentencePiece files, as directories."""

import io
import json
import random
import shutil

import pytest
import sentencepiece
import torch
from sentencepiece import sentencepiece_model_pb2

from glassformer.decoding.engine import Job, SearchOptions
from glassformer.parts import FAST
from glassformer.text_engine import torch_engine
from tests.own_parts import rebuilt

try:
    import transformers
except ImportError:  # the tests of this folder skip
    transformers = None

SOURCES = [
    "A dog runs across the green grass.",
    "Two men sit in the snow; one of them sings a song.",
    "An old hat, a new coat and 17 apples: 3.50 euros!",
    "Where does the train to the river stop?",
    "Children play near the houses (and the garden).",
] * 8
TARGETS = [
    "Ein Hund läuft über das grüne Gras.",
    "Zwei Männer sitzen im Schnee; einer von ihnen singt ein Lied.",
    "Ein alter Hut, ein neuer Mantel und 17 Äpfel: 3,50 Euro!",
    "Wo hält der Zug zum Fluss? Straße für Straße.",
    "Kinder spielen bei den Häusern (und im Garten).",
] * 8
AWKWARD = [
    "A dog runs across the green grass.",
    "  two   men,  17 apples\tand a hat ",
    "THE DOG? the-dog's (hat)",
    "ﬁne café — “quoted” … ½ Ⅳ",
    "an ß in the snow",  # a character that only the other side's model knows
    "日本 and 🐕 run",
    "a▁b >>fra<< <y>",
    "x",
]


def trained(lines, **options) -> bytes:
    """A SentencePiece model of these lines, with SentencePiece's own order of special symbols."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=written,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
        **options,
    )
    return written.getvalue()


def pieces(serialized: bytes) -> list[str]:
    model = sentencepiece.SentencePieceProcessor(model_proto=serialized)
    return [model.id_to_piece(index) for index in range(model.get_piece_size())]


def bold(model, *, gain=2.0, eos=0.0):
    """No bias or norm at its first value, and answers that differ with the text and end."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:  # sinusoids stay
                parameter.mul_(gain).add_(0.25 * torch.randn_like(parameter))
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias += torch.randn_like(model.final_logits_bias)
            model.final_logits_bias[:, model.config.eos_token_id] += 2.0
        if eos:  # no bias on the logits: the last norm's makes the end symbol more probable
            row = model.model.shared.weight[model.config.eos_token_id]
            model.model.decoder.layer_norm.bias += eos * row / row.norm()
    return model.eval()


def sizes(vocab_size, **ids):
    torch.manual_seed(9)  # of the model that is made next
    return {
        "vocab_size": vocab_size,
        "d_model": 24,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "encoder_attention_heads": 3,
        "decoder_attention_heads": 3,
        "encoder_ffn_dim": 20,
        "decoder_ffn_dim": 20,
        "max_position_embeddings": 128,
        "dropout": 0.1,
        **ids,
    }


def write_json(path, content):
    path.write_text(json.dumps(content, ensure_ascii=False), "utf-8")


def marian_directory(directory, *, kind="unigram", languages=(), shared=True):
    """Ids in no order, a piece that the table lacks, padding at the end, as OPUS-MT has it."""
    directory.mkdir()
    files = {
        "source.spm": trained(SOURCES, vocab_size=120, model_type=kind),
        "target.spm": trained(TARGETS, vocab_size=140, model_type=kind),
    }
    sides = []
    for name, content in files.items():
        (directory / name).write_bytes(content)
        sides.append([p for p in pieces(content) if p not in ("<unk>", "<s>", "</s>")])
    tables = []
    for side in [[*sides[0], *sides[1]]] if shared else sides:
        ordinary = sorted(set(side) - {"▁the", "▁Hund"})
        random.Random(3).shuffle(ordinary)
        texts = ["</s>", "<unk>", *ordinary, *(f">>{code}<<" for code in languages)]
        tables.append({text: index for index, text in enumerate(texts)})
    if shared:
        tables[0]["<pad>"] = len(tables[0])
    else:
        size = max(map(len, tables))
        for table in tables:
            table["<pad>"] = size
    write_json(directory / "vocab.json", tables[0])
    options = {"tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "de"}
    if not shared:
        write_json(directory / "target_vocab.json", tables[1])
        options["separate_vocabs"] = True
    write_json(directory / "tokenizer_config.json", options)
    pad = tables[0]["<pad>"]
    config = transformers.MarianConfig(
        **sizes(pad + 1, pad_token_id=pad, eos_token_id=0, decoder_start_token_id=pad),
        decoder_vocab_size=pad + 1,
        forced_eos_token_id=0,
        activation_function="swish",
        scale_embedding=True,
        share_encoder_decoder_embeddings=shared,
        tie_word_embeddings=True,
    )
    model = bold(transformers.MarianMTModel(config))
    model.generation_config.bad_words_ids = [[pad]]
    model.save_pretrained(directory)
    return directory


@pytest.fixture(scope="session")
def texts():
    """Awkward sources; transformers reads special symbols out of a text, so none has any."""
    return AWKWARD


@pytest.fixture(scope="session")
def pairs():
    return list(zip(SOURCES[:5], TARGETS[:5], strict=True))


@pytest.fixture(scope="session")
def make_marian():
    return marian_directory


@pytest.fixture(scope="session")
def marian(tmp_path_factory):
    return marian_directory(tmp_path_factory.mktemp("marian") / "opus-mt-en-de")


FAIRSEQ = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}


def m2m_model(directory, ordinary, others, *, eos):
    """The tokens after the ``ordinary`` ones, such as languages, are improbable."""
    settings = sizes(ordinary + others, **FAIRSEQ)
    config = transformers.M2M100Config(**settings, scale_embedding=True)
    model = bold(transformers.M2M100ForConditionalGeneration(config), gain=1.0, eos=eos)
    with torch.no_grad():
        model.model.shared.weight[ordinary:] *= 0.4
    model.save_pretrained(directory)


def m2m100_directory(directory):
    """A table that lacks some of SentencePiece's pieces; languages and made-up words after it."""
    directory.mkdir()
    spm = trained(SOURCES + TARGETS, vocab_size=160, model_type="bpe")
    (directory / "sentencepiece.bpe.model").write_bytes(spm)
    ordinary = [piece for piece in pieces(spm)[3:] if piece not in ("▁the", "ein")]
    random.Random(4).shuffle(ordinary)
    texts = ["<s>", "<pad>", "</s>", "<unk>", *ordinary, "madeup"]
    write_json(directory / "vocab.json", {text: index for index, text in enumerate(texts)})
    codes = transformers.models.m2m_100.tokenization_m2m_100.FAIRSEQ_LANGUAGE_CODES["m2m100"]
    tokens = [f"__{code}__" for code in codes]
    write_json(directory / "special_tokens_map.json", {"additional_special_tokens": tokens})
    write_json(directory / "tokenizer_config.json", {"tokenizer_class": "M2M100Tokenizer"})
    m2m_model(directory, len(texts), len(tokens) + 8, eos=0.6)
    return directory


def nllb_directory(directory):
    """SentencePiece's ids plus one, then 202 languages and the mask."""
    directory.mkdir()
    spm = trained(SOURCES + TARGETS, vocab_size=160, model_type="bpe")
    (directory / "sentencepiece.bpe.model").write_bytes(spm)
    codes = transformers.models.nllb.tokenization_nllb.FAIRSEQ_LANGUAGE_CODES
    options = {"tokenizer_class": "NllbTokenizer", "legacy_behaviour": False}
    write_json(directory / "tokenizer_config.json", options)
    tokens = {"additional_special_tokens": codes, "mask_token": "<mask>"}
    write_json(directory / "special_tokens_map.json", tokens)
    m2m_model(directory, len(pieces(spm)) + 1, len(codes) + 1 + 2, eos=3.5)
    return directory


def backend_options(path):
    """A SentencePiece file as the tokenizers of transformers 5 take it."""
    from transformers.tokenization_utils_sentencepiece import SentencePieceExtractor

    _, scores, merges = SentencePieceExtractor(str(path)).extract()
    message = sentencepiece_model_pb2.ModelProto.FromString(path.read_bytes())
    return dict(scores), merges, message.normalizer_spec.precompiled_charsmap


def nllb_tokenizer(directory, source, target):
    """transformers' tokenizer; its from_pretrained takes SentencePiece's ids without the offset."""
    path = directory / "sentencepiece.bpe.model"
    scores, merges, table = backend_options(path)
    codes = transformers.models.nllb.tokenization_nllb.FAIRSEQ_LANGUAGE_CODES
    texts = ["<s>", "<pad>", "</s>", "<unk>", *list(scores)[3:], *codes, "<mask>"]
    return transformers.NllbTokenizer(
        vocab={text: index for index, text in enumerate(texts)},
        merges=merges,
        _spm_precompiled_charsmap=table,
        src_lang=source,
        tgt_lang=target,
    )


def mbart50_directory(directory):
    """SentencePiece's ids plus one, then 52 languages and the mask; learned positions."""
    directory.mkdir()
    spm = trained(SOURCES + TARGETS, vocab_size=160, model_type="unigram")
    (directory / "sentencepiece.bpe.model").write_bytes(spm)
    codes = transformers.models.mbart50.tokenization_mbart50.FAIRSEQ_LANGUAGE_CODES
    write_json(directory / "tokenizer_config.json", {"tokenizer_class": "MBart50Tokenizer"})
    write_json(directory / "special_tokens_map.json", {"additional_special_tokens": codes})
    config = transformers.MBartConfig(
        **sizes(len(pieces(spm)) + 1 + len(codes) + 1, **FAIRSEQ),
        activation_function="relu",
        scale_embedding=True,
        forced_eos_token_id=2,
    )
    model = bold(transformers.MBartForConditionalGeneration(config), gain=1.0, eos=2.0)
    model.save_pretrained(directory)
    return directory


@pytest.fixture(scope="session")
def mbart50(tmp_path_factory):
    return mbart50_directory(tmp_path_factory.mktemp("mbart50") / "mbart50")


@pytest.fixture(scope="session")
def m2m100(tmp_path_factory):
    return m2m100_directory(tmp_path_factory.mktemp("m2m100") / "m2m100")


@pytest.fixture(scope="session")
def tokenizer_of():
    return transformers_tokenizer


@pytest.fixture(scope="session")
def nllb(tmp_path_factory):
    return nllb_directory(tmp_path_factory.mktemp("nllb") / "nllb")


def transformers_tokenizer(directory):
    """transformers' own, from English to German."""
    options = json.loads((directory / "tokenizer_config.json").read_text())
    kind = options["tokenizer_class"]
    if kind == "NllbTokenizer" and not (directory / "tokenizer.json").exists():
        return nllb_tokenizer(directory, "eng_Latn", "deu_Latn")
    pair = {
        "NllbTokenizer": ("eng_Latn", "deu_Latn"),
        "MBart50Tokenizer": ("en_XX", "de_DE"),
    }.get(kind, ("en", "de"))
    names = dict(zip(("src_lang", "tgt_lang"), pair, strict=True))
    if kind == "MarianTokenizer":
        names = {}
    return getattr(transformers, kind).from_pretrained(directory, **names)


@pytest.fixture
def saved_by_5(request, tmp_path):
    """Saves a family's model and tokenizer as transformers 5 does, with no file of others."""

    def make(family):
        original, saved = request.getfixturevalue(family), tmp_path / "saved"
        saved.mkdir()
        for name in ("config.json", "generation_config.json", "model.safetensors"):
            shutil.copy(original / name, saved)
        transformers_tokenizer(original).save_pretrained(saved)
        return saved

    return make


@pytest.fixture
def with_added(request, tmp_path):
    """Saves a family with tokens that a fine-tuner added, and its SentencePiece files if asked."""

    def make(family, *, special, beside):
        original, saved = request.getfixturevalue(family), tmp_path / f"{family}-{special}-{beside}"
        tokenizer = transformers_tokenizer(original)
        tokenizer.add_tokens(["<ent>", "Mannschaft"], special_tokens=special)
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(original)
        size = max(len(tokenizer), model.config.vocab_size)
        model.resize_token_embeddings(size, mean_resizing=False)
        model.save_pretrained(saved)
        tokenizer.save_pretrained(saved)
        for path in original.glob("*.model") if beside else ():
            shutil.copy(path, saved)
        return saved

    return make


@pytest.fixture
def compared():
    """Compares an imported bundle with transformers' own model and tokenizer, part by part."""
    return Compared


class Compared:
    """One bundle beside its original."""

    def __init__(self, bundle, model, encode, *, forced=None):
        self.bundle, self.model, self.encode, self.forced = bundle, model, encode, forced
        self.start = model.config.decoder_start_token_id

    def ids(self, texts):
        """Theirs and ours, with the end symbol."""
        tokenizer = self.bundle.source_tokenizer
        ours = [[*tokenizer.encode(text), tokenizer.eos_id] for text in texts]
        return [self.encode(text) for text in texts], ours

    def logits(self, texts):
        """Theirs and ours of random targets; ours without the column of an added start symbol."""
        config = self.bundle.model.config
        torch.manual_seed(5)
        rows = [torch.tensor(self.encode(text)) for text in texts]
        pad = config.pad_id
        source = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad)
        target = torch.randint(4, config.target_vocab_size - 2, (len(rows), 6))
        theirs, ours = (
            torch.cat([torch.full((len(rows), 1), start), target], dim=1)
            for start in (self.start, config.bos_id)
        )
        with torch.no_grad():
            expected = self.model(
                input_ids=source,
                attention_mask=(source != pad).long(),
                decoder_input_ids=theirs,
            ).logits
            found = rebuilt(self.bundle.model, FAST)(source, ours)  # the kernel is theirs too
        if self.start == config.eos_id:  # it is ours too
            return expected, found
        assert found[..., config.bos_id].max() < -9000
        return expected, found[..., : config.bos_id]

    def assert_searches_alike(self, texts):
        """Greedy search of each text and a beam of 4 for the first find what ``generate`` finds."""
        engine = torch_engine(self.bundle.model, self.bundle.tokenizers, FAST)
        lengths = set()
        for beam, some in ((1, texts), (4, texts[:1])):
            job = Job(self.bundle.source_tokenizer.encode_batch(some))
            options = SearchOptions(beam=beam, length_penalty=0.0)
            for text, [found] in zip(some, engine.decode(job, options), strict=True):
                tokens, score = self.generated(text, beam=beam)
                assert list(found.tokens) == tokens
                assert self.forced in (None, tokens[0])
                if score is not None:
                    assert found.score == pytest.approx(score, abs=1e-3)
                lengths.add(len(tokens))
        assert len(lengths) > 1

    def generated(self, text, *, beam):
        """The ids and the score of ``generate``, without start, end and padding."""
        config = self.bundle.model.config
        ids = torch.tensor([self.encode(text)])
        found = self.model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            num_beams=beam,
            max_new_tokens=ids.shape[1] - 1 + config.extra_length,
            length_penalty=0.0,
            do_sample=False,
            early_stopping="never" if beam > 1 else False,
            forced_bos_token_id=self.forced,
            forced_eos_token_id=None,
            bad_words_ids=None,
            suppress_tokens=[config.pad_id, config.unk_id],
            min_new_tokens=1 if self.forced is None else 2,  # no target is empty
            return_dict_in_generate=True,
            output_scores=True,
        )
        tokens = found.sequences[0, 1:].tolist()
        score = found.sequences_scores.item() if beam > 1 else None
        return [t for t in tokens if t not in (config.eos_id, config.pad_id)], score
