/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * journal.c - the ring of records, of one writer at a time and any readers.
 *
 * A position counts bytes since the region was made, in lines of 64, and never
 * falls; its place in the ring is its remainder. A record is 1 to 3 lines of
 * numbers, by its kind, and its hashes, from the next line on:
 *
 *	             position                                  head    reserved
 *	                |                                        |        |
 *	 ...-----+------+------+-------------------+-------------+--------+
 *	  record |commit check kind ... | hashes   |   record    |  next  |
 *	 ...-----+------+------+-------------------+-------------+--------+
 *	 <------------- at most one ring's length back ----------------->
 *
 *	writer                                   reader
 *	lock                                     h = head (acquire)
 *	  reserved = head + length               position == h: none yet
 *	  fence (release)                        read_once() the numbers
 *	  write_once() check, kind, ...          fence (acquire)
 *	  head = head + length (release)         reserved too far ahead: lost
 *	unlock                                   check is wrong: lost
 *	  write_once() the hashes                commit (acquire)
 *	  commit = digest of all (release)       read_once() the hashes
 *	                                         fence (acquire)
 *	                                         reserved too far ahead: lost
 *	                                         commit is wrong: not done yet
 *
 * OVERWRITTEN. If a word that was read is of a later lap, the fences order that
 * writer's `reserved` before the reader's second look at it, which then finds
 * it more than a ring ahead of the position. As in the seqlock (txn.c), nothing
 * that was read is believed before that.
 *
 * DEAD OR LATE. A writer may die or be stopped anywhere. Before the store to
 * `head` it has done nothing: the next one begins at the same head, and
 * `reserved` may be too far ahead by one record, which loses an old one. After
 * it, its record has its numbers, and so its length and its time, but no valid
 * commit: a reader skips it when it is 100 ms old, or of 100 ms later, as after
 * the clock has begun anew. Without the lock `head` can go round while a writer
 * sleeps. When it wakes, it writes its hashes and its commit over newer
 * records. No order of stores helps against that, and waiting for it would let
 * one sleeper stop all. So `check` is a digest of the numbers and the position,
 * and `commit` one of `check` and the hashes: a mixture of two records has
 * neither, and is lost. Hashes are random words, and parts of two chains have
 * one sum by accident only.
 *
 * DISTRUST. The ring's size and place are the handle's own. Whatever stands in
 * it, lengths are bounded by a quarter of the ring and places by the ring.
 */
#include "journal.h"

#include "mix.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
	LINE_WORDS = CELL / 8,
	LINES_MAX = 3,
	/* words of a record before its hashes */
	COMMIT = 0,
	CHECK = 1,
	BODY = 2,    /* struct kvr_record from `kind` on; */
	OTHER = 13,  /* its new worker, of RESET; else the tenant */
	REPORT = 16, /* struct kvr_report after its size, */
	SPARE = 21   /* and nothing */
};

/* Until a record without its commit is skipped. */
#define DEAD_NS (UINT64_C(100) * 1000000)

enum {
	BODY_AT = offsetof(struct kvr_record, kind),
	BODY_BYTES = offsetof(struct kvr_record, report) - BODY_AT,
	REPORT_AT = offsetof(struct kvr_record, report) +
	    offsetof(struct kvr_report, prompt_tokens),
	REPORT_BYTES = offsetof(struct kvr_record, tenant) - REPORT_AT
};
_Static_assert(offsetof(struct kvr_record, new_worker) ==
    BODY_AT + (OTHER - BODY) * 8, "a word");
_Static_assert(BODY_BYTES == (REPORT - BODY) * 8 &&
    REPORT_BYTES == (SPARE - REPORT) * 8, "a record is words");

/* How many lines the fields of a kind take. */
static uint32_t
lines_of(uint32_t kind)
{
	switch (kind) {
	case KVR_RECORD_OPEN:
	case KVR_RECORD_EXTEND:
	case KVR_RECORD_OBSERVE:
	case KVR_RECORD_BIND:
	case KVR_RECORD_RESET:
		return 2;
	case KVR_RECORD_FINISH:
		return LINES_MAX;
	default:
		return 1;
	}
}

static uint64_t
length_of(uint32_t lines, uint32_t hashes)
{
	return ((uint64_t)hashes * 8 + CELL - 1) / CELL * CELL +
	    (uint64_t)lines * CELL;
}

static uint64_t
longest_record(const struct kvr *k)
{
	return k->layout.journal_bytes / 4;
}

static uint64_t
check_of(const uint64_t *words, uint32_t lines, uint64_t position)
{
	return XXH3_64bits_withSeed(words + BODY, (lines * LINE_WORDS - BODY) *
	    sizeof(*words), position);
}

static uint64_t
commit_of(uint64_t check, uint64_t sum)
{
	return mix(check ^ mix(sum));
}

