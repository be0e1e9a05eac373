/* SPDX-License-Identifier: BSD-2-Clause */
/* decode_in.h - the declarations that the files of the decoder share. */
#ifndef KVROUTE_DECODE_IN_H
#define KVROUTE_DECODE_IN_H

#include <msgpack.h>

#include "batch.h"
#include "decode.h"
#include "drop.h"
#include "partial.h"

struct decoder {
	struct decode_options options;
	struct decode_counts counts;
	struct batch batch;
	struct drop drop;
	struct partial partial;
	msgpack_zone zone;
	/* The next event_id of each rank, where these are numbered. */
	struct event_ids {
		uint32_t rank;
		uint64_t next;
	} ids[DECODE_RANKS_MAX];
	size_t n_ids;
};

/* A format each. Their items in the batch count if they succeed. */
enum decode_verdict decode_engine(struct decoder *d, const unsigned char *bytes,
    size_t n);
enum decode_verdict decode_dynamo(struct decoder *d, const unsigned char *bytes,
    size_t n);
enum decode_verdict decode_trtllm(struct decoder *d, const unsigned char *bytes,
    size_t n);

/*
 * The event that was built since batch_begin comes to its end: if there is no
 * reason against it and none is found, it joins the batch; else it is dropped
 * and counted. false: no memory.
 */
bool decode_end(struct decoder *d, enum drop_reason reason);

/*
 * The one msgpack object that the bytes are, valid until the zone is cleared.
 * They have been through pack_skip.
 */
enum drop_reason decode_object(struct decoder *d, const unsigned char *bytes,
    size_t n, msgpack_object *out);

/* -------- msgpack objects as fields; false or NULL: no such one --- */

/* The value of a text key; NULL: none. */
const msgpack_object *object_get(const msgpack_object *map, const char *key);
/* Absent and nil are the same. */
bool object_absent(const msgpack_object *o);
bool object_is(const msgpack_object *o, const char *text);
bool object_unsigned(const msgpack_object *o, uint64_t most, uint64_t *out);
/* An integer of either sign as 64 bits, or the last 8 bytes of a longer one. */
bool object_hash(const msgpack_object *o, uint64_t *out);
/* Read an array; DROP_NONE, DROP_MALFORMED or DROP_NO_MEMORY. */
enum drop_reason object_hashes(const msgpack_object *o, struct batch *b);
enum drop_reason object_tokens(const msgpack_object *o, struct batch *b);
enum drop_reason object_text(const msgpack_object *o, struct batch *b,
    struct event_span *span);

/* ----------------- steps of building an event in several formats --- */

uint32_t build_tier(const char *name, size_t n);
/*
 * A stored event is complete: are its tokens those of its blocks? Without
 * contents it is one that has moved. The first `clear` blocks have contents
 * that are tokens alone.
 */
enum drop_reason build_stored(struct batch *b, uint64_t clear);

#endif
