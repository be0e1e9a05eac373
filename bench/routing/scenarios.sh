#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# scenarios.sh REPLAY TRACEGEN TRACES FOLDER [NAME]... - compares the library's
# default cost with its rivals on the scenarios of scenarios.tsv, and on loads
# that draw.awk draws (random): all, or those whose name, family or mark is
# given. Prints Markdown; fails when the default is worse than it may be.
#
# Every policy of a scenario and seed gets the same requests. Each result is a
# file FOLDER/SCENARIO/POLICY.SEED.kv; existing ones are not run again, so an
# interrupted run can be continued. Remove them when the code has changed:
# with POLICIES, only those of some policies.
#
# Rivals are at their best published settings. Those with an index know as much
# as the policy that is compared with them. A policy with @MODE is run in the
# family keys alone; other policies are not told of the sessions of
# `conversation`, which its trace does not name.
#
# SEEDS="1 2 3", POLICIES="...": what is run. JOBS: how many at a time. TABLE:
# another one than scenarios.tsv, without random loads. RANDOM_LOADS=40: how
# many are drawn; they are run with the first seed alone. WORST=2: a limit for
# the mean TTFT of each scenario, over that of the best rival. RETURNS=0.5: the
# share of its fair share that a worker gets which joins or recovers.
# TRACES has conversation_trace.jsonl and agentic/.
set -eu

here=$(dirname "$0")
free='round-robin least-loaded least-backlog sticky chbl cache-aware'
by_index='lmetric dynamo dynamo[credit=2,prefill=4,request=64] ramjet two-tier'
# Prints the rules that use an index, with the same knowledge as ours.
rivals()
{
	for known in feedback capacity; do
		for rule in $by_index; do
			echo "$rule:$known"
		done
	done
}
policies=${POLICIES:-$free $(rivals) balanced:feedback balanced:capacity
	balanced:feedback@soft balanced:capacity@soft}
seeds=${SEEDS:-1 2 3}
table=${TABLE:-$here/scenarios.tsv}
tab=$(printf '\t')

# The line of a scenario as variables.
read_line()
{
	IFS=$tab read -r family name requests options marks <<-END
	$(awk -F '\t' -v name="$1" '!/^#/ && $2 == name' "$table")
	END
}

# Is this policy run in the scenario at hand?
applies()
{
	case $family:$1 in
	keys:balanced:*@*) ;;
	keys:balanced:* | *@*) return 1 ;;
	esac
}

# ----------------------------------------------------------- one and a seed

# Writes the requests of the scenario at hand, by the seed `draw`; for a kind of
# sessions, to a folder.
generate()
{
	# shellcheck disable=SC2086
	set -- $requests
	kind=$1
	shift
	case $kind in
	conversation)
		for value; do
			set -- "$@" -v "$value"
			shift
		done
		awk -v "seed=$draw" "$@" -f "$here/vary.awk" \
		    "$traces/conversation_trace.jsonl" |
		    sort -s -n -k 1,1 | cut -d ' ' -f 2- ;;
	generated)
		mkdir "$work/sessions"
		"$tracegen" --family sessions --out "$work/sessions" \
		    --seed "$draw" "$@" ;;
	synthetic)
		"$tracegen" --seed "$draw" "$@" ;;
	*)
		"$tracegen" --family "$kind" --seed "$draw" "$@" ;;
	esac
}

# Splits output into a file for each policy, below a folder. The seed is that of
# the table, also where others were drawn.
split_rows()
{
	awk -v folder="$1" -v name="$2" -v seed="$3" '
	$0 == "" { next }
	/^policy=/ {
		close(file)
		file = folder "/" substr($0, 8) "." seed ".kv"
		print "scenario=" name > file
	}
	/^seed=/ { $0 = "seed=" seed }
	{ print > file }'
}

