"""A small server of chat completions on loopback, for tests and for the bench of judges.

`python judge_server.py --seconds 0.1` prints its address and serves until its input ends. What it
says stands in the prompt: the last word of the user's message names a behaviour.
"""

import argparse
import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

WORDS = {
    "seven": "It is good.\n7",
    "nonsense": "blub blub",
    "two": "3 or 8",
    "chinese": "这个回答很好。\n评分：六",
    "german": "Das ist gut.\nNote: 6",
    "empty": "",
    "yes": "Fine.\nYES",
}


class Handler(BaseHTTPRequestHandler):
    """Answers as its server is told to."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            server.seen.append((self.path, self.headers.get("Authorization"), body))
            number = len(server.seen)
        behaviour = body["messages"][-1]["content"].split()[-1]
        time.sleep(server.seconds)
        if behaviour == "never":
            server.stopped.wait(30)
            return
        if behaviour == "drip":
            self._begin(200, 1000)
            with contextlib.suppress(OSError):
                while not server.stopped.wait(0.05):
                    self.wfile.write(b" ")
            return
        if behaviour == "headers":
            with contextlib.suppress(OSError):
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                while not server.stopped.wait(0.05):
                    self.wfile.write(b"z")
            return
        if behaviour == "page":
            return self._send(200, b"<html>Bad gateway</html>")
        if behaviour == "refused":
            return self._send(401, b'{"error": "key"}')
        if behaviour == "busy":
            return self._send(503, b"busy")
        if behaviour == "lost":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        if behaviour == "later" and number % 3:
            return self._send(429, b"", {"Retry-After": "0"})
        words = WORDS.get(behaviour, f"{len(behaviour) % 10}")
        if behaviour == "second":
            words = "what?" if body["seed"] == 0 else "5"
        told = {"choices": [{"message": {"content": words}}], "usage": {"total_tokens": 10}}
        self._send(200, json.dumps(told).encode())

    def _begin(self, status, length, more=()):
        self.send_response(status)
        for name, value in dict(more).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def _send(self, status, content, more=()):
        self._begin(status, len(content), more)
        self.wfile.write(content)

    def log_message(self, *told):
        pass


class Server(ThreadingHTTPServer):
    """Keeps what it was asked."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, seconds=0.0):
        super().__init__(("127.0.0.1", 0), Handler)
        self.seconds, self.seen, self.connections = seconds, [], 0
        self.lock, self.stopped = threading.Lock(), threading.Event()

    def get_request(self):
        self.connections += 1
        return super().get_request()

    def handle_error(self, request, client_address):
        """A client that has gone away is none."""

    @property
    def environment(self):
        return {"OPENAI_BASE_URL": f"http://127.0.0.1:{self.server_port}/v1"}


@contextlib.contextmanager
def serving(seconds=0.0):
    """The server in a thread of this process."""
    server = Server(seconds)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def process(seconds=0.0):
    """The server in a process of its own: the environment that leads to it."""
    command = [sys.executable, str(Path(__file__)), "--seconds", str(seconds)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            yield {"OPENAI_BASE_URL": child.stdout.readline().strip()}
        finally:
            child.stdin.close()


def main():
    """Serves until the input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.0)
    with serving(parser.parse_args().seconds) as server:
        print(server.environment["OPENAI_BASE_URL"], flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
