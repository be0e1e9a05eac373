# shellcheck shell=sh disable=SC2034,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# common.sh - what most scripts of this folder share: an engine's sockets, led by
# the functions below, and the cases. For `build` and `scratch` in the includer.
export LC_ALL=C
# shellcheck source=tests/events/basics.sh
. tests/events/basics.sh

tally=$scratch/tally
rm -rf "$scratch"
mkdir -p "$scratch"
: > "$tally"
# Short: a path of a socket has at most 107 bytes.
sockets=$(mktemp -d)
pub=ipc://$sockets/pub
back=ipc://$sockets/replay
events=$build/kvroute-events
index=$sockets/index
out=$scratch/out
trap 'rm -rf "$sockets"' EXIT
# A publisher that has failed is noticed by what it does not answer.
trap '' PIPE

# A batch that removes block N < 128 and then M < 128, of different contents in
# each life of the engine.
batch()
{
	printf '92%02x9192ac426c6f636b52656d6f76656492%02x%02x\n' \
	    "$life" "$1" "$2"
}

# Lines to the publisher; each is done when it returns.
tell()
{
	echo "$*" >&3
	read -r ok <&4 && [ "$ok" = ok ] || echo "publisher: $*: $ok"
}

# [REPLAY [topic]]
engine_up()
{
	rm -f "$scratch/in" "$scratch/answers"
	mkfifo "$scratch/in" "$scratch/answers"
	timeout 120 "$build/publisher" "$pub" "$@" \
	    < "$scratch/in" > "$scratch/answers" &
	engine=$!
	exec 3> "$scratch/in" 4< "$scratch/answers"
}

engine_down()
{
	exec 3>&- 4<&-
	wait "$engine" || echo "publisher: exit $?"
	engine=''
}

send()
{
	tell send "$1" "$(batch "$1" "$life")"
}

keep()
{
	tell keep "$1" "$(batch "$1" "$life")"
}

# PORT ... - the example gateway before these engines, in `gateways`; its port is
# `entry`.
gateway_up()
{
	entry=$(free_port)
	# shellcheck disable=SC2046
	"$build/gateway" "$entry" "$index" $(printf '127.0.0.1:%s ' "$@") \
	    2>> "$scratch/gateway.log" &
	gateways="$gateways $!"
	until_true curl -s "http://127.0.0.1:$entry/" ||
	    echo 'a gateway does not start'
}

gateways_down()
{
	for pid in $gateways; do
		kill "$pid"
		wait "$pid" || echo "gateway: exit $?"
	done
	gateways=''
}

until_has()
{
	tries=0
	until grep -q "$1" "$out"; do
		tries=$((tries + 1))
		if [ "$tries" -ge 1200 ]; then
			echo "never: $1"
			return 1
		fi
		sleep 0.05
	done
}

check()
{
	engine='' reader='' life=1
	rm -f "$scratch/record"
	{ "case_$1"; finish; } > "$scratch/result" 2>&1
	if grep -q '^skipped: ' "$scratch/result"; then
		echo 0 0 1 >> "$tally"
		printf '    SKIPPED  %s: %s\n' "$(echo "$1" | tr _ ' ')" \
		    "$(sed -n 's/^skipped: //p' "$scratch/result")"
	elif [ -s "$scratch/result" ]; then
		echo 0 1 0 >> "$tally"
		printf '    FAILED   %s:\n' "$(echo "$1" | tr _ ' ')"
		head -n 20 "$scratch/result" | sed 's/^/             /'
	else
		echo 1 0 0 >> "$tally"
	fi
}

# The hex of a vector, of the suites' file.
vector()
{
	awk -v name="\"$1\"," '$1 == "{" { on = ($2 == name) }
	    on && /^\t    "/ { gsub(/[^0-9a-f]/, ""); printf "%s", $0 }' \
	    tests/events/vectors.c
}

# NAME SCRIPT: its cases, of which $T selects.
all_cases()
{
	cases=$(sed -n 's/^case_\(.*\)()$/\1/p' "$2")
	for name in $cases; do
		! wanted "$name" || check "$name"
	done
	printf '  %-14s %4d tests\n' "$1" "$(wc -l < "$tally")"
	sh mk/tally.sh "$tally"
}
