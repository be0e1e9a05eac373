#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_passing.sh - cases of check.sh: requests and responses pass byte for
# byte, at any speed, in any pieces, after any number of tries.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2034,SC2154

quick_cases="${quick_cases:-} slow_client_gets_all_of_a_stream
    slow_client_gets_a_stream_without_usage
    last_byte_of_a_body_comes_alone
    last_byte_of_a_body_in_chunks_comes_alone retry_sends_the_same_body
    retry_sends_the_same_body_from_a_file
    stream_options_are_completed_in_place
    stream_options_of_bodies_in_files_are_completed
    engines_that_refuse_usage_are_asked_no_more"
slow_cases="${slow_cases:-} stale_answer_is_not_the_engines"

# --------------------------------------------------------- streams, buffered

# many_events WITH - a stream of 2 MB; its last event has usage, or not.
many_events()
{
	awk 'BEGIN {
		for (i = 0; i < 20000; i++)
			printf "data: {\"choices\":[{\"index\":0,\"delta\":" \
			    "{\"content\":\"the word number %05d\"}}]}\n\n", i
	}'
	[ "$1" = without ] || printf 'data: {"choices":[],"usage":{%s%s}}\n\n' \
	    '"prompt_tokens":40,"prompt_tokens_details":{"cached_tokens":16},' \
	    '"completion_tokens":20000'
	printf 'data: [DONE]\n\n'
}

# slow_client BODY EXPECTED - the engine is done long before the client.
slow_client()
{
	for buffering in on off; do
		location_lines="limit_rate 1500k; limit_rate_after 256k;
		    $usage_line"
		: > "$work/cut_port"
		perl "$here/cut.pl" "$work/stream" > "$work/cut_port" &
		engines_pid=$!
		until_true 20 test -s "$work/cut_port"
		upstream_ports=$(cat "$work/cut_port")
		start_nginx kvroute
		curl -s -m 60 -o "$work/out/got" -d "$1" "http://127.0.0.1:$port/v1/completions?end=99999999"
		cmp "$work/out/got" "$2"
		is "cached tokens, buffering $buffering" \
		    "$(json '.upstreams[0].usage.cached_tokens')" 16
		is "responses with usage, buffering $buffering" \
		    "$(json '.upstreams[0].usage.value')" 1
		settled
		stop_nginx
		stop_engines
	done
}

slow_client_gets_all_of_a_stream()
{
	usage_line='kvroute_include_usage off;'
	many_events with > "$work/stream"
	slow_client '{"model":"m","stream":true,"prompt":"abc"}' "$work/stream"
}

slow_client_gets_a_stream_without_usage()
{
	usage_line='kvroute_include_usage on;'
	many_events with > "$work/stream"
	many_events without > "$work/stripped"
	slow_client '{"model":"m","stream":true,"prompt":"abc"}' \
	    "$work/stripped"
}

# ---------------------------------------------------------- bodies, in pieces

# start_recorder STATUS ... - engines that record requests.
start_recorder()
{
	: > "$work/recorder"
	rm -rf "$work/out/asked"
	mkdir "$work/out/asked"
	perl "$here/record.pl" "$work/out/asked" "$@" > "$work/recorder" &
	engines_pid=$!
	until_true 20 recorder_told $# || fail 'no recorder'
	engine_ports=$(paste -s -d ' ' "$work/recorder")
}

recorder_told()
{
	[ "$(wc -l < "$work/recorder")" -eq "$1" ]
}

usage_member=',"stream_options":{"include_usage":true}'

# send_in_pieces FILE N [chunked] - sends N bytes with the head, then the
# others; prints the status.
send_in_pieces()
{
	perl -MIO::Socket::INET -e '
	# Until the other end has no byte of it unread; or for 10 s.
	sub until_read
	{
		my ($s, $port) = @_;
		my $there = sprintf "0100007F:%04X 0100007F:%04X", $port,
		    $s->sockport;
		for (1 .. 1000) {
			open(my $tcp, "<", "/proc/net/tcp") or die;
			return if grep /: $there \S+ \w+:0{8} /, <$tcp>;
			select undef, undef, undef, 0.01;
		}
	}
	my ($port, $file, $n, $chunked) = @ARGV;
	open(my $in, "<:raw", $file) or die;
	my $body = do { local $/; <$in> };
	my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") or die;
	my @pieces = (substr($body, 0, $n), substr($body, $n));
	@pieces = map { length $_ ? sprintf("%x\r\n%s\r\n", length, $_) : "" }
	    @pieces if $chunked;
	$pieces[1] .= "0\r\n\r\n" if $chunked;
	alarm 30;
	syswrite $s, "POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
	    . "Connection: close\r\nContent-Type: application/json\r\n"
	    . ($chunked ? "Transfer-Encoding: chunked"
	    : "Content-Length: " . length $body) . "\r\n\r\n" . $pieces[0];
	until_read($s, $port);
	syswrite $s, $pieces[1];
	my $answer = join "", <$s>;
	print $answer =~ /^HTTP\/1.1 (\d+)/ ? $1 : "no answer";
	' "$port" "$@"
}

