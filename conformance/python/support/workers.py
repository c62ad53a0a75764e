"""The processes of a server that execute scripts, seen from outside."""

import pathlib


def script_workers(server):
    """The processes that the process of a server has started to execute scripts."""
    found = []
    for task in pathlib.Path(f"/proc/{server}/task").glob("*/children"):
        try:
            found += [int(process) for process in task.read_text().split()]
        except OSError:
            pass  # the thread has ended
    return found


def status(process):
    """The fields of the status of a process, by name."""
    lines = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def stat(process):
    """The fields of the state of a process behind its name: the first is its state, the 17th its nice value."""
    return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
