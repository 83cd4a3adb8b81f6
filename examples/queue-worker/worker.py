"""Carries out each job of a queue once: `python3 worker.py QUEUE`, where QUEUE is a file of JSON lines."""

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


def work(job):
    """The side effect. A worker that dies here leaves the job uncertain."""
    if job.get("poison"):
        os._exit(9)
    with open(job["outbox"], "a") as outbox:
        outbox.write(job["report"] + "\n")
    return {"report": job["report"]}


def once(job):
    # The key is the job's own, never the message's: the same report in two messages is one report.
    claim = ledger("/effect/claim", {"name": "send-report", "key": job["report"], "repeat": "once", "leaseSeconds": 3})
    if claim["verdict"] != "claimed":
        return claim["verdict"]
    effect, fence = claim["effectId"], claim["fence"]
    try:
        result = work(job)
    except OSError as error:  # Nothing was written: the next one may try.
        ledger(f"/effect/{effect}/settle", {"fence": fence, "outcome": "failed", "error": str(error)})
        return "failed"
    ledger(f"/effect/{effect}/settle", {"fence": fence, "outcome": "done", "result": result})
    return "carried out"


for line in open(sys.argv[1]):
    job = json.loads(line)
    print(f"{job['report']}: {once(job)}", flush=True)
