"""The time limit of JSONata expressions, and their variables in TestState.

MiniStack aborts an expression after one second of wall-clock time, to stop loops. With hundreds of executions on a
small machine any expression may take that long. Step Functions has enough machines.
"""

import json

from patches import patch

MILLISECONDS = 30_000


@patch("jsonata.timebox.Timebox.__init__")
def patient(original, self, expr, timeout=None, max_depth=None):
    original(self, expr, MILLISECONDS if timeout else timeout, max_depth)


@patch("ministack.services.stepfunctions._test_state")
def test_state(original, data):
    """TestState with variables. MiniStack takes them in the context alone, and assigns none after a Task whose call is mocked."""
    context = json.loads(data.get("context") or "{}")
    return original({**data, "context": json.dumps({**context, "variables": json.loads(data.get("variables") or "{}")})})
