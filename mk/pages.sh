#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# pages.sh - mandoc's strictest check of all pages; silent if they are clean.
# mandoc looks for the pages that others refer to in a tree of manuals, so it
# is shown one of these pages; other people's pages may be missing here.
set -u

command -v mandoc > /dev/null || { echo "mandoc is missing"; exit 1; }
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
for page in man/*.[137]; do
	section=$tree/man${page##*.}
	mkdir -p "$section"
	cp "$page" "$section"
done
# Its other output is that the tree has no database.
! MANPATH=$tree: mandoc -T lint -W style man/*.[137] 2> /dev/null |
    grep -v 'STYLE: referenced manual not found: Xr [^k]'