/* The word at a position, and how many follow before the ring's end. */
static uint64_t *
word_at(const struct kvr *k, uint64_t position, uint64_t *left)
{
	uint64_t at = position & (k->layout.journal_bytes - 1);

	*left = (k->layout.journal_bytes - at) / 8;
	return k->journal + at / 8;
}

/* ------------------------------------------------------------- writing --- */

/*
 * Two words at a time: copying is most of the cost of a record. As with two
 * relaxed stores, a reader may see one word without the other. C has no such
 * store, and a plain one would be a race: hence the instruction.
 */
#ifdef __SSE2__
typedef uint64_t pair __attribute__((vector_size(16)));

static inline pair
put_pair(uint64_t *to, const uint64_t *from)
{
	pair words;

	memcpy(&words, from, sizeof(words));
	__asm__ volatile("movaps %1, %0"
	    : "=m"(*(uint64_t (*)[2])to) : "x"(words));
	return words;
}

/* A line, at its beginning. Returns the sum of its words. */
static inline pair
put_line(uint64_t *to, const uint64_t *from)
{
	return put_pair(to, from) + put_pair(to + 2, from + 2) +
	    put_pair(to + 4, from + 4) + put_pair(to + 6, from + 6);
}

static uint64_t
put_lines(uint64_t *to, const uint64_t *from, uint64_t lines)
{
	pair sum = { 0, 0 };

	for (; lines > 0; lines--, to += LINE_WORDS, from += LINE_WORDS)
		sum += put_line(to, from);
	return sum[0] + sum[1];
}
#else
static uint64_t
put_lines(uint64_t *to, const uint64_t *from, uint64_t lines)
{
	uint64_t sum = 0, i;

	for (i = 0; i < lines * LINE_WORDS; i++) {
		sum += from[i];
		write_once(to[i], from[i]);
	}
	return sum;
}
#endif

/* From the beginning of a line on. Returns the sum of the words. */
static uint64_t
put_words(const struct kvr *k, uint64_t position, const uint64_t *from,
    uint64_t n)
{
	uint64_t left, lines = n / LINE_WORDS, sum, i;
	uint64_t *to = word_at(k, position, &left);

	if (n == 0)
		return 0; /* `from` may be NULL */
	if (lines > left / LINE_WORDS)
		lines = left / LINE_WORDS;
	sum = put_lines(to, from, lines);
	from += lines * LINE_WORDS;
	n -= lines * LINE_WORDS;
	to = word_at(k, position + lines * CELL, &left);
	sum += put_lines(to, from, n / LINE_WORDS);
	for (i = n / LINE_WORDS * LINE_WORDS; i < n; i++) {
		sum += from[i];
		write_once(to[i], from[i]);
	}
	return sum;
}

uint64_t
journal_head(const struct kvr *k)
{
	return atomic_load_explicit(&k->region->journal_head,
	    memory_order_acquire) & ~(uint64_t)(CELL - 1);
}

/* Readers will notice that their records are overwritten. */
static void
reserve_space(struct kvr *k, uint64_t head, uint64_t length)
{
	uint64_t reserved = atomic_load_explicit(
	    &k->region->journal_reserved, memory_order_relaxed);

	/* one that died may have come further, but not by more than that */
	if (reserved - head < length || reserved - head > longest_record(k))
		atomic_store_explicit(&k->region->journal_reserved,
		    head + length, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
}

void
journal_begin(struct kvr *k, struct kvr_record *r,
    struct journal_place *place)
{
	const uint32_t lines = lines_of(r->kind);
	const uint64_t most = longest_record(k) / 8 -
	    (uint64_t)lines * LINE_WORDS;
	uint64_t words[LINES_MAX * LINE_WORDS], length;

	if (r->hashes > most)
		r->hashes = (uint32_t)most;
	memcpy(words + BODY, (const char *)r + BODY_AT, BODY_BYTES);
	if (r->kind != KVR_RECORD_RESET)
		words[OTHER] = r->tenant;
	if (lines == LINES_MAX) {
		memcpy(words + REPORT, (const char *)r + REPORT_AT,
		    REPORT_BYTES);
		memset(words + SPARE, 0, sizeof(words) - SPARE * 8);
	}
	place->hashes = r->hashes;
	place->lines = lines;
	place->position = journal_head(k);
	place->check = check_of(words, lines, place->position);
	words[COMMIT] = 0;
	words[CHECK] = place->check;
	length = length_of(lines, place->hashes);
	reserve_space(k, place->position, length);
	(void)put_words(k, place->position, words,
	    (uint64_t)lines * LINE_WORDS);
	atomic_store_explicit(&k->region->journal_head,
	    place->position + length, memory_order_release);
}

void
journal_end(struct kvr *k, const struct journal_place *place,
    const uint64_t *hashes)
{
	uint64_t sum, left;

	if (place->lines == 0)
		return;
	sum = put_words(k, place->position + (uint64_t)place->lines * CELL,
	    hashes, place->hashes);
	__atomic_store_n(word_at(k, place->position, &left),
	    commit_of(place->check, sum), __ATOMIC_RELEASE);
}

void
journal_put(struct kvr *k, struct kvr_record *r)
{
	struct journal_place place;

	if (k->layout.journal_bytes == 0)
		return;
	journal_begin(k, r, &place);
	journal_end(k, &place, NULL);
}

void
journal_clear(struct kvr *k)
{
	struct kvr_record r = { .kind = KVR_RECORD_CLEAR,
		.at = k->region->clock };

	journal_recover(k);
	journal_put(k, &r);
}

/* ------------------------------------------------------------- reading --- */

/* Copies the first `room` of n words; returns the sum of all. */
static uint64_t
get_words(const struct kvr *k, uint64_t position, uint64_t n, uint64_t *to,
    uint64_t room)
{
	uint64_t sum = 0, left, i, word;
	const uint64_t *from = word_at(k, position, &left);

	for (i = 0; i < n; i++, from++) {
		if (i == left)
			from = k->journal;
		word = read_once(*from);
		sum += word;
		if (i < room)
			to[i] = word;
	}
	return sum;
}

/* May words have been overwritten that were read from this position on? */
static bool
is_overwritten(const struct kvr *k, uint64_t position)
{
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&k->region->journal_reserved,
	    memory_order_relaxed) - position > k->layout.journal_bytes;
}

