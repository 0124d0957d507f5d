"""MiniStack with the features that it lacks and the sandbox needs, patched in before it starts.

Each module in this folder fixes one thing and says why (patches.py). All of them run inside MiniStack's process, so
there is one state and one place that authorizes calls. `wrapper.py --patches` prints the table of docs/sandbox.md.
"""

import sys

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
import parameter_filters
import parameter_replicas
import parameters
import patches
import physical_names
import queues
import restart
import role_replicas
import sandbox_api
import starts
import tags
import unsupported
import updates
import versions

from ministack.app import main

# Where two modules replace the same function, the later one calls the earlier one.
MODULES = [alarms, authorization, boundaries, conditions, decisions, role_replicas, ec2_gate, expressions, parameters,
           parameter_filters, parameter_replicas, physical_names, queues, images, updates, access, entry_replicas, callers_rights,
           tags, oidc, integrations, starts, versions, unsupported, sandbox_api]

if __name__ == "__main__":
    if sys.argv[1:] == ["--patches"]:
        sys.exit(print(patches.table(MODULES)))
    patches.install(MODULES)
    restart.restore()
    main()
