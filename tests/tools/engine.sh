#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# engine.sh build - kvroute-engine over HTTP: what its answers, streams
# and metrics say, and its faults. A case is a function that prints what it
# found to be wrong; each has engines of its own. Nothing is asserted about
# time: what must not come is waited for where it would take for ever.
set -u
export LC_ALL=C

build=$1
scratch=$build/engine-test
tally=$scratch/tally
rm -rf "$scratch"
mkdir -p "$scratch"
engine_pid=

# -------------------------------------------------------- what cases use ---

# start OPTION ... - $url is the first one's, all ports are in $scratch/ports.
start()
{
	rm -f "$scratch/ports"
	# shellcheck disable=SC2086
	${KVR_UNDER:-} "$build/kvroute-engine" --for 120 "$@" \
	    > "$scratch/ports" 2> "$scratch/log" &
	engine_pid=$!
	until_true test -s "$scratch/ports" || echo "it does not start"
	url=http://127.0.0.1:$(head -n 1 "$scratch/ports")
}

# Ends it; what it or a checker had to say is a failure.
stop()
{
	kill "$engine_pid"
	wait "$engine_pid" || echo "it ended with $?"
	engine_pid=
	cat "$scratch/log"
}

# Asks again for a while, until it says yes.
until_true()
{
	tries=400
	while ! "$@" > /dev/null 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return 1
		sleep 0.05
	done
}

# post PATH BODY [curl option ...]
post()
{
	path=$1
	body=$2
	shift 2
	curl -sN -m 60 "$@" "$url$path" -d "$body"
}

# status PATH BODY [curl option ...]
status()
{
	post "$@" -o "$scratch/answer" -w '%{http_code}'
}

fault()
{
	curl -sf -m 10 -o /dev/null -X POST "$url/fault?$1" ||
	    echo "no fault: $1"
}

# ids FIRST LAST - a prompt of token ids.
ids()
{
	seq -s , "$1" "$2" | sed 's/.*/[&]/'
}

# cached FIRST LAST [member] - what that prompt hits, as usage tells.
cached()
{
	post /v1/completions \
	    "{\"prompt\":$(ids "$1" "$2"),\"max_tokens\":1${3:-}}" |
	    jq -c '.usage.prompt_tokens_details.cached_tokens'
}

metric()
{
	curl -s -m 10 "$url/metrics" | sed -n "s/^vllm:$1{.*} //p"
}

is()
{
	[ "$2" = "$3" ] || echo "$1: '$2' instead of '$3'"
}

chat='{"messages":[{"role":"system",
    "content":"You know about caches of engines and all that is in them."},
    {"role":"user","content":"Which blocks leave first?"}],"max_tokens":40'
with_usage='"stream":true,"stream_options":{"include_usage":true}'

# The JSON of the data lines of a stream.
events()
{
	sed -n 's/^data: \([^[]\)/\1/p' "$scratch/stream"
}

# Text of a stream and of the same answer in one piece, by jq filters.
same_text()
{
	post "$1" "$2}" > "$scratch/whole" || echo "$1: no answer"
	post "$1" "$2,$with_usage}" > "$scratch/stream"
	events | jq -j "$3" > "$scratch/text"
	jq -j "$4" "$scratch/whole" | cmp - "$scratch/text"
	[ -s "$scratch/text" ] || echo "$1: no text"
	grep -vE '^(data: [{].*[}]|data: \[DONE\]|event: [a-z_.]+|)$' \
	    "$scratch/stream"
	tail -n 2 "$scratch/stream" | grep -q "$5" || echo "$1: no end"
}

# Usage of an answer and of a stream, twice each: the second time all hits.
usages()
{
	for i in 1 2; do
		post "$1" "$2}" | jq -c .usage
	done
	post "$1" "$2,$with_usage}" > "$scratch/stream"
	events | jq -c '.usage // .response.usage // empty' | tail -n 1
}

nothing_runs()
{
	[ "$(metric num_requests_running)$(metric num_requests_waiting)" = 00 ]
}

something_runs()
{
	[ "$(metric num_requests_running)" -gt 0 ]
}

refused()
{
	curl -s -m 10 "$url/health"
	[ $? -eq 7 ]
}

