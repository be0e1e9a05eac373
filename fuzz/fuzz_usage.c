/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_usage.c - any bytes as an engine's response.
 *
 * Four bytes say how it is read: its kind, which allocation fails, how it is
 * cut; the rest is the response. Whatever the input,
 *
 * - cuts change neither what was found, nor what the client gets;
 * - the client gets the response without some whole events, each of which has
 *   the words choices and usage, or all of it when it is not stripped;
 * - what is held back stays within its bound, and within the room for it;
 * - numbers are within theirs;
 * - without memory less is found, or less is stripped, and no byte is lost.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "answers.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { KIND = 1, STRIP = 2, FOR_EVER = 4, TEXT_MAX = 40000 };

/* ------------------------------------------------ events, the plain way --- */

/* Length of the event that begins here, with the LF of a last CR. */
static size_t
event_length(const char *text, size_t n)
{
	bool empty = true;
	size_t i;

	for (i = 0; i < n; i++) {
		const bool crlf = text[i] == '\r' && i + 1 < n &&
		    text[i + 1] == '\n';

		if (text[i] != '\r' && text[i] != '\n') {
			empty = false;
			continue;
		}
		i += crlf;
		if (empty)
			return i + 1;
		empty = true;
	}
	return n;
}

static bool
ends_with(const char *text, size_t n, const char *word)
{
	const size_t length = strlen(word);

	return n >= length && memcmp(text + n - length, word, length) == 0;
}

static bool
has(const char *text, size_t n, const char *word)
{
	for (; n > 0; n--)
		if (ends_with(text, n, word))
			return true;
	return false;
}

/* Where the output may be: bytes of it that events so far have given. */
struct places {
	bool kept;   /* by the last byte of an event */
	bool cut;    /* before it; a piece without usage was left out since */
	bool usage;  /* the same, with usage */
};

/* Those from `low` to `high`; in no other one is anything set. */
struct reach {
	struct places *at;
	size_t low, high, most;
};

/*
 * The next byte of an event, which is text[at], is put out, or a piece goes
 * that has it.
 */
static void
pass_byte(struct reach *r, const char *out, const char *text, size_t at)
{
	const bool named = ends_with(text, at + 1, "\"usage\"");
	struct places *p = r->at;
	size_t i;

	r->high += r->high < r->most;
	for (i = r->high + 1; i-- > r->low;) {
		const bool any = p[i].kept || p[i].usage;
		const struct places left = { .cut = any || p[i].cut,
			.usage = p[i].usage || (named && (any || p[i].cut)) };

		p[i] = left;
		p[i].kept = i > 0 && out[i - 1] == text[at] &&
		    (p[i - 1].kept || p[i - 1].usage);
	}
}

/* false: nothing is kept. */
static bool
end_event(struct reach *r, bool whole, const struct places *before)
{
	size_t i, low = SIZE_MAX, high = 0;
	struct places *p = r->at;

	for (i = r->low; i <= r->high; i++) {
		p[i].kept = p[i].kept || p[i].usage ||
		    (whole && before[i - r->low].kept);
		p[i].cut = p[i].usage = false;
		if (!p[i].kept)
			continue;
		low = low < i ? low : i;
		high = i;
	}
	r->low = low;
	r->high = high;
	return low <= high;
}

static void
pass_event(struct reach *r, const char *out, const char *text, size_t length)
{
	const bool whole = length <= ANSWER_HELD_MAX + 1 &&
	    has(text, length, "\"choices\"") && has(text, length, "\"usage\"");
	const size_t n = r->most - r->low < r->high - r->low + length ?
	    r->most - r->low + 1 : r->high - r->low + length + 1;
	struct places *before = malloc(n * sizeof(*before));
	size_t i;

	MUST(before != NULL);
	memcpy(before, r->at + r->low, n * sizeof(*before));
	for (i = 0; i < length; i++)
		pass_byte(r, out, text, i);
	MUST(end_event(r, whole, before));
	free(before);
}

/* Can `out` result from the text without some events, and pieces of others? */
static void
must_be_events(const char *text, size_t n, const char *out, size_t n_out)
{
	const bool marked = n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
	struct reach r = { .at = calloc(n_out + 1, sizeof(*r.at)),
		.most = n_out };
	size_t length, mark = marked ? 3 : 0;

	MUST(r.at != NULL);
	r.at[0].kept = true;
	for (; n > 0; text += length, n -= length, mark = 0) {
		length = mark + event_length(text + mark, n - mark);
		pass_event(&r, out, text, length);
	}
	MUST(r.at[n_out].kept);
	free(r.at);
}

/* -------------------------------------------------------------- results --- */

static void
look(const struct answers_result *r, bool strip, const char *text, size_t n)
{
	const uint64_t most = UINT64_C(1) << 53;
	const struct kvr_report *t = &r->report;

	MUST(t->prompt_tokens <= 3 * most && t->cached_tokens <= most);
	MUST(t->completion_tokens <= most);
	MUST(t->kind <= KVR_REPORT_VALUE);
	MUST(t->kind == KVR_REPORT_VALUE || t->cached_tokens == 0);
	MUST(!strip || r->most_held <= ANSWER_HELD_MAX);
	if (strip)
		must_be_events(text, n, r->out, r->n);
}

static void
compare(const struct answers_result *a, const struct answers_result *b)
{
	MUST(memcmp(&a->report, &b->report, sizeof(a->report)) == 0);
	MUST(a->started == b->started && a->failed == b->failed);
	MUST(memcmp(a->id_length, b->id_length, sizeof(a->id_length)) == 0);
	MUST(memcmp(a->id, b->id, sizeof(a->id)) == 0);
	MUST(a->n == b->n && memcmp(a->out, b->out, a->n) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct cut whole = { 0, 0 }, bytes = { 1, 1 };
	struct answers_result want, r;
	enum answer_kind kind;
	struct answer *a;
	struct cut cut;
	const char *text;
	bool strip;

	if (size < 4 || size > TEXT_MAX)
		return 0;
	alloc_reset();
	a = answer_new();
	MUST(a != NULL);
	kind = data[0] & KIND ? ANSWER_JSON : ANSWER_STREAM;
	strip = data[0] & STRIP;
	cut = (struct cut){ data[2], data[3] };
	text = (const char *)data + 4;
	want = answers_read(a, kind, strip, text, size - 4, whole);
	look(&want, strip && kind == ANSWER_STREAM, text, size - 4);
	if (strip && kind == ANSWER_JSON)
		MUST(want.n == size - 4 && memcmp(want.out, text, want.n) == 0);
	r = answers_read(a, kind, strip, text, size - 4, bytes);
	compare(&r, &want);
	free(r.out);
	r = answers_read(a, kind, strip, text, size - 4, cut);
	compare(&r, &want);
	free(r.out);
	(data[0] & FOR_EVER ? alloc_fail_from : alloc_fail_at)(data[1]);
	r = answers_read(a, kind, strip, text, size - 4, cut);
	alloc_reset();
	look(&r, strip && kind == ANSWER_STREAM, text, size - 4);
	MUST(!strip || r.n >= want.n);
	answer_free(a);
	free(r.out);
	free(want.out);
	return 0;
}
