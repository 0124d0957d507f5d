"""Restarts MiniStack with its state: POST /_sandbox/keep, then SIGTERM, then the same command.

MiniStack's own persistence covers most services. This module saves what it leaves out, and what the other modules
hold. Nothing changes while the state is written, and pending requests get no answer. Running executions end with the
process. Step Functions reports their end like any other.
"""

import asyncio
import os
import signal
import threading
import time
import urllib.request

import access
import images
import integrations
import updates

from ministack import app
from ministack.core import persistence
from ministack.core.responses import set_request_account_id, set_request_region
from ministack.services import stepfunctions, sts

OURS = "sandbox"
HEALTH = "http://127.0.0.1:" + os.environ["GATEWAY_PORT"] + "/_ministack/health"


def restore():
    """Restores the saved state, if there is one."""
    if not os.path.isdir(persistence.STATE_DIR):
        return
    persistence.PERSIST_STATE = app.PERSIST_STATE = True  # MiniStack's own start reads the services' part
    ours = persistence.load_state(OURS)
    sts._sessions.update(ours["sessions"])
    access.role_ids.update(ours["roleIds"])
    updates.restore(ours["updates"])
    images.latest.update(ours["latest"])
    threading.Thread(target=_tell, daemon=True).start()


def keep(_query):
    """From now on the process saves its state on SIGTERM."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, _end)
    return {}


def _end():
    """Runs on the loop that serves requests, so no request is served during the save or after it."""
    integrations.quiet.acquire()  # never released: the state machine's threads do not run on that loop
    persistence.PERSIST_STATE = True
    persistence.save_state(OURS, {"sessions": sts._sessions, "roleIds": access.role_ids, "updates": updates.kept(),
                                  "latest": images.latest})
    persistence.save_all({name: lambda state=state: _whole(state) for name, state in app._build_persistence_save_dict().items()})
    os._exit(0)


def _whole(state):
    """A service's state. Other threads still write logs and histories, so the copy may fail and is then retried."""
    while True:
        try:
            return state()
        except RuntimeError:  # changed size during iteration
            time.sleep(0.01)


def _tell():
    """Reports the failure of the executions that were running, as soon as the process serves requests."""
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
