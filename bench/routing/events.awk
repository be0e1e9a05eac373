# SPDX-License-Identifier: BSD-2-Clause
# events.awk - the table of events.sh. Input: run=LOAD-CONDITION.SEED, then
# name=value as kvroute-replay prints them, for each policy. Means over seeds.

# One policy of one run has been read.
function keep(	what, key)
{
	if (v["policy"] == "")
		return
	found[run] = 1
	what = run
	sub(/\.[0-9]+$/, "", what)
	if (!(what in known)) {
		known[what] = 1
		order[++n] = what
	}
	if (!(v["policy"] in column)) {
		column[v["policy"]] = ++columns
		policy[columns] = v["policy"]
	}
	key = what SUBSEP column[v["policy"]]
	seeds[key]++
	hits[key] += 100 * v["hit_ratio"]
	first[key] += v["ttft_mean"]
	error[key] += 100 * v["error_blocks"] * 512 * (v["requests"] - \
	    v["bypassed"]) / v["prompt_tokens"]
	split("", v)
}

function cell(key)
{
	if (!(key in seeds))
		return "-"
	return sprintf("%.4f, %.2f, %.2f", first[key] / seeds[key],
	    hits[key] / seeds[key], error[key] / seeds[key])
}

{
	split($1, pair, "=")
	if (pair[1] == "run") {
		keep()
		run = pair[2]
		wanted[run] = 1
		next
	}
	if (pair[1] == "policy")
		keep()
	v[pair[1]] = pair[2]
}

END {
	keep()
	printf "| load and condition |"
	for (i = 1; i <= columns; i++)
		printf " %s |", policy[i]
	printf "\n|---|"
	for (i = 1; i <= columns; i++)
		printf "---|"
	printf "\n"
	for (i = 1; i <= n; i++) {
		printf "| %s |", order[i]
		for (j = 1; j <= columns; j++)
			printf " %s |", cell(order[i] SUBSEP j)
		printf "\n"
	}
	for (run in wanted)
		if (!(run in found)) {
			print "MISSED: there are no results of " run
			missed++
		}
	exit missed > 0
}