# pieces_at N [chunked] - a body sent in two pieces arrives in one. The
# insertion goes before a brace that may be alone in its buffer.
pieces_at()
{
	rm -f "$work"/out/asked/*
	is "status, $*" "$(send_in_pieces "$work/body" "$@")" 200
	cmp "$work"/out/asked/* "$work/expected"
}

last_byte_of_a_body_comes_alone()
{
	location_lines='kvroute_include_usage on;'
	start_recorder 200
	start_nginx kvroute
	front='{"model":"m","stream":true,"prompt":"abc"'
	printf '%s}' "$front" > "$work/body"
	end=$(wc -c < "$work/body")
	printf '200\n%s%s}' "$front" "$usage_member" > "$work/expected"
	for n in 0 1 $((end - 2)) $((end - 1)) "$end"; do
		pieces_at "$n"
	done
	is 'requests with include_usage added' \
	    "$(json '.upstreams[0].usage.requested')" 5
	is 'chunks removed' "$(json '.upstreams[0].usage.stripped')" 5
	settled
}

last_byte_of_a_body_in_chunks_comes_alone()
{
	location_lines='kvroute_include_usage on;'
	start_recorder 200
	start_nginx kvroute
	printf '{"model":"m","stream":true,"prompt":"abc"}' > "$work/body"
	printf '200\n%s%s}' '{"model":"m","stream":true,"prompt":"abc"' "$usage_member" > "$work/expected"
	end=$(wc -c < "$work/body")
	for n in 0 1 $((end - 1)) "$end"; do
		pieces_at "$n" chunked
	done
	is 'requests with an opinion' "$(json '.upstreams[0].reasons
	    | .cost + .tie + .busy + .no_worker')" 4
	settled
}

# The first engine fails; the second gets the same request.
retry_sends_the_same_body()
{
	location_lines='kvroute_include_usage on;
	    proxy_next_upstream error http_500 non_idempotent;'
	start_recorder 500 200
	server_list="server 127.0.0.1:$(nth 1 "$engine_ports");
	    server 127.0.0.1:$(nth 2 "$engine_ports") backup;"
	start_nginx kvroute
	awk -v member="$usage_member" 'BEGIN {
		front = "{\"model\":\"m\",\"stream\":true,\"prompt\":\""
		for (i = 0; i < 2000; i++)
			front = front i " "
		printf "%s\"}", front > ARGV[1]
		printf "%s\"%s}", front, member > ARGV[2]
	}' "$work/body" "$work/member"
	is status "$(post "http://127.0.0.1:$port" "$work/body" \
	    /v1/completions)" 200
	{ echo 500; cat "$work/member"; } | cmp - "$work/out/asked/1"
	{ echo 200; cat "$work/member"; } | cmp - "$work/out/asked/2"
	is 'engines asked' "$(find "$work/out/asked" -name '[0-9]*' | wc -l)" 2
	is 'choices made again' "$(json '.upstreams[0].retries')" 1
	is 'requests with include_usage added' \
	    "$(json '.upstreams[0].usage.requested')" 1
	is 'blocks where it failed' "$(state_of \
	    "127.0.0.1:$(nth 1 "$engine_ports")" held_blocks)" 0
	above 'blocks where it went' "$(state_of \
	    "127.0.0.1:$(nth 2 "$engine_ports")" held_blocks)" 0
	is 'reports believed of a retry' \
	    "$(json '[.upstreams[0].workers[].reports] | add')" 0
	settled
}

retry_sends_the_same_body_from_a_file()
{
	body_buffer=1k
	retry_sends_the_same_body
}

# ----------------------------------------------------------- stream_options

# completes FRONT OPTIONS REST WANTED - what engines get for these options.
completes()
{
	printf '{"stream":true,%s%s%s}' "$1" "$2" "$3" > "$work/body"
	{ echo 500; printf '{"stream":true,%s%s%s}' "$1" "$4" "$3"; } \
	    > "$work/expected_of_first"
	sed 's/^500$/200/' "$work/expected_of_first" > "$work/expected"
	is "status of $2" "$(curl -s -m 30 -o "$work/out/answer" -w \
	    '%{http_code}' --data-binary @"$work/body" \
	    "http://127.0.0.1:$port/v1/completions")" 200
	asked=$((asked + 2))
	cmp "$work/out/asked/$((asked - 1))" "$work/expected_of_first"
	cmp "$work/out/asked/$asked" "$work/expected"
	is "usage that the client sees, $2" "$(grep -c usage \
	    "$work/out/answer")" "${sees:-0}"
}

# Each by two engines, of which the first fails.
stream_options_are_completed_in_place()
{
	location_lines='proxy_next_upstream error http_500 non_idempotent;'
	start_recorder 500 200
	server_list="server 127.0.0.1:$(nth 1 "$engine_ports") max_fails=0;
	    server 127.0.0.1:$(nth 2 "$engine_ports") backup;"
	start_nginx kvroute
	long=$(awk 'BEGIN { for (i = 0; i < 8000; i++) printf "%d ", i }')
	n=0
	asked=0
	for text in abc "$long"; do
		front="\"prompt\":\"$text\","
		completes "$front" '"stream_options":null' '' \
		    '"stream_options":{"include_usage":true}'
		completes "$front" '"stream_options":{}' '' \
		    '"stream_options":{"include_usage":true}'
		completes "$front" '"stream_options": { "x":[1]}' ',"n":1' \
		    '"stream_options": {"include_usage":true, "x":[1]}'
		completes "$front" '"stream_options":{"include_usage":false}' \
		    '' '"stream_options":{"include_usage":true}'
		# ahead of the prompt
		completes '' '"stream_options":{}' ",\"prompt\":\"$text\"" \
		    '"stream_options":{"include_usage":true}'
		n=$((n + 5))
	done
	is 'requests with include_usage added' \
	    "$(json '.upstreams[0].usage.requested')" $n
	is 'responses with usage' "$(json '.upstreams[0].usage.value')" $n
	sees=1
	completes "$front" '"stream_options":{"include_usage":true}' '' \
	    '"stream_options":{"include_usage":true}'
	settled
}

stream_options_of_bodies_in_files_are_completed()
{
	body_buffer=1k
	stream_options_are_completed_in_place
}

# After three that are refused, one an hour is tried.
engines_that_refuse_usage_are_asked_no_more()
{
	start_recorder 400
	start_nginx kvroute
	echo '{"model":"m","stream":true,"prompt":"abc"}' > "$work/body"
	i=0
	while [ $i -lt 70 ]; do
		i=$((i + 1))
		post "http://127.0.0.1:$port" "$work/body" /v1/completions \
		    > /dev/null
	done
	is 'requests with include_usage' "$(cat "$work"/out/asked/[0-9]* |
	    grep -c include_usage)" 3
	is 'lines in the log' "$(grep -c 'include_usage are refused' \
	    "$work/logs/error")" 1
	settled
}

# ----------------------------------------------------------- nginx's own cache

cached_ask()
{
	curl -s -m 30 -D "$work/head" -o "$work/out/$1" -w '%{http_code}' \
	    -d '{"model":"m","max_tokens":3,"prompt":"abc"}' \
	    "http://127.0.0.1:$port/v1/completions"
}

cache_said()
{
	sed -n 's/^X-Cache: \([A-Z]*\).*/\1/p' "$work/head"
}

