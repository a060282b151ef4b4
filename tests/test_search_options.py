"""Each field of ``SearchOptions`` reaches each engine, from each face of the program.

The two halves meet at an engine's ``decode``. First: the settings that a person gives arrive there.
Second: the settings that arrive there reach torch's searches, and CTranslate2. ``FIELDS`` has a
value of its own for each field. So one call with all of them shows a field that is lost or that
takes another's place, and a call with none shows one that is set unasked. A new field fails here
until each way carries it.
"""

import asyncio
import io
import sys
import zipfile
from concurrent.futures import Future
from dataclasses import dataclass, field, fields, replace
from functools import partial
from inspect import signature
from types import SimpleNamespace

import pytest
import torch
from starlette.testclient import TestClient

from glassformer.data.known import Known
from glassformer.decoding import engine as torch_searches
from glassformer.decoding.beam import penalty
from glassformer.decoding.engine import Job, SearchOptions, TorchEngine
from glassformer.decoding.logits_processors import MinLength, NoRepeatNgram, RepetitionPenalty
from glassformer.decoding.protocols import Hypothesis
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.evaluation import evaluate
from glassformer.parts import PLAIN
from glassformer.text_engine import torch_engine
from glassformer.tools.cli.backtranslate import BacktranslateOptions
from glassformer.tools.cli.evaluate import EvaluateOptions
from glassformer.tools.cli.loading import LoadingOptions
from glassformer.tools.cli.look import LookOptions
from glassformer.tools.cli.main import main
from glassformer.tools.cli.serve import ServeOptions, _settings
from glassformer.tools.cli.translate import TranslateOptions
from glassformer.tools.documents.files.formats import FORMATS, translated_file
from glassformer.tools.documents.html import translated_html
from glassformer.tools.inspection.trace.build import trace
from glassformer.tools.inspection.trace.schema import Query
from glassformer.tools.interchange.ctranslate2.engine import CTranslate2Engine
from glassformer.tools.interchange.ctranslate2.export import token_names
from glassformer.tools.interchange.ctranslate2.workers import Workers
from glassformer.tools.web.schema import TraceRequest, TranslateRequest
from glassformer.tools.web.server import Settings, create_app
from glassformer.tools.web.service import Service
from glassformer.translator import Sampling, TranslateSettings, Translator

FIELDS = {
    "beam": 7,
    "n_best": 3,
    "length_penalty": 0.25,
    "sampling": Sampling(temperature=0.5, top_k=4, top_p=0.75, seed=11),
    "repetition_penalty": 1.75,
    "no_repeat_ngram": 4,
    "min_length": 6,
}
ALPHA = 0.9  # of the bundle
NONE_AND_ALL = ({}, FIELDS)


def arrives(**settings):
    """The options of an engine that is given these settings and no other."""
    return SearchOptions(**{"length_penalty": ALPHA, **settings})


@dataclass
class Recorder:
    """An engine that notes the options of each job, and translates everything by one token."""

    name = "recorder"
    received: list = field(default_factory=list)
    at_once: int = 4
    threads: int = 1

    def decode(self, job, options):
        self.received.append(options)
        return [[Hypothesis((300,), -1.0, -1.0, True)] for _ in job.sources]


@pytest.fixture(scope="module")
def bundle(bundle_directory):
    return replace(Translator.load(bundle_directory, device="cpu").bundle, length_penalty=ALPHA)


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def translator(bundle, recorder):
    known = Known(spans={"placeholder {": (5, 5)})  # which a model reads, and may lose
    return Translator(replace(bundle, known=known), engine=recorder)


def test_each_field_has_a_value_of_its_own():
    assert FIELDS.keys() == {option.name for option in fields(SearchOptions)}
    others = {"prefixes", "glossary", "alignment", "split", "protect"}
    assert FIELDS.keys() == TranslateSettings.__annotations__.keys() - others
    assert len(set(FIELDS.values())) == len(FIELDS)
    for name, value in FIELDS.items():
        assert value not in (getattr(SearchOptions(), name), getattr(arrives(), name))


