"""The bystander beside scripts that do not stop.

Three kinds of windows take turns, so that whatever else the machine does meets all of them: without scripts, beside
processes of the lowest priority that only compute, and beside scripts. The medians of the windows are compared.
"""

import contextlib
import multiprocessing
import os
import statistics
import time

from hostile import attacks
from hostile.attacks import ENDLESS_QUERY, Attack
from hostile.bystander import Bystander
from hostile.sandbox import EXTRA_OF_ONE, NICE, USUAL

# How much longer the bystander may wait at the 99th percentile than without scripts.
SLOWDOWN_MAX = 2
# The same against processes that only compute. A wait of one time slice of the kernel, which no server can prevent, is in
# both; what remains is the scatter of a percentile.
SCATTER = 1.25
WINDOWS = 5
WINDOW_SECONDS = 2
# Until scripts or processes are busy, and until they have ended.
SETTLE_SECONDS = 0.6
CLIENTS = 3
# A busy machine gets a second chance; a server that lets scripts delay others fails both times.
ATTEMPTS = 2


def check_bystander(test, server):
    for _ in range(ATTEMPTS):
        calm, computing, attacked = _measure(server)
        bounds = [max(SLOWDOWN_MAX * one, SCATTER * other) for one, other in zip(calm, computing)]
        is_good = all(wait <= bound for wait, bound in zip(attacked, bounds))
        if is_good:
            break
    detail = "; ".join(
        f"p99 {name} {attacked[index]:.2f} ms, without {calm[index]:.2f}, beside processes that compute {computing[index]:.2f}"
        for index, name in enumerate(("read", "health")))
    test.check("the bystander is served beside endless procedures, triggers and functions", is_good, detail)


def _measure(server):
    """The medians of the windows of each kind, of reads and of health checks."""
    bystander = Bystander(server.port)
    kinds = [contextlib.nullcontext, _computing, lambda: _attacked(server)]
    windows = [[] for _ in kinds]
    bystander.measure(WINDOW_SECONDS)
    for _ in range(WINDOWS):
        for kind, measured in zip(kinds, windows):
            with kind():
                time.sleep(SETTLE_SECONDS)
                measured.append(bystander.measure(WINDOW_SECONDS))
            time.sleep(SETTLE_SECONDS)
    bystander.close()
    return [tuple(statistics.median(column) for column in zip(*measured)) for measured in windows]


@contextlib.contextmanager
def _computing():
    """As many processes that compute as scripts of one caller may be busy."""
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_compute, daemon=True) for _ in range(USUAL + EXTRA_OF_ONE)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def _compute():
    os.setpriority(os.PRIO_PROCESS, 0, NICE)
    while True:
        pass


@contextlib.contextmanager
def _attacked(server):
    """Endless scripts of all kinds."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(Attack(attacks.execute, server.port, CLIENTS, "hostile"))
        stack.enter_context(Attack(attacks.create, server.port, CLIENTS, "hostilePre"))
        stack.enter_context(Attack(attacks.ask, server.port, CLIENTS, ENDLESS_QUERY))
        yield
