#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# lint.sh - style that a machine can see: pages; lines of at most 80 columns;
# functions of at most 80 lines; scripts, where shellcheck is installed.
set -u
bad=0

fail()
{
	echo "$1"
	bad=1
}

sh scripts/pages.sh || bad=1

sources=$(find lib include tests fuzz bench examples -name '*.[ch]')
for file in $sources; do
	expand "$file" | awk -v file="$file" '
		length > 80 { print file ":" NR ": " length " columns"; bad = 1 }
		/^{/ { start = NR }
		/^}/ && start {
			if (NR - start > 80) {
				print file ":" start ": " NR - start " lines"
				bad = 1
			}
			start = 0
		}
		/[ \t]$/ { print file ":" NR ": blanks at the end"; bad = 1 }
		END { exit bad }' || bad=1
done

scripts=$(find scripts tests .ci -name '*.sh' -o -path .ci/run)
if command -v shellcheck > /dev/null 2>&1; then
	# shellcheck disable=SC2086
	shellcheck $scripts || bad=1
fi

for file in lib/*.c; do
	lines=$(wc -l < "$file")
	[ "$lines" -le 650 ] || fail "$file: $lines lines"
done
exit $bad
