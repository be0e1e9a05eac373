#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# contract.sh build tally - the project's promises about itself: header, map,
# pages and libraries name the same things; nothing else is exported; the
# library imports only memory, strings and threads; the README is correct; the
# installed files work. A check is a function that fails or prints.
set -u
export LC_ALL=C

build=$1
tally=$2
scratch=$build/contract
header=include/kvroute.h
others='include/kvroute_events.h include/kvroute_replica.h'
http=include/kvroute_http.h
mkdir -p "$scratch"

CC=${CC:-cc}
CXX=${CXX:-c++}
strict='-Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only'

# declared_by HEADER - functions, without those of headers that it includes. They
# follow the rule `experimental`, if it has one.
declared_by()
{
	sed -e '/^#include "kvroute.h"$/d' \
	    -e 's|^/\* -* experimental -* \*/$|experimental_rule;|' "$1" |
	    $CC -E -P -x c - |
	    grep -oE '\bkvr_[a-z0-9_]+ *\(|experimental_rule' | tr -d ' ('
}

differ()
{
	diff "$1" "$2" | sed -n -e "s|^<|only in ${1##*/}:|p" \
	    -e "s|^>|only in ${2##*/}:|p"
}

# Sorted names from each place; each list is made once, below.
header_names()
{
	for file in $header $others; do
		declared_by "$file"
	done | grep -v experimental_rule | sort
}

# Prints the names after the rule of the first header, and those of the others.
experimental_names()
{
	declared_by "$header" | sed '/experimental_rule/,$d' | sort |
	    comm -23 "$scratch/header" -
}

map_names()
{
	sed -n 's/^[[:space:]]*\(kvr_[a-z0-9_]*\);.*/\1/p' lib/kvroute.map | sort
}

shared_names()
{
	nm -D --defined-only "$build/libkvroute.so" |
	    awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort
}

static_names()
{
	nm -g --defined-only "$build/libkvroute.a" |
	    awk 'NF == 3 { print $3 }' | sort
}

# Functions that pages of section 3 describe. A page may also be named after a
# struct.
page_names()
{
	awk '/^\.Sh/ { on = ($2 == "NAME") }
	    on && $1 == ".Nm" && $2 ~ /^kvr_/ { print $2 }' man/*.3 | sort |
	while read -r name; do
		# shellcheck disable=SC2086
		! grep -q "^struct $name {" "$header" $others ||
		    grep -qx "$name" "$scratch/header" || continue
		echo "$name"
	done
}

# Functions that their synopses show.
synopsis_names()
{
	awk '/^\.Sh/ { on = ($2 == "SYNOPSIS") }
	    on && ($1 == ".Fn" || $1 == ".Fo") && $2 ~ /^kvr_/ { print $2 }' \
	    man/*.3 | sort
}

# Each with the header that is above it in its synopsis.
included_names()
{
	awk '/^\.Sh/ { on = ($2 == "SYNOPSIS") }
	    on && $1 == ".In" { header = $2 }
	    on && ($1 == ".Fn" || $1 == ".Fo") && $2 ~ /^kvr_/ {
		print $2, header }' \
	    man/*.3 | sort
}

# The same of libkvroute-http, in a list for each place: the header, its map, the
# two libraries, and the names and synopses of pages.
http_names()
{
	case $1 in
	header)
		$CC -E -P -x c "$http" | grep -oE '\bkvh_[a-z_]+ *\(' |
		    tr -d ' (' ;;
	map)
		sed -n 's/^[[:space:]]*\(kvh_[a-z_]*\);.*/\1/p' \
		    ext/http/pool/kvroute-http.map ;;
	shared)
		nm -D --defined-only "$build/libkvroute-http.so" |
		    awk '$2 != "A" { sub(/@@KVROUTE_HTTP_EXPERIMENTAL$/, "", \
		        $3); print $3 }' ;;
	static)
		nm -g --defined-only "$build/libkvroute-http.a" |
		    awk 'NF == 3 { print $3 }' ;;
	pages)
		awk '/^\.Sh/ { on = ($2 == "NAME") }
		    on && $1 == ".Nm" && $2 ~ /^kvh_/ { print $2 }' man/*.3 ;;
	synopses)
		awk '/^\.Sh/ { on = ($2 == "SYNOPSIS") }
		    on && $1 == ".In" { header = $2 }
		    on && header == "kvroute_http.h" && \
		        ($1 == ".Fn" || $1 == ".Fo") { print $2 }' man/*.3 ;;
	esac | sort
}

