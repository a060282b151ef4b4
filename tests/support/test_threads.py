"""torch's threads: a pool without helpers, a setting that is put back; and work in order."""

import threading
import time

import pytest
import torch

from glassformer.support.errors import InputError
from glassformer.support.threads import in_order, torch_pool, torch_threads


def threads_elsewhere():
    """What a thread finds that begins now."""
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]


def test_the_setting_is_put_back_also_after_a_fault():
    before = torch.get_num_threads()

    def fault():
        with torch_threads(before + 2):
            assert torch.get_num_threads() == threads_elsewhere() == before + 2
            raise RuntimeError("fault")

    with pytest.raises(RuntimeError, match="fault"):
        fault()

    assert torch.get_num_threads() == threads_elsewhere() == before


def test_only_the_threads_of_the_pool_are_alone():
    with torch_threads(3), torch_pool(2) as pool:
        both = threading.Barrier(3)
        waiting = [pool.submit(both.wait, 60) for _ in range(2)]
        outside = torch.get_num_threads(), threads_elsewhere()
        both.wait(60)
        assert len({future.result() for future in waiting}) == 2
        assert outside == (3, 3)
        assert [pool.submit(torch.get_num_threads).result() for _ in range(4)] == [1] * 4


def items_of(count, taken, fault=None):
    for number in range(count):
        taken.append(number)
        yield number
    if fault:
        raise fault


@pytest.mark.parametrize("threads", [1, 3])
def test_results_come_in_order_and_few_items_are_taken_ahead(threads):
    taken, held = [], []
    for result in in_order(lambda item: item * 10, items_of(40, taken), threads=threads):
        held.append(result)
        assert len(taken) <= len(held) + threads

    assert held == [item * 10 for item in range(40)]


def test_a_quick_item_waits_for_a_slow_one_before_it():
    quick_is_done = threading.Event()

    def work(item):
        return quick_is_done.wait(60) if item == "slow" else quick_is_done.set() or item

    assert list(in_order(work, ["slow", "quick"], threads=2)) == [True, "quick"]


@pytest.mark.parametrize("threads", [1, 2])
def test_nothing_is_left_when_the_next_item_is_still_to_come(threads):
    taken = []
    results = in_order(str, items_of(9, taken), threads=threads, waits=lambda: True)

    assert [(result, len(taken)) for result in results] == [(str(n), n + 1) for n in range(9)]


@pytest.mark.parametrize("threads", [1, 4])
def test_the_items_before_a_fault_have_their_results(threads):
    results = in_order(str, items_of(3, [], InputError("line 4")), threads=threads)

    assert [next(results) for _ in range(3)] == ["0", "1", "2"]
    with pytest.raises(InputError, match="line 4"):
        next(results)


@pytest.mark.parametrize("threads", [1, 2])
def test_nothing_comes_after_work_that_fails(threads):
    results = in_order(lambda item: 6 // item, [3, 0, 2, 1], threads=threads)

    assert next(results) == 2
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert list(results) == []


def test_after_a_fault_no_further_item_begins():
    begun, second = [], threading.Event()

    def work(item):
        begun.append(item)
        if item == 0:
            second.wait(60)
            raise ZeroDivisionError
        second.set()
        time.sleep(0.05)  # the third item waits behind it
        return item

    with pytest.raises(ZeroDivisionError):
        list(in_order(work, range(9), threads=2))
    assert len(begun) <= 3
