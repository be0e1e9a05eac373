#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# engine.sh build [case] - kvroute-engine over HTTP: its answers, streams,
# metrics and faults: cases of tests/cases.sh, which have engines of their own.
# Nothing is asserted about time: an event that must not come would take for
# ever.
#
# shellcheck disable=SC2154
. tests/cases.sh

[ $# -gt 1 ] || { list ''; exit; }
build=$1
engine_pid=

# ------------------------------------------------------------- for cases ---

# start OPTION ... - $url is the first one's, all ports are in $scratch/ports.
start()
{
	rm -f "$scratch/ports"
	# shellcheck disable=SC2086
	${KVR_UNDER:-} "$build/kvroute-engine" --for 900 "$@" \
	    > "$scratch/ports" 2> "$scratch/log" &
	engine_pid=$!
	until_true 60 test -s "$scratch/ports" || echo "it does not start"
	url=http://127.0.0.1:$(head -n 1 "$scratch/ports")
}

# Ends it; any output of it or a checker is a failure.
stop()
{
	kill "$engine_pid"
	wait "$engine_pid" || echo "it ended with $?"
	engine_pid=
	cat "$scratch/log"
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

# cached FIRST LAST [member] - prints that prompt's hit, by usage.
cached()
{
	post /v1/completions \
	    "{\"prompt\":$(ids "$1" "$2"),\"max_tokens\":1${3:-}}" |
	    jq -c '.usage.prompt_tokens_details.cached_tokens'
}

# cached_with HEADER ... - of the same prompt each time.
cached_with()
{
	post /v1/completions '{"max_tokens":1,"prompt":"'"$(seq -s ' ' 300)"'"}' \
	    "$@" | jq .usage.prompt_tokens_details.cached_tokens
}

metric()
{
	curl -s -m 10 "$url/metrics" | sed -n "s/^vllm:$1{.*} //p"
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

# refuses FAULT - this may be over too soon to be seen on a busy machine.
refuses()
{
	fault "kind=$1&seconds=2"
	refused
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
	until_true 60 grep -q data: "$scratch/stream" || echo "no stream"
}

code_of()
{
	curl -s -m 10 -o "$scratch/answer" -w '%{http_code}' "$url$1"
}

# The body of a chat, and where in an answer its calls are, by the endpoint.
tool='"name":"look_up","description":"d","parameters":{}'
body_with_tools()
{
	case $1 in
	chat/completions)
		echo "{\"tools\":[{\"type\":\"function\",\"function\":{$tool}}]," \
		    "\"messages\":[{\"role\":\"user\",\"content\":\"$2\"}]$3}" ;;
	responses)
		echo "{\"tools\":[{\"type\":\"function\",$tool}]," \
		    "\"input\":[{\"role\":\"user\",\"content\":\"$2\"}]$3}" ;;
	messages)
		echo "{\"tools\":[{$tool}]," \
		    "\"messages\":[{\"role\":\"user\",\"content\":\"$2\"}]$3}" ;;
	esac
}

calls_of='[(.choices[0].message.tool_calls // [] | .[] | .function |
    {name, of: (.arguments | fromjson)}),
    (.output // [] | .[] | select(.type == "function_call") |
    {name, of: (.arguments | fromjson)}),
    (.content // [] | .[] | select(.type == "tool_use") |
    {name, of: .input})] | map("\(.name) \(.of.query | type)") | join(",")'

# ask MEMBERS [curl option ...] - a request to /v1/responses, to $scratch/answer.
ask()
{
	members=$1
	shift
	post /v1/responses "{\"max_output_tokens\":20,$members}" "$@" \
	    > "$scratch/answer"
}

# of FILTER - of the last answer.
of()
{
	jq -r "$1" "$scratch/answer"
}

# get PATH FILTER
get()
{
	curl -s -m 10 "$url$1" | jq -cr "$2"
}

# Makes a conversation; its id.
converse()
{
	post /v1/conversations "${1:-}" | jq -r .id
}

missing()
{
	is "status of $1" "$(code_of "$1")" 404
	is "error of $1" "$(jq -r .error.message "$scratch/answer")" "$2"
}

