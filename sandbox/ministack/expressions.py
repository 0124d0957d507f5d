"""The time of JSONata expressions.

MiniStack ends one after a second of the clock. That is to stop loops; where hundreds of executions share a small machine, any
expression may take it. Step Functions has the machine for them.
"""

from jsonata import timebox

MILLISECONDS = 30_000

_init = timebox.Timebox.__init__


def install():
    timebox.Timebox.__init__ = patient


def patient(self, expr, timeout=None, max_depth=None):
    _init(self, expr, MILLISECONDS if timeout else timeout, max_depth)
