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
    "tools/cli/test_backtranslate.py",
    "tools/cli/test_demo.py",
    "tools/cli/test_languages.py::test_the_page_shows_the_languages_asked_for",
    "tools/cli/test_learn.py",
    "tools/cli/test_main.py::test_help_and_importing_need_no_torch",
    "tools/cli/test_options.py::test_a_file_that_is_no_mapping_is_named",
    "tools/cli/test_own_translator.py",
    "tools/cli/test_plot.py",
    "tools/cli/test_serve.py",
    "tools/cli/test_server_threads.py",
    "tools/cli/test_train.py",
    "tools/cli/test_translate.py::test_a_glossary_s_terms_stand_in_the_translations",
    "tools/cli/test_translate.py::test_another_program_gets_each_answer_at_once",
    "tools/cli/test_translate.py::test_any_line_comes_back_as_one_line_in_its_place",
    "tools/cli/test_translate.py::test_drawn_translations_depend_on_the_seed_and_the_line_alone",
    "tools/cli/test_translate.py::test_many_blocks_of_input_keep_their_order",
    "tools/phrasebook/test_book.py",
    "data/test_bounded.py",
    "decoding/test_beam.py::test_a_sentence_s_answer_does_not_depend_on_its_batch",
    "decoding/test_logits_processors.py",
    "decoding/test_sampling.py::test_targets_come_as_often_as_the_model_says",
    "decoding/test_torch_engine.py",
    "tools/documents/test_gettext.py::test_files_are_read_in_linear_time",
    "tools/documents/test_html.py::test_hostile_documents_are_read_in_linear_time",
    "tools/inspection/plots/test_from_trace.py",
    "tools/inspection/plots/test_plots.py",
    "tools/inspection/test_ablation.py",
    "tools/inspection/test_capture.py::test_a_translator_is_seen_while_it_decodes",
    "tools/inspection/test_capture.py::test_importing_the_module_changes_no_bit",
    "tools/inspection/trace/test_build.py",
    "tools/interchange/argos/test_export.py",
    "tools/interchange/ctranslate2/reading/test_load.py::test_its_translations",
    "tools/interchange/ctranslate2/test_copying.py",
    "tools/interchange/ctranslate2/test_export.py",
    "tools/interchange/ctranslate2/test_load.py",
    "tools/interchange/hugging_face/",
    "tools/interchange/test_settings.py",
    "tools/learn/test_checks.py::test_every_pair_is_named_or_breaks_a_law",
    "tools/learn/test_examine.py",
    "tools/learn/test_exercises.py::test_the_verdict_on_each_solution",
    "tools/learn/test_greedy.py::test_wrong_searches_are_named",
    "tools/learn/test_hand_ins.py",
    "tools/learn/test_parts.py::test_the_plain_path_calls_every_part",
    "tools/learn/test_solutions.py",
    "tools/learn/test_uncached_search.py",
    "tools/learn/test_watch.py",
    "model/test_compiled.py",
    "model/test_transformer.py::test_padding_and_batch_order_change_nothing",
    "parity/test_huggingface.py",
    "system/",
    "test_doctests.py::test_the_examples_of_each_module_hold",
    "test_length_penalty.py::test_so_does_a_trace",
    "test_own_parts.py::test_it_trains_translates_and_is_captured",
    "test_public_names.py::test_the_parts_need_nothing_but_torch",
    "test_readme.py",
    "test_search_options.py::test_look_hands_on_its_options",
    "test_stock_parts.py",
    "test_translator.py",
    "training/fast/test_mixed_precision.py",
    "training/parallel/",
    "training/setup/test_augmentation.py::test_the_lexicon_leaves_out_rare_words_and_those_of_every_other_pair",
    "training/test_batch_stream.py::test_all_batches_are_read_once_an_epoch_across_updates",
    "training/test_fine_tuning.py",
    "training/test_loop.py",
    "training/test_malloc.py",
    "training/test_own_parts.py",
    "training/test_plain.py",
    "training/test_train.py",
    "training/test_validation.py",
    "tools/web/living/test_browser.py",
    "tools/web/look/test_browser.py",
    "tools/web/look/test_numbers.py",
    "tools/web/look/test_page.py::test_a_page_goes_through_a_pipe_or_a_link",
    "tools/web/look/test_tour.py",
    "tools/web/test_hostile.py",
    "tools/web/test_routes.py::test_a_trace_shows_the_places_of_the_server_s_terms",
    "tools/web/test_routes.py::test_requests_with_different_terms_share_a_batch_and_keep_their_own",
    "tools/web/test_routes.py::test_the_server_s_terms_and_the_request_s_own",
    "tools/web/test_security.py::test_the_body_limit_has_room_for_any_text_of_the_character_limit",
    "tools/web/test_third_language.py",
    "tools/web/test_translate_page.py",
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
        if cases[item.path, test] == 1 and not is_slow(item.path, test):
            part.append(item)
    return part
