#!/bin/sh
# run.sh VENV PROGRAM TEST...: tests of the server with the clients in VENV; 77 if there are none.
# TEST is a file for pytest, or load_test.py with its flags.
venv=$1
EXL3_PROGRAM=$2
export EXL3_PROGRAM
shift 2
if [ ! -x "$venv/bin/pytest" ]; then
    echo "skipped: there is no $venv with the clients; scripts/test.sh makes it"
    exit 77
fi
cd "$(dirname "$0")" || exit 1
case $1 in load_test.py) exec "$venv/bin/python" "$@" ;; esac
exec "$venv/bin/python" -m pytest -q -p no:cacheprovider "$@"
