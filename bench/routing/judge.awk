# SPDX-License-Identifier: BSD-2-Clause
# judge.awk - what scenarios.sh ran, as Markdown: the library's default cost
# beside the best rival of each scenario. Reads the table of scenarios, the list
# of skipped ones, and results with a line scenario=NAME before each. Exits with
# 1 if a limit is missed or a result is missing.
#
# A figure is at[scenario, policy, seed, name]. All policies of a scenario and
# seed met the same requests. A ratio is that of geometric means over the seeds.
# The best rival is the best one by that figure alone, of those that know
# nothing of caches and those that know as much as the policy that is judged:
# balanced:feedback is compared with lmetric:feedback, and so on. In the family
# keys, where text does not tell sessions, rivals have keys, and balanced too:
# @soft.
#
# Groups: all (of scenarios.tsv), held (marked so), agents (recorded sessions),
# users (few at a time), random (drawn by draw.awk, with the first seed), and
# routers, several that tell each other nothing, where rules that need no memory
# are ahead: these are in no other group, nor are overloaded ones. whole: all
# scenarios are meant, so figures of groups have limits.
# worst: another limit than those of the groups, for single scenarios.

BEGIN {
	FS = "\t"
	n_free = split(free, free_of, " ")
	n_index = split(by_index, index_of, " ")
	n_wanted = split(wanted, wanted_of, " ")
	n_seeds = split(seeds, seed_of, " ")
	n_known = split("feedback capacity", known, " ")
	n_figures = split("ttft_mean ttft_p90 request_mean", figures, " ")
	split("TTFT mean,TTFT p90,s per request", texts, ",")
	n_groups = split("all held agents random users routers", groups, " ")
	limits["all"] = "1.01 1.03 1.01 1.25"
	limits["held"] = "1.02 1.05 1.02 1.5"
	limits["agents"] = ".92 1 .995 1.05"
	limits["random"] = "1.01 1.04 1 1.5"
	limits["users"] = limits["routers"] = "" # only printed
	HITS = .95    # of the best method's, with few users
	GAP = 1.02    # feedback over capacity, of agents, in the mean
	GAP_WORST = 1.1
	RETURN = returns == "" ? .5 : returns # of its share, of a worker
}

/^#/ { next }
$1 == "skipped" { why[$2] = $3; next }
NF >= 4 {
	family[$2] = $1
	split($3, word, " ")
	kind[$2] = word[1]
	mark[$2] = "," $5 ($4 ~ /--replicas/ ? ",routers," : ",")
	next
}
/^scenario=/ { scenario = substr($0, 10); next }
/^policy=/ { policy = substr($0, 8); n_pending = 0; next }
/^seed=/ {
	seed = substr($0, 6)
	for (i = 1; i <= n_pending; i++)
		keep(pending[i])
	n_pending = -1
	next
}
# Some lines precede the seed.
n_pending >= 0 { pending[++n_pending] = $0; next }
{ keep($0) }

function keep(line,    part)
{
	split(line, part, "=")
	at[scenario, policy, seed, part[1]] = part[2]
}

function has(name, which)
{
	return index(mark[name], "," which ",") > 0
}

# Is it part of this group?
function in_group(name, group)
{
	if (has(name, "overloaded"))
		return 0
	if (group == "routers" || has(name, "routers"))
		return group == "routers" && has(name, "routers")
	if (group == "all")
		return !has(name, "random")
	if (group == "agents")
		return kind[name] == "sessions"
	if (group == "users")
		return family[name] == "users"
	return has(name, group)
}

# ---------------------------------------------------------------- figures

# Geometric mean over the seeds; -1: missing.
function value(name, policy, figure,    i, k, sum, n)
{
	n = has(name, "random") ? 1 : n_seeds
	for (i = 1; i <= n; i++) {
		k = name SUBSEP policy SUBSEP seed_of[i] SUBSEP figure
		if (!(k in at))
			return -1
		sum += log(at[k] > 1e-6 ? at[k] : 1e-6)
	}
	return exp(sum / n)
}

function subject(name, knows)
{
	return "balanced:" knows (family[name] == "keys" ? "@soft" : "")
}

