#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# pages.sh - runs mandoc's strictest lint on all pages; silent if they are
# clean. mandoc checks cross references against a tree of installed pages, so
# these pages are copied to one. References to other projects' pages may be
# missing.
set -u

command -v mandoc > /dev/null || { echo "mandoc is missing"; exit 1; }
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
for page in man/*.[1378]; do
	section=$tree/man${page##*.}
	mkdir -p "$section"
	cp "$page" "$section"
done
# No is a macro, which takes the word from the text.
! grep -n '^\.It No ' man/*.[1378] || exit 1
# On stderr it only complains that the tree has no database.
! MANPATH=$tree: mandoc -T lint -W style man/*.[1378] 2> /dev/null |
    grep -v 'STYLE: referenced manual not found: Xr [^k]'
