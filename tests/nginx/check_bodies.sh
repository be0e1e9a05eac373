#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_bodies.sh - cases of check.sh: invalid bodies. nginx passes on the
# engine's response and keeps running.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2016,SC2034,SC2154

quick_cases="${quick_cases:-} bodies_of_every_kind bodies_cut_at_some_bytes
    paths_without_a_prompt paths_mapped_by_proxy_pass endpoints_by_directive
    text_behind_a_photo lines_in_front_that_differ"
slow_cases="${slow_cases:-} bodies_cut_at_every_byte
    bodies_of_every_kind_from_files"

# post BASE FILE [path] - prints the status of the response.
post()
{
	curl -s -m 60 -o /dev/null -w '%{http_code}' -H 'Expect:' \
	    --data-binary @"$2" "$1${3:-/v1/chat/completions}"
}

# Generated bodies.
made_body()
{
	perl -e '
	my %made = (
	nested => "[" x 10000 . "]" x 10000,
	nested_content => q({"model":"m","messages":[{"role":"user","content":)
	    . "[" x 10000 . "]" x 10000 . "}]}",
	nested_later => q({"model":"m","prompt":"abc","x":) . "[" x 10000
	    . "]" x 10000 . "}",
	messages => q({"model":"m","max_tokens":1,"messages":[)
	    . join(",", map { qq({"role":"user","content":"m$_"}) } 1 .. 100000)
	    . "]}",
	large => q({"model":"m","max_tokens":1,"prompt":") . "word " x 6700000
	    . q("}),
	large_rubbish => "\x00\xff{" x 11000000,
	);
	print $made{$ARGV[0]};' "$1"
}

# name, body
small_bodies()
{
	cat <<-'END'
	one_byte {
	another x
	null null
	number 17
	list []
	no_members {}
	no_prompt {"model":"m"}
	empty_messages {"model":"m","messages":[]}
	empty_prompt {"model":"m","prompt":""}
	two_objects {"model":"m","prompt":"abc"}{"model":"m","prompt":"abc"}
	open_string {"model":"m","messages":[{"role":"user","content":"abc
	twice {"model":"a","messages":[{"role":"user","content":"x"}],"model":"b","messages":[{"role":"user","content":"y"}]}
	numbers {"model":7,"messages":[{"role":1,"content":2}],"stream":3}
	objects {"model":{},"messages":{"role":[]},"stream":"yes"}
	odd_messages {"model":"m","messages":[1,"a",null,[],{}]}
	surrogates {"model":"m","messages":[{"role":"user","content":"\ud800 \udc00\u0000"}]}
	big_number {"model":"m","messages":[{"role":"user","content":"a"}],"max_tokens":1e400}
	END
}

write_bodies()
{
	mkdir -p "$work/out/bodies"
	: > "$work/out/bodies/empty"
	small_bodies | while read -r name body; do
		printf '%s' "$body" > "$work/out/bodies/$name"
	done
	printf '{"model":"m","messages":[{"role":"user","content":"\303\050\377"}]}' \
	    > "$work/out/bodies/not_utf8"
	for name in nested nested_content nested_later messages large \
	    large_rubbish; do
		made_body $name > "$work/out/bodies/$name"
	done
}

bodies_of_every_kind()
{
	up
	write_bodies
	engine=http://127.0.0.1:$(nth 1 "$engine_ports")
	sent=0
	for file in "$work"/out/bodies/*; do
		wanted=$(post "$engine" "$file")
		is "status for ${file##*/}" \
		    "$(post "http://127.0.0.1:$port" "$file")" "$wanted"
		sent=$((sent + 1))
		curl -s -m 60 -H 'Expect:' --data-binary @"$file" \
		    "http://127.0.0.1:$port/kvroute/explain" |
		    jq -e .outcome > /dev/null ||
		    echo "no explanation of ${file##*/}"
	done
	is 'requests counted' "$(json '.upstreams[0].reasons | add')" $sent
	above 'bodies cut' "$(json '.upstreams[0].bodies_truncated')" 1
	talk --requests 12 --chats 2 --think-ms 1
	no_errors 'afterwards'
	settled
}

bodies_of_every_kind_from_files()
{
	body_buffer=1k
	bodies_of_every_kind
}

# cut_bodies STEP - sends only the first bytes of a valid body.
cut_bodies()
{
	up
	"$build/kvroute-chats" --make-body 1500 --turn-bytes 100 \
	    > "$work/body"
	end=$(wc -c < "$work/body")
	n=0
	while [ $n -lt "$end" ]; do
		head -c $n "$work/body" > "$work/out/cut$n"
		[ $n -eq 0 ] || echo next
		printf 'url=http://127.0.0.1:%s/v1/chat/completions\n' "$port"
		printf 'data-binary=@%s/out/cut%s\noutput=/dev/null\n' \
		    "$work" $n
		printf 'header=Expect:\nwrite-out=%%{http_code}\\n\n'
		n=$((n + $1))
	done > "$work/curl"
	curl -s -m 300 -K "$work/curl" | sort | uniq -c > "$work/statuses"
	is 'statuses of cut bodies' "$(awk '{ print $2 }' "$work/statuses" |
	    paste -s -d ' ')" 400
	is 'requests counted' "$(json '.upstreams[0].reasons | add')" \
	    $(((end + $1 - 1) / $1))
	is 'blocks of refused bodies' \
	    "$(json '.upstreams[0].region.held_blocks')" 0
	settled
}

bodies_cut_at_some_bytes()
{
	cut_bodies 97
}

bodies_cut_at_every_byte()
{
	cut_bodies 1
}

paths_without_a_prompt()
{
	up
	echo '{"model":"m","input":"abc"}' > "$work/body"
	is 'status of embeddings' "$(post "http://127.0.0.1:$port" \
	    "$work/body" /v1/embeddings)" 200
	is 'status of models' "$(curl -s -m 10 -o /dev/null \
	    -w '%{http_code}' "http://127.0.0.1:$port/v1/models")" 200
	is 'status of nothing' "$(post "http://127.0.0.1:$port" \
	    "$work/body" /v1/nothing)" 404
	is 'requests to no endpoint' \
	    "$(json '.upstreams[0].reasons.endpoint')" 3
	is 'body without a prompt' "$(curl -s -m 10 -o /dev/null \
	    -w '%{http_code}' "http://127.0.0.1:$port/v1/completions")" \
	    "$(curl -s -m 10 -o /dev/null -w '%{http_code}' \
	    "http://127.0.0.1:$(nth 1 "$engine_ports")/v1/completions")"
	is 'requests without a body' \
	    "$(json '.upstreams[0].reasons.no_body')" 1
	settled
}

# chat_body BYTES [TEXT] - a chat of one message.
chat_body()
{
	perl -e 'printf q({"model":"m","max_tokens":1,"messages":[{"role":).
	    q("user","content":"%s"}]}), $ARGV[1] . "word " x ($ARGV[0] / 5);
	' "$1" "${2:-}"
}

# overlap_of FILE [PATH] - predicted and all blocks, as explained.
overlap_of()
{
	curl -s -m 10 -H 'Expect:' --data-binary @"$1" \
	    "http://127.0.0.1:$port/kvroute/explain?uri=${2:-/v1/chat/completions}" |
	    jq -r '"\([.candidates[].overlap_blocks] | max) \(.blocks)"'
}

# The engine's path counts, for long bodies as well.
paths_mapped_by_proxy_pass()
{
	processes=1
	passed='proxy_http_version 1.1; proxy_set_header Connection "";'
	location_lines="} location = /ask { $passed
	    proxy_pass http://engines/v1/chat/completions;
	    } location /llm/ { $passed proxy_pass http://engines/v1/;
	    } location /other/ { $passed proxy_pass http://engines/;"
	up
	here=http://127.0.0.1:$port
	chat_body 2000 > "$work/body"
	chat_body 200000 > "$work/long"
	is 'status' "$(post "$here" "$work/body" /ask)" 200
	is 'overlap' "$(overlap_of "$work/body")" \
	    "$(overlap_of "$work/body" | sed 's/.* \(.*\)/\1 \1/')"
	post "$here" "$work/long" /ask > /dev/null
	post "$here" "$work/long" '/llm/chat/completions?x=/y' > /dev/null
	post "$here" "$work/long" /llm/messages > /dev/null
	post "$here" "$work/long" /llm/messages > /dev/null
	post "$here" "$work/body" /v1/chat/completions/ > /dev/null
	post "$here" "$work/body" /v1/chat/complet%69ons > /dev/null
	is 'chats' "$(json '.upstreams[0].endpoints.chat')" 5
	is 'messages' "$(json '.upstreams[0].endpoints.messages')" 2
	# the first one of a path is read at the choice
	is 'bodies held' "$(json '.upstreams[0].bodies_held')" 3
	is 'bodies read' "$(json '.upstreams[0].bodies_read')" 7
	is 'no endpoint' "$(json '.upstreams[0].reasons.endpoint')" 0
	post "$here" "$work/body" '/v1/embed"ings?x' > /dev/null
	post "$here" "$work/body" '/v1/rerank?x=/v1/chat/completions' > /dev/null
	post "$here" "$work/body" /v1/rerank > /dev/null
	post "$here" "$work/body" /other/x > /dev/null
	long=/$(printf 'y%.0s' $(seq 70))
	post "$here" "$work/body" "/other${long}a" > /dev/null
	post "$here" "$work/body" "/other${long}b" > /dev/null
	is 'of long ones, as they are shown' "$(json "
	    .upstreams[0].unknown_paths[\"$(echo "$long" | cut -c -64)\"]")" 2
	is 'unknown paths' "$(json '.upstreams[0].unknown_paths |
	    del(.[keys[] | select(startswith("/yyy"))]) |
	    to_entries | map("\(.key)=\(.value)") | join(" ")')" \
	    '/v1/embed?ings=1 /v1/rerank=2 /x=1'
	is 'as a metric' "$(curl -s -m 10 "$here/kvroute/metrics" | grep -c \
	    '^kvroute_nginx_unknown_paths_total{upstream="engines",path="/v1/rerank"} 2')" 1
	for n in $(seq 30); do
		post "$here" "$work/body" "/v1/path$n" > /dev/null
	done
	is 'places' "$(json '.upstreams[0].unknown_paths | length')" 16
	is 'the rest' "$(json '.upstreams[0].unknown_paths["*"]')" 19
	settled
}

endpoints_by_directive()
{
	location_lines='kvroute_endpoint chat; } location = /none {
	    proxy_pass http://engines/v1/chat/completions;
	    kvroute_endpoint none;'
	up
	chat_body 2000 > "$work/body"
	post "http://127.0.0.1:$port" "$work/body" /v1/unheard/of > /dev/null
	post "http://127.0.0.1:$port" "$work/body" /none > /dev/null
	is 'chats' "$(json '.upstreams[0].endpoints.chat')" 1
	is 'none' "$(json '.upstreams[0].reasons.endpoint')" 1
	settled
}

# photo_body BYTES CHAT - a photo ahead of the text.
photo_body()
{
	perl -e 'printf q({"model":"m","max_tokens":1,"messages":[{"role":).
	    q("user","content":[{"type":"image_url","image_url":{"url":).
	    q("data:image/jpeg;base64,%s"}},{"type":"text","text":"%s"}]}]}),
	    "A0b/" x ($ARGV[0] / 4), "chat $ARGV[1], " x 4000;' "$1" "$2"
}

text_behind_a_photo()
{
	location_lines='kvroute_max_body 64k;'
	http_lines=$location_lines
	location_lines=
	up
	for n in 1 2; do
		photo_body 5000000 $n > "$work/photo$n"
	done
	post "http://127.0.0.1:$port" "$work/photo1" > /dev/null
	above 'blocks' "$(overlap_of "$work/photo1" | cut -d ' ' -f 2)" 100
	is 'the same' "$(overlap_of "$work/photo1" | cut -d ' ' -f 1)" \
	    "$(overlap_of "$work/photo1" | cut -d ' ' -f 2)"
	is 'another text' "$(overlap_of "$work/photo2" | cut -d ' ' -f 1)" 0
	is 'cut' "$(json '.upstreams[0].bodies_truncated')" 0
	# text counts
	chat_body 100000 > "$work/body"
	post "http://127.0.0.1:$port" "$work/body" > /dev/null
	is 'cut' "$(json '.upstreams[0].bodies_truncated')" 1
	settled
}

# nonces N - requests that differ in their first line only.
nonces()
{
	for n in $(seq "$1"); do
		chat_body 20000 "time: 2026-11-27 10:00:$((n + 100))\\n" \
		    > "$work/body"
		post "http://127.0.0.1:$port" "$work/body" > /dev/null
	done
}

# An operator is told, and may name the line.
lines_in_front_that_differ()
{
	processes=1
	up
	nonces 70
	is 'parted' "$(json '.upstreams[0].prompts_parted')" 69
	is 'as a metric' "$(metric kvroute_nginx_prompts_parted_total)" 69
	is 'warnings' "$(grep -c 'kvroute_ignore_line' "$work/logs/error")" 1
	is 'overlap' "$(overlap_of "$work/body" | cut -d ' ' -f 1)" \
	    "$(overlap_of "$work/body" | cut -d ' ' -f 2)"
	http_lines='kvroute_ignore_line "^(time|date): [0-9: -]+$";'
	reload_nginx kvroute
	nonces 3
	is 'no more parted' "$(json '.upstreams[0].prompts_parted')" 69
	chat_body 20000 'time: 2027-01-01 10:00:000\n' > "$work/body"
	is 'overlap of another' "$(overlap_of "$work/body" | cut -d ' ' -f 1)" \
	    "$(overlap_of "$work/body" | cut -d ' ' -f 2)"
	settled
}
