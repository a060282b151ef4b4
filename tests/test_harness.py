"""The settings that all tests run with."""


def test_a_test_that_hangs_ends(pytestconfig):
    assert 0 < pytestconfig.getini("faulthandler_timeout") <= 300
    assert pytestconfig.getini("faulthandler_exit_on_timeout")
    assert pytestconfig.getoption("maxworkerrestart") == "0"
