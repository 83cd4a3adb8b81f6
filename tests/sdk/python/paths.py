"""Asks a Hapax server for every operation that the sources of the SDKs name: `paths.py FOLDER...`, for those other than Python's.

Each is one that the server describes, or is refused with 501 and a code: nothing that an SDK can ask for is unknown.
"""

import json
import os
import pathlib
import re
import sys
import urllib.error
import urllib.request

import svix

URL, TOKEN = os.environ["HAPAX_URL"], os.environ["HAPAX_TOKEN"]

# How each SDK writes an operation down: its method, then its path.
PATH = r'"((?:/ingest)?/api/v\d/[^"]*)"'
WRITTEN = {
    ".py": rf'method="(\w+)",\s*path={PATH}',
    ".mjs": rf'SvixRequest\("(\w+)", {PATH}',
    ".rs": rf"http::Method::(\w+),\s*{PATH}",
}
# Fewer would mean that they are written in another way now.
OPERATIONS_MIN = 100


def operations(folder):
    """Methods and paths that the files of a folder name; names in paths are left out, since everybody chooses their own."""
    found = set()
    for file in pathlib.Path(folder).rglob("*"):
        if file.suffix in WRITTEN:
            for method, path in re.findall(WRITTEN[file.suffix], file.read_text()):
                found.add((method.upper(), re.sub(r"{\w+}", "{}", path)))
    return found


def ask(method, path):
    request = urllib.request.Request(URL + path, method=method, headers={"authorization": f"Bearer {TOKEN}"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


_, description = ask("GET", "/api/v1/openapi.json")
offered = {
    (method.upper(), re.sub(r"{\w+}", "{}", path))
    for path, item in description["paths"].items()
    for method in item
}
unknown = set()
for folder in [os.path.dirname(svix.__file__), *sys.argv[1:]]:
    named = operations(folder)
    assert len(named) >= OPERATIONS_MIN, f"{folder} names {len(named)} operations"
    refused = sorted(named - offered)
    for method, path in refused:
        status, told = ask(method, path.replace("{}", "one"))
        if (status, told.get("code")) != (501, "H0327"):
            unknown.add(f"{method} {path}: {status} {told}")
    print(f"paths: {len(named)} operations, {len(refused)} of them are not offered", flush=True)
if unknown:
    sys.exit("\n".join(sorted(unknown)))