# A turn's prompt is the turn before, its answer and the input: all of it is
# cached, and the tokens are those of the whole that a client would send.
turn_hits_turn()
{
	is "input of turn $1" "$(of .usage.input_tokens)" "$(post \
	    /v1/responses "{\"store\":false,\"max_output_tokens\":20,
	    \"input\":$2}" | jq .usage.input_tokens)"
	cached=$(of .usage.input_tokens_details.cached_tokens)
	[ "$cached" -le "$before" ] && [ "$cached" -gt $((before - 17)) ] ||
	    echo "turn $1 hits $cached of $before"
	before=$(of .usage.total_tokens)
}

# --------------------------------------------------------------- caching ---

case_prefixes_hit_in_whole_blocks()
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

case_full_caches_forget()
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
case_next_turns_hit_answers()
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
}

case_engines_have_caches_of_their_own()
{
	start --scale 0.01 --engines 3
	is ports "$(sort -u "$scratch/ports" | wc -l)" 3
	cached 1 100 > /dev/null
	is "the first" "$(cached 1 100)" 96
	url=http://127.0.0.1:$(sed -n 3p "$scratch/ports")
	is "the third" "$(cached 1 100)" 0
}

# There is room for one and a half of six: they give way, and give the same
# answers.
case_full_engines_preempt()
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
}

# --------------------------------------------------------------- answers ---

case_streams_say_what_answers_say()
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

reasoning_of='[.choices[0].message.reasoning_content?,
    (.output // [] | .[] | select(.type == "reasoning").content[0].text),
    (.content // [] | .[] | select(.type == "thinking").thinking)] |
    map(strings | select(length > 0)) | length'
reasons_of='.choices[0].finish_reason? // .stop_reason? // .status?'

case_tools_are_called() # slow
{
	start --scale 0.01 --tools 1 --reasoning
	for kind in chat/completions responses messages; do
		: > "$scratch/calls"
		for i in 1 2 3 4 5 6 7 8; do
			post /v1/$kind "$(body_with_tools $kind $i '')" \
			    > "$scratch/answer"
			jq -r "$calls_of" "$scratch/answer" >> "$scratch/calls"
			is "reasoning, $kind" \
			    "$(jq "$reasoning_of" "$scratch/answer")" 1
			post /v1/$kind "$(body_with_tools $kind $i '')" |
			    jq -cS "del(.id, .created, .created_at, .usage,
			    .output[]?.id)" > "$scratch/again"
			jq -cS "del(.id, .created, .created_at, .usage,
			    .output[]?.id)" "$scratch/answer" |
			    cmp - "$scratch/again"
		done
		is "calls, $kind" "$(sort -u "$scratch/calls" | xargs)" \
		    'look_up string look_up string,look_up string'
		is "the reason, $kind" "$(jq -r "$reasons_of" "$scratch/answer")" \
		    "$(echo $kind | sed 's/chat.*/tool_calls/
		    s/responses/completed/; s/messages/tool_use/')"
		is "a small answer, $kind" "$(post /v1/$kind \
		    "$(body_with_tools $kind 1 ',"max_tokens":20')" |
		    jq -r "$calls_of")" ''
		is "no tools, $kind" "$(post /v1/$kind "$(body_with_tools $kind \
		    1 ',"tool_choice":"none"')" | jq -r "$calls_of")" ''
	done
	is 'no calls of texts' "$(post /v1/completions '{"prompt":"a",
	    "tools":[{"name":"x"}]}' | jq -r '.choices[0] |
	    "\(.text | length > 0) \(.finish_reason)"')" 'true stop'
	stop
	start --scale 0.01 --tools 3
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		post /v1/messages "$(body_with_tools messages $i '')" |
		    jq -r .stop_reason
	done | sort -u > "$scratch/reasons"
	is 'one in three' "$(xargs < "$scratch/reasons")" 'end_turn tool_use'
}