healthy()
{
	[ "$(curl -s -m 1 -o /dev/null -w '%{http_code}' "$url/health")" = 200 ]
}

# A stream that has begun and takes as long as it is let; $1: a token's ms.
begin_stream()
{
	rm -f "$scratch/stream"
	post /v1/chat/completions "$chat,$with_usage}" > "$scratch/stream" &
	client=$!
	until_true grep -q data: "$scratch/stream" || echo "no stream"
}

code_of()
{
	curl -s -m 10 -o "$scratch/answer" -w '%{http_code}' "$url$1"
}

# --------------------------------------------------------------- caching ---

prefixes_hit_in_whole_blocks()
{
	for block in 16 32 2176; do
		start --scale 0.01 --block "$block"
		n=$((block * 2 + block / 2))
		is "first, $block" "$(cached 1 $n)" 0
		is "again, $block" "$(cached 1 $n)" $((block * 2))
		is "more, $block" "$(cached 1 $((n + block)))" $((block * 2))
		is "less, $block" "$(cached 1 $((block * 2)))" "$block"
		is "another, $block" "$(cached 2 $n)" 0
		is "a salt, $block" "$(cached 1 $n ',"cache_salt":"s"')" 0
		is "a model, $block" "$(cached 1 $n ',"model":"m"')" 0
		is "all, $block" "$(cached 1 $n ',"prompt_logprobs":1')" 0
		stop
	done
}

full_caches_forget()
{
	for evict in lru leaf random; do
		start --scale 0.01 --capacity 640 --evict $evict
		cached 1 321 > "$scratch/first"
		is "while there is room, $evict" "$(cached 1 321)" 320
		for i in 1 2 3 4 5 6 7 8; do
			cached $((i * 1000)) $((i * 1000 + 320)) > /dev/null
		done
		[ "$(cached 1 321)" -lt 320 ] || echo "$evict forgets nothing"
		is "blocks in use, $evict" "$(metric kv_cache_usage_perc)" 0
		stop
	done
}

# A turn of a chat hits the turn before, with the answer that was given.
next_turns_hit_answers()
{
	start --scale 0.01
	post /v1/chat/completions "$chat}" > "$scratch/one"
	jq -c --argjson before "$chat}" '{max_tokens: 1,
	    messages: ($before.messages +
	    [.choices[0].message | del(.tool_calls)] +
	    [{"role": "user", "content": "And then?"}])}' "$scratch/one" \
	    > "$scratch/body"
	post /v1/chat/completions "@$scratch/body" > "$scratch/two"
	jq -s '.[0].usage.total_tokens as $one | .[1].usage |
	    .prompt_tokens_details.cached_tokens as $cached |
	    if $cached <= $one - 1 and $cached > $one - 1 - 16 then empty
	    else . end' "$scratch/one" "$scratch/two"
	stop
}

engines_have_caches_of_their_own()
{
	start --scale 0.01 --engines 3
	is ports "$(sort -u "$scratch/ports" | wc -l)" 3
	cached 1 100 > /dev/null
	is "the first" "$(cached 1 100)" 96
	url=http://127.0.0.1:$(sed -n 3p "$scratch/ports")
	is "the third" "$(cached 1 100)" 0
	stop
}

# Room for one and a half of six: they give way, and say what they would.
full_engines_preempt()
{
	start --scale 0.01
	post /v1/completions "{\"prompt\":\"a\",\"n\":6,\"max_tokens\":300}" |
	    jq .choices > "$scratch/alone"
	stop
	start --scale 0.01 --capacity 480 --preempt
	post /v1/completions "{\"prompt\":\"a\",\"n\":6,\"max_tokens\":300}" |
	    jq .choices > "$scratch/crowded"
	cmp "$scratch/alone" "$scratch/crowded"
	is choices "$(jq length "$scratch/crowded")" 6
	[ "$(metric num_preemptions_total)" -gt 0 ] || echo "none gave way"
	stop
	start --scale 0.01 --capacity 480 --batch 256 --reads own \
	    --attention 53000
	post /v1/completions "{\"prompt\":\"a\",\"n\":6,\"max_tokens\":300}" |
	    jq .choices > "$scratch/waited"
	cmp "$scratch/alone" "$scratch/waited"
	is 'gave way' "$(metric num_preemptions_total)" 0
	stop
}