/* Reads all but the hashes; returns how many lines that is, or 0: lost. */
static uint32_t
get_numbers(const struct kvr *k, uint64_t position, struct kvr_record *r,
    uint64_t *check)
{
	uint64_t words[LINES_MAX * LINE_WORDS] = { 0 };
	uint32_t lines;

	(void)get_words(k, position, LINE_WORDS, words, LINE_WORDS);
	memset(r, 0, sizeof(*r));
	memcpy((char *)r + BODY_AT, words + BODY, BODY_BYTES);
	lines = lines_of(r->kind);
	(void)get_words(k, position + CELL, (lines - 1u) * LINE_WORDS,
	    words + LINE_WORDS, (lines - 1u) * LINE_WORDS);
	*check = words[CHECK];
	if (is_overwritten(k, position) ||
	    *check != check_of(words, lines, position))
		return 0;
	memcpy((char *)r + BODY_AT, words + BODY, BODY_BYTES);
	memcpy((char *)r + REPORT_AT, words + REPORT, REPORT_BYTES);
	if (r->kind != KVR_RECORD_RESET) {
		r->new_worker = 0;
		r->tenant = words[OTHER];
	}
	r->report.size = sizeof(r->report);
	r->position = position;
	return length_of(lines, r->hashes) <= longest_record(k) ? lines : 0;
}

/* The distance of two times, which may be any numbers. */
static uint64_t
time_apart(int64_t a, int64_t b)
{
	return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

int
journal_read(const struct kvr *k, uint64_t *position, int64_t now,
    struct kvr_record *r, uint64_t *hashes, size_t capacity)
{
	uint64_t at = *position, head = journal_head(k), sum, left, check;
	uint64_t length, commit;
	uint32_t lines;

	if (at == head)
		return KVR_EAGAIN;
	*position = head;
	if (at % CELL != 0 || head - at > k->layout.journal_bytes)
		return KVR_EOVERRUN;
	lines = get_numbers(k, at, r, &check);
	length = length_of(lines, r->hashes);
	if (lines == 0 || length > head - at)
		return KVR_EOVERRUN;
	commit = __atomic_load_n(word_at(k, at, &left), __ATOMIC_ACQUIRE);
	sum = get_words(k, at + (uint64_t)lines * CELL, r->hashes, hashes,
	    capacity);
	if (is_overwritten(k, at))
		return KVR_EOVERRUN;
	*position = at + length;
	if (commit == commit_of(check, sum))
		return KVR_OK;
	if (time_apart(now, r->at) >= DEAD_NS)
		return KVR_EOVERRUN;
	*position = at;
	return KVR_EAGAIN;
}

/* ------------------------------------------------------- check, recover --- */

bool
journal_sound(const struct kvr *k)
{
	uint64_t head = atomic_load_explicit(&k->region->journal_head,
	    memory_order_relaxed);
	uint64_t ahead = atomic_load_explicit(&k->region->journal_reserved,
	    memory_order_relaxed) - head;

	return head % CELL == 0 && head >= JOURNAL_FIRST &&
	    head < JOURNAL_LAST &&
	    ahead % CELL == 0 && ahead <= longest_record(k);
}

/* A head that no call can have set: all readers will find records lost. */
void
journal_recover(struct kvr *k)
{
	uint64_t head = journal_head(k);

	if (journal_sound(k))
		return;
	if (head < JOURNAL_FIRST || head >= JOURNAL_LAST)
		head = JOURNAL_FIRST;
	atomic_store_explicit(&k->region->journal_reserved, head,
	    memory_order_relaxed);
	atomic_store_explicit(&k->region->journal_head, head,
	    memory_order_release);
}