# Joins all pieces of a stream, by their kinds.
case_streams_call_as_answers_do()
{
	start --scale 0.01 --tools 1 --reasoning
	for i in 1 2 3 4; do
		same_text /v1/chat/completions "$(body_with_tools \
		    chat/completions $i '' | sed 's/}$//')" \
		    '.choices[]?.delta | .reasoning_content // .content //
		    (.tool_calls[0].function | "\(.name // "")\(.arguments)")' \
		    '.choices[0].message | "\(.reasoning_content)\(.content //
		    "")\([.tool_calls[].function | .name + .arguments] |
		    add)"' '\[DONE\]'
		same_text /v1/responses "$(body_with_tools responses $i '' |
		    sed 's/}$//')" \
		    'select(.type | test("delta$")).delta' \
		    '[.output[] | .arguments // .content[0].text] | add' \
		    response.completed
		same_text /v1/messages "$(body_with_tools messages $i '' |
		    sed 's/}$//')" \
		    'select(.type == "content_block_delta").delta | .thinking //
		    .text // (.partial_json // empty | gsub("[ \n]"; ""))' \
		    '[.content[] | .thinking // .text // (.input | tojson |
		    gsub("[ \n]"; ""))] | add' message_stop
	done
}

# A client sends a call back, and its result.
case_next_turns_hit_calls()
{
	start --scale 0.01 --tools 1
	for kind in chat/completions responses messages; do
		body_with_tools $kind 'And then?' '' > "$scratch/body"
		post /v1/$kind "@$scratch/body" > "$scratch/one"
		jq -c --slurpfile one "$scratch/one" '$one[0] as $one |
		    if .input then .input += $one.output
		    elif $one.content then
		    .messages += [{role: "assistant", content: $one.content}]
		    else .messages += [$one.choices[0].message] end |
		    .tool_choice = "none"' "$scratch/body" > "$scratch/next"
		post /v1/$kind "@$scratch/next" > "$scratch/two"
		jq -s '(.[0].usage | .total_tokens // (.input_tokens +
		    .output_tokens)) as $one | .[1].usage |
		    (.prompt_tokens_details // .input_tokens_details //
		    {cached_tokens: .cache_read_input_tokens}).cached_tokens
		    as $cached | if $cached <= $one - 1 and
		    $cached > $one - 1 - 16 then empty else [$one, .] end' \
		    "$scratch/one" "$scratch/two"
	done
}

case_usage_is_what_it_is_told_to_be()
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

case_messages_count_cached_tokens_apart()
{
	start --scale 0.01
	usages /v1/messages "$chat" > "$scratch/usages"
	is cached "$(jq .cache_read_input_tokens "$scratch/usages" | xargs)" \
	    '0 32 32'
	is sums "$(jq '.input_tokens + .cache_read_input_tokens' \
	    "$scratch/usages" | uniq | wc -l)" 1
}

# Two of four ways to ask for none.
case_streams_have_usage_if_asked()
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
}

# Prefill would take for ever: only headers can be there, or nothing.
case_headers_come_early_or_late()
{
	for headers in early late; do
		start --prefill-rate 0.001 --headers $headers
		curl -sN "$url/v1/chat/completions" -d "$chat,$with_usage}" \
		    -D "$scratch/headers" > "$scratch/stream" &
		client=$!
		until_true 60 something_runs || echo "nothing runs"
		if [ $headers = early ]; then
			until_true 60 grep -q 'event-stream' "$scratch/headers" ||
			    cat "$scratch/headers"
			grep -q '^HTTP/1.1 200' "$scratch/headers" ||
			    cat "$scratch/headers"
		else
			sleep 1
			cat "$scratch/headers"
		fi
		kill "$client"
		wait "$client" 2> /dev/null && echo "an end"
		[ -s "$scratch/stream" ] && cat "$scratch/stream"
		stop
	done
}