# --------------------------------------------------------------- answers ---

streams_say_what_answers_say()
{
	for headers in early late; do
		start --scale 0.01 --headers $headers
		same_text /v1/chat/completions "$chat" \
		    '.choices[]?.delta.content' \
		    '.choices[0].message.content' '\[DONE\]'
		same_text /v1/completions '{"prompt":"a","max_tokens":40' \
		    '.choices[]?.text' '.choices[0].text' '\[DONE\]'
		same_text /v1/responses '{"input":"a","max_output_tokens":40' \
		    'select(.type == "response.output_text.delta").delta' \
		    '.output[0].content[0].text' response.incomplete
		same_text /v1/messages "$chat" \
		    'select(.type == "content_block_delta").delta.text' \
		    '.content[0].text' message_stop
		stop
	done
}

usage_is_what_it_is_told_to_be()
{
	for usage in value null-for-0 null none; do
		start --scale 0.01 --usage $usage
		case $usage in
		value) want='0 32 32' ;;
		null-for-0) want='null 32 32' ;;
		null) want='null null null' ;;
		none) want='null null' ;;
		esac
		is "chat, $usage" "$(usages /v1/chat/completions "$chat" |
		    jq -c '.prompt_tokens_details.cached_tokens' | xargs)" \
		    "$want"
		is "responses, $usage" "$(usages /v1/responses \
		    "{\"input\":\"$(seq -s ' ' 1 24)\"" |
		    jq -c '.input_tokens_details.cached_tokens' | xargs)" \
		    "$(echo "$want" | sed 's/32/64/g')"
		stop
	done
}

messages_count_cached_tokens_apart()
{
	start --scale 0.01
	usages /v1/messages "$chat" > "$scratch/usages"
	is cached "$(jq .cache_read_input_tokens "$scratch/usages" | xargs)" \
	    '0 32 32'
	is sums "$(jq '.input_tokens + .cache_read_input_tokens' \
	    "$scratch/usages" | uniq | wc -l)" 1
	stop
}

# Two of four ways to ask for none.
streams_have_usage_if_asked()
{
	start --scale 0.01
	for more in '' ',"stream_options":{"include_usage":false}'; do
		post /v1/chat/completions "$chat,\"stream\":true$more}" |
		    grep usage
	done
	post /v1/chat/completions "$chat,$with_usage}" > "$scratch/stream"
	is chunks "$(events | jq -c 'select(has("usage")) | .choices' |
	    xargs)" '[]'
	post /v1/chat/completions "$chat,$with_usage}" > "$scratch/stream"
	is continuous "$(post /v1/chat/completions "$chat,\"stream\":true,
	    \"stream_options\":{\"include_usage\":true,
	    \"continuous_usage_stats\":true}}" | grep '^data: {' |
	    grep -vc usage)" 0
	stop
}

# Prefill would take for ever: only headers can be there, or nothing.
headers_come_early_or_late()
{
	for headers in early late; do
		start --prefill-rate 0.001 --headers $headers
		post /v1/chat/completions "$chat,$with_usage}" -m 2 \
		    -D "$scratch/headers" > "$scratch/stream" && echo "an end"
		is "lines, $headers" "$(grep -c 'HTTP/1.1 200\|event-stream' \
		    "$scratch/headers")" \
		    "$([ $headers = early ] && echo 2 || echo 0)"
		[ -s "$scratch/stream" ] && cat "$scratch/stream"
		stop
	done
}

