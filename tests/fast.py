"""What ``--fast`` leaves out: the tests of ``SLOW``, and all but two cases of each other test.

Each room keeps a part, and all of it takes less than a minute on two cores.
"""

from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

# Files, folders and single tests with processes, browsers, trainings and long comparisons.
SLOW = (
    "alignment/test_align.py::test_the_weights_are_those_of_the_whole_model",
    "alignment/test_align.py::test_translations_are_the_same_with_their_alignment",
    "benchmarks/test_harness.py::test_operations_are_those_that_torch_counts",
    "benchmarks/test_smoke.py",
    "cli/test_backtranslate.py",
    "cli/test_demo.py",
    "cli/test_languages.py::test_the_page_shows_the_languages_asked_for",
    "cli/test_learn.py",
    "cli/test_main.py::test_help_and_importing_need_no_torch",
    "cli/test_options.py::test_a_file_that_is_no_mapping_is_named",
    "cli/test_own_translator.py",
    "cli/test_plot.py",
    "cli/test_serve.py",
    "cli/test_server_threads.py",
    "cli/test_train.py",
    "cli/test_translate.py::test_a_glossary_s_terms_stand_in_the_translations",
    "cli/test_translate.py::test_another_program_gets_each_answer_at_once",
    "cli/test_translate.py::test_any_line_comes_back_as_one_line_in_its_place",
    "cli/test_translate.py::test_drawn_translations_depend_on_the_seed_and_the_line_alone",
    "cli/test_translate.py::test_many_blocks_of_input_keep_their_order",
    "data/phrasebook/test_book.py",
    "data/test_bounded.py",
    "decoding/test_beam.py::test_a_sentence_s_answer_does_not_depend_on_its_batch",
    "decoding/test_logits_processors.py",
    "decoding/test_sampling.py::test_targets_come_as_often_as_the_model_says",
    "decoding/test_torch_engine.py",
    "documents/test_gettext.py::test_files_are_read_in_linear_time",
    "documents/test_html.py::test_hostile_documents_are_read_in_linear_time",
    "inspection/plots/test_from_trace.py",
    "inspection/plots/test_plots.py",
    "inspection/test_ablation.py",
    "inspection/test_capture.py::test_a_translator_is_seen_while_it_decodes",
    "inspection/test_capture.py::test_importing_the_module_changes_no_bit",
    "inspection/trace/test_build.py",
    "interchange/argos/test_export.py",
    "interchange/ctranslate2/reading/test_load.py::test_its_translations",
    "interchange/ctranslate2/test_copying.py",
    "interchange/ctranslate2/test_export.py",
    "interchange/ctranslate2/test_load.py",
    "interchange/hugging_face/",
    "interchange/test_settings.py",
    "learn/test_checks.py::test_every_pair_is_named_or_breaks_a_law",
    "learn/test_examine.py",
    "learn/test_greedy.py::test_wrong_searches_are_named",
    "learn/test_hand_ins.py",
    "learn/test_parts.py::test_the_plain_path_calls_every_part",
    "learn/test_solutions.py",
    "learn/test_uncached_search.py",
    "learn/test_watch.py",
    "model/test_compiled.py",
    "model/test_transformer.py::test_padding_and_batch_order_change_nothing",
    "parity/test_huggingface.py",
    "system/",
    "test_length_penalty.py::test_so_does_a_trace",
    "test_own_parts.py::test_it_trains_translates_and_is_captured",
    "test_public_names.py::test_the_parts_need_nothing_but_torch",
    "test_readme.py",
    "test_search_options.py::test_look_hands_on_its_options",
    "test_stock_parts.py",
    "test_translator.py",
    "training/parallel/",
    "training/setup/test_augmentation.py::test_the_lexicon_leaves_out_rare_words_and_those_of_every_other_pair",
    "training/test_batch_stream.py::test_all_batches_are_read_once_an_epoch_across_updates",
    "training/test_fine_tuning.py",
    "training/test_loop.py",
    "training/test_malloc.py",
    "training/test_mixed_precision.py",
    "training/test_own_parts.py",
    "training/test_plain.py",
    "training/test_train.py",
    "training/test_validation.py",
    "web/look/test_browser.py",
    "web/look/test_numbers.py",
    "web/look/test_page.py::test_a_page_goes_through_a_pipe_or_a_link",
    "web/look/test_tour.py",
    "web/test_hostile.py",
    "web/test_routes.py::test_a_trace_shows_the_places_of_the_server_s_terms",
    "web/test_routes.py::test_requests_with_different_terms_share_a_batch_and_keep_their_own",
    "web/test_routes.py::test_the_server_s_terms_and_the_request_s_own",
    "web/test_security.py::test_the_body_limit_has_room_for_any_text_of_the_character_limit",
    "web/test_third_language.py",
    "web/test_translate_page.py",
)


def is_slow(path: Path, test: str = "") -> bool:
    """Whether a file is left out as a whole, or a test of it."""
    return f"{path.relative_to(TESTS).as_posix()}::{test}".startswith(SLOW)


def fast_part(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests that are not slow, with two cases of each."""
    cases: Counter[tuple[Path, str]] = Counter()
    part = []
    for item in items:
        test = item.nodeid.partition("::")[2].partition("[")[0]
        cases[item.path, test] += 1
        if cases[item.path, test] <= 2 and not is_slow(item.path, test):
            part.append(item)
    return part
