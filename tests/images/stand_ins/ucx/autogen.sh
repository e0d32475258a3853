#!/bin/sh
# A stand-in for UCX's source: `ucx_info` tells the commit and the options, and two modules can be loaded.
set -e
test -x configure