wrong_requests_are_told()
{
	start --scale 0.01 --model m --capacity 1000
	for kind in chat/completions completions responses messages \
	    embeddings; do
		for body in '' '{' '{}' '[]' '{"model":5}' 'a=b'; do
			is "$kind $body" "$(status "/v1/$kind" "$body")" 400
			jq -e '.error.message | length > 0' \
			    "$scratch/answer" > /dev/null || echo "no message"
		done
	done
	is 'no such model' "$(status /v1/completions \
	    '{"prompt":"a","model":"x"}')" 404
	is 'too long' "$(cached 1 1000)" null
	is 'not too long' "$(cached 1 900)" 0
	is 'no path' "$(status /v1/nothing '{}')" 404
	is 'no post' "$(curl -s -o "$scratch/answer" -w '%{http_code}' \
	    "$url/v1/completions")" 405
	is 'no fault' "$(status '/fault?kind=x' '')" 400
	is 'no fault' "$(status '/fault?kind=stall&seconds=x' '')" 400
	is 'no get' "$(curl -s -o "$scratch/answer" -w '%{http_code}' \
	    "$url/fault?kind=die")" 405
	is health "$(curl -s -w '%{http_code}' "$url/health")" 200
	is models "$(curl -s "$url/v1/models" | jq -r '.data[].id')" m
	stop
}

several_prompts_are_answered()
{
	start --scale 0.01
	is texts "$(post /v1/completions '{"prompt":["a","b"],"n":2}' |
	    jq '.choices | length')" 4
	is embeddings "$(post /v1/embeddings '{"input":["a","b","c"]}' |
	    jq '.data | length')" 3
	stop
}

# ------------------------------------------------------------ connections ---

connections_are_kept()
{
	start --scale 0.01
	is connections "$(curl -s -m 20 -w '%{num_connects}' -o /dev/null \
	    -d "$chat}" "$url/v1/chat/completions" --next -s -m 20 -N \
	    -w '%{num_connects}' -o /dev/null -d "$chat,$with_usage}" \
	    "$url/v1/chat/completions" --next -s -m 20 -w '%{num_connects}' \
	    -o /dev/null "$url/health")" 100
	stop
}

# A client of HTTP/1.0 sees the end of a stream by the end of the connection.
old_clients_are_served()
{
	start --scale 0.01
	for version in --http1.0 --http1.1; do
		post /v1/chat/completions "$chat,$with_usage}" $version \
		    > "$scratch/stream" || echo "$version: no end"
		tail -n 2 "$scratch/stream" | grep -q DONE || echo "it is cut"
		events | jq -j '.choices[]?.delta.content' \
		    > "$scratch/text$version"
	done
	cmp "$scratch/text--http1.0" "$scratch/text--http1.1"
	[ -s "$scratch/text--http1.0" ] || echo "no text"
	stop
}

# Two requests in one go: two answers, one after the other.
requests_may_come_together()
{
	start --scale 0.01
	perl -MIO::Socket::INET -e '
	    my $s = IO::Socket::INET->new(PeerAddr => $ARGV[0]) or die;
	    my $b = "{\"prompt\":\"a\"}";
	    my $r = "POST /v1/completions HTTP/1.1\r\nHost: a\r\n" .
	        "Content-Length: " . length($b) . "\r\n\r\n$b";
	    print $s $r, $r, "GET /health HTTP/1.0\r\n\r\n";
	    local $/; print <$s>;' "${url#http://}" > "$scratch/answers"
	is answers "$(grep -o 'HTTP/1.[01] 200' \
	    "$scratch/answers" | wc -l)" 3
	stop
}

large_bodies_are_read()
{
	start --scale 0.01
	{
		printf '{"max_tokens":1,"prompt":"'
		head -c 33000000 /dev/zero | tr '\0' a
		printf '"}'
	} > "$scratch/large"
	is status "$(curl -s -m 60 -o "$scratch/answer" -w '%{http_code}' \
	    --data-binary "@$scratch/large" "$url/v1/completions")" 400
	grep -q 'more than the cache holds' "$scratch/answer" ||
	    cat "$scratch/answer"
	cat "$scratch/large" >> "$scratch/large.two"
	cat "$scratch/large" >> "$scratch/large.two"
	is 'twice that' "$(curl -s -m 60 -o "$scratch/answer" \
	    -w '%{http_code}' --data-binary "@$scratch/large.two" \
	    "$url/v1/completions")" 413
	rm -f "$scratch/large" "$scratch/large.two"
	is 'and then' "$(cached 1 20)" 0
	stop
}

