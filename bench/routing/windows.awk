# SPDX-License-Identifier: BSD-2-Clause
# windows.awk - the table of windows.sh. Input: run=LOAD-MODE.SEED[.unaware],
# then name=value as kvroute-replay prints them, for each policy. Means over
# seeds.

# One policy of one run has been read.
function keep(	what, key)
{
	if (v["policy"] == "")
		return
	found[run] = 1
	what = run
	aware = sub(/\.unaware$/, "", what) ? "unaware" : "aware"
	sub(/\.[0-9]+$/, "", what)
	key = what SUBSEP v["policy"]
	if (!(key in known)) {
		known[key] = 1
		order[++n] = key
	}
	key = key SUBSEP aware
	seeds[key]++
	error[key] += 100 * v["error_blocks"] * 512 * v["requests"] / \
	    v["prompt_tokens"]
	hits[key] += v["hit_ratio"]
	first[key] += v["ttft_mean"]
	whole[key] += v["request_mean"]
	split("", v)
}

# Its mean with and without knowledge.
function both(sum, key, form,	a, u)
{
	a = key SUBSEP "aware"
	u = key SUBSEP "unaware"
	return sprintf(form " / " form, sum[a] / seeds[a], sum[u] / seeds[u])
}

# By capacity: at most 5 % where the ends tell all, half of the other elsewhere.
function limit(key, name, policy,	a, u)
{
	a = error[key SUBSEP "aware"]
	u = error[key SUBSEP "unaware"]
	if (policy != "balanced:capacity")
		return ""
	if (name ~ /(full|boundary)$/)
		ok = a / seeds[key SUBSEP "aware"] <= 5
	else
		ok = a <= u / 2 || a / seeds[key SUBSEP "aware"] <= 0.05
	missed += !ok
	return ok ? " (reached)" : " (MISSED)"
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
	print "| engines | policy | error of the prediction, % | hits |" \
	    " TTFT mean, s | request mean, s | seeds |"
	print "|---|---|---|---|---|---|---|"
	for (i = 1; i <= n; i++) {
		split(order[i], part, SUBSEP)
		if (!((order[i] SUBSEP "aware") in seeds) ||
		    !((order[i] SUBSEP "unaware") in seeds))
			continue
		printf "| %s | %s | %s%s | %s | %s | %s | %d |\n", part[1],
		    part[2], both(error, order[i], "%.2f"),
		    limit(order[i], part[1], part[2]),
		    both(hits, order[i], "%.4f"),
		    both(first, order[i], "%.4f"),
		    both(whole, order[i], "%.3f"),
		    seeds[order[i] SUBSEP "aware"]
	}
	for (run in wanted)
		if (!(run in found)) {
			print "MISSED: there are no results of " run
			missed++
		}
	exit missed > 0
}