# From Python and from documents.

LINES = ["A dog runs.", "", "An old hat.", "Two men sit.", "x", "snow"]
SPANS = ["Call {name} at once.", "{name}", "It is 5 km to <b>there</b>."]


def docx():
    written = io.BytesIO()
    namespace = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    body = "<w:body><w:p><w:r><w:t>A dog.</w:t></w:r></w:p></w:body>"
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(
            "word/document.xml", f'<w:document xmlns:w="{namespace}">{body}</w:document>'
        )
    return written.getvalue()


FILES = {
    "txt": b"A dog runs.\nAn old hat.\n",
    "html": b"<p title='dog'>A <b>dog</b> runs.</p>",
    "srt": b"1\n00:01 --> 00:02\nA dog runs.\n",
    "vtt": b"WEBVTT\n\n00:01.000 --> 00:02.000\nA dog runs.\n",
    "po": b'msgid "A %s runs."\nmsgstr ""\n',
    "docx": docx(),
}


def in_file(translator, *, format, **search):
    translated_file(translator, FILES[format], format, **search)


WAYS = {
    "translate": lambda translator, **search: translator.translate(LINES, **search),
    "html": lambda translator, **search: translated_html(
        translator, ["<p>A <i>dog</i>", "<p>hat"], **search
    ),
    **{format: partial(in_file, format=format) for format in FILES},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_call_hands_them_on(translator, recorder, way):
    for given in NONE_AND_ALL:
        recorder.received.clear()
        WAYS[way](translator, **given)

        assert set(recorder.received) == {arrives(**given)}


def test_a_text_that_is_translated_again_takes_them_too(translator, recorder):
    translator.translate(SPANS, split=False, **FIELDS)

    assert recorder.received == 2 * [arrives(**FIELDS)]


def test_each_format_has_a_file():
    assert FILES.keys() == set(FORMATS)


# From the command line.

WORDS = {name: [f"--{name.replace('_', '-')}", str(value)] for name, value in FIELDS.items()}
WORDS["sampling"] = ["--sample", "--temperature", "0.5", "--top-k", "4", "--top-p", "0.75"]
REFUSED_WITH_FILES = {"n_best", "sampling"}  # one file in, one file out


def some(names):
    """The words of these fields on a command line, and their values."""
    names = [name for name in FIELDS if name in names]
    return [word for name in names for word in WORDS[name]], {name: FIELDS[name] for name in names}


@pytest.fixture
def command(translator, tmp_path, monkeypatch, capfd):
    """Runs a command whose bundle is the recording translator; gives the options that arrived."""
    monkeypatch.setattr(LoadingOptions, "load", lambda *_, **__: translator)

    def call(*words, data=b""):
        (tmp_path / "input").write_bytes(data)
        with (tmp_path / "input").open() as file:
            monkeypatch.setattr(sys, "stdin", file)
            assert main([str(word) for word in words]) == 0, capfd.readouterr().err
        return translator.engine.received

    return call


def seedless(options):
    """Without the seed of a drawn line: the command mixes it with the line's number."""
    drawn = options.sampling and replace(options.sampling, seed=0)
    return replace(options, sampling=drawn)


@pytest.mark.parametrize("protects", ["--protect", "--no-protect"])
@pytest.mark.parametrize("names", [(), FIELDS], ids=["none", "all"])
def test_translate_hands_on_its_options_for_lines(command, names, protects):
    lines = "\n".join(LINES + SPANS).encode()
    words, given = some(names)

    received = command("translate", "any", protects, *words, data=lines)

    assert set(map(seedless, received)) == {seedless(arrives(**given))}


@pytest.mark.parametrize("format", sorted(FILES.keys() - {"txt"}))
def test_translate_hands_on_its_options_for_a_file(command, format):
    words, given = some(FIELDS.keys() - REFUSED_WITH_FILES)

    received = command("translate", "any", "--format", format, *words, data=FILES[format])

    assert set(received) == {arrives(**given)}


def test_translate_has_an_option_for_each_field():
    options = TranslateOptions.model_fields.keys()

    assert FIELDS.keys() - options == {"sampling"}
    assert {option.name for option in fields(Sampling)} <= options


@pytest.fixture
def pair_of_files(tmp_path):
    paths = tmp_path / "test.en", tmp_path / "test.de"
    for path in paths:
        path.write_text("A dog runs.\nAn old hat.\n")
    return paths


def test_evaluate_hands_on_its_options(command, pair_of_files):
    words, given = some(EvaluateOptions.model_fields)

    received = command("evaluate", "any", *pair_of_files, *words)

    assert given
    assert set(received) == {arrives(**given)}


def test_the_function_evaluate_hands_on_its_options(translator, recorder):
    _, given = some(signature(evaluate).parameters)

    evaluate(translator, LINES[:1], ["Ein Hund."], **given)

    assert given
    assert set(recorder.received) == {arrives(**given)}


def test_backtranslate_hands_on_its_options(command, tmp_path):
    offered = FIELDS.keys() & BacktranslateOptions.model_fields.keys()
    (tmp_path / "text").write_text("Ein Hund.\n")
    words = "backtranslate", "any", tmp_path / "text", "--out"

    searched = [*command(*words, tmp_path / "searched.tsv", *WORDS["beam"])]
    drawn = command(*words, tmp_path / "drawn.tsv", "--sample", "--seed", "4")

    assert offered == {"beam"}  # a further option needs its own line here
    assert set(searched) == {arrives(beam=7)}
    assert drawn[len(searched) :] == [arrives(beam=1, sampling=Sampling(seed=4))]


# From requests: `alternatives` is the number of translations without the best.


@pytest.fixture
def client(translator):
    app = create_app({"toy": translator}, Settings(beam=7))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


def of_request(path, expected, **body):
    return pytest.param(path, body, expected, id=f"{path} {' '.join(map(str, body.values()))}")


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        of_request("/translate", {}),
        of_request("/translate", {"n_best": 3}, alternatives=2),
        of_request("/translate", {"beam": 9, "n_best": 9}, alternatives=8),
        of_request("/translate", {}, format="html"),
        of_request("/api/v1/translate", {"n_best": 3}, alternatives=2),
        of_request("/api/v1/translate", {"n_best": 3}, alternatives=2, alignment=True),
    ],
)
def test_a_request_hands_on_its_options(client, recorder, path, body, expected):
    asked = {"q": [*LINES[:2], *SPANS], "source": "en", "target": "de", **body}

    assert client.post(path, json=asked).status_code == 200

    assert set(recorder.received) == {arrives(**{"beam": 7, **expected})}


