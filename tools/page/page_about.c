/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_about.c - what was simulated: the trace, the figures common to all
 * policies, and options that differ from the defaults.
 */
#include "page.h"

#include "simulate.h"

#include <inttypes.h>
#include <string.h>

static const char *const eviction_names[] = {
	[ENGINE_EVICT_RELEASED] = "least recently released",
	[ENGINE_EVICT_RANDOM] = "random",
	[ENGINE_EVICT_LEAF] = "least recently used leaf"
};

static void
begin_item(const struct page *p, const char *class, const char *term)
{
	fprintf(p->f, "<div%s><dt>", class);
	markup_text(p->f, term);
	fputs("</dt><dd>", p->f);
}

static void
end_item(const struct page *p)
{
	fputs("</dd></div>\n", p->f);
}

static void
print_item(const struct page *p, const char *term, const char *what,
    const char *unit)
{
	begin_item(p, "", term);
	markup_text(p->f, what);
	if (unit[0] != '\0')
		markup_printf(p->f, " %s", unit);
	end_item(p);
}

/* ------------------------------------------------------ the trace --- */

static void
print_trace(const struct page *p)
{
	const struct simulate_about *a = p->about;
	struct number n;

	begin_item(p, " class=\"wide\"", "trace");
	fputs("<bdi>", p->f);
	markup_text(p->f, a->trace);
	fputs("</bdi>", p->f);
	end_item(p);
	print_item(p, "first to last arrival", number_full(
	    (double)a->span_ns / 1e9, 0).text, "s");
	(void)snprintf(n.text, sizeof(n.text), "%g", a->speed);
	print_item(p, "speed", n.text, "\xc3\x97 as recorded");
}

/* ------------------------------------------------------- figures --- */

bool
page_is_common(const struct page *p, size_t k)
{
	return figures_group(p->figures, k) == FIGURE_RUN &&
	    figures_constant(p->figures, k);
}

/* The unit of a number; words have none. */
static const char *
unit_beside(const struct page *p, size_t k, const char *text)
{
	return text[0] >= '0' && text[0] <= '9' ?
	    figures_unit(p->figures, k) : "";
}

static void
print_common(const struct page *p, const struct simulate_options *o)
{
	struct number n;
	size_t k;

	for (k = 0; k < figures_count(p->figures); k++) {
		if (!page_is_common(p, k) || figures_blank(p->figures, k) ||
		    (o->n_capacities > 0 &&
		    strcmp(figures_name(p->figures, k), "capacity_tokens") ==
		    0)) /* print_mixed lists them */
			continue;
		n = figures_text(p->figures, 0, k);
		print_item(p, figures_heading(p->figures, k), n.text,
		    unit_beside(p, k, n.text));
	}
}

/* ------------------------------------------------------- options --- */

static void
print_seconds(const struct page *p, const char *term, int64_t ns)
{
	if (ns > 0)
		print_item(p, term, number_seconds((double)ns / 1e9).text, "");
}

static void
print_mixed(const struct page *p, const struct simulate_options *o)
{
	uint32_t i;

	if (o->n_capacities > 0) {
		begin_item(p, "", "capacities in rotation, tokens");
		for (i = 0; i < o->n_capacities; i++)
			markup_printf(p->f, "%s%s", i > 0 ? "; " : "",
			    o->capacities[i] == 0 ? "endless" :
			    number_full((double)o->capacities[i], 0).text);
		end_item(p);
	}
	if (o->n_speeds > 0) {
		begin_item(p, "", "speeds in rotation");
		for (i = 0; i < o->n_speeds; i++)
			markup_printf(p->f, "%s%g", i > 0 ? "; " : "",
			    o->speeds[i]);
		end_item(p);
	}
}

/* Engines under load. */
static void
print_load(const struct page *p, const struct simulate_options *o)
{
	uint32_t i;

	if (o->n_sequences > 0) {
		begin_item(p, "", "requests that run at a time");
		for (i = 0; i < o->n_sequences; i++)
			markup_printf(p->f, "%s%" PRIu32, i > 0 ? "; " : "",
			    o->sequences[i]);
		end_item(p);
	}
	if (o->batch > 0)
		print_item(p, "tokens of a step",
		    number_full(o->batch, 0).text, "");
	if (o->own_reads)
		print_item(p, "a step reads", "each context", "");
	if (o->attention > 0)
		print_item(p, "prefill takes twice as long at",
		    number_full((double)o->attention, 0).text, "tokens");
	if (o->preempt)
		print_item(p, "without memory", "the last is preempted", "");
	print_seconds(p, "SLO, first token", o->slo_first_ns);
	print_seconds(p, "SLO, each later token", o->slo_token_ns);
	if (o->n_changes > 0)
		print_item(p, "changes of workers",
		    number_full(o->n_changes, 0).text, "");
}

static void
print_options(const struct page *p, const struct simulate_options *o)
{
	print_mixed(p, o);
	print_item(p, "evicted first", eviction_names[o->eviction],
	    o->told ? "(told to routers)" : "");
	print_load(p, o);
	print_seconds(p, "caches reset every", o->reset_ns);
	print_seconds(p, "oracle delay", o->event_delay_ns);
	if (o->replicas > 1) {
		print_item(p, "sessions of routers",
		    simulate_dealing_names[o->dealing], "");
		print_item(p, "routers exchange",
		    simulate_exchange_names[o->exchange], "");
		print_seconds(p, "exchange delay", o->exchange_delay_ns);
	}
}

void
page_about(const struct page *p)
{
	const struct simulate_options *o =
	    simulate_options(p->rows[0].simulation);

	fputs("<dl>\n", p->f);
	print_trace(p);
	print_common(p, o);
	print_options(p, o);
	fputs("</dl>\n", p->f);
}
