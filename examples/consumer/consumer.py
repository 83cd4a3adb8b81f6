"""An endpoint that takes each message once: `python3 consumer.py PORT SECRET`. Prints a line for each delivery."""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

webhook = Webhook(sys.argv[2])
seen = set()  # In a real consumer: a unique key in the transaction of the work.


class Consumer(BaseHTTPRequestHandler):
    def do_POST(self):
        # The raw bytes: a body that was parsed and written again does not verify.
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            payload = webhook.verify(body, {name.lower(): value for name, value in self.headers.items()})
        except WebhookVerificationError:
            return self.answer(401, "refused")
        message = self.headers["webhook-id"]
        if message in seen:
            return self.answer(200, f"again {message}")
        seen.add(message)
        self.answer(200, f"took {message} {json.dumps(payload)}")

    def answer(self, status, said):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()
        print(said, flush=True)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Consumer)
print(f"listening on {server.server_port}", flush=True)
server.serve_forever()