@pytest.mark.parametrize("format", FILES)
def test_a_file_is_translated_with_the_server_s_beam(client, recorder, format):
    sent = {"file": (f"a.{format}", FILES[format])}
    form = {"source": "en", "target": "de"}

    assert client.post("/translate_file", data=form, files=sent).status_code == 200

    assert set(recorder.received) == {arrives(beam=7)}


def test_the_server_has_no_other_option_of_the_search():
    """Someone who adds one adds its requests above."""
    of_settings = {option.name for option in fields(Settings)}
    for names in (of_settings, TranslateRequest.model_fields, ServeOptions.model_fields):
        assert FIELDS.keys() & set(names) <= {"beam"}
    assert _settings(ServeOptions(bundles=["any"], beam=7)).beam == 7


def test_requests_share_a_batch_only_if_their_options_are_equal(translator):
    keys = []

    @dataclass(frozen=True)
    class Keys:
        def submit(self, key, function, items, **_):
            keys.append(key)
            future = Future()
            future.set_result(function(items))
            return future

    service, pair = Service({("en", "de"): translator}, Keys(), beam=7), ("en", "de")
    for options in ({}, {"alternatives": 2}, {"alternatives": 8}, {"alignment": True}, {}):
        asyncio.run(service.translate(pair, ["A dog."], **options))
    asyncio.run(service.translate_html(pair, ["<p>A <i>dog</i>."]))

    *translated, last, of_html = keys
    assert last == translated[0]
    assert len({*translated, of_html}) == 5


