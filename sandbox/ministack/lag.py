"""Decides how long a write takes until AWS shows it. No other module decides that.

AWS's services answer from replicas. The other modules report a write with begin(), and ask pending() or a Replica
whether it is visible yet. Each delay depends on the seed, the kind of lag, the resource, and how often that resource
has been written, so the same seed gives the same delays. The sandbox chooses seed and scale (LAG_SEED, LAG_SCALE)
and prints them. Scale 0 means no lag.

Only roles see the lag: those of the functions and Karpenter's. The account's root user, whose credentials the
scripts use for their checks, sees the true state. After a restart of MiniStack all earlier writes are visible.

    GET  /_sandbox/lag                             seed and scale, and the delays since the start: kind, resource, seconds, pending
    POST /_sandbox/lag?kind=…&seconds=…[&resource=…]  sets that lag from now on, independent of the scale
    POST /_sandbox/lag?kind=…[&resource=…]         restores the lag that the seed determines
    POST /_sandbox/lag/begin?kind=…&resource=…     reports a write outside MiniStack (the gateway's tags) and returns its seconds
    GET  /_sandbox/lag/delay?kind=…&resource=…     returns the seconds without a write (the admission webhook's annotations)
"""

import collections
import contextvars
import hashlib
import os
import re
import threading
import time
from urllib.parse import parse_qs

from ministack.core.router import extract_access_key_id
from ministack.services import sts

SEED = os.environ.get("SANDBOX_LAG_SEED", "0")
SCALE = float(os.environ.get("SANDBOX_LAG_SCALE", "0"))

# The kinds, with their maximum in seconds.
KINDS = {
    "eks-role": 12,  # a new role, until EKS accepts it as a principal
    "ec2-policies": 12,  # a role's policies, until EC2 evaluates them
    "iam": 5,  # a role and its policies, until IAM's reads show them
    "access-entry": 8,  # an access entry, until EKS shows it and the API server knows its principal
    "access-policy": 8,  # an association of an access policy, until the API server grants what it allows
    "deleted-entry": 8,  # a deleted access entry, until another one can be created
    "pod-identity": 12,  # a Pod Identity association, until pods get credentials at admission
    "annotation": 1,  # a service account's role annotation (IRSA), until pods get credentials at admission
    "queue": 1,  # a new queue, until calls find it
    "deleted-queue": 60,  # a deleted queue, until no call finds it
    "parameter": 1,  # a parameter, until reads show it
    "tags": 3,  # EC2 tags, until calls show them
}

_lagging = contextvars.ContextVar("sandbox_lagging", default=False)
_lock = threading.Lock()
_forced = {}  # (kind, resource or "") -> seconds
_begun = []  # every delay, as GET returns it
_count = collections.Counter()  # the number of writes, by kind and resource
_due = {}  # (kind, resource) -> when the latest write becomes visible


def meet(scope):
    """Called for each request. Its caller sees the lag if it is a role."""
    headers = {key.decode().lower(): value.decode() for key, value in scope["headers"]}
    query = parse_qs(scope["query_string"].decode())
    _lagging.set(extract_access_key_id(headers, query) in sts._sessions)


def lagging():
    return _lagging.get()


def begin(kind, resource):
    """Reports a write of the resource. Returns when it becomes visible everywhere, in time.time()."""
    with _lock:
        seconds = _seconds(kind, resource, _count[kind, resource])
        _count[kind, resource] += 1
        now = time.time()
        _begun.append({"kind": kind, "resource": resource, "seconds": round(seconds, 3), "due": now + seconds})
        _due[kind, resource] = now + seconds
        return now + seconds


def pending(kind, resource):
    """Whether the latest write of the resource is not visible yet to the caller; False for callers without lag."""
    return lagging() and unseen(kind, resource)


def unseen(kind, resource):
    """Whether the latest write of the resource is not visible everywhere yet, independent of the caller."""
    return time.time() < _due.get((kind, resource), 0)


def _seconds(kind, resource, count):
    for key in ((kind, resource), (kind, "")):
        if key in _forced:
            return _forced[key]
    stable = re.sub(r"-[0-9A-F]{13}$", "", resource)  # CloudFormation's names have a suffix that differs between sandboxes
    digest = hashlib.sha256(f"{SEED}/{kind}/{stable}/{count}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64 * KINDS[kind] * SCALE


class Replica:
    """What a replica shows of records that are stored elsewhere: their state before the first write that is not
    visible yet.
    """

    def __init__(self, kind):
        self._kind, self._past = kind, {}

    def written(self, name, before):
        """before is the record before the write, None if there was none."""
        self._past.setdefault(name, []).append((begin(self._kind, name), before))

    def shows(self, name, now):
        """now is the current record."""
        waiting = [one for one in self._past.get(name, ()) if time.time() < one[0]]
        if not waiting:
            self._past.pop(name, None)
            return now
        self._past[name] = waiting
        return waiting[0][1]

    def names(self):
        return list(self._past)


def show(_query):
    now = time.time()
    delays = [{**{key: one[key] for key in ("kind", "resource", "seconds")}, "pending": now < one["due"]} for one in list(_begun)]
    return {"seed": SEED, "scale": SCALE, "delays": delays}


def force(query):
    key = query["kind"], query.get("resource", "")
    if key[0] not in KINDS:
        raise ValueError(f"lag {key[0]}: one of {sorted(KINDS)}")
    if "seconds" in query:
        _forced[key] = float(query["seconds"])
    else:
        _forced.pop(key, None)
    return {}


def delay(query):
    return {"seconds": _seconds(query["kind"], query["resource"], 0)}


def decide(query):
    return {"seconds": begin(query["kind"], query["resource"]) - time.time()}