many_are_served_at_a_time()
{
	start --scale 0.01
	for i in $(seq 1 600); do
		[ "$i" -eq 1 ] || echo next
		printf 'silent\nurl = "%s"\noutput = "/dev/null"\n' \
		    "$url/v1/completions"
		printf 'data = "{\\"prompt\\":\\"%s\\"}"\n' "$i"
		printf 'write-out = "%%{http_code}\\n"\n'
	done > "$scratch/many"
	is answers "$(curl --no-progress-meter -Z --parallel-max 300 \
	    --parallel-immediate -K "$scratch/many" | sort | uniq -c |
	    xargs)" '600 200'
	is finished "$(metric request_success_total)" 600
	stop
}

# Answers would take for ever; clients go, in each stage and in the queue.
clients_may_leave()
{
	start --sequences 2 --prefill-rate 20 --decode-ms 10000
	for more in '' ",$with_usage"; do
		for i in 1 2 3 4; do
			post /v1/chat/completions "$chat$more}" -m 4 \
			    > "$scratch/left" &
		done
		until_true something_runs || echo "nothing runs"
		until_true nothing_runs || echo "something runs"
	done
	is finished "$(metric request_success_total)" 0
	is held "$(metric kv_cache_usage_perc)" 0
	stop
}

it_ends_when_told()
{
	start --decode-ms 100000
	post /v1/chat/completions "$chat,$with_usage}" > "$scratch/stream" &
	client=$!
	until_true something_runs || echo "nothing runs"
	stop
	wait "$client"
	is 'the client sees' $? 18
}

# --------------------------------------------------------------- metrics ---

metrics_are_told()
{
	start --scale 0.01 --model 'a"b\c'
	cached 1 100 > /dev/null
	cached 1 100 > /dev/null
	is queries "$(metric prefix_cache_queries_total)" 200
	is hits "$(metric prefix_cache_hits_total)" 96
	is prompts "$(metric prompt_tokens_total)" 200
	is generated "$(metric generation_tokens_total)" 2
	is finished "$(metric request_success_total)" 2
	curl -s "$url/metrics" > "$scratch/metrics"
	awk '
	    function bad() { print "metrics, line " NR ": " $0 }
	    /^# HELP / { if (seen[$3]++ || NF < 4) bad(); name = $3; next }
	    /^# TYPE / {
		if ($3 != name || $4 != (name ~ /_total$/ ? "counter" : \
		    "gauge") || NF != 4)
			bad()
		next
	    }
	    name ~ /_config_info$/ { next }
	    { if ($0 !~ "^" name "[{]engine=\"0\",model_name=\"a\\\\\"" \
		"b\\\\\\\\c\"[}] [0-9.e+-]+$") bad(); samples++ }
	    END { if (samples != 9) print samples " metrics" }' \
	    "$scratch/metrics"
	stop
}

config='^vllm:cache_config_info{.*engine="0".*} 1\.0$'

# The size of the cache, in the words of each engine.
cache_is_published()
{
	start --capacity 4000 --block 32
	curl -s "$url/metrics" | grep "$config" |
	    grep 'block_size="32"' | grep -q 'num_gpu_blocks="125"' ||
	    echo 'no size in the metrics'
	is 'server info of vllm' "$(code_of /server_info)" 404
	stop
	start --capacity 4000 --block 32 --publish sglang --sequences 9
	is metrics "$(code_of /metrics)" 404
	for path in /server_info /get_server_info; do
		is "$path" "$(code_of $path)" 200
		is "$path" "$(jq -c '[.max_total_num_tokens, .page_size,
		    .internal_states[0].effective_max_running_requests_per_dp]' \
		    "$scratch/answer")" '[4000,32,9]'
	done
	stop
	start --publish sglang-old
	is 'server info of an old one' "$(code_of /server_info)" 404
	is 'its own' "$(code_of /get_server_info)" 200
	stop
	start --publish none
	curl -s "$url/metrics" | grep -q "$config" && echo 'it is published'
	is 'no server info' "$(code_of /get_server_info)" 404
	stop
}

# ---------------------------------------------------------------- faults ---

refusing_lets_answers_end()
{
	start --decode-ms 50
	cached 1 100 > /dev/null
	begin_stream
	fault 'kind=refuse&seconds=3'
	refused || echo "it is not refused"
	wait "$client" || echo "the stream ended with $?"
	tail -n 2 "$scratch/stream" | grep -q DONE || echo "the stream is cut"
	until_true healthy || echo "it does not come back"
	is 'what it had' "$(cached 1 100)" 96
	stop
}