# Sets best and best_name: the least, or if sign is -1 the most, of the rivals.
function find_best(name, knows, figure, sign,    i, v)
{
	best = -1
	for (i = 1; i <= n_free; i++)
		offer(name, free_of[i], figure, sign)
	for (i = 1; i <= n_index; i++)
		offer(name, index_of[i] ":" knows, figure, sign)
}

function offer(name, policy, figure, sign,    v)
{
	v = value(name, policy, figure)
	if (v < 0 || (best >= 0 && sign * v >= sign * best))
		return
	best = v
	best_name = policy
}

# The ratio to the best rival; -1: a result is missing.
function ratio_of(name, knows, figure,    v)
{
	v = value(name, subject(name, knows), figure)
	find_best(name, knows, figure, 1)
	return v < 0 || best < 0 ? -1 : v / best
}

# ----------------------------------------------------------------- tables

function table_of(which,    i, m, name)
{
	printf "\n### %s\n\n| scenario |", which
	for (i = 1; i <= n_known; i++)
		printf " best rival, with %s | balanced:%s |", known[i], \
		    known[i]
	printf "\n|---|"
	for (i = 1; i <= n_known; i++)
		printf "---|---|"
	printf "\n"
	for (m = 1; m <= n_wanted; m++) {
		name = wanted_of[m]
		if (family[name] != which || (name in why))
			continue
		printf "| %s |", name
		for (i = 1; i <= n_known; i++)
			cells(name, known[i])
		printf "\n"
	}
}

# The best rival by mean TTFT, its figure, and our three with their ratios.
function cells(name, knows,    i, v, r)
{
	r = ratio_of(name, knows, figures[1])
	if (r < 0) {
		printf " NOT RUN | |"
		missed++
		return
	}
	printf " %s %.3f |", best_name, best
	for (i = 1; i <= n_figures; i++) {
		v = value(name, subject(name, knows), figures[i])
		printf " %.3f (%.2f)", v, ratio_of(name, knows, figures[i])
	}
	printf " |"
}

# ------------------------------------------------------------ with limits

# A line: a figure, its value, its limit; or "".
function line(text, policy, v, sign, limit,    kept)
{
	if (limit == "") {
		printf "| %s | %s | %.3f | | |\n", text, policy, v
		return
	}
	kept = v >= 0 && (sign == ">=" ? v >= limit - 1e-9 : v <= limit + 1e-9)
	missed += !kept
	printf "| %s | %s | %s | %s %.3f | %s |\n", text, policy, \
	    v < 0 ? "-" : sprintf("%.3f", v), sign, limit, \
	    kept ? "kept" : "MISSED"
}

function heading(title)
{
	printf "\n### %s\n\n| figure | policy | value | limit | |\n", title
	print "|---|---|---|---|---|"
}

# Of a group: sets mean_of[figure], worst_of and worst_name; returns its size.
function measure(group, knows,    i, m, r, n, sums)
{
	worst_of = n = 0
	for (i = 1; i <= n_figures; i++)
		sums[i] = 0
	for (m = 1; m <= n_wanted; m++) {
		if (!in_group(wanted_of[m], group) || (wanted_of[m] in why))
			continue
		for (i = 1; i <= n_figures; i++) {
			r = ratio_of(wanted_of[m], knows, figures[i])
			if (r < 0)
				continue
			sums[i] += log(r)
			if (i > 1)
				continue
			n++
			if (r > worst_of) {
				worst_of = r
				worst_name = wanted_of[m]
			}
		}
	}
	for (i = 1; n > 0 && i <= n_figures; i++)
		mean_of[i] = exp(sums[i] / n)
	return n
}

function judge_group(group,    i, k, n, limit)
{
	split(limits[group], limit, " ")
	for (k = 1; k <= n_known; k++) {
		n = measure(group, known[k])
		if (n == 0)
			continue
		for (i = 1; i <= n_figures; i++)
			line(group ", " n ": " texts[i], "balanced:" known[k], \
			    mean_of[i], "<=", whole ? limit[i] : "")
		line(group ": worst TTFT mean, " worst_name, \
		    "balanced:" known[k], worst_of, "<=", \
		    worst != "" ? worst : whole ? limit[4] : "")
	}
}

