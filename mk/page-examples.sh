#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# page-examples.sh build - compiles and runs the programs in the EXAMPLES of the
# pages. They must compile without warnings and exit with 0. Silent on success.
#
# A display that begins with #include or #define is a program. Others are
# fragments or output and contain neither. Each page of section 3 has a program.
set -u

build=$1
scratch=$build/contract/page-examples
warnings='-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow
    -Wcast-qual -Wstrict-prototypes -Wvla -Werror'
rm -rf "$scratch"
mkdir -p "$scratch"
root=$PWD
case $build in /*) ;; *) build=$root/$build ;; esac

# Writes each display of a page's EXAMPLES to a file: page-1, page-2 ...
displays()
{
	awk -v to="$scratch/${1##*/}-" '
		/^\.Sh/ { examples = ($2 == "EXAMPLES") }
		/^\.Bd -literal/ && examples { on = 1; file = to (++n); next }
		/^\.Ed/ { on = 0 }
		on { gsub(/\\\(dq/, "\""); gsub(/\\-/, "-"); gsub(/\\e/, "\\")
		    print > file }' "$1"
}

# shellcheck disable=SC2086
try()
{
	name=${1##*/}
	mv "$1" "$1.c"
	${CC:-cc} -std=c11 $warnings -O1 -Iinclude -pthread -o "$1" "$1.c" \
	    "$build/libkvroute-http.a" "$build/libkvroute.a" > "$1.out" 2>&1 || {
		echo "$name: does not compile"
		cat "$1.out"
		return
	}
	(cd "$scratch" && "./$name" > "$name.out" 2>&1 < /dev/null) || {
		echo "$name: exit $?"
		cat "$1.out"
	}
}

for page in man/*.[37]; do
	displays "$page"
done
for display in "$scratch"/*-[0-9]*; do
	if head -n 1 "$display" | grep -qE '^#(include|define) '; then
		try "$display"
	elif grep -qE '^#|\<main\>' "$display"; then
		echo "${display##*/}: neither a whole program nor a fragment"
	fi
done
for page in man/*.3; do
	ls "$scratch/${page##*/}"-*.c > /dev/null 2>&1 ||
	    echo "$page has no whole program in EXAMPLES"
done
