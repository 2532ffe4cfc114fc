"""Work in several threads that begin together."""

import threading
from concurrent.futures import ThreadPoolExecutor

THREADS = 8


def in_threads(work, count=THREADS):
    """Run work(0) … work(count - 1) at once, each in a thread. Raises what one of them raises; returns the results."""
    start = threading.Barrier(count)

    def one(k):
        start.wait()
        return work(k)

    with ThreadPoolExecutor(count) as threads:
        return [*threads.map(one, range(count))]
