# SPDX-License-Identifier: BSD-2-Clause
# routing.awk - reads the output of routing.sh's runs, in files named
# WORKERS-TOKENS-SEED-VARIANT.kv, and prints the figures as Markdown. Exits with
# 1 if a target is missed.
#
# at[run, variant, policy, figure] is all that was measured. A configuration
# (workers, capacity) has a run for each seed. Differences between seeds are
# noise, so a figure of a configuration is the mean of its runs.

BEGIN { FS = "=" }

FNR == 1 {
	n = split(FILENAME, path, "/")
	split(path[n], part, "[-.]")
	run = part[1] "-" part[2] "-" part[3]
	variant = part[4]
	if (!(run in known)) {
		known[run] = 1
		runs[++n_runs] = run
		place = part[1] "-" part[2]
		if (!(place in places))
			order[++n_places] = place
		places[place]++
	}
}
$1 == "policy" { policy = substr($0, 8); next }
NF == 2 { at[run, variant, policy, $1] = $2 }

# The next functions compute a figure: its mean over all runs, and the minimum
# and maximum of the configurations. missing: a run lacks it.

function begin(    i)
{
	mean = 0
	missing = n_runs == 0
	for (i = 1; i <= n_places; i++)
		sum[order[i]] = 0
}

function note(run, value,    part)
{
	mean += value / n_runs
	split(run, part, "-")
	sum[part[1] "-" part[2]] += value
}

function finish(    i, value)
{
	for (i = 1; i <= n_places; i++) {
		value = sum[order[i]] / places[order[i]]
		if (i == 1 || value < least)
			least = value
		if (i == 1 || value > most)
			most = value
	}
}

function value_of(run, variant, policy, figure)
{
	if (!((run, variant, policy, figure) in at))
		missing = 1
	return at[run, variant, policy, figure] + 0
}

# The ratio of one policy's figure to another's.
function compare(variant, policy, against, other, figure,    i, a, b)
{
	begin()
	for (i = 1; i <= n_runs; i++) {
		a = value_of(runs[i], variant, policy, figure)
		b = value_of(runs[i], against, other, figure)
		note(runs[i], b > 0 ? a / b : 0)
	}
	finish()
}

function measure(variant, policy, figure,    i)
{
	begin()
	for (i = 1; i <= n_runs; i++)
		note(runs[i], value_of(runs[i], variant, policy, figure))
	finish()
}

function line(text, value, sign, threshold,    good)
{
	good = sign == ">=" ? value >= threshold : value <= threshold
	if (missing)
		good = 0
	if (!good)
		bad = 1
	printf "| %s | %s %.3g |", text, sign, threshold
	numbers(good ? "reached" : missing ? "MISSED: not run" : "MISSED")
}

# A figure without a threshold, for comparison.
function also(text)
{
	printf "| %s | |", text
	numbers(missing ? "not run" : "")
}

function numbers(verdict)
{
	if (missing)
		print " - | - | - | " verdict " |"
	else
		printf " %.4f | %.4f | %.4f | %s |\n", mean, least, most,
		    verdict
}

function at_least_in_each(text, threshold)
{
	line(text, least, ">=", threshold)
}

function at_least(text, threshold)
{
	line(text, mean, ">=", threshold)
}

function at_most(text, threshold)
{
	line(text, mean, "<=", threshold)
}

# The mean over the seeds of a configuration.
function over_seeds(place, policy, figure,    i, sum)
{
	sum = 0
	for (i = 1; i <= n_runs; i++)
		if (index(runs[i], place "-") == 1)
			sum += at[runs[i], "plain", policy, figure]
	return sum / places[place]
}

