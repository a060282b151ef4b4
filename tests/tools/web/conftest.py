"""A server of a toy translator, called without a network."""

import pytest
from starlette.testclient import TestClient

from glassformer.tools.web.security import RequestLimits
from glassformer.tools.web.server import Settings, create_app
from glassformer.translator import Translator

LOCAL = "http://127.0.0.1"


@pytest.fixture(scope="session")
def translator(bundle_directory) -> Translator:
    return Translator.load(bundle_directory, device="cpu", engine="auto")


@pytest.fixture(scope="session")
def client(translator):
    """A server with small limits, and greedy, so that it is quick."""
    limits = RequestLimits(max_chars=2000, max_alternatives=4)
    with TestClient(
        create_app({"toy": translator}, Settings(beam=1, limits=limits)),
        base_url=LOCAL,
        raise_server_exceptions=False,
    ) as client:
        yield client


@pytest.fixture
def served(translator):
    """Starts servers with a test's own settings."""
    open_clients = []

    def serve(translators=None, **settings):
        app = create_app(translators or {"toy": translator}, Settings(beam=1, **settings))
        client = TestClient(app, base_url=LOCAL, raise_server_exceptions=False)
        open_clients.append(client.__enter__())
        return client

    yield serve
    for client in open_clients:
        client.__exit__(None, None, None)
