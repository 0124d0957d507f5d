"""The time limit of JSONata expressions.

MiniStack aborts an expression after one second of wall-clock time, to stop loops. With hundreds of executions on a
small machine any expression may take that long. Step Functions has enough machines.
"""

from jsonata import timebox

MILLISECONDS = 30_000

_init = timebox.Timebox.__init__


def install():
    timebox.Timebox.__init__ = patient


def patient(self, expr, timeout=None, max_depth=None):
    _init(self, expr, MILLISECONDS if timeout else timeout, max_depth)
