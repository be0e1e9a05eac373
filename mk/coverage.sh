#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# coverage.sh build - what of lib/ the suites reached that ran in `build`, which
# was compiled with --coverage: the files with lines that were not reached, and
# the sums. Fails below the thresholds.
set -u

LINES_MIN=99.4
BRANCHES_MIN=97

report=$1/coverage.txt
gcovr --root . --filter 'lib/' --sort-uncovered --txt "$report" \
    --print-summary --fail-under-line "$LINES_MIN" \
    --fail-under-branch "$BRANCHES_MIN" "$1/obj" > "$1/coverage.sum" \
    2> "$1/coverage.log"
status=$?
awk '/^lib\// && $4 != "100%"' "$report"
cat "$1/coverage.sum"
if [ "$status" -ne 0 ]; then
	tail -n 5 "$1/coverage.log"
	echo "asked: $LINES_MIN % of the lines, $BRANCHES_MIN % of the branches"
fi
exit "$status"