# Reports beside a capacity that is told, for sessions of agents.
function judge_gap(    m, r, v, sum, n, most, name)
{
	for (m = 1; m <= n_wanted; m++) {
		if (!in_group(wanted_of[m], "agents"))
			continue
		r = value(wanted_of[m], "balanced:feedback", figures[1])
		v = value(wanted_of[m], "balanced:capacity", figures[1])
		if (r < 0 || v < 0)
			continue
		r /= v
		sum += log(r)
		n++
		if (r > most) {
			most = r
			name = wanted_of[m]
		}
	}
	if (n == 0)
		return
	line("agents: TTFT mean / balanced:capacity", "balanced:feedback", \
	    exp(sum / n), "<=", GAP)
	line("agents: the same, worst, " name, "balanced:feedback", most, \
	    "<=", GAP_WORST)
}

function judge_users(    m, k, name)
{
	for (m = 1; m <= n_wanted; m++) {
		name = wanted_of[m]
		if (family[name] != "users" || (name in why))
			continue
		for (k = 1; k <= n_known; k++) {
			find_best(name, known[k], "hit_ratio", -1)
			line(name ": hits / those of " best_name, \
			    "balanced:" known[k], best <= 0 ? -1 : \
			    value(name, "balanced:" known[k], "hit_ratio") / \
			    best, ">=", HITS)
		}
	}
}

# ---------------------------------------------------------------- returns

# The larger share, of requests or of sessions; the mean over the seeds in which
# there were enough. -1: none.
function return_share(name, policy, event,    i, k, a, b, sum, n)
{
	for (i = 1; i <= n_seeds; i++) {
		k = name SUBSEP policy SUBSEP seed_of[i] SUBSEP "return" event
		a = at[k "_share"]
		b = at[k "_session_share"]
		if (a < b)
			a = b
		if (a >= 0) {
			sum += a
			n++
		}
	}
	return n > 0 ? sum / n : -1
}

function judge_returns(    m, i, k, event, name, policy, v)
{
	for (m = 1; m <= n_wanted; m++)
		for (i = 1; i <= n_known; i++) {
			name = wanted_of[m]
			policy = subject(name, known[i])
			for (event = 0; ; event++) {
				k = name SUBSEP policy SUBSEP seed_of[1] \
				    SUBSEP "return" event
				if (!((k "_kind") in at))
					break
				v = return_share(name, policy, event)
				if (v >= 0)
					line(name ": worker " at[k "_worker"] \
					    ", " at[k "_kind"] " at " \
					    at[k "_at"] " s", policy, v, \
					    ">=", RETURN)
			}
		}
}

# --------------------------------------------------------------------- all

# Results that a full index has spoiled.
function warn_of_eviction(    k, part)
{
	for (k in at) {
		split(k, part, SUBSEP)
		if ((part[4] == "evicted_region" || part[4] == "truncated") &&
		    at[k] > 0 && !((part[1], part[2]) in warned)) {
			warned[part[1], part[2]] = 1
			printf "\nThe index of %s was full in %s.\n", part[2],
			    part[1]
		}
	}
}

END {
	printf "Seconds: TTFT mean, p90, mean time per request; beside each " \
	    "the ratio to the best rival of that figure. Seeds: %s.\n", seeds
	for (i = 1; i <= n_wanted; i++)
		if (!(family[wanted_of[i]] in listed)) {
			listed[family[wanted_of[i]]] = 1
			table_of(family[wanted_of[i]])
		}
	heading("Beside the best rival of each scenario, geometric means")
	for (i = 1; i <= n_groups; i++)
		judge_group(groups[i])
	if (whole) {
		judge_gap()
		judge_users()
	}
	heading("Share of a worker that joins, comes back or recovers")
	judge_returns()
	warn_of_eviction()
	print ""
	for (i = 1; i <= n_wanted; i++)
		if (wanted_of[i] in why) {
			printf "- skipped: %s (%s)\n", wanted_of[i],
			    why[wanted_of[i]]
			missed += whole
		}
	printf "\n%d missed\n", missed
	exit missed > 0
}
