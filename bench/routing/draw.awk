# SPDX-License-Identifier: BSD-2-Clause
# draw.awk - draws random loads for search.sh: lines of scenarios.tsv, numbers
# first to last of a seed. A line depends on seed and number alone.
#
#   awk -v seed=1 -v first=1 -v last=10 -f draw.awk
#
# Lengths, rates and sizes are drawn evenly on a logarithmic scale. The rate is
# such that an estimate of the utilisation is between .05 and .85; what turns
# out to be overloaded is discarded after it has run.

BEGIN {
	OFS = "\t"
	REQUESTS = 3000
	for (n = first; n <= last; n++)
		draw(n)
}

# Park and Miller's generator: the same with every awk.
function random()
{
	state = state * 16807 % 2147483647
	return state / 2147483647
}

function between(low, high)
{
	return exp(log(low) + random() * (log(high) - log(low)))
}

function whole(low, high)
{
	return int(between(low, high + 1))
}

# Two digits: lines are to be read.
function round(x,    unit)
{
	for (unit = 1; x / unit >= 100; unit *= 10)
		;
	return int(x / unit) * unit
}

function one_of(text,    list, n)
{
	n = split(text, list, "|")
	return list[1 + int(random() * n)]
}

function often(share)
{
	return random() < share
}

# The kind of requests, its lengths, and what is computed of a request.
function draw_requests(    kinds)
{
	kind = one_of("shared|shared|documents|documents|documents|unshared|" \
	    "subagents|bursts|chat|chat")
	group = kind == "subagents" ? "agents" : kind == "bursts" ? \
	    "trouble" : kind == "unshared" ? "shared" : kind
	prompt = round(kind == "chat" ? between(200, 12000) : \
	    between(500, kind == "documents" ? 60000 : 30000))
	private = round(between(50, kind == "chat" ? 1000 : 4000))
	output = round(between(20, 1000))
	options = kind " --prompt " prompt " --output " output
	if (kind != "unshared")
		options = options " --private " private
	if (kind == "documents")
		options = options " --documents " whole(2, 800) \
		    " --popularity " one_of("even|zipf")
	computed = kind == "unshared" ? prompt : private
	if (kind == "subagents")
		computed += prompt / 5
	if (kind == "chat")
		longest = prompt + 24 * (private + output)
	else
		longest = prompt + 16 * (kind == "unshared" ? prompt : \
		    private) + 16 * output
}

function draw_engines(    slots)
{
	workers = whole(2, 24)
	engines = "--workers " workers
	capacity = round(between(100000, 2000000))
	while (capacity < 1.5 * longest)
		capacity *= 2
	engines = engines " --capacity " capacity
	slots = 256
	if (often(.35)) {
		slots = whole(4, 64)
		engines = engines " --sequences " slots
	}
	if (often(.6))
		engines = engines " --reads own"
	if (often(.3))
		engines = engines " --attention " one_of("30000|53000")
	if (often(.2))
		engines = engines " --batch " one_of("2048|8192")
	if (often(.2))
		engines = engines " --preempt"
	if (often(.25))
		engines = engines " --speeds " one_of("1,2|1,3|1,1,1,4|2,1,1")
	if (often(.15))
		engines = engines " --eviction " one_of("leaf|random")
	busy = computed * 50e-6
	if (output * .02 / slots > busy)
		busy = output * .02 / slots
}

# Trouble, and what engines report; `span` is the length of the run.
function draw_trouble(    at)
{
	at = int(span * (.2 + .3 * random()))
	if (often(.12))
		engines = engines " --slow 0:" at ":" int(at + span / 8 + 1) \
		    ":" whole(2, 20)
	else if (often(.12))
		engines = engines " --join " workers - 1 ":" at + 1
	else if (often(.08))
		engines = engines " --drain 0:" at + 1 " --join 0:" \
		    int(at + span / 5 + 2)
	if (often(.2))
		engines = engines " --reports " one_of("null|absent=.5|" \
		    "absent=.95|reported=.05|noisy=.1|low=.2|rounded=2048")
	else if (often(.1))
		engines = engines " --silent 2"
}

function draw(n,    i, rate)
{
	state = (n * 7919 + seed * 104729) % 67108859
	for (i = 0; i < 3; i++) # products stay below 2^53
		state = (state * state + n) % 67108859
	state++
	random()
	draw_requests()
	draw_engines()
	rate = (.05 + .8 * random()) * workers / busy
	if (rate > 8 * workers)
		rate = 8 * workers
	if (rate > 50)
		rate = 50
	rate = rate >= 10 ? int(rate) : int(rate * 100 + 1) / 100
	span = REQUESTS / rate
	draw_trouble()
	print group, "found-" seed "-" n, options " --rate " rate \
	    " --requests " REQUESTS, engines
}
