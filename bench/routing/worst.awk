# SPDX-License-Identifier: BSD-2-Clause
# worst.awk - of results of one load, as scenarios.sh keeps them, how much worse
# a balanced policy is than the best simple method. Prints the largest ratio
# (the least of the seeds) and what it is of, or nothing: the load is overloaded,
# or requests were refused. simple: as in scenarios.sh.

BEGIN {
	FS = "="
	n_simple = split(simple, simples, " ")
	n_figures = split("ttft_mean ttft_p90 request_mean", figures, " ")
	split("TTFT mean,TTFT p90,time per request", texts, ",")
}

# A file is POLICY.SEED.kv; its figures come after its policy.
/^scenario=/ {
	n = split(FILENAME, part, ".")
	seed = part[n - 1]
	seeds[seed]
	next
}
/^policy=/ { policy = substr($0, 8); next }
{ at[policy, seed, $1] = $2 }

function value(policy, seed, figure)
{
	return at[policy, seed, figure]
}

function best_of(seed,    i, best)
{
	for (i = 1; i <= n_simple; i++)
		if (value(simples[i], seed, "requests") > 0 && \
		    (best == "" || value(simples[i], seed, "request_mean") < \
		    value(best, seed, "request_mean")))
			best = simples[i]
	return best
}

# The ratio of a figure, where the difference is above 5 ms.
function ratio_of(policy, best, seed, i,    a, b)
{
	a = value(policy, seed, figures[i])
	b = value(best, seed, figures[i])
	return a - b < .005 || b <= 0 ? 0 : a / b
}

END {
	split("balanced:feedback balanced:capacity", subjects, " ")
	for (k = 1; k <= 2; k++)
		for (i = 1; i <= n_figures; i++) {
			least = ""
			for (seed in seeds) {
				best = best_of(seed)
				if (best == "" || \
				    value(best, seed, "utilisation") > .9 || \
				    value(best, seed, "refused") > 0)
					exit
				used = value(best, seed, "utilisation")
				ratio = ratio_of(subjects[k], best, seed, i)
				if (least == "" || ratio < least)
					least = ratio
			}
			if (least > worst) {
				worst = least
				what = sprintf("%s of %s against %s, " \
				    "utilisation %.2f", texts[i], subjects[k],
				    best, used)
			}
		}
	if (worst > 0)
		printf "%.3f\t%s\n", worst, what
}
