# SPDX-License-Identifier: BSD-2-Clause
# figures.awk - figures over several scenarios, for scenarios.awk: geometric
# means of ratios to routing with perfect events, and what a worker gets that
# joined or was slow. They count only if all scenarios are meant (whole).

# Adds the ratio of two policies in a scenario to those of which geometric()
# takes the mean.
function add_ratio(name, policy, other, figure)
{
	pair(name, policy, other, figure)
	lacking += missing || (name in why)
	logs += log(ratio)
	count++
}

function begin_ratios()
{
	logs = count = lacking = 0
}

function geometric()
{
	return count > 0 && !lacking ? exp(logs / count) : -1
}

# A line without a limit.
function value_line(text, policy, value)
{
	printf "| %s | %s | %s | | |\n", text, policy, value < 0 ? "-" : \
	    sprintf("%.3f", value)
}

# A line of a table: a figure, its value, its limit. A figure that cannot be
# had is missed only if all scenarios are meant.
function figure_line(text, policy, value, sign, threshold,    kept)
{
	printf "| %s | %s |", text, policy
	if (value < 0)
		printf " - |"
	else
		printf " %.3f |", value
	kept = value >= 0 && (sign == ">=" ? value >= threshold - 1e-9 : \
	    value <= threshold + 1e-9)
	if (!whole) {
		printf " %s %.2f | |\n", sign, threshold
		return
	}
	missed += !kept
	printf " %s %.2f | %s |\n", sign, threshold, kept ? "kept" : "MISSED"
}

function figures_heading(title)
{
	printf "\n### %s\n\n| figure | policy | value | limit | |\n", title
	print "|---|---|---|---|---|"
}

# ---------------------------------------------------------------- all loads

# Geometric mean over the families, which have equal weight.
function gain(policy, other, figure,    f, i, all, n)
{
	for (f = 1; f <= n_families; f++) {
		if (families[f] == "keys") # nothing knows all there
			continue
		begin_ratios()
		for (i = 1; i <= n_wanted; i++)
			if (in_family(wanted_of[i], families[f]) &&
			    !overloaded[wanted_of[i]] &&
			    (wanted_of[i], figure) in reported)
				add_ratio(wanted_of[i], policy, other, figure)
		if (count == 0)
			continue
		if (lacking)
			return -1
		all += logs / count
		n++
	}
	return n > 0 ? exp(all / n) : -1
}

function gains(    i)
{
	figures_heading("Gain over dynamo:oracle, mean of the families")
	for (i = 1; i <= n_subjects; i++) {
		figure_line("TTFT mean", subjects[i],
		    gain(subjects[i], "dynamo:oracle", "ttft_mean"), "<=", 0.8)
		figure_line("time per request", subjects[i],
		    gain(subjects[i], "dynamo:oracle", "request_mean"), "<=",
		    0.95)
	}
}

# ------------------------------------------------------------ conversations

# Over the capacities, with numbers of workers w, such as "8 16".
function conversations(policy, other, figure, w,    i, k, n, of, sizes)
{
	begin_ratios()
	split("500k 1m 2m", sizes, " ")
	n = split(w, of, " ")
	for (i = 1; i <= n; i++)
		for (k = 1; k <= 3; k++)
			add_ratio("conv-" of[i] "-" sizes[k], policy, other,
			    figure)
	return geometric()
}

function conversation_figures(    i, k, of)
{
	figures_heading("Conversations, mean of the capacities")
	split("8 16 32", of, " ")
	for (i = 1; i <= n_subjects; i++) {
		for (k = 1; k <= 3; k++)
			figure_line("hits / balanced:oracle, " of[k] \
			    " workers", subjects[i], conversations(subjects[i],
			    "balanced:oracle", "hit_ratio", of[k]), ">=", 0.99)
		figure_line("TTFT mean / dynamo:oracle", subjects[i],
		    conversations(subjects[i], "dynamo:oracle", "ttft_mean",
		    "8 16 32"), "<=", 0.86)
		figure_line("TTFT p90 / dynamo:oracle", subjects[i],
		    conversations(subjects[i], "dynamo:oracle", "ttft_p90",
		    "8 16 32"), "<=", 0.89)
		for (k = 1; k <= 3; k++)
			value_line("TTFT mean / dynamo:oracle, " of[k] \
			    " workers", subjects[i], conversations(subjects[i],
			    "dynamo:oracle", "ttft_mean", of[k]))
	}
}

# ------------------------------------------------------------------- agents

# As many sessions as fill the caches once, or twice.
function agents(policy, other,    i, k, m, sizes, loads)
{
	begin_ratios()
	split("1m 2m", sizes, " ")
	split("once twice", loads, " ")
	for (i = 8; i <= 16; i += 8)
		for (k = 1; k <= 2; k++)
			for (m = 1; m <= 2; m++)
				add_ratio("agents-" i "-" sizes[k] "-" \
				    loads[m], policy, other, "ttft_mean")
	return geometric()
}

function agent_figures(    i)
{
	figures_heading("Agents, TTFT mean")
	for (i = 1; i <= n_subjects; i++) {
		figure_line("/ balanced:oracle", subjects[i],
		    agents(subjects[i], "balanced:oracle"), "<=",
		    subjects[i] == "balanced:capacity" ? 1.05 : 1.15)
		figure_line("/ dynamo:oracle", subjects[i],
		    agents(subjects[i], "dynamo:oracle"), "<=", 0.5)
	}
}

# ------------------------------------------------------------------ returns

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

function returns_of(name,    event, i, k, value, least)
{
	least = returns == "" ? 0.5 : returns
	for (event = 0; (name, "return" event "_kind") in reported; event++)
		for (i = 1; i <= n_subjects; i++) {
			value = return_share(name, subjects[i], event)
			k = name SUBSEP subjects[i] SUBSEP seed_of[1] \
			    SUBSEP "return" event
			missed += value >= 0 && value < least
			printf "| %s | worker %d, %s at %d s | %s | %s | %s " \
			    "|\n", name, at[k "_worker"], at[k "_kind"],
			    at[k "_at"], subjects[i],
			    value < 0 ? "-" : sprintf("%.2f", value),
			    value < 0 ? "too few" : value < least ? "MISSED" : \
			    "kept"
		}
}

function any_returns(    i)
{
	for (i = 1; i <= n_wanted; i++)
		if ((wanted_of[i], "return0_kind") in reported)
			return 1
	return 0
}

function all_returns(    i)
{
	if (!any_returns())
		return
	print "\n### Workers that join, come back or recover\n"
	print "Requests or new sessions of the first minute, of the second " \
	    "after a slow spell; 1 is a fair share.\n"
	print "| scenario | event | policy | share | |"
	print "|---|---|---|---|---|"
	for (i = 1; i <= n_wanted; i++)
		if (complete(wanted_of[i]) && !(wanted_of[i] in why) &&
		    (wanted_of[i], "return0_kind") in reported)
			returns_of(wanted_of[i])
}

# ---------------------------------------------------------------------- all

function is_wanted(name,    i)
{
	for (i = 1; i <= n_wanted; i++)
		if (wanted_of[i] == name)
			return 1
	return 0
}

function figures_over_several()
{
	if (n_subjects == 0)
		return
	if (index(" " policies " ", " dynamo:oracle ") > 0) {
		gains()
		if (is_wanted("conv-32-2m"))
			conversation_figures()
		if (is_wanted("agents-16-2m-twice"))
			agent_figures()
	}
	all_returns()
}
