"""The time limit of JSONata expressions.

MiniStack aborts an expression after one second of wall-clock time, to stop loops. With hundreds of executions on a
small machine any expression may take that long. Step Functions has enough machines.
"""

from patches import patch

MILLISECONDS = 30_000

@patch("jsonata.timebox.Timebox.__init__")
def patient(original, self, expr, timeout=None, max_depth=None):
    original(self, expr, MILLISECONDS if timeout else timeout, max_depth)
