# SPDX-License-Identifier: BSD-2-Clause
# replicas.awk - the table of replicas.sh: means over the seeds of each run,
# NAME.SEED, relative to those of one router on the same requests.

BEGIN {
	FS = "="
	# name, figure, sign, limit
	limits("4-all", "hits", ">=", 0.99)
	limits("4-all", "ttft", "<=", 1.02)
	limits("16-all", "hits", ">=", 0.99)
	limits("16-all", "ttft", "<=", 1.02)
	limits("4-sticky-loads", "hits", ">=", 0.92)
	limits("4-sticky-loads", "ttft", "<=", 1.03)
	limits("16-sticky-loads", "hits", ">=", 0.92)
	limits("16-sticky-loads", "ttft", "<=", 1.03)
	limits("4-lost-1", "hits", ">=", 0.98)
	limits("4-2000", "ttft", "<=", 1.15)
}

function limits(name, figure, sign, value)
{
	sign_of[name, figure] = sign
	limit_of[name, figure] = value
}

$1 == "run" {
	name = $2
	sub(/\.[0-9]+$/, "", name)
	if (!(name in n))
		names[++count] = name
	n[name]++
}
$1 == "hit_ratio" { sum[name, "hits"] += $2 }
$1 == "ttft_mean" { sum[name, "ttft"] += $2 }
$1 == "request_mean" { sum[name, "request"] += $2 }

function mean(name, figure)
{
	return n[name] > 0 ? sum[name, figure] / n[name] : 0
}

function relative(name, figure,    one)
{
	one = mean(name ~ /^agents-/ ? "agents-one" : "one", figure)
	return one > 0 ? mean(name, figure) / one : 0
}

# "0.991 (>= 0.99)", and MISSED where it is.
function judged(name, figure,    value, limit, kept)
{
	value = relative(name, figure)
	if (!((name, figure) in limit_of))
		return sprintf("%.3f", value)
	limit = limit_of[name, figure]
	kept = sign_of[name, figure] == ">=" ? value >= limit : value <= limit
	missed += !kept
	return sprintf("%.3f (%s %.2f%s)", value, sign_of[name, figure], limit,
	    kept ? "" : ", MISSED")
}

END {
	print "| run | hits | x one router's | TTFT mean, s | x one " \
	    "router's | request mean, s | seeds |"
	print "|---|---|---|---|---|---|---|"
	for (i = 1; i <= count; i++) {
		name = names[i]
		printf "| %s | %.4f | %s | %.4f | %s | %.3f | %d |\n", name,
		    mean(name, "hits"), judged(name, "hits"),
		    mean(name, "ttft"), judged(name, "ttft"),
		    mean(name, "request"), n[name]
	}
	exit missed > 0
}
