/* SPDX-License-Identifier: BSD-2-Clause */
/* pages.c - see pages.h. */
#include "pages.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_MIN = 1 << 10, ROOM_MAX = 1 << 30 };

/* A page that ends within a block. Free ones are linked by `next`. */
struct page {
	uint64_t name;
	union {
		uint64_t above;  /* name of the block before */
		struct kvr_scope *scope; /* of the first page of a prompt */
	} of;
	uint32_t next;       /* in the bucket */
	uint32_t parent;     /* page of the same block; 0: it begins one */
	uint32_t children;
	uint32_t end;        /* tokens of the block up to its end */
	uint16_t copies;     /* 0: it waits for its children to go */
	bool has_scope;
};

/* -------------------------------------------------------------- arrays --- */

bool
pages_room(void **items, size_t *has, size_t n, uint64_t more, size_t each)
{
	size_t want = *has == 0 ? 64 : *has;
	void *grown;

	if (more <= *has - n)
		return true;
	if (more > SIZE_MAX / each / 2 - n)
		return false;
	while (want < n + more)
		want += want / 2;
	if ((grown = realloc(*items, want * each)) == NULL)
		return false;
	*items = grown;
	*has = want;
	return true;
}

bool
pages_hashes_add(struct pages_arrays *a, const uint64_t *hashes, uint64_t n)
{
	void *items = a->hashes;
	const bool good = pages_room(&items, &a->hashes_room, a->n_hashes, n,
	    sizeof(*hashes));

	a->hashes = items;
	if (!good)
		return false;
	if (n > 0)
		memcpy(a->hashes + a->n_hashes, hashes, n * sizeof(*hashes));
	a->n_hashes += n;
	return true;
}

bool
pages_tokens_add(struct pages_arrays *a, const uint32_t *tokens, uint64_t n)
{
	void *items = a->tokens;
	const bool good = pages_room(&items, &a->tokens_room, a->n_tokens, n,
	    sizeof(*tokens));

	a->tokens = items;
	if (!good)
		return false;
	if (n > 0)
		memcpy(a->tokens + a->n_tokens, tokens, n * sizeof(*tokens));
	a->n_tokens += n;
	return true;
}

void
pages_arrays_free(struct pages_arrays *a)
{
	free(a->hashes);
	free(a->tokens);
	*a = (struct pages_arrays){ 0 };
}

/* --------------------------------------------------------------- table --- */

bool
pages_are(const struct pages *p, uint32_t size)
{
	return size > 0 && size < p->block && p->block % size == 0;
}

static size_t
bytes_for(const struct pages *p, size_t room)
{
	return (room + 1) * (sizeof(*p->page) + p->size * sizeof(*p->tokens)) +
	    room * sizeof(*p->buckets);
}

size_t
pages_bytes(const struct pages *p)
{
	return p->room == 0 ? 0 : bytes_for(p, p->room);
}

void
pages_clear(struct pages *p)
{
	uint32_t i;

	for (i = 1; i <= p->fresh; i++)
		if (p->page[i].has_scope)
			free(p->page[i].of.scope);
	if (p->room > 0)
		memset(p->buckets, 0, p->room * sizeof(*p->buckets));
	p->fresh = p->free = p->kept = 0;
}

void
pages_free(struct pages *p)
{
	pages_clear(p);
	free(p->page);
	free(p->tokens);
	free(p->buckets);
	*p = (struct pages){ .block = p->block, .most = p->most,
		.forgotten = p->forgotten };
}

static uint32_t *
bucket_of(const struct pages *p, uint64_t name)
{
	const uint64_t mixed = name * UINT64_C(0x9e3779b97f4a7c15);

	return &p->buckets[(mixed >> 32) & (p->room - 1)];
}

static uint32_t
page_find(const struct pages *p, uint64_t name)
{
	uint32_t i = p->room > 0 ? *bucket_of(p, name) : 0;

	while (i != 0 && p->page[i].name != name)
		i = p->page[i].next;
	return i;
}

static uint32_t *
tokens_of(const struct pages *p, uint32_t i)
{
	return p->tokens + (size_t)i * p->size;
}

