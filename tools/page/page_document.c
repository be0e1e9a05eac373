/* SPDX-License-Identifier: BSD-2-Clause */
/* page_document.c - see page_document.h: summary and tables. */
#include "page_document.h"

#include "page.h"
#include "simulate.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------- for all charts --- */

struct page_class
page_class(const char *kind, size_t row)
{
	struct page_class c;
	size_t color = row % 8;

	(void)snprintf(c.text, sizeof(c.text), "%s p%zu c%zu d%zu", kind, row,
	    color, (color + row / 8) % 8);
	return c;
}

void
page_chart(struct page *p, double height, const char *title)
{
	svg_begin(p->f, p->ids++, height, title);
}

void
page_chart_end(struct page *p)
{
	svg_end(p->f);
}

bool
page_is_oracle(const struct page *p, size_t row)
{
	const struct simulate_options *o =
	    simulate_options(p->rows[row].simulation);

	return o->policy >= SIMULATE_DYNAMO && o->index == SIMULATE_ORACLE;
}

void
page_keys(struct page *p, bool (*drawn)(const struct page *p, size_t row))
{
	size_t row;

	fputs("<p class=\"keys\">\n", p->f);
	for (row = 0; row < p->n; row++) {
		if (!drawn(p, row))
			continue;
		fprintf(p->f, "<span class=\"p%zu\" data-policy=\"p%zu\"><svg "
		    "viewBox=\"0 0 34 12\" aria-hidden=\"true\"><path "
		    "class=\"%s\" d=\"M0 6H34\"/></svg> ", row, row,
		    page_class("sample", row).text);
		markup_text(p->f, p->rows[row].name);
		fputs("</span>\n", p->f);
	}
	fputs("</p>\n", p->f);
}

/* ------------------------------------------------------------ summary --- */

static double
p90(const struct page *p, size_t row)
{
	return figures_value(p->figures, row, "ttft_p90");
}

static double
document_hits(const struct page *p, size_t row)
{
	return 100 * figures_value(p->figures, row, "hit_ratio");
}

static bool
has_p90(const struct page *p, size_t row)
{
	return simulate_totals(p->rows[row].simulation)->finished > 0 &&
	    !isnan(p90(p, row));
}

/* The row with the lowest or highest p90; p->n: none. */
static size_t
extreme(const struct page *p, bool lowest, bool oracles)
{
	size_t row, best = p->n;

	for (row = 0; row < p->n; row++) {
		if (!has_p90(p, row) || (page_is_oracle(p, row) && !oracles))
			continue;
		if (best == p->n || (lowest ? p90(p, row) < p90(p, best) :
		    p90(p, row) > p90(p, best)))
			best = row;
	}
	return best;
}

static void
name(const struct page *p, size_t row)
{
	fputs("<b>", p->f);
	markup_text(p->f, p->rows[row].name);
	fputs("</b>", p->f);
}

static void
document_compare(const struct page *p, size_t best, size_t worst)
{
	double less = 100 * (1 - p90(p, best) / p90(p, worst));

	if (!(p90(p, worst) > p90(p, best)))
		return;
	fprintf(p->f, ", %.*f" MARKUP_BLANK "%% less than ", less < 10 ? 1 :
	    0, less);
	name(p, worst);
	fprintf(p->f, " (%s); %.1f" MARKUP_BLANK "%% of the prompt tokens "
	    "were cached, against %.1f" MARKUP_BLANK "%%",
	    number_seconds(p90(p, worst)).text, document_hits(p, best),
	    document_hits(p, worst));
}

/* What knowledge of the engines' caches would have gained. */
static void
compare_oracle(const struct page *p, size_t best)
{
	size_t row = extreme(p, true, true);

	if (row == best || !page_is_oracle(p, row))
		return;
	fputs(" With knowledge of the engines' caches, ", p->f);
	name(p, row);
	fprintf(p->f, " took %s and hit %.1f" MARKUP_BLANK "%%.",
	    number_seconds(p90(p, row)).text, document_hits(p, row));
}

static void
print_sentence(const struct page *p)
{
	size_t best = extreme(p, true, false), worst;

	if (best == p->n) /* oracles only if there is nothing else */
		best = extreme(p, true, true);
	if (best == p->n) {
		fputs("<p class=\"sum\">No request finished.</p>\n", p->f);
		return;
	}
	worst = extreme(p, false, page_is_oracle(p, best));
	fputs("<p class=\"sum\">", p->f);
	name(p, best);
	fprintf(p->f, "%s: 90" MARKUP_BLANK "%% of its requests had their "
	    "first token within %s", p->n == 1 ? "" : " was fastest",
	    number_seconds(p90(p, best)).text);
	if (worst == best)
		fprintf(p->f, "; %.1f" MARKUP_BLANK "%% of the prompt tokens "
		    "were cached", document_hits(p, best));
	else
		document_compare(p, best, worst);
	fputs(".", p->f);
	compare_oracle(p, best);
	fputs("</p>\n", p->f);
}

