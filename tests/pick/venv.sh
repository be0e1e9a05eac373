#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# venv.sh FOLDER REQUIREMENTS - a virtual environment with pinned packages, made
# once. Where it cannot be made there is none, and what needs it is skipped.
set -u
folder=$1
wanted=$2

cmp -s "$wanted" "$folder/requirements.txt" && exit 0
rm -rf "$folder"
if python3 -m venv "$folder" > /dev/null 2>&1 &&
    timeout --foreground 600 "$folder/bin/python" -m pip install -q \
    --disable-pip-version-check -r "$wanted" > "$folder/pip.log" 2>&1; then
	cp "$wanted" "$folder/requirements.txt"
else
	rm -rf "$folder"
fi
