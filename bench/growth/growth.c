/* SPDX-License-Identifier: BSD-2-Clause */
/* growth.c - see growth.h. The list of curves, and how they are printed. */
#include "growth.h"

#include "growth_bed.h"

#include <stdio.h>
#include <string.h>

const char *const growth_names[GROWTH_NAMES] = {
	"blocks", "workers", "prompt", "shared", "chat", "fan", "stairs",
	"parted", "all"
};

static const struct {
	void (*run)(struct growth *);
	uint32_t steps;
} curves[GROWTH_CURVES] = {
	{ growth_blocks, GROWTH_BLOCKS_STEPS },
	{ growth_workers, GROWTH_WORKERS_STEPS },
	{ growth_prompt, GROWTH_PROMPT_STEPS },
	{ growth_shared, GROWTH_SHARED_STEPS },
	{ growth_chat, GROWTH_CHAT_STEPS },
	{ growth_fan, GROWTH_FAN_STEPS },
	{ growth_stairs, GROWTH_STAIRS_STEPS },
	{ growth_parted, GROWTH_PARTED_STEPS }
};

void
growth_run(size_t which, uint32_t trials, bool kv)
{
	struct growth g;
	uint64_t total = 0;
	size_t i;

	memset(&g, 0, sizeof(g));
	g.trials = trials;
	g.kv = kv;
	g.first = true;
	for (i = 0; i < GROWTH_CURVES; i++)
		if (i == which || which == GROWTH_CURVES)
			total += (uint64_t)curves[i].steps * trials;
	progress_begin(&g.progress, false, total);
	for (i = 0; i < GROWTH_CURVES; i++)
		if (i == which || which == GROWTH_CURVES)
			curves[i].run(&g);
	progress_end(&g.progress);
}

void
growth_step(struct growth *g)
{
	progress_show(&g->progress, ++g->steps, g->prompts);
}

/* ------------------------------------------------------------- printing --- */

/* The bar and the table may share one terminal. */
static void
clear_bar(const struct growth *g)
{
	struct progress copy = g->progress;

	fflush(stdout);
	progress_end(&copy);
}

void
growth_table(struct growth *g, const char *curve, const char *columns)
{
	g->curve = curve;
	if (g->kv)
		return;
	clear_bar(g);
	printf("%s# %s\n%s\n", g->first ? "" : "\n\n", curve, columns);
	g->first = false;
}

/* Few digits where the value is large, so that columns stay narrow. */
static void
print_value(double value)
{
	if (value < 0)
		putchar('-');
	else
		printf("%.*f", value < 10 ? 2 : value < 100 ? 1 : 0, value);
}

static void
print_pair(const struct growth *g, const char *name, int length,
    const double *values, size_t i)
{
	printf("%s.%.0f.%.*s=", g->curve, values[0], length, name);
	print_value(values[i]);
	putchar('\n');
}

void
growth_line(const struct growth *g, const char *columns, const double *values)
{
	size_t i = 0, length;

	clear_bar(g);
	if (!g->kv)
		printf("%.0f", values[0]);
	for (; *columns != '\0'; columns += length) {
		columns += *columns == '\t';
		length = strcspn(columns, "\t");
		if (g->kv && i > 0) {
			print_pair(g, columns, (int)length, values, i);
		} else if (i > 0) {
			putchar('\t');
			print_value(values[i]);
		}
		i++;
	}
	if (!g->kv)
		putchar('\n');
}

void
growth_ratio(const struct growth *g, const char *what, double ratio)
{
	clear_bar(g);
	if (g->kv)
		printf("%s.%s=%.2f\n", g->curve, what, ratio);
	else
		printf("# %s: %.2f\n", what, ratio);
}
