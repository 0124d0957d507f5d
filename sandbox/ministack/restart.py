"""MiniStack is started again and has all it had: POST /_sandbox/keep, then SIGTERM, then the same command.

MiniStack's own persistence keeps most services; what it leaves out, and what the modules beside this one know, is kept here.
Nothing changes while it is written, and whoever has asked for something meanwhile gets no answer. Executions that were running
die with the process; Step Functions tells of their end as of any other.
"""

import asyncio
import os
import signal
import threading
import time
import urllib.request

import access
import integrations
import updates

from ministack import app
from ministack.core import persistence
from ministack.core.responses import set_request_account_id, set_request_region
from ministack.services import stepfunctions, sts

OURS = "sandbox"
HEALTH = "http://127.0.0.1:" + os.environ["GATEWAY_PORT"] + "/_ministack/health"


def install():
    """Go on with what was kept, if something was."""
    if not os.path.isdir(persistence.STATE_DIR):
        return
    persistence.PERSIST_STATE = app.PERSIST_STATE = True  # MiniStack's own start reads the services' part
    ours = persistence.load_state(OURS)
    sts._sessions.update(ours["sessions"])
    access.role_ids.update(ours["roleIds"])
    updates.restore(ours["updates"])
    threading.Thread(target=_tell, daemon=True).start()


def keep(_query):
    """From now on the process writes all it has when it is asked to end."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, _end)
    return {}


def _end():
    """Runs on the loop that serves requests, so none is served meanwhile, nor ever after."""
    integrations.quiet.acquire()  # for ever: the state machine's threads are no requests
    persistence.PERSIST_STATE = True
    persistence.save_state(OURS, {"sessions": sts._sessions, "roleIds": access.role_ids, "updates": updates.kept()})
    persistence.save_all({name: lambda state=state: _whole(state) for name, state in app._build_persistence_save_dict().items()})
    os._exit(0)


def _whole(state):
    """A service's state. Threads go on writing logs and histories, which the copy does not always bear."""
    while True:
        try:
            return state()
        except RuntimeError:  # changed size during iteration
            time.sleep(0.01)


def _tell():
    """Say of the executions that were running that they have failed, once somebody can hear it."""
    while True:
        try:
            with urllib.request.urlopen(HEALTH, timeout=5):
                break
        except OSError:
            time.sleep(0.05)
    set_request_account_id("")
    set_request_region(None)
    for execution in stepfunctions._executions.all_values():
        if execution.get("error") == "States.ServiceRestart":
            stepfunctions._emit_execution_status_event(execution)