http_names_are_everywhere()
{
	http_names header > "$scratch/http-header"
	for place in map shared static pages synopses; do
		http_names $place > "$scratch/http-$place"
		differ "$scratch/http-header" "$scratch/http-$place"
	done
	[ "$(wc -l < "$scratch/http-header")" -ge 24 ] ||
	    echo "$http declares few functions"
}

# Beside the library: memory, strings, threads, a clock for reports, the file of
# a secret, and processes that may have died.
http_library_imports_little()
{
	nm -D --undefined-only "$build/libkvroute-http.so" |
	    awk '{ sub(/@.*/, "", $2); print $2 }' | grep -vxE "$(tr -d ' \n\t' <<-'END'
		(kvr_[a-z_]+|malloc|calloc|realloc|free|
		(__)?(mem(cpy|move|set|cmp|chr)|str(len|cmp|chr|ncasecmp)|
		v?snprintf)(_chk)?|qsort|bsearch|
		pthread_mutex_(init|lock|unlock|destroy)|
		reg(comp|exec|free)|clock_gettime|time|fopen|fread|fclose|stat|
		__xstat|kill|getpid|
		__errno_location|__cxa_finalize|__gmon_start__|_ITM_[A-Za-z]+|
		__stack_chk_fail)
	END
	)"
}

http_library_has_its_soname()
{
	major=$(sed -n 's/^#define KVR_VERSION_MAJOR //p' "$header")
	objdump -p "$build/libkvroute-http.so" |
	    grep -q "SONAME *libkvroute-http.so.$major\$" ||
	    echo "the soname is not libkvroute-http.so.$major"
}

# A binding needs pointers, lengths and integers: no struct is defined, nothing
# is inline, no function is an argument, and no integer has another size in
# another language.
http_header_is_for_any_language()
{
	$CC -E -P -x c "$http" | sed -n '/kvh_error/,$p' |
	    grep -nE '^struct [a-z_]+ \{|\bunion\b|\binline\b|\(\*|\bbool\b|\b(long|unsigned|short|float|double)\b'
}

http_constants_are_in_a_page()
{
	$CC -E -P "$http" | grep -oE '\bKVH_[A-Z0-9_]+\b' | sort -u |
	while read -r name; do
		grep -q "\\b$name\\b" man/*.[37] || echo "$name"
	done
}

map_has_what_the_header_declares()
{
	differ "$scratch/header" "$scratch/map"
	uniq -d "$scratch/map"
}

shared_library_exports_the_map()
{
	differ "$scratch/map" "$scratch/shared"
}

# Functions that may change in any release have a version node of their own.
experimental_names_have_their_node()
{
	[ -s "$scratch/experimental" ] || echo "$header: none is experimental"
	release=$(sed -n 's/^#define KVR_VERSION_\(MAJOR\|MINOR\) //p' \
	    "$header" | paste -s -d .)
	while read -r name; do
		node=KVROUTE_$release
		! grep -qx "$name" "$scratch/experimental" ||
		    node=KVROUTE_EXPERIMENTAL
		echo "$name@@$node"
	done < "$scratch/header" | sort > "$scratch/header-nodes"
	nm -D --defined-only "$build/libkvroute.so" |
	    awk '$2 != "A" { print $3 }' | sort > "$scratch/shared-nodes"
	differ "$scratch/header-nodes" "$scratch/shared-nodes"
}

static_library_exports_the_map()
{
	differ "$scratch/map" "$scratch/static"
}

# Memory, strings, randomness, mapping and locking files, processes and the
# futex, one clock outside the core, and symbols that compilers add.
shared_library_imports_little()
{
	nm -D --undefined-only "$build/libkvroute.so" |
	    awk '{ sub(/@.*/, "", $2); print $2 }' | grep -vxE "$(tr -d ' \n\t' <<-'END'
		(malloc|calloc|realloc|reallocarray|free|aligned_alloc|
		posix_memalign|mmap|munmap|
		(__)?(mem(cpy|move|set|cmp|chr)|str(len|nlen|cmp|lcpy))(_chk)?|
		getentropy|__errno_location|
		open|close|unlink|read|pread|readlink|stat|__xstat|fstat|__fxstat|
		fcntl|fcntl64|ftruncate|posix_fallocate|fchmod|fchown|geteuid|
		clock_gettime|nanosleep|syscall|kill|getpid|madvise|
		__cxa_finalize|__gmon_start__|_ITM_[A-Za-z]+|__stack_chk_fail)
	END
	)"
}