case_wrong_requests_are_told()
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
	is 'no fault' "$(status '/fault?kind=error&percent=0' '')" 400
	is 'no get' "$(curl -s -o "$scratch/answer" -w '%{http_code}' \
	    "$url/fault?kind=die")" 405
	is health "$(curl -s -w '%{http_code}' "$url/health")" 200
	is models "$(curl -s "$url/v1/models" | jq -r '.data[].id')" m
	is owner "$(curl -s "$url/v1/models" | jq -r '.data[].owned_by')" vllm
	is version "$(curl -s "$url/version" | jq -r .version)" 0.20.0
	is tokens "$(post /tokenize '{"prompt":[5,6,7]}' |
	    jq -c '[.count, .tokens]')" '[3,[5,6,7]]'
	is chat "$(post /tokenize \
	    '{"messages":[{"role":"user","content":"a b"}]}' |
	    jq '.count == (.tokens | length) and .count > 2')" true
	is rendered "$(post /v1/chat/completions/render \
	    '{"messages":[{"role":"user","content":"a b"}]}' |
	    jq '.token_ids | length > 2')" true
	is none "$(status /tokenize '{}')" 400
}

case_several_prompts_are_answered()
{
	start --scale 0.01
	is texts "$(post /v1/completions '{"prompt":["a","b"],"n":2}' |
	    jq '.choices | length')" 4
	is embeddings "$(post /v1/embeddings '{"input":["a","b","c"]}' |
	    jq '.data | length')" 3
}

# ----------------------------------------------------------------- state ---

case_previous_responses_are_prompts()
{
	start --scale 0.01
	ask '"input":"Which blocks leave first?"'
	history=$(of '[{role: "user", content: "Which blocks leave first?"}] +
	    .output | tojson')
	before=$(of .usage.total_tokens)
	for turn in 2 3 4; do
		text="And number $turn?"
		ask "\"input\":[{\"role\":\"user\",\"content\":\"$text\"}],
		    \"previous_response_id\":\"$(of .id)\""
		history=$(printf %s "$history" | jq -c --arg text "$text" \
		    '. + [{role: "user", content: $text}]')
		turn_hits_turn $turn "$history"
		history=$(of "$history + .output | tojson")
	done
	is 'who came before' "$(of .previous_response_id | cut -c 1-5)" resp_
}

case_conversations_are_prompts()
{
	start --scale 0.01
	id=$(converse '{"items":[{"role":"system","content":"Be brief."}],
	    "metadata":{"a":"b"}}')
	is 'what it is' "$(get "/v1/conversations/$id" \
	    '[.id, .object, .metadata.a]')" \
	    "[\"$id\",\"conversation\",\"b\"]"
	before=1
	for turn in 1 2 3; do
		[ $turn -eq 2 ] && form="{\"id\":\"$id\"}" || form="\"$id\""
		history=$(get "/v1/conversations/$id/items" .data |
		    jq -c '. + [{role: "user", content: "And then?"}]')
		ask "\"input\":\"And then?\",\"conversation\":$form"
		is 'the conversation' "$(of .conversation.id)" "$id"
		turn_hits_turn $turn "$history"
		is 'its items' "$(get "/v1/conversations/$id/items" '[.object,
		    (.data | length), .last_id]')" \
		    "$(of "[\"list\", 1 + 2 * $turn, .output[-1].id] |
		    tojson")"
	done
	history=$(get "/v1/conversations/$id/items" .data)
	is 'added' "$(post "/v1/conversations/$id/items" \
	    '{"items":[{"role":"user","content":"x","id":"msg_1"}]}' |
	    jq -c '[(.data | length), .first_id]')" '[1,"msg_1"]'
	is 'and there' "$(get "/v1/conversations/$id/items" .data)" \
	    "$(printf %s "$history" | jq -c \
	    '. + [{"role":"user","content":"x","id":"msg_1"}]')"
	is 'deleted' "$(status "/v1/conversations/$id" '' -X DELETE)" 200
	is 'deleted' "$(of '[.id, .object, .deleted] | tojson')" \
	    "[\"$id\",\"conversation.deleted\",true]"
	for path in "$id" "$id/items"; do
		missing "/v1/conversations/$path" \
		    "Conversation with id '$id' not found."
	done
	ask "\"input\":\"a\",\"conversation\":\"$id\"" -w '%{http_code}'
	is 'a turn of none' "$(tail -c 3 "$scratch/answer")" 404
}

