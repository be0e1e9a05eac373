/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parse.c - text to struct: words NAME=VALUE, a table of names for each struct.
 *
 *	size=64m block=256    FIELD("block", COUNT, kvr_options, block_size,
 *	           |    |         "the units of a block", "1", "262144")
 *	           |    '---- read as its kind says, from least to most
 *	           '--------- its row
 *
 * All values are read as whole numbers: bytes, nanoseconds, millionths. Limits
 * are texts that are read in the same way, so that explanations quote them. The
 * words of a WORD are a text, too; a word's place among them is its value.
 *
 * A struct is read into a copy, which replaces it when all is valid. Names of
 * fields that a caller's struct is too short for are not known.
 */
#include "base.h"

enum kind {
	COUNT,      /* a whole number, into uint32_t */
	TOKENS,     /* the same, into uint64_t */
	HUNDREDTHS, /* a decimal, in hundredths, into uint32_t */
	REAL,       /* a decimal, into double */
	SIZE,       /* bytes, into uint64_t */
	POWER,      /* the same, a power of two */
	TIME,       /* a time in nanoseconds, into int64_t */
	SECONDS,    /* a time in seconds, into double */
	WORD        /* the place of a word, into uint32_t */
};

struct field {
	const char *name;
	enum kind kind;
	size_t offset, end;
	const char *least; /* of a WORD: all words, with " or " between */
	const char *most;
	const char *never; /* a word for -1; or NULL */
	const char *why;   /* what the value is */
};

/* The names of a struct, or of a part of one. */
struct names {
	const struct field *fields;
	size_t n;
	const char *list;
};

