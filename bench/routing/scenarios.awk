# SPDX-License-Identifier: BSD-2-Clause
# scenarios.awk - what scenarios.sh ran, as Markdown; figures.awk has the
# figures over several scenarios. Reads scenarios.tsv, the list of skipped
# scenarios, and results with a line scenario=NAME before each. Exits with 1 if
# a balanced policy misses a limit or a result is missing.
#
# A figure is at[scenario, policy, seed, name]. Regret is the ratio of a policy
# to the best simple method, which is the one with the least mean time per
# request, or to first token where that is not reported. Both met the same
# requests, so ratios are paired by seed: the mean is geometric, the interval
# is that of Student's t for the mean of the logarithms. A limit is missed
# where the whole interval lies above it, unless the difference is negligible.
#
# A policy with keys, @soft, is compared with the same one without. In the family
# keys it is the one that is compared with the simple methods. One by events is
# compared with a capacity that is told, but not by prompts with images: engines
# announce them, and routers do not see them.
#
# limit: another one than 1.05, and than 1.02 for keys; returns: than .5. named:
# kinds of requests that name their sessions. whole: all scenarios are meant,
# so figures over several count.

BEGIN {
	LIMIT = limit == "" ? 1.05 : limit
	KEYS_LIMIT = limit == "" ? 1.02 : limit
	OVERLOAD = 0.9 # utilisation
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
	n_figures = split("ttft_mean ttft_p90 request_mean slo_missed " \
	    "throughput", figures, " ")
	split("TTFT mean,TTFT p90,time per request,SLO missed,1 / throughput",
	    texts, ",")
	split("0.005 0.005 0.005 0.005 0", negligible, " ")
	split("0 2000 0 0 0", from_requests, " ")
}

