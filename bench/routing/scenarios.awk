# SPDX-License-Identifier: BSD-2-Clause
# scenarios.awk - what scenarios.sh ran, as Markdown. Reads scenarios.tsv, the
# list of skipped scenarios, and results with a line scenario=NAME before each.
# Exits with 1 if a balanced policy misses a limit or a result is missing.
#
# A figure is at[scenario, policy, seed, name]. Regret is the ratio of a policy
# to the best simple method, which is the one with the least mean time per
# request, or to first token where that is not reported. Both met the same
# requests, so ratios are paired by seed: the mean is geometric, the interval
# is that of Student's t for the mean of the logarithms. A limit is missed
# where the whole interval lies above it, unless the difference is negligible.

BEGIN {
	LIMIT = 1.05
	FS = "\t"
	n_simple = split(simple, simples, " ")
	n_policies = split(policies, policy_of, " ")
	n_wanted = split(wanted, wanted_of, " ")
	n_seeds = split(seeds, seed_of, " ")
	n_subjects = 0
	for (i = 1; i <= n_policies; i++)
		if (policy_of[i] == "balanced:feedback" ||
		    policy_of[i] == "balanced:capacity")
			subjects[++n_subjects] = policy_of[i]
	split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 " \
	    "2.201 2.179 2.160 2.145 2.131 2.120 2.110 2.101 2.093", student,
	    " ")
	# figure, text, difference that counts as none, for requests from
	n_figures = split("ttft_mean ttft_p90 request_mean slo_missed",
	    figures, " ")
	split("TTFT mean,TTFT p90,time per request,SLO missed", texts, ",")
	split("0.005 0.005 0.005 0.005", negligible, " ")
	split("0 2000 0 0", from_requests, " ")
}

/^#/ { next }
$1 == "skipped" { why[$2] = $3; next }
NF >= 4 {
	family[$2] = $1
	overloaded[$2] = index("," $5 ",", ",overloaded,") > 0
	held[$2] = index("," $5 ",", ",held,") > 0
	next
}
/^scenario=/ { scenario = substr($0, 10); next }
/^policy=/ { policy = substr($0, 8); n_pending = 0; next }
/^seed=/ {
	seed = substr($0, 6)
	for (i = 1; i <= n_pending; i++)
		keep(pending[i])
	n_pending = -1
	have[scenario, policy, seed] = 1
	next
}
# Some lines precede the seed.
n_pending >= 0 { pending[++n_pending] = $0; next }
{ keep($0) }

function keep(line,    part)
{
	split(line, part, "=")
	at[scenario, policy, seed, part[1]] = part[2]
	reported[scenario, part[1]] = 1
	if (part[1] == "goodput")
		keep("slo_missed=" 1 - part[2])
}

# -------------------------------------------------------------- statistics

# Mean over the seeds; -1: missing.
function mean(name, policy, figure,    i, sum, k)
{
	for (i = 1; i <= n_seeds; i++) {
		k = name SUBSEP policy SUBSEP seed_of[i] SUBSEP figure
		if (!(k in at))
			return -1
		sum += at[k]
	}
	return sum / n_seeds
}

# Requests per second until the last one ended.
function throughput(name, policy, seed)
{
	return at[name, policy, seed, "requests"] / \
	    at[name, policy, seed, "makespan"]
}

# The figure that is compared; more is worse.
function compared(name, policy, seed, figure)
{
	if (figure == "throughput")
		return 1 / throughput(name, policy, seed)
	return at[name, policy, seed, figure]
}

# Sets ratio, low and high: of two policies, over the seeds.
function pair(name, policy, other, figure,    i, a, b, x, sum, squares, half)
{
	difference = sum = squares = 0
	for (i = 1; i <= n_seeds; i++) {
		a = compared(name, policy, seed_of[i], figure)
		b = compared(name, other, seed_of[i], figure)
		difference += (a - b) / n_seeds
		if (a <= 0 || b <= 0) { # shares may be 0
			a += 0.001
			b += 0.001
		}
		x = log(a / b)
		sum += x
		squares += x * x
	}
	sum /= n_seeds
	half = 0
	if (n_seeds > 1) {
		squares = (squares - n_seeds * sum * sum) / (n_seeds - 1)
		half = squares > 0 ? sqrt(squares / n_seeds) * \
		    (n_seeds <= 20 ? student[n_seeds - 1] : 1.96) : 0
	}
	ratio = exp(sum)
	low = exp(sum - half)
	high = exp(sum + half)
}

function complete(name,    i, k)
{
	for (i = 1; i <= n_policies; i++)
		for (k = 1; k <= n_seeds; k++)
			if (!((name, policy_of[i], seed_of[k]) in have))
				return 0
	return 1
}

function best_simple(name,    i, figure, value, least, best)
{
	figure = (name, "request_mean") in reported ? "request_mean" : \
	    "ttft_mean"
	for (i = 1; i <= n_simple; i++) {
		value = mean(name, simples[i], figure)
		if (value >= 0 && (best == "" || value < least)) {
			least = value
			best = simples[i]
		}
	}
	return best
}