# Also one that a stream made.
case_responses_are_kept()
{
	start --scale 0.01 --tools 1 --reasoning
	id=$(converse)
	for more in '"stream":false' '"stream":true'; do
		post /v1/responses "$(body_with_tools responses Hi ",$more,
		    \"conversation\":\"$id\"")" > "$scratch/stream"
		if [ "$more" = '"stream":true' ]; then
			events | jq -c 'select(.type | test("created$")) |
			    .response | [.id, .conversation.id]' \
			    > "$scratch/created"
			events | jq -c 'select(.type | test("completed$")) |
			    .response' > "$scratch/whole"
			is 'ids of a stream' "$(cat "$scratch/created")" \
			    "$(jq -c "[.id, \"$id\"]" "$scratch/whole")"
		else
			cp "$scratch/stream" "$scratch/whole"
		fi
		one=/v1/responses/$(jq -r .id "$scratch/whole")
		is "kept, $more" "$(get "$one" .)" \
		    "$(jq -c . "$scratch/whole")"
		is "list, $more" "$(get "$one/input_items" .object)" list
		is "input, $more" "$(get "$one/input_items" '.data[-1]')" \
		    '{"role":"user","content":"Hi"}'
	done
	is 'earlier items' "$(get "$one/input_items" '.data | length')" \
	    "$(($(get "/v1/conversations/$id/items" '.data | length') -
	    $(jq '.output | length' "$scratch/whole")))"
	is 'to cancel' "$(status "$one/cancel" '')" 400
	is 'to write' "$(status "$one" '' -X PUT)" 405
	is 'to post' "$(status "$one" '')" 405
	is 'no path' "$(code_of "$one/x")" 404
	is 'deleted' "$(status "$one" '' -X DELETE)" 200
	is 'deleted' "$(of '[.id, .object, .deleted] | tojson')" \
	    "$(jq -c '[.id, "response", true]' "$scratch/whole")"
	missing "$one" "Response with id '${one##*/}' not found."
	missing "$one/input_items" "Response with id '${one##*/}' not found."
	for command in POST DELETE; do
		path=$([ $command = POST ] && echo "$one/cancel" || echo "$one")
		is "again, $command" "$(status "$path" '' -X $command)" 404
	done
	ask "\"previous_response_id\":\"${one##*/}\",\"input\":\"a\"" \
	    -w '%{http_code}'
	is 'a turn after none' "$(tail -c 3 "$scratch/answer")" 404
	grep -q "Response with id '${one##*/}' not found" "$scratch/answer" ||
	    cat "$scratch/answer"
}

case_responses_are_not_kept()
{
	start --scale 0.01 --responses 2
	ask '"input":"a","store":false'
	is 'not to be stored' "$(code_of "/v1/responses/$(of .id)")" 404
	id=$(converse)
	ask "\"input\":\"a\",\"store\":false,\"conversation\":\"$id\""
	is 'in a conversation' "$(get "/v1/conversations/$id/items" \
	    '.data | length')" 2
	for i in 1 2 3; do
		ask '"input":"a"'
		of .id
	done > "$scratch/ids"
	is 'the oldest leave' "$(while read -r one; do
		code_of "/v1/responses/$one"
		echo
	done < "$scratch/ids" | xargs)" '404 200 200'
	is 'a response and a conversation' "$(code_of "/v1/conversations/$id")" \
	    200
	stop
	start --scale 0.01 --responses 0
	ask '"input":"a"'
	is none "$(code_of "/v1/responses/$(of .id)")" 404
	is none "$(code_of "/v1/conversations/$(converse)")" 404
}

# The client leaves before the end, which would take for ever.
case_broken_streams_are_not_kept()
{
	start --decode-ms 100000
	id=$(converse)
	curl -sN "$url/v1/responses" -d "{\"input\":\"a\",\"stream\":true,
	    \"conversation\":\"$id\"}" > "$scratch/stream" &
	client=$!
	until_true 60 grep -q 'created.*}' "$scratch/stream" || echo "no stream"
	kill "$client"
	wait "$client" 2> /dev/null && echo "an end"
	one=$(events | jq -r 'select(.type | test("created$")).response.id')
	until_true 60 nothing_runs || echo "something runs"
	missing "/v1/responses/$one" "Response with id '$one' not found."
	is items "$(get "/v1/conversations/$id/items" '[.data, .last_id]')" \
	    '[[],null]'
}

