#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# soak.sh build "names" - runs the suites that can go on for long at their full
# length, and ends with a table of what they verified. About 15 minutes.
set -u

build=$1
names=${2:-process stop churn depth}
table=$build/soak.table
tally=$build/tally

: > "$table"
: > "$tally"
# Each test has minutes in `make check`; here they are hours.
KVR_SOAK=$table CK_TIMEOUT_MULTIPLIER=100 "$build/check" -t "$tally" \
    "$(echo "$names" | tr ' ' ',')" || echo 0 1 0 >> "$tally"
echo
echo 'What this soak has verified:'
sed 's/^/  /' "$table"
echo
sh mk/tally.sh "$tally"
