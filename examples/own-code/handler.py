"""Charges an order once, however often it is called: `python3 handler.py ORDER URL`."""

import json
import os
import sys
import urllib.request

HAPAX = os.environ.get("HAPAX_URL", "http://127.0.0.1:8080")
TOKEN = os.environ["HAPAX_TOKEN"]


def ledger(path, body):
    request = urllib.request.Request(
        f"{HAPAX}/api/v1{path}",
        data=json.dumps(body).encode(),
        headers={"authorization": f"Bearer {TOKEN}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def charge(url, order):
    with urllib.request.urlopen(urllib.request.Request(url, data=order.encode())) as answer:
        return {"status": answer.status}


def main(order, url):
    claim = ledger("/effect/claim", {"name": "charge-python", "key": order, "repeat": "once", "leaseSeconds": 30})
    if claim["verdict"] != "claimed":
        # done: somebody has charged it, and here is what came of it. in_flight: somebody is at it. uncertain: ask a person.
        print(json.dumps(claim))
        return
    effect, fence = claim["effectId"], claim["fence"]
    try:
        result = charge(url, order)
    except Exception as error:  # The card may have been charged, or not: say so.
        ledger(f"/effect/{effect}/settle", {"fence": fence, "outcome": "uncertain", "error": str(error)})
        raise
    ledger(f"/effect/{effect}/settle", {"fence": fence, "outcome": "done", "result": result})
    print(json.dumps({"verdict": "charged", "result": result}))


main(*sys.argv[1:])