/* A field must have the type that value_store writes for its kind. */
#define STORES_COUNT uint32_t
#define STORES_TOKENS uint64_t
#define STORES_HUNDREDTHS uint32_t
#define STORES_REAL double
#define STORES_SIZE uint64_t
#define STORES_POWER uint64_t
#define STORES_TIME int64_t
#define STORES_SECONDS double
#define STORES_WORD uint32_t
#define PLACE(kind, type, field) kind, offsetof(struct type, field) + \
	0 * sizeof(char[_Generic(((struct type *)0)->field, \
	STORES_##kind: 1, default: -1)]), \
	offsetof(struct type, field) + sizeof(STORES_##kind)

#define FIELD(name, kind, type, field, meaning, least, most) \
	{ name, PLACE(kind, type, field), least, most, NULL, \
	"it is " meaning ", from " least " to " most }
#define FIELD_OR(name, kind, type, field, meaning, least, most, never) \
	{ name, PLACE(kind, type, field), least, most, never, \
	"it is " meaning ", from " least " to " most ", or " never }
#define CHOICE(name, type, field, meaning, words) \
	{ name, PLACE(WORD, type, field), words, NULL, NULL, \
	"it is " meaning ": " words }

/* -------------------------------------------------------------- tables --- */

static const struct field option_fields[] = {
	FIELD("size", SIZE, kvr_options, region_bytes,
	    "the size of the region", "1", "1048576g"),
	CHOICE("unit", kvr_options, unit, "the unit of prompts",
	    "tokens or bytes"),
	FIELD("block", COUNT, kvr_options, block_size,
	    "the units of a block", "1", "262144"),
	FIELD("workers", COUNT, kvr_options, max_workers,
	    "how many workers the index has room for", "1", "4096"),
	FIELD_OR("ttl", TIME, kvr_options, ttl_ns,
	    "how long a cache keeps a prompt", "1ms", "365d", "endless"),
	FIELD("affinity", COUNT, kvr_options, affinity_entries,
	    "the number of places for sessions and state", "0", "16777216"),
	FIELD("tenants", COUNT, kvr_options, tenants,
	    "how many tenants share a full index", "1", "1024"),
	FIELD("journal", POWER, kvr_options, journal_bytes,
	    "the size of the journal, a power of two", "64k", "1g"),
	FIELD("events", TOKENS, kvr_options, event_blocks,
	    "the number of blocks known by events", "0", "268435456")
};
_Static_assert(KVR_WORKERS_MAX == 4096 && KVR_TENANTS_MAX == 1024 &&
    KVR_AFFINITY_ENTRIES_MAX == 16777216 &&
    KVR_EVENT_BLOCKS_MAX == 268435456 && KVR_JOURNAL_MIN == 64 << 10 &&
    KVR_JOURNAL_MAX == 1 << 30, "the limits of options");
static const struct names option_names = { option_fields,
	sizeof(option_fields) / sizeof(option_fields[0]),
	"the names are size, unit, block, workers, ttl, affinity, tenants, "
	"journal and events" };

static const struct field worker_fields[] = {
	FIELD("capacity", TOKENS, kvr_worker, capacity_tokens,
	    "the tokens of KV cache", "1", "1000000000000"),
	FIELD("prefill_rate", REAL, kvr_worker, prefill_rate,
	    "tokens a second", "1", "1000000000000"),
	FIELD("block_tokens", COUNT, kvr_worker, block_tokens,
	    "the tokens of a block", "1", "1048576"),
	CHOICE("eviction", kvr_worker, eviction, "the order of evictions",
	    "released or leaf"),
	FIELD("window", COUNT, kvr_worker, window_tokens,
	    "the tokens of the largest sliding window", "1", "1073741824"),
	CHOICE("window_mode", kvr_worker, window_mode,
	    "the part of windows that the engine keeps",
	    "full or boundary or dense or dual"),
	FIELD("window_layers", HUNDREDTHS, kvr_worker, window_layers,
	    "the layers with a window for each layer without", "0", "100"),
	FIELD("window_interval", COUNT, kvr_worker, window_interval,
	    "the tokens from one kept tail to the next", "1", "1073741824"),
	FIELD("window_capacity", TOKENS, kvr_worker, window_capacity,
	    "the tokens of the memory for windows", "1", "1000000000000"),
	CHOICE("state", kvr_worker, state, "the state", "up or drain or down"),
	CHOICE("role", kvr_worker, role, "the role",
	    "both or prefill or decode"),
	CHOICE("retain", kvr_worker, retain, "the mode of retention",
	    "auto or ttl or capacity or feedback or events"),
	FIELD("weight", REAL, kvr_worker, weight, "the share of the load",
	    "0.000001", "1000000"),
	FIELD("max_batched", TOKENS, kvr_worker, max_batched_tokens,
	    "the tokens of a step of the engine", "1", "1000000000000"),
	FIELD("rank", COUNT, kvr_worker, rank, "the data-parallel rank",
	    "0", "4294967295")
};
static const struct names worker_names = { worker_fields,
	sizeof(worker_fields) / sizeof(worker_fields[0]),
	"the names are capacity, prefill_rate, block_tokens, eviction, window, "
	"window_mode, window_layers, window_interval, window_capacity, state, "
	"role, retain, weight, max_batched and rank" };

/* Those of one cost, of all costs, and of another cost. */
enum { DYNAMO_OWN = 4, POLICY_COMMON = 5, BALANCED_OWN = 1 };
static const struct field policy_fields[] = {
	FIELD("credit", REAL, kvr_policy, overlap_credit,
	    "the blocks of prefill that a cached block saves", "0", "1000000"),
	FIELD("decay", REAL, kvr_policy, overlap_decay,
	    "how fast that falls with waiting prefill", "0", "1000000"),
	FIELD("prefill", REAL, kvr_policy, prefill_scale,
	    "the weight of prefill", "0", "1000000"),
	FIELD("request", REAL, kvr_policy, request_weight,
	    "the blocks that a running request counts", "0", "1000000"),
	FIELD("temperature", REAL, kvr_policy, temperature,
	    "the temperature", "0", "1000000"),
	FIELD_OR("overload_prefill_tokens", REAL, kvr_policy,
	    overload_prefill_tokens, "a number of tokens", "0",
	    "1000000000000", "off"),
	FIELD_OR("overload_prefill_fraction", REAL, kvr_policy,
	    overload_prefill_fraction, "a part of max_batched", "0",
	    "1000000", "off"),
	FIELD_OR("overload_blocks_fraction", REAL, kvr_policy,
	    overload_blocks_fraction, "a part of the capacity", "0",
	    "1000000", "off"),
	FIELD("observed", SECONDS, kvr_policy, observed_seconds,
	    "how long a request that is only observed runs", "1ms", "11d"),
	FIELD("bound", REAL, kvr_policy, balanced_bound,
	    "how many times its share a worker may run", "0", "1000000")
};
_Static_assert(sizeof(policy_fields) / sizeof(policy_fields[0]) ==
    DYNAMO_OWN + POLICY_COMMON + BALANCED_OWN, "all fields are of a cost");
#define POLICY_COMMON_LIST "temperature, overload_prefill_tokens, " \
	"overload_prefill_fraction, overload_blocks_fraction and observed"
static const struct {
	const char *name;
	struct names names;
} costs[] = {
	[KVR_COST_BALANCED] = { "balanced", { policy_fields + DYNAMO_OWN,
	    POLICY_COMMON + BALANCED_OWN,
	    "the names are bound, " POLICY_COMMON_LIST } },
	[KVR_COST_DYNAMO] = { "dynamo", { policy_fields,
	    DYNAMO_OWN + POLICY_COMMON, "the names are credit, decay, "
	    "prefill, request, " POLICY_COMMON_LIST } }
};
enum { COSTS = sizeof(costs) / sizeof(costs[0]) };

/* -------------------------------------------------------------- values --- */

/* A piece of the text. */
struct piece {
	const char *at, *end;
};

static bool
piece_is(struct piece p, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(p.end - p.at) == n && memcmp(p.at, word, n) == 0;
}

static struct piece
piece_of(const char *text)
{
	return (struct piece){ text, text + strlen(text) };
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Appends the digits at p to *n; false: there are none, or too many. */
static bool
read_digits(struct piece *p, uint64_t *n)
{
	const char *begin = p->at;

	for (; p->at < p->end && is_digit(*p->at); p->at++)
		if (__builtin_mul_overflow(*n, 10, n) ||
		    __builtin_add_overflow(*n, (uint64_t)(*p->at - '0'), n))
			return false;
	return p->at > begin;
}

/* A decimal of at most `places` places, as a whole number of the last one. */
static bool
read_decimal(struct piece p, uint32_t places, uint64_t *n)
{
	const char *point;

	*n = 0;
	if (!read_digits(&p, n))
		return false;
	if (p.at < p.end && *p.at == '.' && places > 0) {
		point = p.at++;
		if (!read_digits(&p, n) ||
		    (uint64_t)(p.at - point) - 1 > places)
			return false;
		places -= (uint32_t)(p.at - point) - 1;
	}
	for (; places > 0; places--)
		if (__builtin_mul_overflow(*n, 10, n))
			return false;
	return p.at == p.end;
}

static bool
read_size(struct piece p, uint64_t *n)
{
	static const char suffixes[] = "kKmMgG";
	const char *suffix;

	*n = 0;
	if (!read_digits(&p, n))
		return false;
	if (p.at == p.end)
		return true;
	suffix = memchr(suffixes, *p.at, sizeof(suffixes) - 1);
	return suffix != NULL && p.at + 1 == p.end &&
	    !__builtin_mul_overflow(*n,
		UINT64_C(1024) << (suffix - suffixes) / 2 * 10, n);
}

/* The place of a unit of time, the longest first; `count`: there is none. */
static const struct {
	const char *name;
	uint64_t ns;
} units[] = {
	{ "y", UINT64_C(365) * 86400000000000 },
	{ "M", UINT64_C(30) * 86400000000000 },
	{ "w", UINT64_C(7) * 86400000000000 },
	{ "d", UINT64_C(86400000000000) },
	{ "h", UINT64_C(3600000000000) },
	{ "m", UINT64_C(60000000000) },
	{ "s", UINT64_C(1000000000) },
	{ "ms", UINT64_C(1000000) }
};
enum { UNITS = sizeof(units) / sizeof(units[0]) };

static size_t
unit_find(struct piece p)
{
	size_t i;

	if (p.at == p.end)
		return unit_find(piece_of("s"));
	for (i = 0; i < UNITS; i++)
		if (piece_is(p, units[i].name))
			break;
	return i;
}

/* Numbers with units, the longer before the shorter: 1h30m. */
static bool
read_time(struct piece p, uint64_t *n)
{
	size_t unit, before = 0;
	struct piece name;
	uint64_t some;

	for (*n = 0; p.at < p.end || before == 0; before = unit + 1) {
		some = 0;
		if (!read_digits(&p, &some))
			return false;
		for (name = p; p.at < p.end && !is_digit(*p.at); p.at++)
			continue;
		name.end = p.at;
		unit = unit_find(name);
		if (unit == UNITS || unit < before ||
		    __builtin_mul_overflow(some, units[unit].ns, &some) ||
		    __builtin_add_overflow(*n, some, n))
			return false;
	}
	return true;
}

static bool
read_word(struct piece p, const char *words, uint64_t *n)
{
	static const char between[] = " or ";
	struct piece word = { words, words };

	for (*n = 0;; word.at = word.end += sizeof(between) - 1, ++*n) {
		while (*word.end != ' ' && *word.end != '\0')
			word.end++;
		if ((size_t)(word.end - word.at) == (size_t)(p.end - p.at) &&
		    memcmp(word.at, p.at, (size_t)(p.end - p.at)) == 0)
			return true;
		if (*word.end == '\0')
			return false;
	}
}

static bool
value_read(const struct field *f, struct piece p, uint64_t *n)
{
	switch (f->kind) {
	case COUNT:
	case TOKENS:
		return read_decimal(p, 0, n);
	case HUNDREDTHS:
		return read_decimal(p, 2, n);
	case REAL:
		return read_decimal(p, 6, n);
	case SIZE:
	case POWER:
		return read_size(p, n);
	case TIME:
	case SECONDS:
		return read_time(p, n);
	case WORD:
		break;
	}
	return read_word(p, f->least, n);
}

static bool
value_fits(const struct field *f, uint64_t n)
{
	uint64_t least = 0, most = 0;

	if (f->kind == WORD)
		return true;
	(void)value_read(f, piece_of(f->least), &least);
	(void)value_read(f, piece_of(f->most), &most);
	return n >= least && n <= most &&
	    (f->kind != POWER || (n & (n - 1)) == 0);
}

/* n / unit, exact for whole numbers. */
static double
real_of(uint64_t n, uint64_t unit)
{
	return n % unit == 0 ? (double)(n / unit) : (double)n / (double)unit;
}

static void
value_store(const struct field *f, void *to, uint64_t n, bool never)
{
	char *at = (char *)to + f->offset;
	uint32_t word = (uint32_t)n;
	int64_t time = never ? -1 : (int64_t)n;
	double real = never ? -1
	    : real_of(n, f->kind == REAL ? 1000000 : 1000000000);

	if (f->kind == REAL || f->kind == SECONDS)
		memcpy(at, &real, sizeof(real));
	else if (f->kind == TIME)
		memcpy(at, &time, sizeof(time));
	else if (f->kind == TOKENS || f->kind == SIZE || f->kind == POWER)
		memcpy(at, &n, sizeof(n));
	else
		memcpy(at, &word, sizeof(word));
}

/* --------------------------------------------------------------- words --- */

/* The text, where in it an error is, and how it is explained. */
struct reading {
	const char *text;
	size_t length;
	size_t offset;
	const char *why;
};

static int
refuse_word(struct reading *r, const char *at, int error, const char *why)
{
	r->offset = (size_t)(at - r->text);
	r->why = why;
	return error;
}

static bool
is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The next word; it is empty at the end. */
static struct piece
next_word(struct piece *p)
{
	struct piece word;

	while (p->at < p->end && is_blank(*p->at))
		p->at++;
	word.at = p->at;
	while (p->at < p->end && !is_blank(*p->at))
		p->at++;
	word.end = p->at;
	return word;
}

static const struct field *
field_find(const struct names *names, struct piece name, size_t size)
{
	size_t i;

	for (i = 0; i < names->n; i++)
		if (piece_is(name, names->fields[i].name) &&
		    names->fields[i].end <= size)
			return &names->fields[i];
	return NULL;
}

/* size: that of the caller's struct. *seen: the fields that were named. */
static int
read_field(struct reading *r, const struct names *names, struct piece word,
    void *to, size_t size, uint32_t *seen)
{
	struct piece name = word, value = word;
	const struct field *f;
	uint64_t n = 0;
	uint32_t bit;
	bool never;

	name.end = memchr(word.at, '=', (size_t)(word.end - word.at));
	f = name.end == NULL ? NULL : field_find(names, name, size);
	if (f == NULL)
		return refuse_word(r, word.at, KVR_EUNKNOWN, names->list);
	bit = UINT32_C(1) << (f - names->fields);
	if ((*seen & bit) != 0)
		return refuse_word(r, word.at, KVR_EINVAL, "it is named twice");
	*seen |= bit;
	value.at = name.end + 1;
	never = f->never != NULL && piece_is(value, f->never);
	if (!never && (!value_read(f, value, &n) || !value_fits(f, n)))
		return refuse_word(r, word.at, KVR_EINVAL, f->why);
	value_store(f, to, n, never);
	return KVR_OK;
}

static int
read_words(struct reading *r, const struct names *names, void *to, size_t size)
{
	struct piece p = { r->text, r->text + r->length };
	struct piece word = next_word(&p);
	uint32_t seen = 0;
	int error = KVR_OK;

	for (; error == KVR_OK && word.at < word.end; word = next_word(&p))
		error = read_field(r, names, word, to, size, &seen);
	return error;
}

/* The same with commas between; at least one. */
static int
read_list(struct reading *r, const struct names *names, struct piece list,
    void *to, size_t size)
{
	struct piece word = { list.at, NULL };
	uint32_t seen = 0;
	int error;

	for (;; word.at = word.end + 1) {
		word.end = memchr(word.at, ',', (size_t)(list.end - word.at));
		if (word.end == NULL)
			word.end = list.end;
		error = read_field(r, names, word, to, size, &seen);
		if (error != KVR_OK || word.end == list.end)
			return error;
	}
}

/* ------------------------------------------------------------- structs --- */

/* Reads a text into a copy of the caller's struct, whose size it gives. */
typedef int read_pt(struct reading *r, void *copy, size_t size);

/* NAME, or NAME[WEIGHT=VALUE,...]. */
static int
read_policy(struct reading *r, void *copy, size_t size)
{
	struct kvr_policy *policy = copy;
	struct piece p = { r->text, r->text + r->length }, list;
	struct piece name = next_word(&p), rest = next_word(&p);
	uint32_t i;

	if (name.at == name.end)
		return KVR_OK;
	list.at = memchr(name.at, '[', (size_t)(name.end - name.at));
	if (list.at != NULL) {
		list.end = memchr(list.at, ']', (size_t)(name.end - list.at));
		if (list.end == NULL || list.end + 1 < name.end)
			return refuse_word(r, list.at, KVR_EINVAL,
			    "it has no ] at its end");
		name.end = list.at++;
	}
	for (i = 0; i < COSTS; i++)
		if (piece_is(name, costs[i].name))
			break;
	if (i == COSTS || size < offsetof(struct kvr_policy, reserved))
		return refuse_word(r, name.at, KVR_EUNKNOWN,
		    "the policies are balanced and dynamo");
	if (rest.at < rest.end)
		return refuse_word(r, rest.at, KVR_EINVAL,
		    "it follows a policy");
	policy->cost = i;
	return list.at == NULL ? KVR_OK :
	    read_list(r, &costs[i].names, list, copy, size);
}

static int
read_options(struct reading *r, void *copy, size_t size)
{
	return read_words(r, &option_names, copy, size);
}

static int
read_worker(struct reading *r, void *copy, size_t size)
{
	return read_words(r, &worker_names, copy, size);
}

/* copy: memory for a struct of `length` bytes, the library's. */
static int
fill_struct(void *to, void *copy, size_t length, read_pt *read,
    struct reading *r)
{
	size_t size;
	int error;

	if (to == NULL || (r->text == NULL && r->length > 0))
		return KVR_EINVAL;
	if (r->text == NULL)
		r->text = "";
	memset(copy, 0, length);
	error = struct_get(copy, length, to);
	if (error != KVR_OK)
		return error;
	memcpy(&size, to, sizeof(size));
	error = read(r, copy, size);
	if (error == KVR_OK)
		struct_put(to, size, copy, length);
	return error;
}

static int
explain_error(const struct reading *r, int error, size_t *offset,
    const char **why)
{
	if (error != KVR_OK && offset != NULL)
		*offset = r->offset;
	if (error != KVR_OK && why != NULL)
		*why = r->why != NULL ? r->why : kvr_strerror(error);
	return error;
}

int
kvr_options_parse(struct kvr_options *options, const char *text, size_t length,
    size_t *offset, const char **why)
{
	struct reading r = { text, length, 0, NULL };
	struct kvr_options copy;
	int error = fill_struct(options, &copy, sizeof(copy), read_options, &r);

	return explain_error(&r, error, offset, why);
}

int
kvr_policy_parse(struct kvr_policy *policy, const char *text, size_t length,
    size_t *offset, const char **why)
{
	struct reading r = { text, length, 0, NULL };
	struct kvr_policy copy;
	int error = fill_struct(policy, &copy, sizeof(copy), read_policy, &r);

	return explain_error(&r, error, offset, why);
}

int
kvr_worker_parse(struct kvr_worker *facts, const char *text, size_t length,
    size_t *offset, const char **why)
{
	struct reading r = { text, length, 0, NULL };
	struct kvr_worker copy;
	int error = fill_struct(facts, &copy, sizeof(copy), read_worker, &r);

	return explain_error(&r, error, offset, why);
}
