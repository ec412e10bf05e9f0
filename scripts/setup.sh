#!/bin/sh
# From a checkout to a virtual environment in which `ccmtl` runs: setup.sh runtime|dev.
# Returns at once while the environment fits pyproject.toml and requirements/; builds it anew when it does not.
# Environment: VENV (folder, default .venv), PYTHON (interpreter, default: the first that is new enough).
set -eu
level=$1
venv=${VENV:-.venv}
mark=$venv/.made-by-ccmtl
log=$venv/install.log

fail() {
    printf 'Cannot set up: %s\n' "$1" >&2
    shift
    for line in "$@"; do printf '  %s\n' "$line" >&2; done
    exit 1
}

new_enough() {
    "$1" -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if new_enough "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    found=$("${PYTHON:-python3}" --version 2>&1) || found="no ${PYTHON:-python3}"
    fail "Python 3.11 or newer is needed; found: $found." \
        "Debian 12, Ubuntu 24.04:  sudo apt install python3 python3-venv" \
        "Fedora:                   sudo dnf install python3.12" \
        "macOS:                    brew install python@3.13" \
        "If it is installed under another name:  make PYTHON=/path/to/python3.12 ..."
}

python=$(find_python) || exit 1
# A virtual environment holds absolute paths: the folder belongs to what it must fit.
fits="$(cat pyproject.toml requirements/*.txt | cksum) $("$python" --version) $PWD"
disk="A full disk?              about 1 GB is needed; here: $(df -Pk . | awk 'NR == 2 {printf "%d MB free", $4 / 1024}')"
installed=$(cat "$mark" 2>/dev/null || :)
frozen=$(echo "$venv"/lib/python*/site-packages/ccmtl_core)
[ ! -e "$frozen" ] || installed="a copy of the packages, which does not follow the checkout"
case $installed in
"$fits dev") exit 0 ;;
"$fits runtime") [ "$level" = runtime ] && exit 0 ;;
*)
    if [ -e "$venv" ] && [ ! -e "$mark" ]; then
        fail "the folder $venv exists and was not made by this Makefile." \
            "Remove it, or choose another:  make VENV=.venv-ccmtl ..."
    fi
    "$python" -c 'import ensurepip, venv' 2>/dev/null || fail "$python has no venv module." \
        "Debian, Ubuntu:  sudo apt install python3-venv" \
        "Others:          install a Python that is not stripped of venv and ensurepip"
    if ! { [ -w . ] && rm -rf "$venv" && mkdir -p "$venv" && touch "$mark"; }; then
        fail "no permission to write in $PWD." \
            "Clone into a folder that you own, and do not mix sudo and plain runs of make."
    fi
    echo "Creating the virtual environment $venv with $("$python" --version)"
    "$python" -m venv "$venv" >&2 || fail "the virtual environment could not be created; the reason is above." \
        "$disk"
    ;;
esac

: >"$mark"
explain() {
    tail -n 15 "$log" >&2
    fail "the packages of requirements/$level.txt could not be installed; the end of $log is above." \
        "No network, or a proxy?   pip needs its package index once; see pip's own settings: pip config list" \
        "No matching version?      Python 3.11 to 3.13 have prebuilt packages, on Linux and on macOS with ARM64: make PYTHON=python3.13 ..." \
        "A compiler is missing?    Linux with ARM64 has no prebuilt pyamg; Debian, Ubuntu:  sudo apt install g++ python3-dev" \
        "$disk"
}
pip() { "$venv/bin/python" -m pip --disable-pip-version-check "$@" >>"$log" 2>&1; }
values() { # of a setting of pip, the last that counts
    printf '%s\n' "$settings" | sed -n "s/^[a-z:]*\.$1='\(.*\)'\$/\1/p" | sed 's/\\n/ /g' | tail -n 1
}
with_uv() { # several times as fast as pip, whose settings it does not read
    set -- "$@" --python "$venv/bin/python" --index-strategy unsafe-best-match
    for index in $(values index-url); do set -- "$@" --default-index "$index"; done
    for index in $(values extra-index-url); do set -- "$@" --index "$index"; done
    for folder in $(values find-links); do set -- "$@" --find-links "$folder"; done
    for file in $(values constraint); do set -- "$@" --constraint "$file"; done
    "$venv/bin/uv" pip install "$@" >>"$log" 2>&1
}
install() {
    if [ -x "$venv/bin/uv" ] && with_uv $wheels "$@"; then return; fi
    pip install $pip_only $wheels "$@" || explain
}
case $(uname -sm) in
"Linux aarch64") wheels= pip_only=--prefer-binary ;; # pyamg has none there
*) wheels="--only-binary :all:" pip_only= ;;
esac
echo "Installing $(grep -c == "requirements/$level.txt") pinned packages (progress in $log)"
: >>"$log"
while sleep 5 >/dev/null 2>&1; do tail -n 1 "$log" | cut -c 1-100; done &
trap 'kill $! 2>/dev/null' EXIT
pip install --only-binary :all: -r requirements/uv.txt || :
settings=$("$venv/bin/python" -m pip config list 2>/dev/null) || settings=
install -r "requirements/$level.txt"
install --no-deps --editable .
printf '%s %s' "$fits" "$level" >"$mark"
