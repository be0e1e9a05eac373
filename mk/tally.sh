#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tally.sh file ... - adds up lines of "passed failed skipped" and prints the
# total. Fails if a test failed or if none passed.
exec awk '
	{ passed += $1; failed += $2; skipped += $3 }
	END {
		printf "%d passed, %d failed, %d skipped\n",
		    passed, failed, skipped
		exit failed > 0 || passed == 0
	}' "$@"
