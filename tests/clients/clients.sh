#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# clients.sh build - SDKs from npm through nginx to two of kvroute-engine; see
# check.mjs. A recorder before each engine, in the process of the clients,
# records the engine's answers:
#
#	clients --> nginx --> recorders --> engines
#
# The packages, 80 MB, come into the build folder from the npm registry, as
# package-lock.json has them; without node, npm or the registry it is skipped.
# In build/clients/failed is a line for each test that failed.
#
# Variables of setup.sh:
# shellcheck disable=SC1091,SC2034,SC2154
set -u

build=$1
here=$(dirname "$0")
. "$here/../nginx/setup.sh"
scratch=$build/clients
tally=$scratch/tally
node_wanted=20
seconds=300     # no engine runs longer

mkdir -p "$scratch" || exit 1
: > "$tally"
: > "$scratch/failed"

skip()
{
	printf '  %-14s skipped: %s\n' clients "$1"
	echo '0 passed, 0 failed, 1 skipped'
	echo 0 0 1 > "$tally"
	exit 0
}

# setup.sh calls this, too.
fail()
{
	printf '    FAILED   clients: %s\n' "$*"
	echo "clients: $* -- make check-clients" | head -n 1 >> "$scratch/failed"
	echo 0 1 0 >> "$tally"
	total
	exit 1
}

# Prints the failures once more, and the tally.
total()
{
	[ ! -s "$scratch/failed" ] || sed 's/^/FAILED  /' "$scratch/failed"
	sh mk/tally.sh "$tally"
}

# ------------------------------------------------------------- requirements

has_npm_registry()
{
	timeout --foreground 60 npm ping --fetch-retries 0 > /dev/null 2>&1
}

npm_install()
{
	(cd "$scratch" && timeout --foreground 300 npm ci --omit=optional \
	    --ignore-scripts --no-audit --no-fund --fetch-retries 1) \
	    > "$scratch/npm.log" 2>&1
}

install_once()
{
	cp "$here"/*.mjs "$here"/package*.json "$scratch" || return 1
	{ cat "$scratch"/package*.json && node --version; } > "$scratch/wanted"
	cmp -s "$scratch/wanted" "$scratch/installed" && return 0
	rm -rf "$scratch/node_modules" "$scratch/installed"
	npm_install && mv "$scratch/wanted" "$scratch/installed"
}

set_up()
{
	for tool in node npm; do
		command -v $tool > /dev/null 2>&1 || skip "$tool is not installed"
	done
	major=$(node --version | sed 's/^v\([0-9]*\).*/\1/')
	[ "$major" -ge $node_wanted ] ||
	    skip "node is older than $node_wanted: $(node --version)"
	install_once && return
	has_npm_registry || skip 'the npm registry is not there'
	fail "npm cannot install: $(tail -n 5 "$scratch/npm.log")"
}

# ----------------------------------------------------------------- running

tees_told()
{
	kill -0 "$chats_pid" 2> /dev/null || { tries=0; return 1; }
	[ -s "$work/tees" ]
}

# The clients are a child that setup.sh ends.
start_clients()
{
	(cd "$scratch" && exec node check.mjs \
	    "$(echo "$engine_ports" | tr ' ' ,)" "$work") &
	chats_pid=$!
	until_true 30 tees_told || fail 'the recorders do not start'
	upstream_ports=$(cat "$work/tees")
}

setup_begin
set_up
ENGINES_FOR=$seconds
start_engines 2 --scale 0.002 --tools 2 --reasoning
start_clients
kvroute_options='zone=kv:8m block=64'
location_lines='kvroute_include_usage on;'
start_nginx kvroute
echo "$port" > "$work/nginx.new"
mv "$work/nginx.new" "$work/nginx"
wait "$chats_pid" || fail 'the clients ended early'
chats_pid=
cat "$work/tally" >> "$tally"
[ ! -e "$work/failed" ] || cat "$work/failed" >> "$scratch/failed"
if grep -E '\[(emerg|alert|crit)\]' "$work/logs/error"; then
	fail 'nginx has alerts'
fi
total
