"""The server, the sink, and how answers are looked at.

HAPAX_URL and HAPAX_TOKEN say where the server is and who asks. Its endpoints may be on 127.0.0.1, and what fails is tried once.
"""

import os
import time
import uuid

import standardwebhooks
from svix.api import Svix, SvixOptions
from svix.api.errors.http_error import HttpError
from svix.api.errors.http_validation_error import HTTPValidationError
from svix.webhooks import Webhook

from sink import TOO_LONG_SECONDS, Sink

URL = os.environ["HAPAX_URL"]
TOKEN = os.environ["HAPAX_TOKEN"]
# What makes the names of this run its own.
LOT = uuid.uuid4().hex[:8]


def client(token):
    """Somebody who shows this token. What fails is not asked again: it is looked at."""
    return Svix(token, SvixOptions(server_url=URL, retry_schedule=[]))


svix = client(TOKEN)
sink = Sink()


def said(what):
    print(f"python: {what}", flush=True)


def refused(status, ask):
    """The problem that a request is refused with."""
    try:
        ask()
    except (HttpError, HTTPValidationError) as problem:
        assert problem.status_code == status, (problem.status_code, problem.to_dict())
        return problem
    raise AssertionError(f"{status} is expected")


def until(what, look):
    """Asks again until the answer is there. Each question is a whole request, which is what paces the loop."""
    end = time.monotonic() + TOO_LONG_SECONDS
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, what


def finished(task):
    """Waits for a task to end."""

    def look():
        told = svix.background_task.get(task.id)
        return told if told.status == "finished" else None

    return until("the task", look)


def paged(ask, **how):
    """All that a list has, read page by page: `ask` is given what each page is asked for."""
    found, iterator = [], None
    while True:
        page = ask(iterator=iterator, **how)
        assert len(page.data) <= how["limit"]
        found += page.data
        iterator = page.iterator
        if page.done:
            return found


def verified(headers, body, secret):
    """Verifies with the SDK and with the package of the standard."""
    Webhook(secret).verify(body, headers)
    standardwebhooks.Webhook(secret).verify(body, headers)