# The view inside the model searches by an engine of its own.


@pytest.fixture
def traced(monkeypatch):
    received, decode = [], TorchEngine.decode

    def recording(engine, job, options):
        received.append(options)
        return decode(engine, job, options)

    monkeypatch.setattr(TorchEngine, "decode", recording)
    return received


OF_TRACES = FIELDS.keys() & TraceRequest.model_fields.keys()


def test_a_trace_takes_its_options(client, bundle, traced):
    for given in ({}, some(OF_TRACES)[1]):
        traced.clear()
        trace(bundle, Query("A dog.", **given))
        assert client.post("/api/v1/trace", json={"text": "A dog.", **given}).status_code == 200

        assert set(traced) == {arrives(**given)}


def test_look_hands_on_its_options(command, traced, tmp_path):
    words, given = some(LookOptions.model_fields)

    command("look", "any", "--text", "A dog.", "--out", tmp_path / "page.html", *words)

    assert given.keys() == OF_TRACES
    assert traced[0] == arrives(**given)


# From the engine's options to torch's searches.

PROCESSORS = {
    "repetition_penalty": (RepetitionPenalty, "penalty"),
    "no_repeat_ngram": (NoRepeatNgram, "size"),
    "min_length": (MinLength, "length"),
}
SEARCHES = {  # the settings that choose it, and the fields that it knows
    "greedy": ({"beam": 1}, set(PROCESSORS)),
    "beam_search": ({}, FIELDS.keys() - {"sampling"}),
    "sample": ({"sampling": FIELDS["sampling"]}, {"sampling", "n_best", *PROCESSORS}),
}
EXTRA = 2  # tokens that a target may have more than its source


@pytest.fixture
def searched(bundle, monkeypatch):
    """Runs torch's engine on recording searches; gives the search, its settings and the answer."""
    calls = []

    def recording(search):
        def run(_step, _state, rules, *, n_best=1, **settings):
            calls.append((search, {**vars(rules), "n_best": n_best, **settings}))
            return [[Hypothesis((300, 301), -3.0, -3.0, True)] for _ in rules.max_lengths]

        return run

    searches = {name: recording(name) for name in SEARCHES}
    monkeypatch.setattr(torch_searches, "sample", searches.pop("sample"))
    plain = torch_engine(bundle.model, bundle.tokenizers, replace(PLAIN, **searches))
    engine = replace(plain, settings=replace(plain.settings, extra_length=EXTRA))

    def run(options):
        calls.clear()
        [[answer]] = engine.decode(Job([[300]]), options)
        [(search, settings)] = calls
        return search, settings, answer

    return run


def setting(settings, name):
    """The value of a field among a search's settings."""
    if name not in PROCESSORS:
        return settings[name]
    kind, attribute = PROCESSORS[name]
    [processor] = [each for each in settings["processors"] if isinstance(each, kind)]
    return getattr(processor, attribute)


@pytest.mark.parametrize("search", SEARCHES)
def test_torch_s_searches_take_what_they_know(searched, search):
    chosen, known = SEARCHES[search]
    used, settings, _ = searched(
        SearchOptions(**chosen, **{n: FIELDS[n] for n in known - {*chosen}})
    )

    assert used == search
    assert {name: setting(settings, name) for name in known} == {n: FIELDS[n] for n in known}
    assert settings["max_lengths"].tolist() == [FIELDS["min_length"] + 1]
    used, settings, _ = searched(SearchOptions(**chosen))
    assert (used, settings["processors"]) == (search, [])
    assert settings["max_lengths"].tolist() == [1 + EXTRA]