/^#/ { next }
$1 == "skipped" { why[$2] = $3; next }
NF >= 4 {
	family[$2] = $1
	split($3, word, " ")
	unseen[$2] = word[1] == "images"
	names_sessions[$2] = index(" " named " ", " " word[1] " ") > 0
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
	if (at[name, policy, seed, "makespan"] == 0)
		return 1
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
	difference = sum = squares = missing = 0
	for (i = 1; i <= n_seeds; i++) {
		if (!((name, policy, seed_of[i]) in have) ||
		    !((name, other, seed_of[i]) in have))
			missing = 1
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

# Is the policy run there? As in scenarios.sh.
function is_run(name, policy)
{
	if (family[name] == "keys")
		return policy !~ /:oracle$/
	return policy !~ /@/ || (policy ~ /@soft$/ && names_sessions[name])
}

function complete(name,    i, k)
{
	for (i = 1; i <= n_policies; i++)
		for (k = 1; k <= n_seeds; k++)
			if (is_run(name, policy_of[i]) &&
			    !((name, policy_of[i], seed_of[k]) in have))
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

# Keys have a table of their own, of ratios.
function shown(which, policy)
{
	return which == "keys" ? policy !~ /:oracle$/ : policy !~ /@/
}

# Each policy's mean, p90 and, where reported, time per request.
function table_of(which,    i, k, name)
{
	printf "\n### %s\n\n| scenario |", which
	for (k = 1; k <= n_policies; k++)
		if (shown(which, policy_of[k]))
			printf " %s |", policy_of[k]
	printf "\n|---|"
	for (k = 1; k <= n_policies; k++)
		if (shown(which, policy_of[k]))
			printf "---|"
	printf "\n"
	for (i = 1; i <= n_wanted; i++) {
		name = wanted_of[i]
		if (!in_family(name, which))
			continue
		printf "| %s |", name
		for (k = 1; k <= n_policies; k++)
			if (shown(which, policy_of[k]))
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

# Is the limit missed, by the ratio that pair() set?
function beyond(at_most, margin)
{
	return low > at_most + 1e-9 && difference >= margin
}

function interval()
{
	return n_seeds == 1 ? sprintf("%.3f", ratio) : \
	    sprintf("%.3f (%.3f-%.3f)", ratio, low, high)
}

# Is figure i judged there?
function applies(name, best, i)
{
	if (overloaded[name] != (figures[i] == "throughput"))
		return 0
	return (overloaded[name] || (name, figures[i]) in reported) &&
	    mean(name, best, "requests") >= from_requests[i]
}

# The ratios of one policy to another, and a verdict, or why there is none.
function judge(name, other, policy, at_most, excuse,    i, bad)
{
	printf "| %s | %s | %s |", name, other, policy
	for (i = 1; i <= n_figures; i++) {
		if (!applies(name, other, i)) {
			printf " - |"
			continue
		}
		pair(name, policy, other, figures[i])
		printf " %s |", interval()
		if (beyond(at_most, negligible[i]))
			bad = bad ", " texts[i]
	}
	if (excuse != "") {
		printf " %s |\n", excuse
		return
	}
	missed += bad != ""
	printf " %s |\n", bad == "" ? "kept" : "MISSED: " substr(bad, 3)
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
	for (i = 1; i <= n_subjects; i++)
		judge(name, best, family[name] == "keys" &&
		    is_given(subjects[i] "@soft") ? subjects[i] "@soft" : \
		    subjects[i], LIMIT)
}

function ratios_heading(title, other, at_most,    i)
{
	printf "\n### %s\n\n| scenario | %s | policy |", title, other
	for (i = 1; i <= n_figures; i++)
		printf " %s |", texts[i]
	printf " at most %.2f |\n|---|---|---|", at_most
	for (i = 0; i <= n_figures; i++)
		printf "---|"
	printf "\n"
}

function regrets(    i)
{
	ratios_heading("Regret", "best simple method", LIMIT)
	for (i = 1; i <= n_wanted; i++)
		if (!(wanted_of[i] in why))
			regret_of(wanted_of[i])
}

# Is this policy compared at all?
function is_given(policy)
{
	return index(" " policies " ", " " policy " ") > 0
}

# With keys and without.
function keys_of(name,    i)
{
	if (!names_sessions[name])
		printf "| %s | | no session ids | - | - | - | - | - | not " \
		    "judged |\n", name
	else if (complete(name))
		for (i = 1; i <= n_subjects; i++)
			if (is_given(subjects[i] "@soft"))
				judge(name, subjects[i], subjects[i] "@soft",
				    KEYS_LIMIT)
}

function keys(    i)
{
	ratios_heading("Sessions by key", "without", KEYS_LIMIT)
	for (i = 1; i <= n_wanted; i++)
		if (!(wanted_of[i] in why))
			keys_of(wanted_of[i])
}

# Known block by block, and by a capacity.
function events_of(name,    i)
{
	if (!complete(name))
		return
	for (i = 1; i <= n_policies; i++)
		if (policy_of[i] ~ /^balanced:events/)
			judge(name, "balanced:capacity", policy_of[i], LIMIT,
			    unseen[name] ? "not judged" : "")
}

function events(    i)
{
	ratios_heading("Events of engines", "beside", LIMIT)
	for (i = 1; i <= n_wanted; i++)
		if (!(wanted_of[i] in why))
			events_of(wanted_of[i])
}

# Loads whose mark in the table does not fit the utilisation by the best policy.
function warn_of_overload(    i, name, best, used)
{
	for (i = 1; i <= n_wanted; i++) {
		name = wanted_of[i]
		best = best_simple(name)
		if (best == "" || !((name, "utilisation") in reported))
			continue
		used = mean(name, best, "utilisation")
		if ((used > OVERLOAD) != overloaded[name])
			printf "\n%s is %smarked as overloaded: utilisation " \
			    "%.2f by %s.\n", name, overloaded[name] ? "" : \
			    "not ", used, best
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
	if (index(policies " ", "@soft ") > 0)
		keys()
	if (is_given("balanced:capacity") && index(policies, ":events") > 0)
		events()
	figures_over_several()
	warn_of_overload()
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