# Others do not know them, nor the same one after a restart.
case_ids_are_of_one_engine()
{
	start --scale 0.01 --engines 2
	id=$(converse)
	ask '"input":"a"'
	one=$(of .id)
	fault kind=die
	is 'after breaking connections' "$(code_of "/v1/responses/$one")" 200
	first=$url
	url=http://127.0.0.1:$(sed -n 2p "$scratch/ports")
	missing "/v1/responses/$one" "Response with id '$one' not found."
	ask '"input":"a"'
	[ "$(of .id)" != "$one" ] || echo "two engines have one id"
	url=$first
	fault 'kind=restart&seconds=0.1'
	until_true 60 healthy || echo "it does not come back"
	missing "/v1/responses/$one" "Response with id '$one' not found."
	missing "/v1/conversations/$id" \
	    "Conversation with id '$id' not found."
	ask '"input":"a"'
	[ "$(of .id)" != "$one" ] || echo "an id comes again"
	stop
	for options in '' '' '--seed 5' '--seed 5' '--seed 6'; do
		# shellcheck disable=SC2086
		start --scale 0.01 $options
		ask '"input":"a"'
		of .id
		stop
	done > "$scratch/ids"
	echo "$one" >> "$scratch/ids"
	is 'how often each came' "$(sort "$scratch/ids" | uniq -c |
	    awk '{ print $1 }' | sort | xargs)" '1 1 1 1 2'
	is 'what they are' "$(grep -cvE '^resp_[0-9a-f]{24}$' "$scratch/ids")" 0
}

case_wrong_state_is_told()
{
	start --scale 0.01
	id=$(converse)
	for body in '{' '[]' 'null' '{"items":5}' '{"items":[]}' \
	    '{"items":[5]}' '{"items":[null]}'; do
		is "$body" "$(status /v1/conversations "$body")" 400
		is "items of $body" \
		    "$(status "/v1/conversations/$id/items" "$body")" 400
	done
	is 'no items' "$(status "/v1/conversations/$id/items" '{}')" 400
	is 'none added' "$(get "/v1/conversations/$id/items" .data)" '[]'
	is 'no list of all' "$(code_of /v1/conversations)" 405
	for path in /v1/responses/ /v1/responses/x /v1/conversations/ \
	    "/v1/responses/$id" "/v1/conversations/$id/" /v1/responses/%22x \
	    "/v1/responses/$(seq -s x 300)"; do
		is "$path" "$(code_of "$path")" 404
		of .error.message | grep -q . || echo "$path: no message"
	done
}

# ------------------------------------------------------------ connections ---

case_connections_are_kept()
{
	start --scale 0.01
	is connections "$(curl -s -m 20 -w '%{num_connects}' -o /dev/null \
	    -d "$chat}" "$url/v1/chat/completions" --next -s -m 20 -N \
	    -w '%{num_connects}' -o /dev/null -d "$chat,$with_usage}" \
	    "$url/v1/chat/completions" --next -s -m 20 -w '%{num_connects}' \
	    -o /dev/null "$url/health")" 100
}

# A client of HTTP/1.0 sees the end of a stream by the end of the connection.
case_old_clients_are_served()
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
}

# Two requests in one go: two answers, one after the other.
case_requests_may_come_together()
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
}

# A connection that is not closed would be read for ever.
case_idle_connections_are_closed()
{
	start --scale 0.01 --keepalive 0.2
	is statuses "$(perl -MIO::Socket::INET -e '
	    my $s = IO::Socket::INET->new(PeerAddr => $ARGV[0]) or die;
	    print $s "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";
	    local $/; print <$s>;' "${url#http://}" | grep -c '200 OK')" 1
}

# One of the blocks that vLLM counts is never a prompt's.
case_a_block_holds_nothing()
{
	start --scale 0.01 --block 16 --capacity 160
	is 'fills it' "$(status /v1/completions "{\"prompt\":$(ids 1 143),
	    \"max_tokens\":1}")" 200
	is 'is too long' "$(status /v1/completions "{\"prompt\":$(ids 1 144),
	    \"max_tokens\":1}")" 400
	stop
	start --scale 0.01 --block 16 --capacity 160 --publish sglang
	is 'fits SGLang' "$(status /v1/completions "{\"prompt\":$(ids 1 144),
	    \"max_tokens\":1}")" 200
}

