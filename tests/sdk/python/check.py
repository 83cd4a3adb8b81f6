"""Drives a Hapax server with the Svix SDK for Python. Exits non-zero at the first thing that is not as the SDK expects it.

`scene` says what it needs to know of the server.
"""

import sys

from again import consumers, recovery, statistics
from catalogue import apps, endpoints, event_types
from messages import attempts, expunge_all, messages, rotation
from people import operational, portal, refusals
from scene import said, svix


def main():
    app = apps()
    event_type = event_types()
    endpoint = endpoints(app, event_type)
    message = messages(app, endpoint, event_type)
    attempts(app, endpoint, message)
    rotation(app, endpoint, event_type)
    recovery(app, event_type)
    consumers(app)
    statistics(app)
    operational(app, event_type)
    portal(app)
    refusals(app, message)
    expunge_all(app, event_type)
    svix.application.delete(app)
    said("all well")


if __name__ == "__main__":
    sys.exit(main())
