#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_bodies.sh - cases of check.sh: invalid bodies. nginx passes on the
# engine's response and keeps running.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2034,SC2154

quick_cases="${quick_cases:-} bodies_of_every_kind bodies_cut_at_some_bytes
    paths_without_a_prompt"
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
