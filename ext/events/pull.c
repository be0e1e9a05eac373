/* SPDX-License-Identifier: BSD-2-Clause */
/* pull.c - see pull.h. */
#include "pull.h"

#include "say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)
#define PAUSE_MAX (5000 * MS)

struct pull {
	struct hub hub;
	struct hub_publisher of;
	struct conf_stream conf;
	struct http *http;
	struct http_request *request; /* NULL: none runs */
	struct decoder *decoder;
	int64_t due, pause;
	bool answers;
	uint64_t strange, malformed;
	char logged[HTTP_WHY_MAX];
};

struct pull *
pull_open(const struct conf_stream *conf, struct http *http)
{
	const struct decode_options d = { .format = DECODE_TRTLLM,
	    .block_size = conf->block_size, .window = conf->window };
	struct pull *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->conf = *conf;
	p->http = http;
	p->pause = conf->interval * MS;
	p->decoder = decoder_new(&d);
	if (p->decoder != NULL)
		return p;
	free(p);
	return NULL;
}

void
pull_close(struct pull *p)
{
	if (p == NULL)
		return;
	http_end(p->request);
	decoder_free(p->decoder);
	hub_free(&p->hub);
	free(p);
}

struct hub *
pull_hub(struct pull *p)
{
	return &p->hub;
}

static void
ask(struct pull *p)
{
	char url[CONF_URL_MAX + 32];
	size_t n = strlen(p->conf.server);

	while (n > 0 && p->conf.server[n - 1] == '/')
		n--;
	snprintf(url, sizeof(url), "%.*s/kv_cache_events", (int)n,
	    p->conf.server);
	p->request = http_ask(p->http, url, true, DECODE_BYTES_MAX);
}

/* Gives the events of one answer, and the losses among them. */
static void
take(struct pull *p, const char *bytes, size_t n)
{
	const struct decode_counts before = decoder_counts(p->decoder);
	struct decode_counts after;
	struct event_batch batch;

	if (decoder_read(p->decoder, bytes, n, &batch) != DECODE_GOOD) {
		p->malformed++;
		hub_lost(&p->hub, &p->of);
		return;
	}
	hub_batch(&p->hub, &p->of, &batch);
	after = decoder_counts(p->decoder);
	if (tell_unread(&after) > tell_unread(&before))
		hub_lost(&p->hub, &p->of);
}

static void
log_answers(struct pull *p, const char *why)
{
	if (why == NULL && !p->answers)
		say(p->conf.server, NULL, "tells its events");
	else if (why != NULL && strncmp(p->logged, why,
	    sizeof(p->logged) - 1) != 0)
		say(p->conf.server, NULL, "%s; it is tried again", why);
	p->answers = why == NULL;
	snprintf(p->logged, sizeof(p->logged), "%s", why == NULL ? "" : why);
}

static void
answered(struct pull *p, const struct http_answer *answer, int64_t now)
{
	const int64_t interval = p->conf.interval * MS;

	log_answers(p, answer->why);
	if (answer->why == NULL) {
		take(p, answer->bytes, answer->n);
		p->pause = interval;
	} else {
		p->pause = p->pause * 2 < PAUSE_MAX ? p->pause * 2 : PAUSE_MAX;
		p->strange++;
	}
	p->due = now + p->pause;
	http_end(p->request);
	p->request = NULL;
}

static bool
awaited(const struct pull *p)
{
	size_t i;

	for (i = 0; i < p->hub.n; i++)
		if (p->hub.targets[i]->target.id != 0)
			return true;
	return false;
}

void
pull_work(struct pull *p, int64_t now)
{
	struct http_answer answer;

	hub_look(&p->hub, p->answers, now);
	if (p->request != NULL) {
		if (http_ended(p->request, &answer))
			answered(p, &answer, now);
		return;
	}
	/* While no region has it, its events wait there. */
	if (now >= p->due && awaited(p))
		ask(p);
}

void
pull_row(const struct pull *p, const struct hub_target *t,
    struct tell_row *row)
{
	*row = (struct tell_row){ .region = t->region, .conf = &t->conf,
	    .target = &t->target, .use = &t->use, .counts = t->counts,
	    .phase = t->target.id == 0 ? "absent" : p->answers ? "live" :
	        "connecting", .connected = p->answers,
	    .decoded = decoder_counts(p->decoder), .heard = t->heard,
	    .lag = t->lag, .lag_known = t->lag_known };
	row->counts.strange = p->strange;
	row->counts.malformed = p->malformed;
}
