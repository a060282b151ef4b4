"""The benchmark of alignment: what it says of the order of words."""

import json

from benchmarks.alignment import main


def test_the_true_order_of_dates_is_the_languages(bundle_directory, tmp_path, capsys):
    out = tmp_path / "found.json"

    status = main([str(bundle_directory), "--phrases", "24", "--out", str(out)])

    orders = json.loads(out.read_text())["order"]
    assert status == 0
    # "June 7, 2031" is "7. Juni 2031": of three pairs of words one crosses, with a weekday one of
    # six. In longer phrases most pairs are of two dates or times, which stay in their order.
    assert 1 / 3 <= orders["date"][0] <= 2 / 3 < orders["interval"][0] <= 1
    assert all(-1 <= order <= 1 for pair in orders.values() for order in pair)
    assert "Order of the words" in capsys.readouterr().out