def test_each_field_is_known_to_a_search():
    assert set().union(*(known for _, known in SEARCHES.values())) == FIELDS.keys()


def test_greedy_search_is_scored_with_the_length_penalty(searched):
    _, _, answer = searched(SearchOptions(beam=1, length_penalty=0.25))

    assert answer.score == -3.0 / penalty(3, 0.25)


def test_draws_begin_with_the_seed(searched):
    _, settings, _ = searched(SearchOptions(sampling=FIELDS["sampling"]))

    assert settings["generator"].initial_seed() == FIELDS["sampling"].seed


# From the engine's options to CTranslate2.

# `n_best` and `length_penalty` are not there: this engine ranks the hypotheses itself.
IN_CTRANSLATE2 = {
    "beam_size": 7,
    "num_hypotheses": 7,
    "repetition_penalty": 1.75,
    "no_repeat_ngram_size": 4,
    "min_decoding_length": 6,
    "max_decoding_length": 7,
}


@dataclass
class RecordingTranslator:
    """Notes the settings of each call, and answers each source with targets of 2, 1, 4, 3 … ids."""

    names: list
    certain: bool = True
    calls: list = field(default_factory=list)
    num_active_batches: int = 0

    def translate_batch(self, sources, **settings):
        self.calls.append(settings)
        count = settings["num_hypotheses"]
        lengths = [2, 1, 4, 3][:count] + [2] * (count - 4)
        targets = [[*self.names[300 : 300 + length], "</s>"] for length in lengths]
        scores = [-1.0 - place / 8 for place in range(count)]
        if not self.certain:  # the most probable target is blank: torch decodes the sentence
            targets[0] = ["</s>"]
        return [SimpleNamespace(hypotheses=targets, scores=scores) for _ in sources]


@pytest.fixture
def workers(bundle, tmp_path):
    workers = Workers(tmp_path, torch.device("cpu"), "default")
    workers.many = workers.alone = RecordingTranslator(token_names(bundle.target_tokenizer))
    return workers


@pytest.fixture
def ctranslate2(bundle, workers, recorder):
    source, target = bundle.tokenizers
    names = token_names(source), token_names(target)
    return CTranslate2Engine(workers, *names, Vocabulary.of(target), recorder, extra_length=EXTRA)


def test_ctranslate2_takes_them(ctranslate2, workers):
    searched = {name: value for name, value in FIELDS.items() if name != "sampling"}

    ctranslate2.decode(Job([[300]]), SearchOptions())
    ctranslate2.decode(Job([[300]]), SearchOptions(**searched))

    before, after = workers.many.calls
    assert {key: x for key, x in after.items() if x != before[key]} == IN_CTRANSLATE2


def test_torch_draws_in_the_place_of_ctranslate2(ctranslate2, workers, recorder):
    ctranslate2.decode(Job([[300]]), SearchOptions(**FIELDS))

    assert recorder.received == [SearchOptions(**FIELDS)]
    assert not workers.many.calls


def test_torch_takes_them_for_the_sentences_that_ctranslate2_leaves(ctranslate2, workers, recorder):
    searched = {name: value for name, value in FIELDS.items() if name != "sampling"}
    workers.many.certain = False

    ctranslate2.decode(Job([[300]]), SearchOptions(**searched))

    assert recorder.received == [SearchOptions(**searched)]


def test_ctranslate2_s_hypotheses_are_counted_and_scored_by_the_options(ctranslate2):
    engine = replace(ctranslate2, extra_length=9)  # no target is cut

    for alpha in (0.0, 0.25):
        options = SearchOptions(beam=4, n_best=3, length_penalty=alpha)
        [answer] = engine.decode(Job([[300]]), options)

        expected = [-1.0 / penalty(3, alpha), -1.125 / penalty(2, alpha), -1.25 / penalty(5, alpha)]
        assert [hypothesis.score for hypothesis in answer] == expected