is_expired()
{
	cached_ask probe > /dev/null
	[ "$(cache_said)" != HIT ]
}

# A cached response that replaces an error is not the engine's.
stale_answer_is_not_the_engines()
{
	buffering=on
	http_lines="proxy_cache_path $work/out/cache keys_zone=answers:1m;"
	# shellcheck disable=SC2016
	location_lines='proxy_cache answers; proxy_cache_methods POST;
	    proxy_cache_key $request_body; proxy_cache_valid 200 1s;
	    proxy_cache_use_stale http_500;
	    add_header X-Cache $upstream_cache_status always;'
	engines=1
	up
	is 'status of the first' "$(cached_ask first)" 200
	is 'cache at first' "$(cache_said)" MISS
	is 'responses with usage' "$(json '.upstreams[0].usage.value')" 1
	fault 1 'kind=error&status=500&seconds=60'
	until_true 20 is_expired || echo 'the cache keeps it for ever'
	is 'cache afterwards' "$(cache_said)" STALE
	is 'status of the second' "$(cached_ask second)" 200
	is 'cache for the second' "$(cache_said)" STALE
	cmp "$work/out/first" "$work/out/second"
	is 'requests aborted' "$(json '.upstreams[0].aborts')" 2
	is 'responses with usage' "$(json '.upstreams[0].usage.value')" 1
	is 'responses without usage' "$(json '.upstreams[0].usage.none')" 0
	until_true 20 no_leases || echo 'leases stay'
}
