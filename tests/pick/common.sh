# shellcheck shell=sh disable=SC2034,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# common.sh - the common part of scripts of this folder: kvroute-pick on ports of
# its own. For `build` and `scratch`.
. tests/cases.sh

conf=${scratch:-}/pick.conf
log=${scratch:-}/pick.log
picker=''

# Sets `grpc`, `probe`, `metrics` and `port` of the JSON door.
find_ports()
{
	grpc=$(free_port)
	probe=$(free_port)
	metrics=$(free_port)
	port=$(free_port)
}

# LINE ... - the configuration.
configure()
{
	printf '%s\n' "$@" > "$conf"
}

# Servers without an engine.
three='server 127.0.0.1:9101 capacity=400000;
server 127.0.0.1:9102 capacity=400000;
server 127.0.0.1:9103 capacity=400000;'

is_up()
{
	curl -s -m 5 "http://127.0.0.1:$metrics/metrics" > /dev/null
}

# [option ...]
picker_up()
{
	${KVR_UNDER:-} "$build/kvroute-pick" -c "$conf" --grpc-port "$grpc" \
	    --grpc-health-port "$probe" --metrics-port "$metrics" "$@" \
	    >> "$log" 2>&1 &
	picker=$!
	until_true 60 is_up || { echo 'kvroute-pick: never up'; cat "$log"; exit; }
}

# Ends it; it must end in order.
picker_down()
{
	kill -TERM "$picker"
	wait "$picker" || echo "kvroute-pick: exit $?"
	picker=''
}

finish()
{
	[ -z "$picker" ] || picker_down
	grep -E 'Sanitizer|runtime error|==ERROR' "$log" 2> /dev/null
}

# FILTER - of the state, by jq.
state()
{
	curl -s -m 5 "http://127.0.0.1:$metrics/v1/status" | jq -c "$1"
}
