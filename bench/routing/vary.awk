# SPDX-License-Identifier: BSD-2-Clause
# vary.awk - Mooncake's conversation trace, varied. Prints "TIME LINE", to be
# sorted by time.
#
#   seed=N     requests arrive at random within their tick of three seconds
#   copies=N   N times the traffic; copies have fresh ids, except for the first
#   prompt=N   another N tokens, the same for all, come first
#   output=X   outputs are X times as long
#   until=SEC  requests of the first SEC seconds alone

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

{
	for (copy = 0; copy < copies; copy++) {
		at = number("timestamp") + int(3000 * random())
		if (until != "" && at >= until * 1000)
			continue
		printf "%d {\"timestamp\": %d, \"input_length\": %d, " \
		    "\"output_length\": %d, \"hash_ids\": [%s]}\n", at, at,
		    number("input_length") + 512 * blocks,
		    number("output_length") * output, ids(copy)
	}
}
