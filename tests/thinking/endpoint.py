"""A real HTTP server in OpenAI's style that answers as a test tells it to, in a thread of its own."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[[int, dict[str, Any]], "str | tuple[int, dict[str, str], bytes] | None"]
"""From the number of the request and its body to a model's text, or a raw (status, headers, body), or None: hang."""


class Endpoint(ThreadingHTTPServer):
    """Counts requests, answers with `reply`."""

    daemon_threads = True

    def __init__(self, reply: Reply) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply = reply
        self.requests: list[dict[str, Any]] = []
        self.over = threading.Event()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def take(self, body: dict[str, Any]) -> int:
        with self._lock:
            self.requests.append(body)
            return len(self.requests) - 1


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send(200, {}, b'{"data": [{"id": "tiny"}], "object": "list"}')

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = self.server.reply(self.server.take(body), body)
        if answer is None:
            self.server.over.wait(30)
            return
        if isinstance(answer, str):
            usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
            choice = {"index": 0, "message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}
            whole = {"id": "1", "object": "chat.completion", "created": 0, "model": "tiny", "choices": [choice]}
            answer = (200, {}, json.dumps({**whole, "usage": usage}).encode())
        self._send(*answer)

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def endpoint(reply: Reply) -> Iterator[Endpoint]:
    """A server for the length of a test."""
    server = Endpoint(reply)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
