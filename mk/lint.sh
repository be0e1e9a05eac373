#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# lint.sh - what a machine can see of the house: pages; columns; lengths of
# files and functions; walls between rooms; a test file for each module;
# scripts, where shellcheck is installed.
set -u
bad=0

fail()
{
	echo "$1"
	bad=1
}

sources=$(find lib include ext tools tests fuzz bench examples -name '*.[ch]')
rooms='base hash region index cache choice check api'

lengths()
{
	for file in $sources; do
		expand "$file" | awk -v file="$file" '
			length > 80 {
				print file ":" NR ": " length " columns"
				bad = 1
			}
			/^{/ { start = NR }
			/^}/ && start {
				if (NR - start > 80) {
					print file ":" start ": " \
					    NR - start " lines"
					bad = 1
				}
				start = 0
			}
			/[ \t]$/ { print file ":" NR ": blanks at the end"; bad = 1 }
			END { exit bad }' || bad=1
	done
	for file in lib/*/*.[ch]; do
		lines=$(wc -l < "$file")
		[ "$lines" -le 650 ] || fail "$file: $lines lines"
	done
}

# A room includes its own files and those of rooms before it. The compiler
# holds it to that; here is said which include is wrong, and that no name
# stands for two headers and no include climbs out of its folder.
walls()
{
	seen=
	for room in $rooms; do
		seen="$seen $room"
		# shellcheck disable=SC2013
		for header in $(grep -ohE '^#include "[^"]+"' "lib/$room"/*.[ch] |
		    cut -d '"' -f 2 | sort -u); do
			[ "$header" = kvroute.h ] && continue
			found=
			for before in $seen; do
				[ ! -e "lib/$before/$header" ] || found=yes
			done
			[ -n "$found" ] ||
			    fail "lib/$room includes $header, which is not before it"
		done
	done
	# shellcheck disable=SC2086
	grep -nE '^#include "[^"]*/' $sources | grep -v '^tests/foreign' &&
	    fail 'an include says a folder: -iquote of the room does'
	find lib -name '*.h' | sed 's|.*/||' | sort | uniq -d |
	while read -r name; do
		echo "lib: $name stands in two rooms"
	done | grep . && bad=1
	[ -z "$(find lib -maxdepth 1 -name '*.[ch]')" ] ||
	    fail 'lib: a file stands in no room'
}

# Headers that include each other would stand in one another's way: tsort
# says so.
circles()
{
	for file in lib/*/*.h; do
		grep -oE '^#include "[^"]+"' "$file" | cut -d '"' -f 2 |
		    sed "s|^|${file##*/} |"
	done | tsort > /dev/null || bad=1
}

# Each module of the library has its suite.
suites()
{
	for file in lib/*/*.c; do
		name=${file##*/}
		[ -e "tests/lib/test_$name" ] || fail "$file: no tests/lib/test_$name"
	done
}

scripts()
{
	command -v shellcheck > /dev/null 2>&1 || return
	# shellcheck disable=SC2046
	shellcheck $(find mk ext bench tests .ci -name '*.sh' -o -path .ci/run) ||
	    bad=1
}

sh mk/pages.sh || bad=1
lengths
walls
circles
suites
scripts
exit $bad