/* Links all pages into empty buckets. */
static void
link_all(struct pages *p)
{
	uint32_t i, *bucket;

	for (i = 1; i <= p->fresh; i++) {
		bucket = bucket_of(p, p->page[i].name);
		p->page[i].next = *bucket;
		*bucket = i;
	}
}

/* May it not be larger? It always has the least room. */
static bool
is_largest(const struct pages *p)
{
	return p->room >= ROOM_MAX || (p->room > 0 &&
	    bytes_for(p, (size_t)p->room * 2) >
	    (p->most == 0 ? PAGES_BYTES : p->most));
}

/* No page is free. At the largest size all are forgotten. */
static bool
table_grow(struct pages *p)
{
	const size_t room = p->room == 0 ? ROOM_MIN : (size_t)p->room * 2;
	void *page, *tokens, *buckets;

	if (is_largest(p)) {
		p->forgotten += p->kept;
		pages_clear(p);
		return true;
	}
	page = realloc(p->page, (room + 1) * sizeof(*p->page));
	if (page != NULL) {
		p->page = page;
		p->page[0] = (struct page){ 0 };
	}
	tokens = page == NULL ? NULL : realloc(p->tokens,
	    (room + 1) * p->size * sizeof(*p->tokens));
	if (tokens != NULL)
		p->tokens = tokens;
	buckets = tokens == NULL ? NULL : calloc(room, sizeof(*p->buckets));
	if (buckets == NULL)
		return false;
	free(p->buckets);
	p->buckets = buckets;
	p->room = (uint32_t)room;
	link_all(p);
	return true;
}

static void
page_drop(struct pages *p, uint32_t i)
{
	struct page *page = &p->page[i];
	uint32_t *at = bucket_of(p, page->name);

	while (*at != i)
		at = &p->page[*at].next;
	*at = page->next;
	if (page->has_scope)
		free(page->of.scope);
	page->has_scope = false;
	page->next = p->free;
	p->free = i;
	p->kept--;
}

static void
copy_more(struct page *page, const struct pages_event *e)
{
	if (e->full)
		page->copies |= (uint16_t)(1u << e->tier);
	else if (page->copies < UINT16_MAX)
		page->copies++;
}

static void
copy_less(struct page *page, const struct pages_event *e)
{
	if (e->full)
		page->copies &= (uint16_t)~(1u << e->tier);
	else if (page->copies > 0 && page->copies < UINT16_MAX)
		page->copies--;
}

/* ------------------------------------------------------------- storing --- */

/* Where the next page of an event is. */
struct place {
	uint32_t parent, end;
	bool has_above;
	uint64_t above;
};

/* The first page of its block; 0: the way up is broken. */
static uint32_t
first_of(const struct pages *p, uint32_t i)
{
	uint32_t end = p->page[i].end, first = 0;

	for (; i != 0 && end >= p->size && p->page[i].end == end;
	     i = p->page[i].parent, end -= p->size)
		first = i;
	return i == 0 && end == 0 ? first : 0;
}

/*
 * Behind a page that is kept, its block comes first: to the end of the tokens.
 * If it cannot be had, the page is taken for a block, as one that is not kept.
 */
static bool
block_begin(const struct pages *p, struct pages_event *e, struct place *at,
    struct pages_arrays *a)
{
	uint32_t i = e->has_parent ? page_find(p, e->parent) : 0;
	const uint32_t first = i == 0 ? 0 : first_of(p, i);
	const struct page *page;
	void *items = a->tokens;
	bool good;

	*at = (struct place){ 0, 0, e->has_parent, e->parent };
	if (first == 0)
		return true;
	page = &p->page[first];
	*at = (struct place){ i, p->page[i].end, !page->has_scope, 0 };
	good = pages_room(&items, &a->tokens_room, a->n_tokens, at->end,
	    sizeof(*a->tokens));
	a->tokens = items;
	if (!good)
		return false;
	for (; i != 0; i = p->page[i].parent)
		memcpy(a->tokens + a->n_tokens + p->page[i].end - p->size,
		    tokens_of(p, i), p->size * sizeof(*a->tokens));
	a->n_tokens += at->end;
	e->has_parent = at->has_above;
	if (page->has_scope)
		e->scope = *page->of.scope;
	else
		e->parent = at->above = page->of.above;
	return true;
}

