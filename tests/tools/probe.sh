#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# probe.sh build - kvroute-probe against kvroute-engine, in each dialect and
# with each failure. A case is a function that prints what it found to be wrong.
set -u
export LC_ALL=C

build=$1
scratch=$build/probe-test
tally=$scratch/tally
rm -rf "$scratch"
mkdir -p "$scratch"
engine_pid=
trap 'stop' EXIT

# start OPTION ... - an engine at $host.
start()
{
	: > "$scratch/port"
	"$build/kvroute-engine" --for 120 "$@" > "$scratch/port" \
	    2> "$scratch/log" &
	engine_pid=$!
	tries=400
	until [ -s "$scratch/port" ] || [ "$tries" -eq 0 ]; do
		tries=$((tries - 1))
		sleep 0.05
	done
	host=127.0.0.1:$(cat "$scratch/port")
}

stop()
{
	[ -n "$engine_pid" ] || return 0
	kill "$engine_pid" 2> /dev/null
	wait "$engine_pid"
	engine_pid=
}

# probe STATUS ARGUMENT ... - output in out and errors.
probe()
{
	wanted=$1
	shift
	${KVR_UNDER:-} "$build/kvroute-probe" "$@" > "$scratch/out" \
	    2> "$scratch/errors"
	is "status of $*" $? "$wanted"
}

is()
{
	[ "$2" = "$3" ] || echo "$1: '$2' instead of '$3'"
}

# says FILE TEXT
says()
{
	grep -qF -- "$2" "$scratch/$1" ||
	    echo "no '$2' in: $(cat "$scratch/$1")"
}

fault()
{
	curl -sf -m 10 -o /dev/null -X POST "http://$host/fault?$1" ||
	    echo "no fault: $1"
}

json()
{
	jq -c "$1" "$scratch/out"
}

# ------------------------------------------------------------------- cases

vllm_in_text()
{
	start --capacity 4000 --block 32 --model org/m
	curl -s -o /dev/null "http://$host/metrics"
	probe 0 "http://$host"
	cat > "$scratch/wanted" <<-END
	http://$host
	  engine     vLLM
	  model      org/m
	  capacity   4000 tokens
	  block      32 tokens
	  sequences  unknown
	  kvroute_server $host capacity=4000 block_tokens=32;
	END
	diff "$scratch/wanted" "$scratch/out"
	is errors "$(cat "$scratch/errors")" ''
	stop
}

sglang_in_json()
{
	for dialect in sglang sglang-old; do
		start --capacity 4000 --block 8 --publish $dialect \
		    --sequences 9 --model org/m
		line="kvroute_server $host capacity=4000 block_tokens=8 sequences=9"
		line="$line eviction=leaf;"
		probe 0 --format json "$host/v1/"
		is "$dialect" "$(json '.[0] | [.url, .engine, .model, .capacity,
		    .block_tokens, .sequences, .kvroute_server, .error]')" \
		    "[\"$host/v1/\",\"SGLang\",\"org/m\",4000,8,9,\"$line\",null]"
		stop
	done
}

windows()
{
	start --capacity 4000 --block 32 --publish-window 512
	probe 0 "$host"
	is window "$(grep 'window  ' "$scratch/out")" '  window     512 tokens'
	says out ' window=512 window_mode=auto;'
	stop
	start --capacity 4000 --publish sglang --publish-window 900
	probe 0 "$host"
	says out '  windows    900 tokens of memory'
	probe 0 --format json "$host"
	is windows "$(json '.[0] | [.window, .window_capacity]')" '[null,900]'
	stop
	start
	probe 0 --format json "$host"
	is none "$(json '.[0] | [.window, .window_capacity]')" '[null,null]'
	stop
}

rank_that_is_not_there()
{
	start
	probe 0 --rank 0 "$host"
	probe 1 --rank 3 "$host"
	says errors 'vLLM, which publishes no capacity'
	stop
}

nothing_is_published()
{
	start --publish none
	probe 1 "$host"
	says errors 'vLLM, which publishes no capacity'
	probe 1 --format json "$host"
	is capacity "$(json '.[0].capacity')" null
	is error "$(json '.[0].error')" '"vLLM, which publishes no capacity"'
	fault 'kind=error&status=401&seconds=60'
	probe 1 "$host"
	says errors 'its capacity is not readable: status 401'
	is output "$(cat "$scratch/out")" ''
	fault 'kind=stall&seconds=60'
	probe 1 --timeout 0.3 "$host"
	says errors 'timed out'
	stop
}

# Each engine gets its turn, and one failure is a failure.
several_engines()
{
	start --capacity 4000
	probe 1 --format json http://127.0.0.1:1 "$host"
	is capacities "$(json '[.[].capacity]')" '[null,4000]'
	is 'an error' "$(json '.[0].error | length > 0')" true
	probe 1 "$host" 127.0.0.1:1
	says out 'capacity   4000 tokens'
	says errors '127.0.0.1:1: '
	probe 0 "$host" "$host"
	stop
}

wrong_options_are_told()
{
	for options in '' '--format xml h' '--rank -1 h' '--timeout 0 h' \
	    '--timeout endless h' '--colour h' '--header'; do
		# shellcheck disable=SC2086
		probe 2 $options
		[ -s "$scratch/errors" ] || echo "$options: not a word"
	done
	probe 0 --help
	says out usage
	probe 0 --version
	for url in 'file:///etc/hostname' 'http://' 'ftp://127.0.0.1'; do
		probe 1 "$url"
		[ -s "$scratch/errors" ] || echo "$url: not a word"
		is 'output' "$(cat "$scratch/out")" ''
	done
}

# -------------------------------------------------------------------- all

total=0
: > "$tally"
for case in vllm_in_text sglang_in_json windows rank_that_is_not_there \
    nothing_is_published several_engines wrong_options_are_told; do
	total=$((total + 1))
	"$case" > "$scratch/problems" 2>&1 < /dev/null
	stop
	if [ ! -s "$scratch/problems" ]; then
		echo 1 0 0 >> "$tally"
	else
		echo 0 1 0 >> "$tally"
		printf '    FAILED   %s:\n' "$(echo $case | tr _ ' ')"
		head -n 30 "$scratch/problems" | sed 's/^/             /'
	fi
done
printf '  %-14s %4d tests\n' probe "$total"
sh mk/tally.sh "$tally"
