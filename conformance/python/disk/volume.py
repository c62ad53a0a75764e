"""A small disk of its own: a loop-mounted ext4 file, or a bounded tmpfs where loop devices are not to be had."""

import os
import pathlib
import shutil
import subprocess
import tempfile


class NoVolume(Exception):
    """Neither kind can be made here."""


class Volume:
    """Mounted for as long as the block lasts."""

    def __init__(self, size_bytes):
        self.size_bytes = size_bytes

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="disk-"))
        self.mount = self.folder / "mount"
        self.mount.mkdir()
        refusals = []
        for kind, make in (("ext4 on a loop device", self._loop), ("tmpfs", self._tmpfs)):
            try:
                make()
            except (subprocess.CalledProcessError, FileNotFoundError) as error:
                text = getattr(error, "stderr", None) or str(error)
                refusals.append(f"{kind}: {text.strip()}")
                continue
            self.kind = kind
            return self
        shutil.rmtree(self.folder, ignore_errors=True)
        raise NoVolume("this test needs a small disk of its own, and none can be mounted here "
                       f"(user id {os.getuid()}); run it as root. " + "; ".join(refusals))

    def __exit__(self, *_):
        _run("umount", "--lazy", str(self.mount))
        shutil.rmtree(self.folder, ignore_errors=True)

    def free_bytes(self):
        state = os.statvfs(self.mount)
        return state.f_bavail * state.f_frsize

    def total_bytes(self):
        """What files can take in all."""
        state = os.statvfs(self.mount)
        return (state.f_blocks - state.f_bfree + state.f_bavail) * state.f_frsize

    def _loop(self):
        image = self.folder / "image"
        with open(image, "wb") as file:
            file.truncate(self.size_bytes)
        # No blocks set aside for root, who would not meet the end of the disk otherwise.
        _run("mkfs.ext4", "-q", "-F", "-m", "0", str(image))
        _run("mount", "-o", "loop", str(image), str(self.mount))

    def _tmpfs(self):
        _run("mount", "-t", "tmpfs", "-o", f"size={self.size_bytes}", "tmpfs", str(self.mount))


def _run(*command):
    environment = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
    subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