# ------------------------------------------------------------------ output

function in_family(name, which)
{
	return family[name] == which && !(name in why)
}

# Each policy's mean, p90 and, where reported, time per request.
function table_of(which,    i, k, name)
{
	printf "\n### %s\n\n| scenario |", which
	for (k = 1; k <= n_policies; k++)
		printf " %s |", policy_of[k]
	printf "\n|---|"
	for (k = 1; k <= n_policies; k++)
		printf "---|"
	printf "\n"
	for (i = 1; i <= n_wanted; i++) {
		name = wanted_of[i]
		if (!in_family(name, which))
			continue
		printf "| %s |", name
		for (k = 1; k <= n_policies; k++)
			cell(name, policy_of[k])
		printf "\n"
	}
}

function cell(name, policy,    value)
{
	value = mean(name, policy, "ttft_mean")
	if (value < 0) {
		printf " - |"
		return
	}
	printf " %.3f %.3f", value, mean(name, policy, "ttft_p90")
	if ((name, "request_mean") in reported)
		printf " %.2f", mean(name, policy, "request_mean")
	printf " |"
}

# Is the limit kept, by the ratio that pair() set?
function verdict(margin)
{
	if (low <= LIMIT + 1e-9 || difference < margin)
		return ""
	missed++
	return " MISSED"
}

function interval(margin)
{
	printf " %.3f (%.3f-%.3f)%s |", ratio, low, high, verdict(margin)
}

function regret_line(name, best, figure, text, margin,    i)
{
	printf "| %s | %s | %s |", name, best, text
	for (i = 1; i <= n_subjects; i++) {
		pair(name, subjects[i], best, figure)
		interval(margin)
	}
	printf "\n"
}

function regret_of(name,    best, i)
{
	if (!complete(name)) {
		printf "| %s | | NOT RUN |\n", name
		missed++
		return
	}
	best = best_simple(name)
	if (best == "")
		return
	if (overloaded[name]) {
		regret_line(name, best, "throughput", "1 / throughput", 0)
		return
	}
	for (i = 1; i <= n_figures; i++)
		if ((name, figures[i]) in reported &&
		    mean(name, best, "requests") >= from_requests[i])
			regret_line(name, best, figures[i], texts[i],
			    negligible[i])
}

function regrets(    i)
{
	print "\n### Regret\n"
	printf "| scenario | best simple method | figure |"
	for (i = 1; i <= n_subjects; i++)
		printf " %s |", subjects[i]
	printf "\n|---|---|---|"
	for (i = 1; i <= n_subjects; i++)
		printf "---|"
	printf "\n"
	for (i = 1; i <= n_wanted; i++)
		if (!(wanted_of[i] in why))
			regret_of(wanted_of[i])
}

# Geometric mean over the families, which have equal weight.
function gain(policy, other, figure,    f, i, name, sum, n, all, count)
{
	for (f = 1; f <= n_families; f++) {
		sum = n = 0
		for (i = 1; i <= n_wanted; i++) {
			name = wanted_of[i]
			if (!in_family(name, families[f]) || !complete(name) ||
			    !((name, figure) in reported))
				continue
			pair(name, policy, other, figure)
			sum += log(ratio)
			n++
		}
		if (n > 0) {
			all += sum / n
			count++
		}
	}
	return count > 0 ? exp(all / count) : -1
}

function gains(    i, k, value)
{
	print "\n### Gain\n"
	print "Geometric mean over the families, against dynamo:oracle.\n"
	print "| policy | TTFT mean | time per request |"
	print "|---|---|---|"
	for (i = 1; i <= n_policies; i++) {
		if (policy_of[i] == "dynamo:oracle")
			continue
		printf "| %s |", policy_of[i]
		for (k = 1; k <= 3; k += 2) {
			value = gain(policy_of[i], "dynamo:oracle", figures[k])
			if (value > 0)
				printf " %.3f |", value
			else
				printf " - |"
		}
		printf "\n"
	}
}

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
	for (i = 1; i <= n_wanted; i++) {
		name = wanted_of[i]
		if (!(name in why) && !(family[name] in listed)) {
			listed[family[name]] = 1
			families[++n_families] = family[name]
		}
	}
	printf "Seconds: TTFT mean, p90"
	printf "; mean time per request where reported. Seeds: %s.\n", seeds
	for (i = 1; i <= n_families; i++)
		table_of(families[i])
	if (n_subjects > 0)
		regrets()
	if (index(" " policies " ", " dynamo:oracle ") > 0)
		gains()
	warn_of_eviction()
	print ""
	for (i = 1; i <= n_wanted; i++)
		if (wanted_of[i] in why)
			printf "- skipped: %s (%s)\n", wanted_of[i],
			    why[wanted_of[i]]
	printf "\n%d missed\n", missed
	exit missed > 0
}
