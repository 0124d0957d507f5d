"""Reports the AWS commands that the AWS CLI rejects.

Reads a JSON array of commands from the standard input, each with its arguments and the folder in which it is run.
Writes an array of error messages of the same length to the standard output. Nothing is sent: each request gets an
empty answer instead.
"""

import contextlib
import io
import json
import os
import sys
from types import SimpleNamespace

from awscli import clidriver

driver = clidriver.create_clidriver()
driver.session.register("before-call", lambda **_: (SimpleNamespace(status_code=200, headers={}), {}))


def complaint(folder, arguments):
    os.chdir(folder)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            code = driver.main(arguments)
        except SystemExit as end:
            code = end.code
    return said.getvalue().strip().split("\n\n")[-1] if code else ""


print(json.dumps([complaint(**command) for command in json.load(sys.stdin)]))
