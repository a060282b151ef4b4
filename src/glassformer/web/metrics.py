"""What the server has done, in numbers, as Prometheus reads them; never a word of any text."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

__all__ = ["Metrics"]

# Others count together: a stranger's paths must not become a series each.
_PATHS = frozenset(
    ["/", "/translate", "/languages", "/health", "/metrics", "/api/v1/translate", "/api/v1/trace"]
)
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The counters of one server.

    >>> metrics = Metrics()
    >>> metrics.watch_queue(lambda: 3)
    >>> metrics.request("/translate", 200, 0.02)
    >>> text = metrics.text().decode()
    >>> 'glassformer_requests_total{path="/translate",status="200"} 1.0' in text
    True
    >>> "glassformer_waiting_pieces 3.0" in text
    True
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "glassformer_requests",
            "Requests by path and status",
            ["path", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "glassformer_request_seconds",
            "From a request's head to its answer's end",
            ["path"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._characters = Counter(
            "glassformer_characters",
            "Characters that were translated",
            ["source", "target"],
            registry=self._registry,
        )
        self._batches = Histogram(
            "glassformer_batch_pieces",
            "Pieces of text that went through a model together",
            buckets=_SIZES,
            registry=self._registry,
        )
        self._busy = Counter(
            "glassformer_batch_seconds", "Time that models have worked", registry=self._registry
        )
        self._waiting = Gauge(
            "glassformer_waiting_pieces", "Pieces in the queue", registry=self._registry
        )

    def watch_queue(self, waiting: Callable[[], int]) -> None:
        """Ask this, whenever somebody reads the metrics, how many pieces wait."""
        self._waiting.set_function(waiting)

    def request(self, path: str, status: int, seconds: float) -> None:
        """A request has been answered."""
        path = path if path in _PATHS else "other"
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def translated(self, source: str, target: str, characters: int) -> None:
        """A text has been translated."""
        self._characters.labels(source, target).inc(characters)

    def batch(self, pieces: int, seconds: float) -> None:
        """A batch has been through a model."""
        self._batches.observe(pieces)
        self._busy.inc(seconds)

    def text(self) -> bytes:
        """All of it in Prometheus's text format."""
        return generate_latest(self._registry)
