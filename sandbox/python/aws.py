"""Runs the AWS CLI such that every command uses AWS_ENDPOINT_URL.

Version 1 of the CLI, which package registries have, sends sqs, emr, rds and health commands to hosts from a table of
its own unless --endpoint-url is given: aws/aws-cli issue 8737.

aws.py SOCKET runs the commands that aws_client.py sends, each in a fork. Starting the CLI takes half a
second of a processor, and scripts that wait for something run many commands.
"""

import functools
import gc
import json
import os
import random
import signal
import socket
import sys
import threading

import botocore.session
from awscli import clidriver
from awscli.customizations import overridesslcommonname

overridesslcommonname.SSL_COMMON_NAMES.clear()

# The services that scripts use most. Other services are loaded from their files in each command.
COMMON = ("cloudformation", "dynamodb", "ec2", "eks", "events", "iam", "lambda", "logs", "sqs", "ssm", "stepfunctions")


def serve(path):
    """Forks for each connection, for as long as the process lives."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)  # callers can connect and wait from now on
    botocore.session.create_loader = functools.cache(botocore.session.create_loader)  # what was read from files stays
    session = clidriver.create_clidriver().session
    session.get_available_services()
    session.get_paginator_model("ssm")
    session.get_waiter_model("eks")
    for service in COMMON:
        session.create_client(service, region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none")
    gc.freeze()  # a collection in a fork would copy all of it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os._exit(run(connection))
        connection.close()


def run(connection):
    """Runs the command of a connection with its standard streams, and answers with its exit code."""
    length, streams, _, _ = socket.recv_fds(connection, 4, 3)
    text = connection.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL)
    command = json.loads(text)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.environ.update(command["environment"])  # of the server's own variables, only those for the CLI's data folder stay in effect
    os.chdir(command["folder"])
    sys.argv = ["aws", *command["arguments"]]
    random.seed()
    threading.Thread(target=end_with, args=(connection,), daemon=True).start()
    try:
        code = clidriver.main() or 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    sys.stdout.flush()
    sys.stderr.flush()
    connection.send(bytes([code & 255]))
    return code & 255


def end_with(connection):
    """Ends the command when its caller has ended."""
    if not connection.recv(1):
        os._exit(130)


serve(sys.argv[1])
