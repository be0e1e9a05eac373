/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * decode.h - from the bytes of a message to a batch of events.
 *
 *   message -> bounds -> one event at a time -> fields -> filter -> batch
 *               pack.c     msgpack-c, json-c    build.c   drop.c   batch.c
 *
 * Bytes are distrusted. A message that is not whole is refused; one bad event
 * is dropped and counted, and the others stay.
 */
#ifndef KVROUTE_DECODE_H
#define KVROUTE_DECODE_H

#include "event.h"

#include <stdbool.h>

enum {
	DECODE_DEPTH_MAX = 16,
	DECODE_RANKS_MAX = 64,
	DECODE_OBJECTS_MAX = 262144    /* of one event in JSON */
};
#define DECODE_BYTES_MAX ((size_t)64 << 20)
/* An event is unpacked whole: msgpack-c needs 24 bytes for each object. */
#define DECODE_EVENT_BYTES_MAX ((size_t)8 << 20)

enum decode_format {
	DECODE_ENGINE = 0, /* vLLM, SGLang, Mooncake; TensorRT-LLM, too */
	DECODE_DYNAMO = 1, /* payload, envelope, or frame */
	DECODE_TRTLLM = 2, /* JSON: an event, or an array of them */
	DECODE_FORMATS
};

struct decode_options {
	enum decode_format format;
	uint32_t block_size; /* 0: the first stored one that counts */
	uint64_t window;     /* 0: learnt */
	bool all_groups;     /* nothing is dropped for its group or tier */
};

enum decode_verdict {
	DECODE_GOOD = 0,
	DECODE_MALFORMED = -1, /* no whole message of this format; too deep */
	DECODE_TOO_LARGE = -2,
	DECODE_NO_MEMORY = -3  /* as if the message had never come */
};

/* Why an event does not count; kvroute-events(8). */
enum drop_reason {
	DROP_NONE = 0,
	DROP_MALFORMED,
	DROP_UNKNOWN,
	DROP_GROUP,
	DROP_TIER,
	DROP_BLOCK_SIZE,
	DROP_PARTIAL,
	DROP_SIZE,
	DROP_NO_MEMORY,   /* of the batch: never counted */
	DROP_REASONS
};

struct decode_counts {
	uint64_t batches;  /* good ones */
	uint64_t refused;  /* messages that were not */
	uint64_t events;   /* that count */
	uint64_t dropped[DROP_REASONS];
};

struct decoder;

/* NULL: no memory. */
struct decoder *decoder_new(const struct decode_options *options);
void decoder_free(struct decoder *d);
/* The batch is valid until the next call; after an error it is empty. */
enum decode_verdict decoder_read(struct decoder *d, const void *bytes,
    size_t n, struct event_batch *out);
/*
 * Reads the publisher and the number of Dynamo's envelope, with or without its
 * frame. false: it lacks them.
 */
bool decode_dynamo_numbers(const void *bytes, size_t n, uint64_t *publisher,
    uint64_t *sequence);
/* Reads the rank of a batch of DECODE_ENGINE. false: the batch has no rank. */
bool decode_engine_rank(const void *bytes, size_t n, uint64_t *rank);
/*
 * The engine has restarted: its groups, windows and block size are forgotten.
 */
void decoder_restart(struct decoder *d);
struct decode_counts decoder_counts(const struct decoder *d);

const char *drop_reason_name(enum drop_reason reason);

#endif
