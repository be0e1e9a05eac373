/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conf.h - the engine that publishes the events of each worker: a file in JSON
 * that kvroute-events(8) describes.
 *
 * An entry for several ranks becomes a stream for each. All is copied into
 * arrays and the rest is 0, so that two streams can be compared by memcmp.
 */
#ifndef KVROUTE_CONF_H
#define KVROUTE_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CONF_STREAMS_MAX = 16384,
	CONF_RANKS_MAX = 1024,
	CONF_URL_MAX = 256,
	CONF_PATH_MAX = 512,
	CONF_TEXT_MAX = 256
};

enum conf_engine {
	CONF_VLLM = 0,
	CONF_SGLANG,
	CONF_MOONCAKE, /* like the two, but counts from 1 */
	CONF_TRTLLM,
	CONF_DYNAMO
};

enum { CONF_LEASE = 30 };
struct conf_stream {
	char worker[CONF_TEXT_MAX], region[CONF_PATH_MAX]; /* "": each region */
	char events[CONF_URL_MAX], replay[CONF_URL_MAX];   /* "": none */
	char server[CONF_URL_MAX];
	char login[CONF_PATH_MAX]; /* of a server of NATS: a file; "": none */
	char topic[CONF_TEXT_MAX];
	char model[CONF_TEXT_MAX];
	uint64_t id;           /* Dynamo's worker_id */
	uint64_t window;       /* 0: the largest */
	uint32_t engine;       /* enum conf_engine */
	uint32_t rank;
	uint32_t block_size;   /* 0: the first that is stored */
	uint32_t interval;     /* ms between polls */
	uint32_t full;         /* blocks that are present are stored again */
	uint32_t entry;        /* its place in the file */
	uint32_t sliding;      /* enum kvr_window: mode of windows of the */
	                       /* engine's events; full: no mode is set */
	uint32_t pages_mb;     /* of memory for pages; 0: PAGES_BYTES */
	uint32_t lease;        /* seconds that it is believed without a word */
	                       /* of this daemon; 0: CONF_LEASE */
	uint32_t reserved;     /* so that nothing is padded */
};

struct conf {
	struct conf_stream *streams;
	size_t n, room;
};

/* Takes a fault, in a sentence. */
typedef void conf_say(void *context, const char *sentence);

/*
 * false: it cannot be used, and all its faults have been reported; conf is
 * empty.
 */
bool conf_read(struct conf *conf, const char *path, conf_say *say,
    void *context);
void conf_free(struct conf *conf);
/* A further stream. false: no memory, or too many. */
bool conf_add(struct conf *conf, const struct conf_stream *stream);
/* One of the same worker and rank. */
bool conf_has(const struct conf *conf, const struct conf_stream *stream);
/*
 * Do both describe the same stream? The places of their entries do not matter,
 * nor the settings that conf_change takes over.
 */
bool conf_same(const struct conf_stream *a, const struct conf_stream *b);
/* Takes over the settings that may change while a stream is followed. */
void conf_change(struct conf_stream *stream, const struct conf_stream *now);
/* The endpoint of a later rank: its port is `more` higher. "" stays. */
bool conf_port(char *endpoint, size_t size, uint32_t more);
/* Are its events on a server of NATS? */
bool conf_nats(const struct conf_stream *stream);
const char *conf_engine_name(uint32_t engine);
/* Why an engine that runs may not answer at its endpoint; NULL: not known. */
const char *conf_hint(const struct conf_stream *stream);

#endif