/* -------------------------------------------------------------- tables --- */

static bool
in_table(const struct page *p, enum figure_group group, size_t k)
{
	return figures_group(p->figures, k) == group &&
	    !page_is_common(p, k) && !figures_blank(p->figures, k);
}

static void
document_print_head(const struct page *p, enum figure_group group)
{
	size_t k;

	fputs("<thead><tr><th scope=\"col\">policy</th>", p->f);
	for (k = 0; k < figures_count(p->figures); k++) {
		if (!in_table(p, group, k))
			continue;
		fputs("<th scope=\"col\">", p->f);
		markup_text(p->f, figures_heading(p->figures, k));
		fprintf(p->f, "<small>%s</small></th>",
		    figures_unit(p->figures, k));
	}
	fputs("</tr></thead>\n", p->f);
}

static void
document_print_row(const struct page *p, enum figure_group group, size_t row)
{
	size_t k;

	fputs("<tr><th scope=\"row\">", p->f);
	markup_text(p->f, p->rows[row].name);
	fputs("</th>", p->f);
	for (k = 0; k < figures_count(p->figures); k++) {
		if (!in_table(p, group, k))
			continue;
		fputs("<td>", p->f);
		markup_text(p->f, figures_text(p->figures, row, k).text);
		fputs("</td>", p->f);
	}
	fputs("</tr>\n", p->f);
}

static void
print_table(const struct page *p, enum figure_group group, const char *caption)
{
	size_t k, row, columns = 0;

	for (k = 0; k < figures_count(p->figures); k++)
		columns += in_table(p, group, k);
	if (columns == 0)
		return;
	fprintf(p->f, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
	    "aria-label=\"%s\">\n<table>\n<caption>%s</caption>\n", caption,
	    caption);
	document_print_head(p, group);
	fputs("<tbody>\n", p->f);
	for (row = 0; row < p->n; row++)
		document_print_row(p, group, row);
	fputs("</tbody>\n</table>\n</div>\n", p->f);
}

static void
print_tables(const struct page *p)
{
	fputs("<section>\n<h2>All numbers</h2>\n<p>TTFT is the time from a "
	    "request's arrival to its first token, p90 its 90th "
	    "percentile, makespan the time from the first arrival to the "
	    "last end. Overpredicted blocks were expected in the engine's "
	    "cache and not there; underpredicted ones were there and not "
	    "expected.</p>\n", p->f);
	print_table(p, FIGURE_RESULT, "Hits and latency");
	print_table(p, FIGURE_PREDICTION, "Prediction");
	print_table(p, FIGURE_INDEX, "Index");
	print_table(p, FIGURE_RUN, "Runs");
	fputs("</section>\n", p->f);
}

/* ----------------------------------------------------------- document --- */

static void
print_begin(const struct page *p)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
	    "<meta charset=\"utf-8\"/>\n"
	    "<meta name=\"viewport\" content=\"width=device-width, "
	    "initial-scale=1\"/>\n"
	    "<meta http-equiv=\"Content-Security-Policy\" content=\""
	    "default-src 'none'; style-src 'unsafe-inline'; "
	    "script-src 'unsafe-inline'\"/>\n<title>Routing simulation: ",
	    p->f);
	markup_text(p->f, p->about->trace);
	fprintf(p->f, "</title>\n<style>\n%s</style>\n</head>\n<body>\n"
	    "<header>\n<h1>%zu routing %s on simulated engines</h1>\n",
	    page_style, p->n, p->n == 1 ? "policy" : "policies");
	print_sentence(p);
	page_about(p);
	fputs("</header>\n<main>\n", p->f);
}

static void
print_end(const struct page *p)
{
	fprintf(p->f, "</main>\n<footer>\n<p><small>kvroute-replay %s "
	    "--simulate</small></p>\n</footer>\n<script>\n%s</script>\n"
	    "</body>\n</html>\n", kvr_version_string(), page_script);
}

int
simulate_page(FILE *out, const struct simulate_about *about,
    const struct simulate_row *rows, size_t n)
{
	struct page p = { out, about, rows, n, NULL, 0, 0 };
	size_t row;
	int e;

	if (n == 0)
		return KVR_EINVAL;
	p.figures = figures_new(rows, n, &e);
	if (p.figures == NULL)
		return e;
	for (row = 0; row < n; row++) {
		int64_t end = simulate_totals(rows[row].simulation)->end;

		p.end = end > p.end ? end : p.end;
	}
	print_begin(&p);
	e = page_bars(&p);
	if (e == KVR_OK)
		e = page_load(&p);
	if (e == KVR_OK)
		e = page_overlap(&p);
	if (e == KVR_OK)
		e = page_index(&p);
	if (e == KVR_OK)
		print_tables(&p);
	print_end(&p);
	figures_free(p.figures);
	return e;
}
