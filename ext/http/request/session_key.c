/* SPDX-License-Identifier: BSD-2-Clause */
/* session_key.c - see session_key.h. */
#include "session_key.h"

#include <string.h>

uint64_t
session_key(const struct kvr *k, const void *tenant, size_t tenant_length,
    enum session_kind kind, const void *id, size_t n)
{
	unsigned char key[1 + SESSION_KEY_MAX];
	uint64_t digest;

	if (n == 0 || n > SESSION_KEY_MAX)
		return 0;
	key[0] = (unsigned char)kind;
	memcpy(key + 1, id, n);
	return kvr_affinity_key(k, tenant, tenant_length, key, 1 + n,
	    &digest) == KVR_OK ? digest : 0;
}

/* ---------------------------------------------------------------- paths --- */

struct piece {
	const char *bytes;
	size_t n;
};

static bool
piece_is(const struct piece *p, const char *text)
{
	return p->n == strlen(text) && memcmp(p->bytes, text, p->n) == 0;
}

/*
 * Cuts the last piece off; false: the path is empty or does not begin with a
 * slash.
 */
static bool
piece_cut(const char *path, size_t *length, struct piece *last)
{
	size_t at = *length;

	while (at > 0 && path[at - 1] != '/')
		at--;
	if (at == 0)
		return false;
	last->bytes = path + at;
	last->n = *length - at;
	*length = at - 1;
	return true;
}

/* pieces_of finds the last pieces of a path, the last one first. */
enum { PIECES = 5 };

static size_t
pieces_of(const char *path, size_t length, struct piece p[PIECES])
{
	size_t n = 0;

	while (n < PIECES && piece_cut(path, &length, &p[n]))
		n++;
	return n;
}

/* Is the path .../v1/KIND, with KIND at p[0]? */
static bool
is_under(const struct piece *p, size_t n, const char *kind)
{
	return n >= 2 && piece_is(&p[0], kind) &&
	    (piece_is(&p[1], "v1") || piece_is(&p[1], "openai"));
}

static bool
id_found(struct session_path *out, enum session_kind kind,
    const struct piece *id)
{
	out->kind = kind;
	out->id = id == NULL ? NULL : id->bytes;
	out->length = id == NULL ? 0 : id->n;
	return id == NULL || id->n > 0;
}

static bool
response_path(const struct piece *p, size_t n, bool post,
    struct session_path *out)
{
	if (!post && n >= 3 && is_under(p + 1, n - 1, "responses"))
		return id_found(out, SESSION_RESPONSE, &p[0]);
	return n >= 4 && piece_is(&p[0], post ? "cancel" : "input_items") &&
	    is_under(p + 2, n - 2, "responses") &&
	    id_found(out, SESSION_RESPONSE, &p[1]);
}

static bool
conversation_path(const struct piece *p, size_t n, bool post,
    struct session_path *out)
{
	if (post && is_under(p, n, "conversations"))
		return id_found(out, SESSION_CONVERSATION, NULL);
	if (n >= 3 && is_under(p + 1, n - 1, "conversations"))
		return id_found(out, SESSION_CONVERSATION, &p[0]);
	if (n >= 4 && piece_is(&p[0], "items") &&
	    is_under(p + 2, n - 2, "conversations"))
		return id_found(out, SESSION_CONVERSATION, &p[1]);
	return n >= 5 && piece_is(&p[1], "items") &&
	    is_under(p + 3, n - 3, "conversations") &&
	    id_found(out, SESSION_CONVERSATION, &p[2]);
}

bool
session_path(const char *path, size_t length, bool post,
    struct session_path *out)
{
	struct piece p[PIECES];
	size_t n = pieces_of(path, length, p);

	return response_path(p, n, post, out) ||
	    conversation_path(p, n, post, out);
}
