#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# soak_long.sh build "names" - runs the scalable suites at full length, about 15
# minutes, and prints a table of what they verified.
set -u

build=$1
names=${2:-process stop churn depth}
table=$build/soak.table
tally=$build/tally

: > "$table"
: > "$tally"
# Timeouts are minutes in `make check` and hours here.
KVR_SOAK=$table CK_TIMEOUT_MULTIPLIER=100 "$build/check" -t "$tally" \
    "$(echo "$names" | tr ' ' ',')" || echo 0 1 0 >> "$tally"
echo
echo 'Verified by this soak:'
sed 's/^/  /' "$table"
echo
sh mk/tally.sh "$tally"