/* The number of a page that is free; 0: no memory. */
static uint32_t
page_take(struct pages *p, struct place *at)
{
	uint32_t i = p->free;

	if (i != 0) {
		p->free = p->page[i].next;
	} else {
		if (p->fresh == p->room && is_largest(p))
			at->parent = 0; /* all are forgotten */
		if (p->fresh == p->room && !table_grow(p))
			return 0;
		i = ++p->fresh;
	}
	p->kept++;
	return i;
}

/* Keeps the page that ends at this place; 0: no memory. */
static uint32_t
page_put(struct pages *p, const struct pages_event *e, struct place *at,
    uint64_t name, const uint32_t *tokens)
{
	uint32_t i = page_find(p, name), *bucket;
	struct kvr_scope *scope = NULL;

	if (i != 0) {
		copy_more(&p->page[i], e);
		return i;
	}
	if ((i = page_take(p, at)) == 0)
		return 0;
	p->page[i] = (struct page){ .name = name, .parent = at->parent,
	    .end = at->end, .of.above = at->above };
	bucket = bucket_of(p, name);
	p->page[i].next = *bucket;
	*bucket = i;
	memcpy(tokens_of(p, i), tokens, p->size * sizeof(*tokens));
	p->page[at->parent].children += at->parent != 0;
	copy_more(&p->page[i], e);
	if (at->parent != 0 || at->has_above)
		return i;
	if ((scope = malloc(sizeof(*scope))) == NULL)
		return 0;
	*scope = e->scope;
	p->page[i].of.scope = scope;
	p->page[i].has_scope = true;
	return i;
}

static bool
store_contents(struct pages *p, struct pages_event *e, struct pages_arrays *a)
{
	const size_t before = a->n_tokens;
	const uint32_t *tokens = e->tokens;
	struct place at;
	uint64_t i;

	if (!block_begin(p, e, &at, a))
		return false;
	for (i = 0; i < e->n; i++, tokens += p->size) {
		if (!pages_tokens_add(a, tokens, p->size))
			return false;
		at.end = (at.end + p->size) % p->block;
		if (at.end > 0) {
			at.parent = page_put(p, e, &at, e->names[i], tokens);
			if (at.parent == 0)
				return false;
			continue;
		}
		if (!pages_hashes_add(a, &e->names[i], 1))
			return false;
		at = (struct place){ 0, 0, true, e->names[i] };
		e->blocks++;
	}
	a->n_tokens = before + e->blocks * p->block;
	return true;
}

bool
pages_store(struct pages *p, uint32_t size, struct pages_event *e,
    struct pages_arrays *a)
{
	uint32_t kept;
	uint64_t i;

	e->blocks = 0;
	if (e->tokens != NULL) {
		if (p->size != size)
			pages_free(p);
		p->size = size;
		return store_contents(p, e, a);
	}
	for (i = 0; i < e->n; i++) {
		if ((kept = page_find(p, e->names[i])) != 0) {
			copy_more(&p->page[kept], e);
			continue;
		}
		if (!pages_hashes_add(a, &e->names[i], 1))
			return false;
		e->blocks++;
	}
	return true;
}

/* ------------------------------------------------------------ removing --- */

/* Frees the page, and those before it that waited for this. */
static void
page_leave(struct pages *p, uint32_t i)
{
	uint32_t parent;

	for (; i != 0 && p->page[i].copies == 0 && p->page[i].children == 0;
	     i = parent) {
		parent = p->page[i].parent;
		p->page[parent].children -= parent != 0;
		page_drop(p, i);
	}
}

bool
pages_remove(struct pages *p, struct pages_event *e, struct pages_arrays *a)
{
	uint32_t kept;
	uint64_t i;

	e->blocks = 0;
	for (i = 0; i < e->n; i++) {
		if ((kept = page_find(p, e->names[i])) != 0) {
			copy_less(&p->page[kept], e);
			page_leave(p, kept);
			continue;
		}
		if (!pages_hashes_add(a, &e->names[i], 1))
			return false;
		e->blocks++;
	}
	return true;
}
