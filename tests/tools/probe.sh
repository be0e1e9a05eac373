#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# probe.sh build [case] - kvroute-probe against kvroute-engine, in each dialect
# and with each failure: cases of tests/cases.sh.
#
# shellcheck disable=SC2154
. tests/cases.sh

[ $# -gt 1 ] || { list ''; exit; }
build=$1
engine_pid=

# start OPTION ... - an engine at $host.
start()
{
	: > "$scratch/port"
	"$build/kvroute-engine" --for 900 "$@" > "$scratch/port" \
	    2> "$scratch/log" &
	engine_pid=$!
	until_true 60 test -s "$scratch/port" || echo 'it does not start'
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

case_vllm_in_text()
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
}

case_sglang_in_json()
{
	for dialect in sglang sglang-old; do
		start --capacity 4000 --block 8 --publish $dialect \
		    --sequences 9 --model org/m
		line="kvroute_server $host capacity=4000 block_tokens=8"
		line="$line eviction=leaf;"
		probe 0 --format json "$host/v1/"
		is "$dialect" "$(json '.[0] | [.url, .engine, .model, .capacity,
		    .block_tokens, .sequences, .kvroute_server, .error]')" \
		    "[\"$host/v1/\",\"SGLang\",\"org/m\",4000,8,9,\"$line\",null]"
		stop
	done
}

case_windows()
{
	start --capacity 4000 --block 32 --publish-window 512
	probe 0 "$host"
	is window "$(grep 'window  ' "$scratch/out")" '  window     512 tokens'
	says out 'capacity=4000 block_tokens=32;'
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
}

# Anything that is asked for is this text.
publish()
{
	TEXT=$1 perl -MIO::Socket::INET -e '
		$s = IO::Socket::INET->new(Listen => 9, LocalAddr => "127.0.0.1");
		$| = 1;
		$SIG{TERM} = sub { exit };
		print $s->sockport, "\n";
		while ($c = $s->accept) {
			1 while <$c> =~ /[^\r\n]/;
			print $c "HTTP/1.0 200 OK\r\n\r\n$ENV{TEXT}\n";
			close $c;
		}' > "$scratch/port" &
	engine_pid=$!
	until_true 60 test -s "$scratch/port" || echo 'it does not start'
	host=127.0.0.1:$(cat "$scratch/port")
}

case_memory_of_the_host_in_bytes()
{
	publish "vllm:cache_config_info{block_size=\"16\",\
kv_offloading_size=\"8.0\",num_gpu_blocks=\"1000\"} 1.0"
	# The tokens beside them are known, and less than all there is.
	probe 0 "$host"
	says out 'capacity   16000 tokens'
	says out 'offload    8589934592 bytes, of unknown tokens'
	says out "kvroute_server $host capacity=16000 block_tokens=16;"
	probe 0 --format json "$host"
	is facts "$(json '.[0] | [.capacity, .offload_bytes, .error]')" \
	    '[16000,8589934592,null]'
	is line "$(json '.[0].kvroute_server')" \
	    "\"kvroute_server $host capacity=16000 block_tokens=16;\""
}

case_rank_that_is_not_there()
{
	start
	probe 0 --rank 0 "$host"
	probe 1 --rank 3 "$host"
	says errors 'vLLM, which publishes no capacity'
}

case_nothing_is_published()
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
}

# Each engine gets its turn, and one failure is a failure.
case_several_engines()
{
	start --capacity 4000
	probe 1 --format json http://127.0.0.1:1 "$host"
	is capacities "$(json '[.[].capacity]')" '[null,4000]'
	is 'an error' "$(json '.[0].error | length > 0')" true
	probe 1 "$host" 127.0.0.1:1
	says out 'capacity   4000 tokens'
	says errors '127.0.0.1:1: '
	probe 0 "$host" "$host"
}

case_wrong_options_are_told()
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

finish()
{
	stop
}

run "$2"
