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


class NotSent(Exception):
    """Certainly nothing has happened: the next one may try."""


def work(job):
    """The side effect. A worker that dies here leaves the job uncertain."""
    if job.get("poison"):
        os._exit(9)
    try:
        outbox = open(job["outbox"], "a")
    except OSError as error:  # As a connection that is refused: nothing has left.
        raise NotSent(error) from error
    with outbox:  # From here on an error says nothing about what has arrived, as with a connection that breaks.
        outbox.write(job["report"] + "\n")
    return {"report": job["report"]}


def once(job):
    # The key is the job's own, never the message's: the same report in two messages is one report.
    claim = ledger("/effect/claim", {"name": "send-report", "key": job["report"], "repeat": "once", "leaseSeconds": 3})
    if claim["verdict"] != "claimed":
        return claim["verdict"]
    effect, fence = claim["effectId"], claim["fence"]

    def settle(outcome, **more):
        ledger(f"/effect/{effect}/settle", {"fence": fence, "outcome": outcome, **more})

    try:
        result = work(job)
    except NotSent as error:
        settle("failed", error=str(error))
        return "failed"
    except OSError as error:  # It may have left, and only a person can find out whether it has arrived.
        settle("uncertain", error=str(error))
        return "uncertain"
    settle("done", result=result)
    return "carried out"


for line in open(sys.argv[1]):
    job = json.loads(line)
    print(f"{job['report']}: {once(job)}", flush=True)