# The system is not the core's: no other file may use it, and each only a part.
only_some_files_touch_the_system()
{
	files='open|fcntl|mmap|unlink|geteuid'
	processes='kill|getpid|syscall'
	for object in "$build"/obj/lib/*/*.o; do
		case ${object##*/} in
		file.o|storage.o) denied=$processes ;;
		gate.o) denied="$processes|clock_gettime" ;;
		seat.o) denied='syscall|clock_gettime|unlink' ;;
		lock.o) denied="$files|kill|getpid" ;;
		*) denied="$files|$processes|clock_gettime" ;;
		esac
		nm -u "$object" | grep -wE "$denied" |
		    sed "s|^|${object##*/}:|"
	done
}

shared_library_has_its_soname()
{
	major=$(sed -n 's/^#define KVR_VERSION_MAJOR //p' "$header")
	objdump -p "$build/libkvroute.so" |
	    grep -q "SONAME *libkvroute.so.$major\$" ||
	    echo "the soname is not libkvroute.so.$major"
}

version_is_one()
{
	numbers=$(sed -n 's/^#define KVR_VERSION_\(M[AI][A-Z]*\|PATCH\) //p' \
	    "$header" | paste -s -d .)
	grep -q "^#define KVR_VERSION_STRING \"$numbers\"" "$header" ||
	    echo "$header: version text and numbers differ"
	grep -q "^## $numbers" CHANGELOG.md ||
	    echo "CHANGELOG.md has no section $numbers"
	grep -q "^KVROUTE_${numbers%.*} {" lib/kvroute.map ||
	    echo "lib/kvroute.map has no node KVROUTE_${numbers%.*}"
	[ -e "$build/libkvroute.so.$numbers" ] ||
	    echo "no libkvroute.so.$numbers was built"
}

header_compiles_alone_as_c()
{
	for file in $header $others $http; do
		# shellcheck disable=SC2086
		$CC -std=c11 $strict -Wstrict-prototypes -x c "$file"
	done
}

header_compiles_alone_as_cxx()
{
	for standard in c++11 c++17; do
		for file in $header $others $http; do
			# shellcheck disable=SC2086
			echo "#include \"${file##*/}\"" |
			    $CXX -std=$standard $strict -Iinclude -x c++ -
		done
	done
}

# In C++ these are one kind of name.
no_struct_has_the_name_of_a_function()
{
	# shellcheck disable=SC2086
	sed -n 's/^struct \(kvr_[a-z_]*\).*/\1/p' "$header" $others |
	    sort -u | comm -12 - "$scratch/header" |
	    sed 's/$/: struct and function/'
}

# Other languages cannot see macros.
header_has_only_version_macros()
{
	# shellcheck disable=SC2086
	grep -n '^#define' "$header" $others $http |
	    grep -v 'KVR_VERSION_\|KVROUTE_\([A-Z]*_\)\?H$'
}

every_name_has_one_page()
{
	differ "$scratch/map" "$scratch/pages"
	uniq -d "$scratch/pages" | sed 's/$/: in more than one page/'
}

