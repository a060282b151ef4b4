"""torch's threads: a pool without helpers, and a setting that is put back."""

import threading

import pytest
import torch

from glassformer.threads import pool_of_single_threads, torch_threads


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
    with torch_threads(3), pool_of_single_threads(2) as pool:
        both = threading.Barrier(3)
        waiting = [pool.submit(both.wait, 60) for _ in range(2)]
        outside = torch.get_num_threads(), threads_elsewhere()
        both.wait(60)
        assert len({future.result() for future in waiting}) == 2
        assert outside == (3, 3)
        assert [pool.submit(torch.get_num_threads).result() for _ in range(4)] == [1] * 4
