"""The server under test as a child process: started, stopped in order, killed, started again on the same folder."""

import os
import pathlib
import queue
import signal
import subprocess
import tempfile
import threading
import time

EMULATOR_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
ROOT = pathlib.Path(__file__).resolve().parents[3]
READY_SECONDS_MAX = 30
STOP_SECONDS_MAX = 20


def program():
    """The program to test: the release build, or what the environment names."""
    path = pathlib.Path(os.environ.get("PERIHELION_BIN") or ROOT / "target/release/perihelion")
    if not path.exists():
        raise FileNotFoundError(f"no server at {path}: run `cargo build --release -p perihelion` first")
    return str(path)


def run(*arguments, env=None, timeout=READY_SECONDS_MAX):
    """Runs the program to its end; for command lines that are refused or print something."""
    environment = {**os.environ, **(env or {})}
    return subprocess.run([program(), *arguments], capture_output=True, text=True, env=environment, timeout=timeout)


class Server:
    """One server and its data folder. The port is chosen at the first start and kept at later ones."""

    def __init__(self, data, *flags, mode="dev", group=None, table=False):
        """`group` is the folder of a control group that the server is started in; `table` adds the Table API."""
        self.mode = mode
        self.group = group
        self.data = str(data)
        self.flags = list(flags)
        self.port = 0
        self.table_port = 0
        self.has_table = table
        self.screen = ""
        self.process = None
        self.log = tempfile.NamedTemporaryFile(prefix="perihelion-", suffix=".log")

    def start(self):
        """Starts and waits for the ready line; answers how many seconds that took."""
        begun = time.monotonic()
        self.screen = ""
        command = self._command()
        if self.group:
            # A shell enters the group and becomes the server, which so finds its bound when it starts.
            command = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(self.group), *command]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        lines = queue.Queue()
        threading.Thread(target=_read_lines, args=(self.process.stdout, lines), daemon=True).start()
        while True:
            try:
                line = lines.get(timeout=max(0.0, begun + READY_SECONDS_MAX - time.monotonic()))
            except queue.Empty:
                self.kill()
                raise TimeoutError(f"not ready after {READY_SECONDS_MAX} s\n{self.errors()}") from None
            if line is None:
                code = self.process.wait()
                raise RuntimeError(f"the server ended with {code} before it was ready\n{self.errors()}")
            if line.startswith("ready "):
                ready = dict(part.split("=", 1) for part in line.split() if "=" in part)
                self.port = _port(ready["nosql"])
                self.table_port = _port(ready["table"]) if self.has_table else 0
                return time.monotonic() - begun
            self.screen += line

    def _command(self):
        table = ["--table", f"127.0.0.1:{self.table_port}"] if self.has_table else []
        nosql = ["--nosql", f"127.0.0.1:{self.port}"]
        return [program(), self.mode, "--data", self.data, *nosql, *table, *self.flags]

    def stop(self):
        """Asks it to end, as an operator would, and answers its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=STOP_SECONDS_MAX)

    def kill(self):
        """Ends it as a crash would: no last words, no flush."""
        self.process.kill()
        self.process.wait()

    def start_and_kill(self, seconds):
        """Starts and kills it so soon that it may not have become ready."""
        self.process = subprocess.Popen(self._command(), stdout=subprocess.DEVNULL, stderr=self.log)
        time.sleep(seconds)
        self.kill()

    def restart(self):
        """Stops in order and starts again."""
        code = self.stop()
        assert code == 0, f"exit code {code} after a request to stop\n{self.errors()}"
        return self.start()

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def endpoint(self, scheme="http"):
        return f"{scheme}://127.0.0.1:{self.port}/"

    def errors(self):
        """What it wrote to standard error, the last part of it."""
        return pathlib.Path(self.log.name).read_text(errors="replace")[-4000:]

    def logged(self, event):
        """How often it has logged an event, since it was first started."""
        return pathlib.Path(self.log.name).read_text(errors="replace").count(event)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        if self.is_running():
            self.kill()
        self.log.close()


def _port(address):
    return int(address.rsplit(":", 1)[1].rstrip("/"))


def _read_lines(stream, lines):
    for line in stream:
        lines.put(line)
    lines.put(None)
