#!/bin/sh
# Pins the dependencies of pyproject.toml in requirements/, for every platform and Python from 3.11 on; needs uv.
set -eu
command -v uv >/dev/null || {
    echo "Cannot pin: uv is missing. Install it, for example with: pip install -r requirements/uv.txt" >&2
    exit 1
}
unset PIP_FIND_LINKS UV_FIND_LINKS
echo uv | uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate --upgrade - \
    --output-file requirements/uv.txt
compile() {
    uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate --upgrade pyproject.toml "$@"
}
compile --output-file requirements/runtime.txt
compile --constraint requirements/runtime.txt --all-extras --output-file requirements/dev.txt
