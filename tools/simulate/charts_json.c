/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * charts_json.c - see charts_json.h:
 *
 *   first_tokens      times to first token in seconds, ascending; of more than
 *                     POINTS these many, at equal steps of rank
 *   exact             share of requests that hit as many tokens as predicted
 *   overlaps          [predicted, hit, requests]: cells of a logarithmic scale
 *   workers_per_row   in load
 *   load              requests of a worker over time, for each row of workers
 *   index_blocks, index_bytes   over time
 *
 * Samples are at equal intervals. They are averaged in bins, so that a page is
 * small:
 *
 *   samples  . . . | . . . | . . . |       of thousands
 *   bins       4.3     5.0     7.7         their means; BINS at most
 */
#include "charts_json.h"

#include "simulate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum {
	POINTS = 1000,
	BINS = 96,
	ROWS_MAX = 32,
	OCTAVE = 3, /* cells for twice as many tokens */
	CELLS = 2 + 64 * OCTAVE
};

static int
put_first_tokens(FILE *out, struct simulation *s)
{
	uint64_t n = simulate_totals(s)->finished, i;
	uint64_t points = n < POINTS ? n : POINTS;
	const int64_t *sorted = simulate_first_tokens(s);

	if (n > 0 && sorted == NULL)
		return KVR_ENOMEM;
	fputs("\"first_tokens\":[", out);
	for (i = 0; i < points; i++)
		fprintf(out, "%s%.5g", i > 0 ? "," : "",
		    (double)sorted[points == 1 ? 0 :
		    i * (n - 1) / (points - 1)] / 1e9);
	putc(']', out);
	return KVR_OK;
}

/* ------------------------------------------------------------- overlaps --- */

static size_t
cell_of(uint64_t tokens)
{
	return tokens == 0 ? 0 :
	    1 + (size_t)(OCTAVE * log2((double)tokens) + 1e-9);
}

static void
print_cells(FILE *out, const uint64_t (*counts)[CELLS])
{
	const char *comma = "";
	size_t predicted, hit;

	for (predicted = 0; predicted < CELLS; predicted++)
		for (hit = 0; hit < CELLS; hit++) {
			if (counts[predicted][hit] == 0)
				continue;
			fprintf(out, "%s[%zu,%zu,%" PRIu64 "]", comma,
			    predicted, hit, counts[predicted][hit]);
			comma = ",";
		}
}

static int
put_overlaps(FILE *out, struct simulation *s)
{
	uint64_t (*counts)[CELLS] = calloc(CELLS, sizeof(*counts));
	uint64_t served = 0, exact = 0;
	size_t n = 0, i;
	const struct simulate_ride *rides = simulate_rides(s, &n);

	if (counts == NULL || rides == NULL) {
		free(counts);
		return KVR_ENOMEM;
	}
	for (i = 0; i < n; i++) {
		if (rides[i].first < 0)
			continue;
		counts[cell_of(rides[i].predicted)][cell_of(rides[i].hit)]++;
		served++;
		exact += rides[i].predicted == rides[i].hit;
	}
	fprintf(out, ",\"exact\":%.5f,\"overlaps\":[",
	    served > 0 ? (double)exact / (double)served : 0);
	print_cells(out, (const uint64_t (*)[CELLS])counts);
	putc(']', out);
	free(counts);
	return KVR_OK;
}

/* ------------------------------------------------------------ over time --- */

/* A quantity of a sample; of load, that of workers first to last. */
typedef double (*charts_measure)(const struct simulate_sample *sample,
    uint32_t first, uint32_t last);

static double
mean_load(const struct simulate_sample *sample, uint32_t first, uint32_t last)
{
	double sum = 0;
	uint32_t w;

	for (w = first; w <= last; w++)
		sum += (double)sample->running[w] + (double)sample->waiting[w];
	return sum / (last - first + 1);
}

static double
index_blocks(const struct simulate_sample *sample, uint32_t first,
    uint32_t last)
{
	(void)first;
	(void)last;
	return (double)sample->index_blocks;
}

static double
index_bytes(const struct simulate_sample *sample, uint32_t first,
    uint32_t last)
{
	(void)first;
	(void)last;
	return (double)sample->index_bytes;
}

static void
put_series(FILE *out, const struct simulation *s, charts_measure measure,
    uint32_t first, uint32_t last)
{
	size_t n = 0, bins, bin, i, end;
	const struct simulate_sample *samples = simulate_samples(s, &n);
	double sum;

	bins = n < BINS ? n : BINS;
	putc('[', out);
	for (bin = 0, i = 0; bin < bins; bin++) {
		end = (bin + 1) * n / bins;
		for (sum = 0; i < end; i++)
			sum += measure(&samples[i], first, last);
		fprintf(out, "%s%.5g", bin > 0 ? "," : "",
		    sum / (double)(end - bin * n / bins));
	}
	putc(']', out);
}

static void
put_load(FILE *out, const struct simulation *s)
{
	uint32_t workers = simulate_options(s)->workers, w, rest;
	uint32_t each = (workers + ROWS_MAX - 1) / ROWS_MAX;

	fprintf(out, ",\"workers_per_row\":%" PRIu32 ",\"load\":[", each);
	for (w = 0; w < workers; w += each) {
		rest = workers - w < each ? workers - w : each;
		if (w > 0)
			putc(',', out);
		put_series(out, s, mean_load, w, w + rest - 1);
	}
	putc(']', out);
}

int
charts_json(FILE *out, struct simulation *s)
{
	int e;

	fputs(",\"charts\":{", out);
	e = put_first_tokens(out, s);
	if (e == KVR_OK)
		e = put_overlaps(out, s);
	put_load(out, s);
	fputs(",\"index_blocks\":", out);
	put_series(out, s, index_blocks, 0, 0);
	fputs(",\"index_bytes\":", out);
	put_series(out, s, index_bytes, 0, 0);
	putc('}', out);
	return e;
}