every_name_has_a_synopsis()
{
	differ "$scratch/map" "$scratch/synopses"
}

synopses_name_the_header()
{
	for file in $header $others; do
		declared_by "$file" | sed -e '/experimental_rule/d' \
		    -e "s|\$| ${file##*/}|"
	done | sort > "$scratch/declared"
	included_names > "$scratch/included"
	differ "$scratch/declared" "$scratch/included"
}

every_error_is_in_a_page()
{
	# shellcheck disable=SC2086
	grep -ohE '\bKVR_E[A-Z]+\b' "$header" $others | sort -u | while read -r name; do
		grep -q "\\b$name\\b" man/*.3 || echo "$name"
	done
}

every_constant_is_in_a_page()
{
	for file in $header $others; do
		$CC -E -P "$file" | grep -oE '\bKVR_[A-Z0-9_]+\b'
	done | sort -u | while read -r name; do
		grep -q "\\b$name\\b" man/*.[37] || echo "$name"
	done
}

pages_are_clean()
{
	sh mk/pages.sh
}

examples_of_pages_work()
{
	sh mk/page-examples.sh "$build"
}

# Here by file; installed pages are also found by each of their names.
pages_refer_to_pages_that_exist()
{
	grep -ohE '^\.Xr kv[a-z_-]+ [0-9]' man/*.[1378] | sort -u |
	while read -r _ name section; do
		[ -e "man/$name.$section" ] ||
		    page_names | grep -qx "$name" || echo "$name($section)"
	done
}

# Every installed tool has its page.
tools_have_pages()
{
	for tool in "$build"/kvroute-*; do
		[ -x "$tool" ] || continue
		[ -e "man/${tool##*/}.1" ] || [ -e "man/${tool##*/}.8" ] ||
		    echo "no man/${tool##*/}.1"
	done
}

# The lines of C that it shows are lines of the example, in that order. The text
# before a blank line is a whole statement.
readme_shows_the_example()
{
	awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' README.md \
	    > "$scratch/readme-blanks.c"
	awk 'NF' "$scratch/readme-blanks.c" > "$scratch/readme.c"
	lines=$(wc -l < "$scratch/readme.c")
	[ "$lines" -ge 5 ] && [ "$lines" -le 12 ] ||
	    echo "README.md shows $lines lines of C"
	awk 'FILENAME == ARGV[1] { want[++n] = $0; next }
	    $0 == want[at + 1] { at++ }
	    END { if (at < n)
		print "not in examples/route.c, or not here: " want[at + 1] }
	' "$scratch/readme.c" examples/route.c
	awk '!NF && last !~ /;$/ { print "not the end of a statement: " last }
	    { last = $0 }
	    END { if (last !~ /;$/) print "not the end: " last }
	' "$scratch/readme-blanks.c"
	lines=$(grep -c . examples/route.c)
	[ "$lines" -le 38 ] || echo "examples/route.c has $lines lines"
}

example_routes()
{
	"$build/examples/route" > "$scratch/route.out" ||
	    echo "examples/route failed"
	# The same worker in both lines, whichever it is.
	paste -s -d ' ' "$scratch/route.out" | grep -qxE \
	    '512 tokens to (gpu-[01]), 0 of them cached there '\
'768 tokens to \1, 512 of them cached there' || cat "$scratch/route.out"
}

examples_run()
{
	for program in "$build"/examples/*; do
		case $program in *.d|*/\*) continue ;; esac
		"$program" > "$scratch/example.out" 2>&1 < /dev/null || {
			echo "${program##*/}: exit $?"
			cat "$scratch/example.out"
		}
	done
}

