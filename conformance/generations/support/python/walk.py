"""The walk-through of a client: its data and expected answers, and the count of checks that passed.

Knows nothing of any SDK. The first wrong answer ends the program.
"""

import json
import os
import pathlib
import sys
import traceback

DATA = json.loads((pathlib.Path(__file__).resolve().parents[2] / "walk.json").read_text())
KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
SYSTEM = {"_rid", "_self", "_etag", "_ts", "_attachments"}

passed = 0


def endpoint():
    """The address of the server over plain HTTP, with the final slash."""
    return os.environ["PERIHELION_ENDPOINT"]


def check(name, actual, expected):
    """Counts a right answer; a wrong one ends the program."""
    global passed
    if actual != expected:
        print(f"FAILED {name}: expected {expected!r}, got {actual!r}")
        finish(failed=1)
    passed += 1
    print(f"ok {name}")


def check_refused(name, expected, status_of, call):
    """A call that must fail with a status; `status_of` reads it from the SDK's error."""
    try:
        answer = call()
    except Exception as error:  # the kinds differ by SDK; anything without a status is shown as it is
        status = status_of(error)
        check(name, status if status is not None else repr(error), expected)
    else:
        check(name, answer, f"an error of status {expected}")


def check_query(query, actual):
    """The rows of a query of the data."""
    if query["isOrdered"]:
        check(query["name"], actual, query["expected"])
    else:
        check_in_any_order(query["name"], actual, query["expected"])


def check_in_any_order(name, actual, expected):
    """Rows of a query or a feed whose order is not promised."""
    check(name, sorted_rows(actual), sorted_rows(expected))


def check_pages(name, pages, wanted):
    """Pages of a bounded size that give every row once. Empty pages are allowed."""
    sizes = [len(page) for page in pages if page]
    if max(sizes, default=0) > wanted["size"] or len(sizes) < 2:
        check(f"{name}: sizes", sizes, f"several of at most {wanted['size']} rows")
    rows = [row for page in pages for row in page]
    if wanted["isOrdered"]:
        check(name, rows, wanted["expected"])
    else:
        check_in_any_order(name, rows, wanted["expected"])


def sorted_rows(rows):
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def plain(item):
    """The item without system properties."""
    return {name: value for name, value in item.items() if name not in SYSTEM}


def report(client, version, protocol):
    """The line from which the table of clients is made."""
    line = {"client": client, "version": version, "language": "Python", "protocol": protocol}
    print("client " + json.dumps(line))


def finish(failed=0):
    """Prints the totals and ends the program."""
    print(f"{passed} passed, {failed} failed", flush=True)
    # Not `sys.exit`: threads that a client left running must not keep the program.
    sys.stderr.flush()
    os._exit(1 if failed else 0)


def _failed_by(kind, error, trace):
    """An error that no check expects is a failed check."""
    traceback.print_exception(kind, error, trace)
    print(f"FAILED after {passed} checks: {error!r}")
    finish(failed=1)


sys.excepthook = _failed_by