case_large_bodies_are_read()
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
}

case_many_are_served_at_a_time()
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
}

# Answers would take for ever; clients go, in each stage and in the queue.
case_clients_may_leave() # slow
{
	start --sequences 2 --prefill-rate 20 --decode-ms 10000
	for more in '' ",$with_usage"; do
		for i in 1 2 3 4; do
			post /v1/chat/completions "$chat$more}" -m 4 \
			    > "$scratch/left" &
		done
		until_true 60 something_runs || echo "nothing runs"
		until_true 60 nothing_runs || echo "something runs"
	done
	is finished "$(metric request_success_total)" 0
	is held "$(metric kv_cache_usage_perc)" 0
}

case_it_ends_when_told()
{
	start --decode-ms 100000
	post /v1/chat/completions "$chat,$with_usage}" > "$scratch/stream" &
	client=$!
	until_true 60 something_runs || echo "nothing runs"
	stop
	wait "$client"
	is 'the client sees' $? 18
}

# ----------------------------------------------------------------- ranks ---

case_ranks_have_their_own_caches()
{
	start --ranks 3 --scale 0.01
	is 'the first time' "$(cached_with -H 'X-Data-Parallel-Rank: 1')" 0
	is 'another rank' "$(cached_with -H 'X-Data-Parallel-Rank: 2')" 0
	[ "$(cached_with -H 'x-data-parallel-rank: 1')" -gt 0 ] ||
	    echo 'nothing is cached on rank 1'
	is 'ranks with hits' "$(curl -s "$url/metrics" |
	    sed -n 's/^vllm:prefix_cache_hits_total{engine="\(.\)".* /\1 /p' |
	    awk '$2 > 0 { print $1 }')" 1
	is 'sizes published' "$(curl -s "$url/metrics" |
	    grep -c '^vllm:cache_config_info{.*engine="[012]"')" 3
}

case_ranks_that_do_not_exist()
{
	start --ranks 3 --scale 0.01
	for rank in 3 -1 x 1,1; do
		is "status of rank $rank" "$(status /v1/completions \
		    '{"prompt":"a"}' -H "X-Data-Parallel-Rank: $rank")" 400
	done
	is 'status of two' "$(status /v1/completions '{"prompt":"a"}' \
	    -H 'X-Data-Parallel-Rank: 1' -H 'X-Data-Parallel-Rank: 1')" 400
	is 'status without' "$(status /v1/completions '{"prompt":"a"}')" 200
}

# A request that names no rank goes where the fewest are.
case_engine_chooses_among_idle_ranks()
{
	start --ranks 2 --scale 0.01
	post /v1/completions '{"stream":true,"max_tokens":20000,"prompt":"a"}' \
	    > "$scratch/long" &
	streaming=$!
	until_true 60 test -s "$scratch/long"
	is status "$(status /v1/completions '{"prompt":"b"}')" 200
	is 'ended on' "$(curl -s "$url/metrics" |
	    sed -n 's/^vllm:request_success_total{engine="\(.\)".* 1$/\1/p')" 1
	stop
	wait $streaming
}

# --------------------------------------------------------------- metrics ---

case_metrics_are_told()
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
}

config='^vllm:cache_config_info{.*engine="0".*} 1\.0$'

# The size of the cache, in the words of each engine.
case_cache_is_published()
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
}

# Reading the list empties it: running sequences, and waiting ones.
case_iterations_are_published()
{
	start --capacity 4000 --block 40 --publish trtllm --sequences 2
	is 'before anything ran' "$(curl -s "$url/metrics")" '[]'
	is 'no server info' "$(code_of /get_server_info)" 404
	curl -s -m 10 -o "$scratch/answer" "$url/v1/completions" \
	    -d '{"prompt": "one two three", "max_tokens": 4}'
	is 'afterwards' "$(curl -s "$url/metrics" | jq -c '.[-1] |
	    [.numActiveRequests, .numQueuedRequests,
	    .kvCacheStats.maxNumBlocks]')" '[0,0,100]'
	is 'and then' "$(curl -s "$url/metrics")" '[]'
}