stalling_answers_nothing()
{
	start --scale 0.1
	fault 'kind=stall&seconds=600'
	curl -s -m 1 "$url/health"
	is health $? 28
	post /v1/completions '{"prompt":"a"}' -m 1
	is completions $? 28
	post /v1/completions '{"prompt":"a"}' > "$scratch/answer" &
	client=$!
	sleep 0.3
	fault 'kind=none'
	wait "$client" || echo "what came in the stall ended with $?"
	jq -e .usage "$scratch/answer" > /dev/null || cat "$scratch/answer"
	is finished "$(metric request_success_total)" 1
	stop
}

# The rest of a stream comes when the stall is over.
stalling_stops_streams()
{
	start --decode-ms 40
	begin_stream
	fault 'kind=stall&seconds=600'
	sleep 0.3
	lines=$(wc -l < "$scratch/stream")
	sleep 0.7
	is 'lines while it stalls' "$(wc -l < "$scratch/stream")" "$lines"
	fault 'kind=none'
	wait "$client" || echo "the stream ended with $?"
	tail -n 2 "$scratch/stream" | grep -q DONE || echo "the stream is cut"
	stop
}

dying_breaks_streams()
{
	start --decode-ms 1000
	cached 1 100 > /dev/null
	begin_stream
	fault 'kind=die'
	wait "$client"
	is 'the client sees' $? 18
	grep -q DONE "$scratch/stream" && echo "the stream has an end"
	is 'what it had' "$(cached 1 100)" 96
	stop
}

restarting_empties()
{
	start --decode-ms 1000
	cached 1 100 > /dev/null
	is 'what it had' "$(cached 1 100)" 96
	begin_stream
	fault 'kind=restart&seconds=3'
	refused || echo "it is not refused"
	wait "$client"
	is 'the client sees' $? 18
	until_true healthy || echo "it does not come back"
	is finished "$(metric request_success_total)" 0
	is 'what it has' "$(cached 1 100)" 0
	stop
}

slowing_is_slow()
{
	start
	fault 'kind=slow&seconds=600&factor=1000000'
	post /v1/completions '{"prompt":"a"}' -m 1
	is 'the client sees' $? 28
	fault 'kind=none'
	is 'and then' "$(cached 1 20)" 0
	stop
}

errors_are_answers()
{
	start --scale 0.01
	fault 'kind=error&seconds=600'
	is status "$(status /v1/completions '{"prompt":"a"}')" 500
	fault 'kind=error&seconds=600&status=503'
	is status "$(status /v1/chat/completions "$chat,$with_usage}")" 503
	is health "$(curl -s -o /dev/null -w '%{http_code}' "$url/health")" 503
	fault 'kind=error&seconds=0.2&status=429'
	until_true healthy || echo "no end"
	is 'and then' "$(cached 1 20)" 0
	stop
}

# --------------------------------------------------------------- options ---

wrong_options_are_told()
{
	for options in '--port 70000' '--evict x' '--block 0' '--capacity 5' \
	    '--scale 0' '--usage' '--engines 2 --port 65535' 'x' \
	    '--batch 255' '--reads x' '--attention 999' '--sequences 0'; do
		# shellcheck disable=SC2086
		"$build/kvroute-engine" --for 1 $options > "$scratch/out" 2>&1
		is "$options" $? 2
		[ -s "$scratch/out" ] || echo "$options: not a word"
	done
	start --scale 0.01
	"$build/kvroute-engine" --for 1 --port "${url##*:}" \
	    > "$scratch/out" 2>&1
	is 'a port that is taken' $? 1
	stop
}

# -------------------------------------------------------------------- all ---

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

total=0
: > "$tally"
cases=$(sed -n '/^# -* caching/,/^# -* all/s/^\([a-z_]*\)()$/\1/p' "$0")
for case in ${ENGINE_CASES:-$cases}; do
	run "$case"
done
printf '  %-14s %4d tests\n' engine "$total"
sh mk/tally.sh "$tally"
