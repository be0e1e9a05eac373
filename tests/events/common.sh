# shellcheck shell=sh disable=SC2034,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# common.sh - the common part of scripts of this folder: an engine's sockets,
# led by the functions below. For `build` and `scratch`.
. tests/cases.sh

pub=ipc://${scratch:-}/pub
back=ipc://${scratch:-}/replay
events=${1:?}/kvroute-events
index=${scratch:-}/index
out=${scratch:-}/out
engine='' reader='' life=1
# A publisher that has failed is noticed by its missing answer.
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
	timeout 900 "$build/publisher" "$pub" "$@" \
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
	until_true 60 curl -s "http://127.0.0.1:$entry/" ||
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
	until_true 60 grep -q "$1" "$out" || echo "never: $1"
}

# The hex of a vector, of the suites' file.
vector()
{
	awk -v name="\"$1\"," '$1 == "{" { on = ($2 == name) }
	    on && /^\t    "/ { gsub(/[^0-9a-f]/, ""); printf "%s", $0 }' \
	    tests/events/vectors.c
}
