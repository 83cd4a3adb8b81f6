"""A sink that keeps what arrives, and answers as it is told."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Longer than anything here takes, so that what never comes fails the run instead of hanging it.
TOO_LONG_SECONDS = 60


class Sink:
    def __init__(self):
        # What is answered at a path; 200 elsewhere.
        self.statuses = {}
        self._seen = []
        self._arrived = threading.Condition()
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                with sink._arrived:
                    headers = {name.lower(): value for name, value in self.headers.items()}
                    sink._seen.append((self.path, headers, body))
                    status = sink.statuses.get(self.path, 200)
                    sink._arrived.notify_all()
                self.send_response(status)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def url(self, path):
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def at(self, path):
        """What has arrived at a path so far: headers and body."""
        with self._arrived:
            return [(headers, body) for (p, headers, body) in self._seen if p == path]

    def wait(self, path, count):
        """Waits for so many to arrive at a path."""
        arrived = lambda: len([p for (p, _, _) in self._seen if p == path]) >= count
        with self._arrived:
            assert self._arrived.wait_for(arrived, TOO_LONG_SECONDS), f"{count} at {path}"
        return self.at(path)