function figures_to_reach(    i, name, text, kinds, texts, n)
{
	print "| figure | threshold | mean | least | most | |"
	print "|---|---|---|---|---|---|"
	compare("plain", "balanced:capacity", "plain", "balanced:oracle",
	    "hit_ratio")
	at_least_in_each("capacity known: hits / oracle's, in each", 0.99)
	compare("plain", "balanced:feedback", "plain", "balanced:oracle",
	    "hit_ratio")
	at_least("feedback: hits / oracle's, on average", 0.99)
	at_least_in_each("feedback: hits / oracle's, in each", 0.97)
	compare("resets", "balanced:feedback", "resets", "balanced:oracle",
	    "hit_ratio")
	at_least_in_each("feedback, an engine reset each 120 s: hits / " \
	    "oracle's, in each", 0.97)
	n = split("low noisy zeros null few", kinds, " ")
	split("one block low in 20 %,noise of 10 %,a spurious 0 in 5 %," \
	    "null for 0,only 5 % of requests", texts, ",")
	for (i = 1; i <= n; i++) {
		compare(kinds[i], "balanced:feedback", "plain",
		    "balanced:feedback", "hit_ratio")
		at_least_in_each("reports, " texts[i] ": hits / with exact " \
		    "ones, in each", 0.97)
	}
	for (i = 1; i <= 2; i++) {
		name = i == 1 ? "balanced:capacity" : "balanced:feedback"
		text = i == 1 ? "capacity known" : "feedback"
		compare("plain", name, "plain", "dynamo:oracle", "ttft_mean")
		at_most(text ": mean TTFT / dynamo with oracle", 0.86)
		compare("plain", name, "plain", "dynamo:oracle", "ttft_p90")
		at_most(text ": p90 TTFT / dynamo with oracle", 0.89)
		compare("plain", name, "plain", "dynamo:oracle", "token_ms")
		at_most(text ": time per output token / dynamo with oracle",
		    1.02)
		compare("mixed", name, "common", name, "ttft_mean")
		at_most(text ", speeds 1, 2, 4: mean TTFT / one common rate",
		    0.7)
		compare("two", name, "plain", name, "hit_ratio")
		at_least_in_each(text ", two replicas that exchange: hits / " \
		    "one router's, in each", 0.98)
	}
	compare("worse", "balanced:feedback", "worse", "balanced:oracle",
	    "hit_ratio")
	also("feedback, every engine reset each 120 s: hits / oracle's")
	compare("worse", "balanced:feedback", "worse", "balanced:oracle",
	    "ttft_mean")
	also("feedback, every engine reset each 120 s: mean TTFT / oracle's")
	compare("plain", "balanced:oracle", "plain", "dynamo:oracle",
	    "ttft_mean")
	also("balanced with oracle: mean TTFT / dynamo with oracle")
	compare("plain", "balanced:oracle", "plain", "dynamo:oracle",
	    "ttft_p90")
	also("balanced with oracle: p90 TTFT / dynamo with oracle")
	measure("plain", "balanced:capacity", "error_blocks")
	line("capacity known: prediction error, blocks a request, in each",
	    most, "<=", 0.1)
}

function what_was_measured(    i, k, n, names, part)
{
	n = split("round-robin dynamo:ttl=120 dynamo:oracle " \
	    "balanced:ttl=120 balanced:ttl=600 balanced:feedback " \
	    "balanced:capacity balanced:oracle", names, " ")
	print "\n| workers | capacity | policy | hits % | mean TTFT s | p90 | " \
	    "p99 | ms a token | error blocks |"
	print "|---|---|---|---|---|---|---|---|---|"
	for (i = 1; i <= n_places; i++) {
		split(order[i], part, "-")
		for (k = 1; k <= n; k++)
			printf "| %d | %d | %s | %.2f | %.3f | %.3f | %.3f " \
			    "| %.2f | %.3f |\n", part[1], part[2], names[k],
			    over_seeds(order[i], names[k], "hit_ratio") * 100,
			    over_seeds(order[i], names[k], "ttft_mean"),
			    over_seeds(order[i], names[k], "ttft_p90"),
			    over_seeds(order[i], names[k], "ttft_p99"),
			    over_seeds(order[i], names[k], "token_ms"),
			    over_seeds(order[i], names[k], "error_blocks")
	}
}

END {
	figures_to_reach()
	what_was_measured()
	exit bad
}
