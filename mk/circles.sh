#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# circles.sh object... - finds files, and folders, that use each other's symbols
# in a circle. Prints each circle with the symbols that close it, and fails.
#
# An object is named like its source: build/obj/lib/base/error.o is
# lib/base/error.c. A symbol that several files define binds to none of them.
set -u
export LC_ALL=C
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Lines "user definer symbol", of files.
edges()
{
	nm -A -P -g "$@" | awk '
		{
			sub(/:$/, "", $1)
			sub(/^.*\/obj\//, "", $1)
			sub(/o$/, "c", $1)
		}
		$3 == "U" { user[++n] = $1; wanted[n] = $2; next }
		defined[$2]++ > 0 { definer[$2] = ""; next }
		{ definer[$2] = $1 }
		END {
			for (i = 1; i <= n; i++) {
				file = definer[wanted[i]]
				if (file != "" && file != user[i])
					print user[i], file, wanted[i]
			}
		}' | sort
}

# The same of folders.
folders()
{
	awk '{ sub(/\/[^\/]*$/, "", $1); sub(/\/[^\/]*$/, "", $2) }
	    $1 != $2' | sort -u
}

# search NAME < edges - tsort complains of each circle, and names its members.
search()
{
	tee "$scratch/edges" | awk '{ print $1, $2 }' | sort -u |
	    tsort > /dev/null 2> "$scratch/circles" && return
	awk -v name="$1" '
		function show(    i, j)
		{
			printf "circle of %d %s:\n", n, name
			for (i = 1; i <= n; i++)
				for (j = 1; j <= n; j++)
					if ((member[i], member[j]) in symbols)
						print "  " member[i] " uses " \
						    member[j] ":" symbols[ \
						    member[i], member[j]]
		}
		FILENAME == ARGV[1] {
			symbols[$1, $2] = symbols[$1, $2] " " $3
			next
		}
		/contains a loop/ { if (n > 0) show(); n = 0; next }
		{ member[++n] = $2 }
		END { show() }' "$scratch/edges" "$scratch/circles"
	return 1
}

bad=0
edges "$@" > "$scratch/all"
[ -s "$scratch/all" ] || { echo 'circles.sh: no object uses another'; exit 1; }
search files < "$scratch/all" || bad=1
folders < "$scratch/all" > "$scratch/between"
search folders < "$scratch/between" || bad=1
exit $bad
