"""Requests that wait, in the order they shall go."""

import heapq

from ethnos.actors.inference.job import Job

EPOCH = 4096
"""Requests of one stretch of arrivals are grouped by head; older stretches go first, so nobody starves."""


class Waiting:
    """A queue: high priorities first, then equal heads together, then who came first."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, str, int, Job]] = []
        self._live = 0

    def __len__(self) -> int:
        return self._live

    def push(self, job: Job) -> None:
        job.queue = self
        self._live += 1
        key = (-job.request.priority, job.number // EPOCH, job.head, job.number)
        heapq.heappush(self._heap, (*key, job))

    def pop(self) -> Job | None:
        while self._heap:
            job = heapq.heappop(self._heap)[-1]
            if job.queue is self:
                self._leave(job)
                return job
        return None

    def discard(self, job: Job) -> None:
        """Take a job out. Its place in the heap is cleared when it comes up, or when half the heap is such places."""
        if job.queue is self:
            self._leave(job)
            if len(self._heap) > 2 * self._live + 64:
                self._heap = [entry for entry in self._heap if entry[-1].queue is self]
                heapq.heapify(self._heap)

    def _leave(self, job: Job) -> None:
        job.queue = None
        self._live -= 1
