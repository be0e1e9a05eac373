# SPDX-License-Identifier: BSD-2-Clause
# vary.awk - Mooncake's conversation trace, varied. Prints "TIME LINE", to be
# sorted by time.
#
#   seed=N     requests arrive at random within their tick of three seconds
#   copies=N   N times the traffic; copies have fresh ids, except for the first
#   prompt=N   another N tokens, the same for all, come first
#   output=X   outputs are X times as long
#   until=SEC  requests of the first SEC seconds alone
#
# Each line names its session. The trace does not: a request belongs to that of
# an earlier one of which it repeats all complete blocks, two or more, or else
# begins one. An id stands for the same tokens in the same place, so the last
# complete block tells.

BEGIN {
	if (copies == "")
		copies = 1
	if (output == "")
		output = 1
	state = 1 + seed * 7919 % 2147483646
	blocks = int(prompt / 512)
	for (i = 1; i <= blocks; i++)
		first = first (900000000 + i) ", "
	random()
}

# Park and Miller's generator: the same with every awk.
function random()
{
	state = state * 16807 % 2147483647
	return state / 2147483647
}

function number(name,    text)
{
	if (!match($0, "\"" name "\": *[0-9]+"))
		return 0
	text = substr($0, RSTART, RLENGTH)
	sub(/.*: */, "", text)
	return text + 0
}

function ids(copy,    text, id, n, i, out)
{
	match($0, /\[[^]]*\]/)
	text = substr($0, RSTART + 1, RLENGTH - 2)
	if (copy == 0)
		return first text
	n = split(text, id, ", *")
	out = id[1]
	for (i = 2; i <= n; i++)
		out = out ", " sprintf("%.0f", id[i] + copy * 10000000)
	return first out
}

# The number of the session.
function session(    text, id, n, i)
{
	match($0, /\[[^]]*\]/)
	text = substr($0, RSTART + 1, RLENGTH - 2)
	n = split(text, id, ", *")
	for (i = n; i > 1 && !(id[i] in session_at); i--)
		;
	i = i > 1 ? session_at[id[i]] : ++sessions
	if (n > 2)
		session_at[id[n - 1]] = i
	return i
}

{
	named = session()
	for (copy = 0; copy < copies; copy++) {
		at = number("timestamp") + int(3000 * random())
		if (until != "" && at >= until * 1000)
			continue
		printf "%d {\"timestamp\": %d, \"session\": %d, " \
		    "\"input_length\": %d, \"output_length\": %d, " \
		    "\"hash_ids\": [%s]}\n", at, at,
		    named + copy * 1000000,
		    number("input_length") + 512 * blocks,
		    number("output_length") * output, ids(copy)
	}
}
