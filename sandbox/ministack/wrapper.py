"""MiniStack with the features that it lacks and the sandbox needs, patched in before it starts.

Each module in this folder fixes one thing and says why. All of them run inside MiniStack's process, so there is one
state and one place that authorizes calls.
"""

import access
import alarms
import authorization
import boundaries
import callers_rights
import conditions
import decisions
import ec2_gate
import entry_replicas
import expressions
import images
import integrations
import oidc
import parameter_replicas
import parameters
import physical_names
import queues
import restart
import role_replicas
import sandbox_api
import starts
import tags
import unsupported
import updates

from ministack.app import main

if __name__ == "__main__":
    for module in (alarms, authorization, boundaries, conditions, decisions, role_replicas, ec2_gate, expressions, parameters,
                   parameter_replicas, physical_names, queues, images, updates, access, entry_replicas, callers_rights, tags, oidc,
                   integrations, starts, restart, unsupported, sandbox_api):
        module.install()
    main()
