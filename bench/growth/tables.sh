#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tables.sh TABLES - prints, as Markdown, what bench/RESULTS.md shows of the
# tables that kvroute-bench --growth printed into the folder TABLES, beside the
# pictures that plot.sh drew into bench/growth/plots.
set -eu

tables=$1

# table CURVE "SIZES or all" COLUMN... - a line for each size wanted. The file
# may hold several tables: then their names come first.
table()
{
	file=$tables/$1.tsv
	[ -f "$file" ] || return 0
	sizes=$2
	curve=$1
	shift 2
	printf '\n    kvroute-bench --growth %s\n\n' "$curve"
	printf '![%s](growth/plots/%s.svg)\n\n' "$curve" "$curve"
	awk -F '\t' -v sizes=" $sizes " -v wanted="$*" -v curve="$curve" '
	BEGIN { n = split(wanted, want, " ") }
	function heading(   i, head, rule) {
		head = several ? "| |" : "|"
		rule = several ? "|---|" : "|"
		for (i = 1; i <= n; i++) {
			head = head " " want[i] " |"
			rule = rule "---|"
		}
		gsub(/_/, " ", head)
		print head
		print rule
	}
	function line(   i, text) {
		text = several ? "| " name " |" : "|"
		for (i = 1; i <= n; i++)
			text = text " " $(at[want[i]]) " |"
		print text
	}
	/^#.*: / { next }
	/^# / {
		name = substr($0, 3)
		several = name != curve
		gsub(curve "_", "", name)
		gsub(/_/, ", ", name)
		columns = 1
		next
	}
	NF == 0 { next }
	columns {
		for (i = 1; i <= NF; i++)
			at[$i] = i
		if (!begun++)
			heading()
		columns = 0
		next
	}
	sizes == " all " || index(sizes, " " $1 " ") { line() }
	' "$file"
	# Remarks, such as ratios.
	sed -n 's/^# \([a-z].*\)$/\1/p' "$file" | awk -v curve="$curve" '
	!/: / { name = $0; sub(curve "_", "", name); next }
	{ gsub(/_/, " "); print (begun++ ? "" : "\n") "- " name ", " $0 }'
}

table blocks all size hash match match_p99 new new_p99 again again_p99 \
    expire reset bytes
table workers all size match new again expire reset choose
table prompt all tokens hash match part miss new reuse again grow split \
    expire bytes
table shared all holders match again extend join split match_split expire bytes
table chat '1 5 50 200 500' turn blocks hash match record \
    choose decision nodes
table fan all size hash match match_p99 new new_p99 again again_p99 expire \
    bytes
table stairs '1000 8000' size match match_p99 new new_p99 new_max \
    again again_p99 nodes merges bytes
table parted all parted first first_again part route again later later_again \
    entries entries_later nodes_later
