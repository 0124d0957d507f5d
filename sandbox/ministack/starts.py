"""An execution begins at once.

MiniStack waits 0.15 s before the first state of each execution. AWS has no such wait, and what `make latency` measures is
not much longer.
"""

import time

from patches import patch

BEGINNING = 0.15


class Clock:
    """The module time, except that no sleep has the length of the one at the beginning of an execution."""

    def __getattr__(self, name):
        return getattr(time, name)

    def sleep(self, seconds):
        if seconds != BEGINNING:
            time.sleep(seconds)


patch("ministack.services.stepfunctions.time")(Clock())