# ---------------------------------------------------------------- faults ---

case_refusing_lets_answers_end()
{
	start --decode-ms 50
	cached 1 100 > /dev/null
	begin_stream
	until_true 60 refuses refuse || echo "it is not refused"
	wait "$client" || echo "the stream ended with $?"
	tail -n 2 "$scratch/stream" | grep -q DONE || echo "the stream is cut"
	until_true 60 healthy || echo "it does not come back"
	is 'what it had' "$(cached 1 100)" 96
}

case_stalling_answers_nothing()
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
}

nothing_comes()
{
	lines=$(wc -l < "$scratch/stream")
	sleep 0.7
	[ "$(wc -l < "$scratch/stream")" -eq "$lines" ]
}

# The rest of a stream comes when the stall is over.
case_stalling_stops_streams()
{
	start --decode-ms 40
	begin_stream
	fault 'kind=stall&seconds=600'
	until_true 60 nothing_comes || echo "it does not stall"
	grep -q DONE "$scratch/stream" && echo "the stream has an end"
	fault 'kind=none'
	wait "$client" || echo "the stream ended with $?"
	tail -n 2 "$scratch/stream" | grep -q DONE || echo "the stream is cut"
}

case_dying_breaks_streams()
{
	start --decode-ms 1000
	cached 1 100 > /dev/null
	begin_stream
	fault 'kind=die'
	wait "$client"
	is 'the client sees' $? 18
	grep -q DONE "$scratch/stream" && echo "the stream has an end"
	is 'what it had' "$(cached 1 100)" 96
}

case_restarting_empties() # slow
{
	start --decode-ms 1000
	cached 1 100 > /dev/null
	is 'what it had' "$(cached 1 100)" 96
	begin_stream
	until_true 60 refuses restart || echo "it is not refused"
	wait "$client"
	is 'the client sees' $? 18
	until_true 60 healthy || echo "it does not come back"
	is finished "$(metric request_success_total)" 0
	is 'what it has' "$(cached 1 100)" 0
}

case_slowing_is_slow()
{
	start
	fault 'kind=slow&seconds=600&factor=1000000'
	post /v1/completions '{"prompt":"a"}' -m 1
	is 'the client sees' $? 28
	fault 'kind=none'
	is 'and then' "$(cached 1 20)" 0
}

case_errors_are_answers()
{
	start --scale 0.01
	fault 'kind=error&seconds=600'
	is status "$(status /v1/completions '{"prompt":"a"}')" 500
	fault 'kind=error&seconds=600&status=503'
	is status "$(status /v1/chat/completions "$chat,$with_usage}")" 503
	is health "$(curl -s -o /dev/null -w '%{http_code}' "$url/health")" 503
	fault 'kind=error&seconds=600&status=503&percent=50'
	is 'one in two' "$(for i in 1 2 3 4; do
	    status /v1/completions '{"prompt":"a"}'; echo; done | paste -s -d ' ')" \
	    '200 503 200 503'
	fault 'kind=error&seconds=0.2&status=429'
	until_true 60 healthy || echo "no end"
	is 'and then' "$(cached 1 20)" 0
}

# --------------------------------------------------------------- options ---

case_wrong_options_are_told()
{
	for options in '--port 70000' '--evict x' '--block 0' '--capacity 5' \
	    '--scale 0' '--usage' '--engines 2 --port 65535' 'x' \
	    '--batch 255' '--reads x' '--attention 999' '--sequences 0' \
	    '--tools 0' '--reasoning 1' '--responses -1'; do
		# shellcheck disable=SC2086
		"$build/kvroute-engine" --for 1 $options > "$scratch/out" 2>&1
		is "$options" $? 2
		[ -s "$scratch/out" ] || echo "$options: not a word"
	done
	start --scale 0.01
	"$build/kvroute-engine" --for 1 --port "${url##*:}" \
	    > "$scratch/out" 2>&1
	is 'a port that is taken' $? 1
}

finish()
{
	[ -z "$engine_pid" ] || stop
}

run "$2"