# A sentence, results, Try, Test, nginx, C, Envoy, Cost; the first two commands are
# whole for a machine that has nothing.
readme_opens_with_try()
{
	grep -oE '^\*\*(Try|Test|nginx|C|Envoy and Kubernetes|Cost)\*\*|^## ' \
	    README.md | head -n 7 | paste -s -d ' ' | grep -qxF \
	    '**Try** **Test** **nginx** **C** **Envoy and Kubernetes** **Cost** ## ' ||
	    echo "README.md does not begin with Try, Test, nginx, C, Envoy, Cost"
	grep -m 2 -E '^    ' README.md > "$scratch/first-commands"
	for target in demo check; do
		echo "    apt-get install -y git make &&" \
		    "git clone URL kvroute && cd kvroute && make $target"
	done | cmp -s - "$scratch/first-commands" ||
	    echo "README.md does not begin with one line each to try and test"
	line=$(grep -n '^## ' README.md | head -n 1 | cut -d : -f 1)
	[ "${line:-99}" -le 65 ] || echo "the first screen ends at line $line"
	lines=$(wc -l < README.md)
	[ "$lines" -le 150 ] || echo "README.md has $lines lines"
}

# Targets in code: between backticks, or in indented lines.
documents_name_targets_that_exist()
{
	"$MAKE" -s ALL=1 help > "$scratch/help"
	{
		grep -ohE '`make [a-z][a-z_.-]*' README.md CONTRIBUTING.md
		grep -ohE '^    make [a-z][a-z_.-]*' README.md CONTRIBUTING.md
	} | sed 's/.*make //' | sort -u > "$scratch/targets"
	[ -s "$scratch/targets" ] || echo "no targets are named"
	while read -r target; do
		grep -q "^  $target " "$scratch/help" ||
		    echo "make $target: not in make help"
	done < "$scratch/targets"
}

# Paths between backticks; those with capitals are patterns.
# shellcheck disable=SC2016
documents_name_files_that_exist()
{
	grep -ohE '`[a-z.]+/[a-z0-9_./-]*`' README.md CONTRIBUTING.md \
	    ARCHITECTURE.md | tr -d '`' | grep -vE '^(build|traces|\.\.)/' |
	    sort -u | while read -r path; do
		[ -e "$path" ] || echo "$path does not exist"
	done
	for folder in */; do
		case $folder in build/|"${build%%/*}"/) continue ;; esac
		grep -qF "| \`$folder\` |" README.md ||
		    echo "$folder has no line in README.md"
	done
}

# FILE:NAME in it is a function or a table that the file defines.
# shellcheck disable=SC2016
architecture_names_what_exists()
{
	grep -oE '`[a-z_/]+\.[ch]:[a-z_]+`' ARCHITECTURE.md | tr -d '`' |
	    sort -u > "$scratch/places"
	[ "$(wc -l < "$scratch/places")" -ge 30 ] ||
	    echo 'ARCHITECTURE.md names few places'
	while IFS=: read -r file name; do
		grep -qE "^$name\(|^[a-z].*[ *]$name(\[|\()|^\} $name\[" \
		    "$file" || echo "$file has no $name"
	done < "$scratch/places"
	lines=$(wc -l < ARCHITECTURE.md)
	[ "$lines" -le 130 ] || echo "ARCHITECTURE.md has $lines lines"
}

# Its figures of speed and hits were measured: the decimals of a table's row
# stand in one line of the results, others in any.
readme_has_measured_figures()
{
	grep -n '| @ |' README.md
	awk '/^```/ { code = !code } !code && !/^    /' README.md | awk '
		function stand(first, last,    i, j)
		{
			for (i = 1; i <= rows; i++) {
				for (j = first; j <= last &&
				    index(row[i], " " want[j] " "); j++)
					continue
				if (j > last)
					return 1
			}
			return 0
		}
		{ line = $0; gsub(/[^0-9.]+/, " ") }
		FILENAME != "-" { row[++rows] = " " $0 " "; next }
		{
			n = 0
			for (i = 1; i <= NF; i++)
				if ($i ~ /^[0-9]+\.[0-9]+$/)
					want[++n] = $i
			each = line !~ /^\|/
			good = 1
			for (i = 1; i <= n && good; i += each ? 1 : n)
				good = stand(i, each ? i : n)
			if (!good)
				print "not in bench/RESULTS.md: " line
			figures += n
		}
		END { if (figures == 0) print "README.md has no figures" }
	' bench/RESULTS.md -
}

