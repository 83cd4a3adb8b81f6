"""Runs the example of a consumer as an endpoint: `consumer.py EXAMPLE`. It has to take each message once, and refuse a stranger's."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

HAPAX, TOKEN = os.environ["HAPAX_URL"], os.environ["HAPAX_TOKEN"]
# Of this check and nothing else: 32 bytes as base64.
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


def api(path, body):
    request = urllib.request.Request(
        f"{HAPAX}/api/v1{path}",
        data=json.dumps(body).encode(),
        headers={"authorization": f"Bearer {TOKEN}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


consumer = subprocess.Popen([sys.executable, sys.argv[1], "0", SECRET], stdout=subprocess.PIPE, text=True)
try:
    port = consumer.stdout.readline().split()[-1]
    api("/app", {"name": "consumer", "uid": "consumer"})
    url = f"http://127.0.0.1:{port}/hooks"
    api("/app/consumer/endpoint", {"url": url, "uid": "example", "secret": SECRET})
    message = api("/app/consumer/msg", {"eventType": "invoice.paid", "payload": {"n": 1}})["id"]
    took = consumer.stdout.readline().strip()
    assert took == f'took {message} {{"n": 1}}', took
    print("a message is verified and taken")
    try:
        stranger = urllib.request.Request(url, data=b"{}", headers={"webhook-id": "msg_x", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA"})
        urllib.request.urlopen(stranger)
        raise AssertionError("a stranger was believed")
    except urllib.error.HTTPError as error:
        assert error.code == 401, error.code
    assert consumer.stdout.readline().strip() == "refused"
    print("a stranger's is refused")
finally:
    consumer.kill()
    consumer.wait()
