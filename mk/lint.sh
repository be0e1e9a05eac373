#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# lint.sh - style checks: pages; line, function and file lengths; includes
# between directories; names of proxies in ext/http; a test file for each module;
# words and phrases; the compilation database; scripts, if shellcheck is
# installed.
set -u
bad=0

fail()
{
	echo "$1"
	bad=1
}

sources=$(find lib include ext tools tests fuzz bench examples bindings \
    -name '*.[ch]')

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
			/[ \t]$/ { print file ":" NR ": trailing blanks"; bad = 1 }
			END { exit bad }' || bad=1
	done
	for file in lib/*/*.[ch]; do
		lines=$(wc -l < "$file")
		[ "$lines" -le 650 ] || fail "$file: $lines lines"
	done
}

# The compiler keeps a directory of lib to its own headers and those of the
# directories before it: it sees no others. That needs names without a path, and
# unique.
walls()
{
	# shellcheck disable=SC2086
	grep -nE '^#include "[^"]*/' $sources &&
	    fail 'an include contains a path; use the name alone'
	find lib -name '*.h' | sed 's|.*/||' | sort | uniq -d |
	while read -r name; do
		echo "lib: $name exists in two directories"
	done | grep . && bad=1
	[ -z "$(find lib -maxdepth 1 -name '*.[ch]')" ] ||
	    fail 'lib: a file is not in a directory'
}

# What each proxy needs names none of them.
neutral()
{
	grep -rniE 'nginx|ngx_' ext/http && fail 'ext/http names a proxy'
}

# tsort reports headers that include each other.
circles()
{
	for file in lib/*/*.h; do
		grep -oE '^#include "[^"]+"' "$file" | cut -d '"' -f 2 |
		    sed "s|^|${file##*/} |"
	done | tsort > /dev/null || bad=1
}

# Each module of the library has a suite.
suites()
{
	for file in lib/*/*.c; do
		name=${file##*/}
		[ -e "tests/lib/test_$name" ] || fail "$file: no tests/lib/test_$name"
	done
}

# A thing is "it" or "which": of 10,000 words of comment at most 5 speak of
# things as if they were people.
words()
{
	# shellcheck disable=SC2086
	cat $sources | perl -0777 -ne '
		while (m{/\*(.*?)\*/}gs) {
			$comment = $1;
			$words += () = $comment =~ /[A-Za-z]+/g;
			$people += () = $comment =~ /\b(?:who|whom|whose|
			    whoever|nobody|somebody|anybody|everybody|he|him|
			    his)\b/gix;
		}
		exit 0 if $people * 10000 <= 5 * $words;
		print "comments: $people of $words words are for people\n";
		exit 1' || bad=1
}

# Turns of phrase that make a text hard to read.
phrases()
{
	python3 mk/words.py || bad=1
}

# The compilation database is JSON with each file of lib/ and tools/, and its
# commands compile.
database()
{
	if ! "${MAKE:-make}" -s compile_commands.json || ! perl -MJSON::PP -e '
		local $/;
		my %command = map { $_->{file} => $_->{command} }
		    @{decode_json(<STDIN>)};
		-e or die "$_ does not exist\n" for keys %command;
		$command{$_} or die "$_ has no command\n"
		    for glob("lib/*/*.c tools/*.c tools/*/*.c");
		exec "$command{q{lib/api/options.c}} -o /dev/null";
		' < compile_commands.json; then
		fail 'compile_commands.json is wrong'
	fi
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
neutral
circles
suites
words
phrases
database
scripts
exit $bad