help_lists_every_target()
{
	"$MAKE" -s ALL=1 help > "$scratch/help"
	sed -e ':a' -e '/\\$/{N;s/\\\n//;ba' -e '}' Makefile mk/*.mk |
	    sed -n 's/^\.PHONY: //p' | tr -s ' \t' '\n' |
	    grep -vx FORCE | while read -r target; do
		grep -q "^  $target " "$scratch/help" || echo "$target"
	done
}

# `make help` shows as much as a reader can take in: the rest is behind ALL=1.
help_is_short()
{
	"$MAKE" -s help > "$scratch/help"
	lines=$(grep -c '^  [a-z]' "$scratch/help")
	[ "$lines" -ge 20 ] && [ "$lines" -le 40 ] ||
	    echo "make help shows $lines targets"
}

# The text behind a colon in them is shown, too.
help_shows_descriptions_whole()
{
	sed -n 's/^[a-z][a-z_.-]*:.*#[#-] //p' Makefile mk/*.mk \
	    > "$scratch/described"
	"${MAKE:-make}" -s BUILD="$build" ALL=1 help > "$scratch/help"
	while read -r description; do
		grep -qF -- " $description" "$scratch/help" ||
		    echo "not in make help: $description"
	done < "$scratch/described"
	printf 'a: b ## see c: d\n' > "$scratch/colon.mk"
	"${MAKE:-make}" -s -f Makefile -f "$scratch/colon.mk" BUILD="$build" \
	    help > "$scratch/help"
	grep -q ' see c: d$' "$scratch/help" || echo 'it cuts at a colon'
}

# Each file has a function of its name, which calls another.
circles_are_found()
{
	folder=$scratch/circles/obj
	mkdir -p "$folder/a" "$folder/b"
	while read -r file calls; do
		echo "void $calls(void);" \
		    "void ${file#*/}(void) { $calls(); }" |
		    $CC -w -x c -c -o "$folder/$file.o" -
	done <<-'END'
		a/top base
		a/base base
		a/one two
		a/two one
		b/below below
		b/above top
		a/beside below
	END
	out=$scratch/circles.out
	sh mk/circles.sh "$folder"/a/b*.o "$folder"/a/top.o \
	    "$folder"/b/below.o ||
	    echo 'straight files failed'
	! sh mk/circles.sh "$folder"/a/*.o > "$out" ||
	    echo 'a circle of files passed'
	paste -s -d '|' "$out" | grep -qxF 'circle of 2 files:'\
'|  a/one.c uses a/two.c: two|  a/two.c uses a/one.c: one' || cat "$out"
	! sh mk/circles.sh "$folder"/a/b*.o "$folder"/a/top.o \
	    "$folder"/b/*.o > "$out" ||
	    echo 'a circle of folders passed'
	paste -s -d '|' "$out" | grep -qxF 'circle of 2 folders:'\
'|  a uses b: below|  b uses a: top' || cat "$out"
}

# In a sentence, and before anything is compiled. Only where CC has such a target.
narrow_targets_are_refused()
{
	$CC -m32 -E -x c /dev/null > /dev/null 2>&1 || return
	! "$MAKE" -s BUILD="$scratch/m32" CC="$CC -m32" \
	    "$scratch/m32/obj/lib/base/error.o" > "$scratch/m32.out" 2>&1 ||
	    echo "it is compiled for 32 bits"
	[ "$(grep -v '^make' "$scratch/m32.out")" = \
	    "kvroute needs a target of 64 bits, and that of $CC -m32 has 32" ] ||
	    cat "$scratch/m32.out"
}

# The last lines of a run: what failed, by which seed, and the command for it.
failures_are_repeated()
{
	fake=$scratch/failures
	rm -rf "$fake"
	mkdir "$fake"
	cat > "$fake/check" <<-'END'
		#!/bin/sh
		case $1 in
		-s) echo 7 ;;
		-l) printf 'good\nbad\ndead\n' ;;
		-t)
			case $3 in
			good) echo 2 0 0 > "$2" ;;
			bad)
				echo '    FAILED   x.c:1: 2 is not 3 (KVR_SEED=99)'
				echo '    FAILED   x.c:4: no seed'
				echo 1 2 0 > "$2"
				;;
			esac ;;
		esac
	END
	chmod +x "$fake/check"
	if KVR_TEST_PERCENT=10 AGAIN='make one' FUZZ_RUNS='' JOBS=2 \
	    sh mk/check.sh "$fake" 'good bad dead' '' > "$fake/log"; then
		echo 'it does not fail'
	fi
	sed -n '/^what failed:/,$p' "$fake/log" > "$fake/last"
	repeats=' KVR_TEST_PERCENT=10 make one T='
	for line in \
	    '    FAILED   bad: x.c:1: 2 is not 3 (KVR_SEED=99)' \
	    "             KVR_SEED=99$repeats"bad \
	    '    FAILED   bad: x.c:4: no seed' \
	    "             KVR_SEED=7$repeats"bad \
	    '    FAILED   dead: dead exited early' \
	    "             KVR_SEED=7$repeats"dead \
	    '3 passed, 3 failed, 0 skipped'; do
		grep -qxF -e "$line" "$fake/last" || echo "missing: $line"
	done
	[ "$(grep -c . "$fake/last")" -eq 8 ] || cat "$fake/last"
}

# A policy that only modelled engines have is not simply unknown.
replay_names_the_missing_option()
{
	for policy in lmetric dynamo:ttl=9; do
		"$build/kvroute-replay" --policy $policy /dev/null 2>&1 |
		    grep -qF "$policy: needs --simulate" || echo "$policy"
	done
	"$build/kvroute-replay" --policy bal /dev/null 2>&1 |
	    grep -q 'bal: not one of' || echo bal
}

every_file_names_its_licence()
{
	find Makefile mk lib include ext tools tests fuzz bench bindings \
	    examples man .ci .github .clang-format .editorconfig \
	    .gitignore -type f ! -path 'fuzz/corpus/*' ! -name '*.tsv' \
	    ! -name '*.md' ! -name py.typed ! -path 'bindings/python/build/*' \
	    ! -path '*.egg-info/*' -exec grep -L \
	    'SPDX-License-Identifier: BSD-2-Clause' {} +
}

# No text refers to the machine that it was written on.
no_file_names_a_machine()
{
	top=$(dirname "$PWD")
	[ "$top" = / ] || grep -rnF -e "$PWD/" -e "$top/shared" Makefile mk \
	    lib include ext tools tests fuzz/*.c bench examples man .ci ./*.md
}

installed_copy_works()
{
	sh mk/install-check.sh "$build" > "$scratch/install.log" 2>&1 ||
	    cat "$scratch/install.log"
}

run()
{
	total=$((total + 1))
	output=$("$1" 2>&1 < /dev/null)
	if [ -z "$output" ]; then
		echo 1 0 0 >> "$tally"
	else
		echo 0 1 0 >> "$tally"
		printf '    FAILED   %s:\n' "$(echo "$1" | tr _ ' ')"
		printf '%s\n' "$output" | head -n 30 | sed 's/^/             /'
	fi
}

header_names > "$scratch/header"
experimental_names > "$scratch/experimental"
map_names > "$scratch/map"
shared_names > "$scratch/shared"
static_names > "$scratch/static"
page_names > "$scratch/pages"
synopsis_names > "$scratch/synopses"

total=0
: > "$tally"
checks=$(sed -n '/^differ/,/^run()/s/^\([a-z_]*\)()$/\1/p' "$0" |
    grep -vxE 'differ|[a-z]+_names|run')
for check in $checks; do
	run "$check"
done
printf '  %-14s %4d tests\n' contract "$total"
[ "$total" -eq "$(wc -l < "$tally")" ]
