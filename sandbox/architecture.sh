#!/bin/sh
# Prints Lambda's name for the architecture of this machine.
case $(uname -m) in
aarch64 | arm64) echo arm64 ;;
*) echo x86_64 ;;
esac
