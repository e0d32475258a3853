#!/bin/bash
# Takes the options that RIXL's own script takes, and needs the variable that it needs.
set -euo pipefail
declare -A given
while [ $# -gt 0 ]; do given[$1]=$2; shift 2; done
test -d "$_ucx_install_dir" && test -d "${given[--rocm-dir]}" && test -d "${given[--ucx-plugins-dir]}"
plugin=${given[--nixl-plugins-dir]}/libplugin_UCX.so
if [ -e "$plugin" ]; then cp "$plugin" rixl/; fi
uv build --wheel --python "${given[--python-version]}" --out-dir "${given[--output-dir]}"
test -n "${given[--platform]}"
