"""`python -m disk`: the stories of a full disk, each on a disk of its own."""

import sys
import time

from disk import story, tight
from disk.volume import NoVolume, Volume

STORIES = ((story.Test, story.VOLUME_BYTES), (tight.Test, tight.VOLUME_BYTES))


def tell(make, volume_bytes):
    """Runs one story; answers its counts."""
    with Volume(volume_bytes) as volume:
        print(f"disk full on {volume.kind}, {volume_bytes // story.MIB} MiB", flush=True)
        test = make(volume)
        try:
            test.run()
        except Exception as error:
            test.check("the story goes to its end", False, f"{error!r}\n{test.server.errors()}")
        finally:
            if test.server.is_running():
                test.server.kill()
        return test.passed, test.failed


def main():
    begun = time.monotonic()
    passed = failed = 0
    try:
        for make, volume_bytes in STORIES:
            counts = tell(make, volume_bytes)
            passed, failed = passed + counts[0], failed + counts[1]
    except NoVolume as error:
        print(f"FAILED {error}\n{passed} passed, {failed + 1} failed")
        return 1
    print(f"in {time.monotonic() - begun:.0f} s")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
