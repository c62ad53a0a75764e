"""A client that asks for little: how long it waits for point reads and for the health check."""

import http.client
import time

from hostile.attacks import CONTAINER
from support.wire import Wire

PAUSE_SECONDS = 0.002


class Bystander:
    """Two connections that were there before the trouble began."""

    def __init__(self, port):
        self.wire = Wire(port, timeout=60)
        self.health = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def measure(self, seconds):
        """The 99th percentiles of reads and of health checks, in milliseconds."""
        reads, checks = [], []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            reads.append(self._timed(self._read))
            checks.append(self._timed(self._check))
            time.sleep(PAUSE_SECONDS)
        return _percentile(reads), _percentile(checks)

    def _timed(self, work):
        begun = time.monotonic()
        status = work()
        if status != 200:
            raise RuntimeError(f"the bystander was answered with {status}")
        return (time.monotonic() - begun) * 1000

    def _read(self):
        return self.wire.item("GET", CONTAINER, ["a"], "small").status

    def _check(self):
        self.health.request("GET", "/health/live")
        answer = self.health.getresponse()
        answer.read()
        return answer.status

    def close(self):
        self.wire.close()
        self.health.close()


def _percentile(times):
    return sorted(times)[len(times) * 99 // 100]
