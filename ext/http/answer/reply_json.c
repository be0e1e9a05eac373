/* SPDX-License-Identifier: BSD-2-Clause */
/* reply_json.c - see reply_json.h. */
#include "reply_json.h"

#include <stdint.h>
#include <string.h>

#include "json_reader.h"

/* ---------------------------------------------------------------- parts --- */

struct parts {
	struct json_reader reader;
	const char *text;
	view_take *take;        /* NULL: the text is only checked */
	void *context;
	struct view key;
	uint64_t value;         /* the offset of the current value */
	bool open;              /* a value has begun */
	unsigned char kept[JSON_NUMBER_MOST];
};

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* A comma or a bracket at `at` ends a part, if one has begun. */
static bool
part_ends(struct parts *p, uint64_t at)
{
	const struct view key = p->key;

	if (!p->open)
		return true;
	while (is_blank(p->text[at - 1]))
		at--;
	p->open = false;
	p->key = (struct view){ NULL, 0 };
	return p->take(p->context, key, (struct view){ p->text + p->value,
	    (size_t)(at - p->value) });
}

static bool
on_key(void *context, const unsigned char *name, size_t n)
{
	struct parts *p = context;

	(void)name;
	if (p->reader.depth == 1)
		p->key = (struct view){ p->text + p->reader.token_at + 1,
		    p->reader.cut ? 0 : n };
	return true;
}

static bool
on_value(void *context, enum json_kind kind, const void *text, size_t n)
{
	struct parts *p = context;

	(void)kind;
	(void)text;
	(void)n;
	if (p->reader.depth != 1 || p->take == NULL)
		return true;
	p->value = p->reader.token_at;
	p->open = true;
	return true;
}

static bool
on_comma(void *context, uint64_t at)
{
	struct parts *p = context;

	return p->reader.depth != 1 || part_ends(p, at);
}

static bool
on_end(void *context, uint64_t at)
{
	struct parts *p = context;

	return p->reader.depth != 0 || part_ends(p, at);
}

static bool
text_read(const char *text, size_t n, view_take *take, void *context)
{
	static const struct json_calls calls = { .key = on_key,
	    .value = on_value, .end = on_end, .comma = on_comma };

	struct parts p;

	p.text = text;
	p.take = take;
	p.context = context;
	p.key = (struct view){ NULL, 0 };
	p.open = false;
	json_reader_begin_raw(&p.reader, &calls, &p, p.kept, sizeof(p.kept));
	json_reader_data(&p.reader, text, n);
	/* A blank ends a number. */
	json_reader_data(&p.reader, " ", 1);
	return json_reader_whole(&p.reader);
}

bool
view_parts(struct view v, view_take *take, void *context)
{
	return (view_is_object(v) || view_is_list(v)) &&
	    text_read(v.at, v.n, take, context);
}

/* ---------------------------------------------------------------- views --- */

struct view
view_trim(const char *text, size_t n)
{
	for (; n > 0 && is_blank(*text); n--)
		text++;
	while (n > 0 && is_blank(text[n - 1]))
		n--;
	return (struct view){ text, n };
}

bool
view_is_whole(struct view v)
{
	return v.n > 0 && text_read(v.at, v.n, NULL, NULL);
}

bool
view_is_object(struct view v)
{
	return v.n >= 2 && *v.at == '{';
}

bool
view_is_list(struct view v)
{
	return v.n >= 2 && *v.at == '[';
}

bool
view_is_string(struct view v)
{
	return v.n >= 2 && *v.at == '"';
}

bool
view_is_null(struct view v)
{
	return view_is(v, "null");
}

struct view
view_inside(struct view v)
{
	return (struct view){ v.at + 1, v.n - 2 };
}

bool
view_is(struct view v, const char *text)
{
	return v.n > 0 && v.n == strlen(text) &&
	    memcmp(v.at, text, v.n) == 0;
}

bool
view_number(struct view v, size_t *number)
{
	uint64_t value = 0;
	size_t i;

	for (i = 0; i < v.n && value <= UINT32_MAX; i++) {
		if (v.at[i] < '0' || v.at[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(v.at[i] - '0');
	}
	*number = (size_t)value;
	return v.n > 0 && value <= UINT32_MAX;
}
