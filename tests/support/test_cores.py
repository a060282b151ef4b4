"""The cores of a process: by its affinity, and by the quota of its control groups."""

import math
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glassformer.support import cores

PERIOD = 100_000
QUOTAS = st.none() | st.integers(1_000, 900_000)  # microseconds of a period; None is no quota


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Gives a machine of 4 cores groups with files, and says how many cores can be used."""

    def usable(version, quotas, shown):
        """`quotas` from the top down; `shown` of them are in sight, as in a container."""
        groups, limits = tmp_path / "groups", tmp_path / "limits"
        path = "/".join(f"g{n}" for n in range(len(quotas) - 1))
        lines = {1: f"7:memory:/m\n4:cpuacct,cpu:/{path}\n0::/elsewhere\n", 2: f"0::/{path}\n"}
        groups.write_text(lines[version])
        for place in limits.rglob("cpu.*"):
            place.unlink()
        top = limits / ("cpu" if version == 1 else "")
        if version == 1:  # a group of other processes, with the name of our group of memory
            (top / "m").mkdir(parents=True, exist_ok=True)
            (top / "m" / "cpu.cfs_quota_us").write_text("1000\n")
            (top / "m" / "cpu.cfs_period_us").write_text(f"{PERIOD}\n")
        folders = [top.joinpath(*(f"g{n}" for n in range(depth))) for depth in range(len(quotas))]
        for folder, quota in zip(folders[:shown], quotas[:shown], strict=True):
            folder.mkdir(parents=True, exist_ok=True)
            if version == 2:
                (folder / "cpu.max").write_text(f"{quota or 'max'} {PERIOD}\n")
            else:
                (folder / "cpu.cfs_quota_us").write_text(f"{quota or -1}\n")
                (folder / "cpu.cfs_period_us").write_text(f"{PERIOD}\n")
        monkeypatch.setattr(cores, "_GROUPS", groups)
        monkeypatch.setattr(cores, "_LIMITS", limits)
        monkeypatch.setattr(cores, "_cores", lambda: 4)
        cores.usable_cores.cache_clear()
        return cores.usable_cores()

    yield usable
    cores.usable_cores.cache_clear()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from([1, 2]), st.lists(QUOTAS, min_size=1, max_size=4), st.data())
def test_the_least_quota_in_sight_bounds_the_cores(machine, version, quotas, data):
    shown = data.draw(st.integers(1, len(quotas)))
    seconds = [quota / PERIOD for quota in quotas[:shown] if quota]

    assert machine(version, quotas, shown) == min(4, *map(math.ceil, [*seconds, 4]))


def test_threads_keep_to_a_quota_unless_the_user_chooses(machine, monkeypatch):
    def threads():
        cores.keep_to_quota()
        return os.environ.get("OMP_NUM_THREADS")

    monkeypatch.setenv("OMP_NUM_THREADS", "3")  # put back at the end
    machine(2, [50_000], 1)
    assert threads() == "3"
    del os.environ["OMP_NUM_THREADS"]
    assert threads() == "1"
    del os.environ["OMP_NUM_THREADS"]
    machine(2, [None], 1)
    assert threads() is None


def test_a_system_without_control_groups_has_all_cores(machine, monkeypatch, tmp_path):
    machine(2, [50_000], 1)
    monkeypatch.setattr(cores, "_GROUPS", tmp_path / "none")
    cores.usable_cores.cache_clear()

    assert cores.usable_cores() == 4
