"""Counts requests, characters and batches for Prometheus; never keeps a word of any text."""

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
        counter = partial(Counter, namespace="glassformer", registry=registry)
        gauge = partial(Gauge, namespace="glassformer", registry=registry)
        histogram = partial(Histogram, namespace="glassformer", registry=registry)
        self._requests = counter("requests", "Requests by path and status", ["path", "status"])
        self._seconds = histogram(
            "request_seconds",
            "Seconds from a request's head to the end of its answer",
            ["path"],
            buckets=_SECONDS,
        )
        self._refusals = counter("refusals", "Refused requests by reason", ["reason"])
        self.running = gauge("running_requests", "Requests in work")
        self.characters = counter("characters", "Translated characters", ["source", "target"])
        self.waits = histogram(
            "queue_seconds",
            "Seconds that a request has waited for its first batch",
            buckets=_SECONDS,
        )
        self.waiting = gauge("waiting_segments", "Segments in the queue")
        self._batches = histogram("batch_segments", "Segments in a batch", buckets=_SIZES)
        self._busy = counter("batch_seconds", "Seconds in which models worked")
        of_translator = ["version", "source", "target", "bundle"]
        self.translators = gauge("translator_info", "1 for each translator", of_translator)

    def request(
        self, path: str, status: int, seconds: float, *, refusal: str | None = None
    ) -> None:
        """Count an answered request; `refusal` is the reason of a refusal."""
        if refusal:
            self._refusals.labels(refusal).inc()
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def batch(self, segments: int, seconds: float) -> None:
        """Count a batch that a model has finished."""
        self._batches.observe(segments)
        self._busy.inc(seconds)
