"""Counts requests, characters and batches for Prometheus; never keeps a word of any text."""

from __future__ import annotations

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

__all__ = ["ServerMetrics"]

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class ServerMetrics:
    """The counters of one server.

    >>> metrics = ServerMetrics()
    >>> metrics.request("/translate", 200, 0.02)
    >>> metrics.registry.get_sample_value(
    ...     "glassformer_requests_total", {"path": "/translate", "status": "200"}
    ... )
    1.0
    """

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        counter = partial(Counter, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self._requests = counter(
            "glassformer_requests", "Requests by path and status", ["path", "status"]
        )
        self._seconds = histogram(
            "glassformer_request_seconds",
            "Seconds from a request's head to the end of its answer",
            ["path"],
            buckets=_SECONDS,
        )
        self.characters = counter(
            "glassformer_characters", "Translated characters", ["source", "target"]
        )
        self._batches = histogram(
            "glassformer_batch_segments", "Segments in a batch", buckets=_SIZES
        )
        self.waits = histogram(
            "glassformer_queue_seconds",
            "Seconds that a request has waited for its first batch",
            buckets=_SECONDS,
        )
        self._refusals = counter("glassformer_refusals", "Refused requests by reason", ["reason"])
        self.running = Gauge("glassformer_running_requests", "Requests in work", registry=registry)
        self.translators = Gauge(
            "glassformer_translator_info",
            "1 for each translator",
            ["version", "source", "target", "bundle"],
            registry=registry,
        )
        self._busy = counter("glassformer_batch_seconds", "Seconds in which models worked")
        self.waiting = Gauge(
            "glassformer_waiting_segments", "Segments in the queue", registry=registry
        )

    def request(
        self, path: str, status: int, seconds: float, *, refusal: str | None = None
    ) -> None:
        """Count an answered request; `refusal`: why it was refused."""
        if refusal:
            self._refusals.labels(refusal).inc()
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def batch(self, segments: int, seconds: float) -> None:
        """Count a batch that a model has finished."""
        self._batches.observe(segments)
        self._busy.inc(seconds)