# Runs policies, if any: input, options.
run()
{
	from=$1
	shift
	[ $# -gt 0 ] || return 0
	# shellcheck disable=SC2086
	"$replay" --simulate -q --format kv --seed "$draw" $slo $options "$@" \
	    $from
	echo
}

# Runs the policies whose results are missing.
one()
{
	read_line "$1"
	seed=$2
	draw=$seed
	case ,$marks, in
	*,held,*) draw=$((draw + 1000)) ;;
	esac
	plain=
	keyed=
	for policy in $policies; do
		applies "$policy" || continue
		[ ! -s "$out/$name/$policy.$seed.kv" ] || continue
		case $policy in
		*@*) keyed="$keyed --policy $policy" ;;
		*) plain="$plain --policy $policy" ;;
		esac
	done
	[ -n "$plain$keyed" ] || return 0
	work=$out/$name/.$seed
	rm -rf "$work"
	mkdir -p "$work/rows"
	case $requests in
	sessions*) input="--sessions $traces/agentic" ;;
	generated*)
		generate
		input="--sessions $work/sessions" ;;
	*)
		generate > "$work/trace"
		input=$work/trace ;;
	esac
	seen=$input
	case $requests in
	conversation*)
		sed 's/"session": [0-9]*, //' "$work/trace" > "$work/plain"
		seen=$work/plain ;;
	esac
	# shellcheck disable=SC2086
	{
		run "$seen" $plain
		run "$input" $keyed
	} > "$work/kv"
	split_rows "$work/rows" "$name" "$seed" < "$work/kv"
	mv "$work"/rows/* "$out/$name"
	rm -rf "$work"
	echo "  $name, seed $seed" >&2
}

# --------------------------------------------------------------------- all

family_of()
{
	case $1 in
	generated) echo sessions ;;
	*) echo "$1" ;;
	esac
}

# Why the scenario at hand cannot be run; nothing: it can.
obstacle()
{
	# shellcheck disable=SC2086
	set -- $requests
	case $1 in
	conversation)
		[ -r "$traces/conversation_trace.jsonl" ] ||
		    echo 'no conversation_trace.jsonl' ;;
	sessions)
		[ -d "$traces/agentic" ] || echo 'no agentic sessions'
		lacks "$replay_help" --sessions ;;
	synthetic) lacks "$tracegen_help" --requests --duration ;;
	*)
		lacks "$tracegen_help" --family "$(family_of "$1")"
		# shellcheck disable=SC2046
		lacks "$tracegen_help" $(printf '%s\n' "$@" | grep '^--') ;;
	esac
	# shellcheck disable=SC2046,SC2086
	lacks "$replay_help" $(printf '%s\n' $options | grep '^--')
}

# Words that a help text does not have.
lacks()
{
	help=$1
	shift
	for word; do
		printf '%s\n' "$help" | grep -qE -e "(^|[^a-z-])$word([^a-z-]|\$)" ||
		    echo "no $word"
	done
}

# The seeds of the scenario at hand; a random load is a seed of its own.
seeds_of()
{
	case ,$marks, in
	*,random,*) echo "${seeds%% *}" ;;
	*) echo "$seeds" ;;
	esac
}

# Names of the scenarios of the table that are wanted.
wanted()
{
	awk -F '\t' -v all="$*" '
	BEGIN { n = split(all, want, "[ ,]+"); for (i in want) is[want[i]] }
	function marked(    i, n, mark)
	{
		n = split($5, mark, ",")
		for (i = 1; i <= n; i++)
			if (mark[i] in is)
				return 1
		return 0
	}
	!/^#/ && NF >= 4 && (all == "" || $1 in is || $2 in is || marked()) {
		print $2
	}' \
	    "$table"
}

replay=$1 tracegen=$2 traces=$3 out=$4
shift 4
replay_help=$("$replay" --simulate --help)
tracegen_help=$("$tracegen" --help)
slo=
[ -n "$(lacks "$replay_help" --slo)" ] || slo='--slo 1,50'

if [ "${1:-}" = --one ]; then
	one "$2" "$3"
	exit
fi

# The scenarios, and loads that are drawn: the same ones each time.
with_random()
{
	cat "$here/scenarios.tsv"
	awk -v seed=2027 -v first=1 -v "last=${RANDOM_LOADS:-40}" \
	    -f "$here/draw.awk" | sed "s/\$/${tab}random/"
}

mkdir -p "$out"
[ -n "${TABLE:-}" ] || { with_random > "$out/table" && table=$out/table; }
: > "$out/skipped"
: > "$out/jobs"
names=$(wanted "$@")
whole=0
[ $# -gt 0 ] || whole=1
[ -n "$names" ] || { echo "no such scenario: $*" >&2; exit 2; }
for name in $names; do
	read_line "$name"
	why=$(obstacle | sort -u | paste -s -d , -)
	if [ -n "$why" ]; then
		printf 'skipped\t%s\t%s\n' "$name" "$why" >> "$out/skipped"
		continue
	fi
	for seed in $(seeds_of); do
		echo "$name $seed" >> "$out/jobs"
	done
done

# A run that fails says why; its results are missing below.
TABLE=$table POLICIES=$policies xargs -P "${JOBS:-$(nproc)}" -L 1 sh "$0" "$replay" \
    "$tracegen" "$traces" "$out" --one < "$out/jobs" || :

# shellcheck disable=SC2086,SC2116
for name in $names; do
	for policy in $policies; do
		cat "$out/$name/$policy".[0-9]*.kv 2> /dev/null || :
	done
done | awk -v free="$(echo $free)" -v by_index="$(echo $by_index)" \
    -v wanted="$(echo $names)" -v seeds="$(echo $seeds)" \
    -v worst="${WORST:-}" -v returns="${RETURNS:-}" -v "whole=$whole" \
    -f "$here/judge.awk" "$table" "$out/skipped" -
