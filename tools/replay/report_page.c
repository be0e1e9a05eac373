/* SPDX-License-Identifier: BSD-2-Clause */
/* report_page.c - see report_page.h. */
#include "report_page.h"

#include <string.h>

static const char page[] = {
#include "replay_page.h"
	'\0'
};
/* The part of the page in front of the results. */
#define BEFORE "<script id=\"run\" type=\"application/json\">"

/* A string that no parser of HTML takes for markup. */
static void
put_quoted(FILE *out, const char *text)
{
	putc('"', out);
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < ' ' || strchr("\"\\<", *text))
			fprintf(out, "\\u%04x", (unsigned)(unsigned char)*text);
		else
			putc(*text, out);
	putc('"', out);
}

static void
put_about(FILE *out, const struct simulate_about *about, char *const *command,
    int n_words)
{
	int i;

	fputs("{\"trace\":", out);
	put_quoted(out, about->trace);
	fprintf(out, ",\"span\":%.3f,\"version\":\"%s\",\"command\":[",
	    (double)about->span_ns / 1e9, kvr_version_string());
	for (i = 0; i < n_words; i++) {
		if (i > 0)
			putc(',', out);
		put_quoted(out, command[i]);
	}
	fputs("]}\n", out);
}

int
report_page(FILE *out, const struct simulate_about *about,
    char *const *command, int n_words, const struct simulate_row *rows,
    size_t n)
{
	const char *after = strstr(page, BEFORE) + strlen(BEFORE);
	int e;

	fwrite(page, 1, (size_t)(after - page), out);
	putc('\n', out);
	put_about(out, about, command, n_words);
	e = simulate_json_charts(out, rows, n);
	fputs(after, out);
	return e;
}
