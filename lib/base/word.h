/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * word.h - words that one thread reads while another writes them.
 *
 * A reader without the lock (txn.c) may see any cell in the middle of a change,
 * or long after it has been reused. It then discards the result, but the read
 * itself must not be a data race. Everything such readers can reach is
 * therefore written only by the functions below that are named after
 * write_once() and put_once(), and read by them only by read_once():
 * single-word loads and stores, atomic and relaxed in the sense of C11, which
 * compile to plain instructions on common machines. The seqlock of the region
 * provides the order.
 *
 * They can reach the whole region: the check of a read-only handle copies it.
 * So no word of it is written plainly, also those that need the lock. Exempt is
 * region_format(): nothing that it writes is read before the magic number,
 * which comes last, and the seal is not written again.
 *
 * The lock holder is the only writer and may use plain reads. So the functions
 * use compiler builtins and not _Atomic objects.
 */
#ifndef KVR_WORD_H
#define KVR_WORD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define read_once(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define write_once(place, value) \
	__atomic_store_n(&(place), (value), __ATOMIC_RELAXED)

/* Changes of one word by the lock holder, whatever its type. */
#define put_once(place, value) do { \
	__typeof__(place) put_ = (value); \
	__atomic_store(&(place), &put_, __ATOMIC_RELAXED); \
} while (0)
#define add_once(place, more) put_once(place, (place) + (more))
#define sub_once(place, less) put_once(place, (place) - (less))
#define or_once(place, bits) put_once(place, (place) | (bits))

/* A word of any type. */
typedef uint64_t __attribute__((may_alias)) any_word;

/* The same for a double. */
static inline double
read_once_double(const double *place)
{
	double value;

	__atomic_load(place, &value, __ATOMIC_RELAXED);
	return value;
}

/* The bits of a double; 0 for +0.0 alone. */
static inline uint64_t
read_once_bits(const double *place)
{
	return read_once(*(const any_word *)(const void *)place);
}

static inline void
write_once_double(double *place, double value)
{
	__atomic_store(place, &value, __ATOMIC_RELAXED);
}

/* The same for consecutive words; `to` and `from` are 8-byte aligned. */
static inline void
write_once_words(void *to, const void *from, size_t bytes)
{
	any_word *words = to;
	uint64_t word;
	size_t i;

	for (i = 0; i < bytes / sizeof(word); i++) {
		memcpy(&word, (const char *)from + i * sizeof(word),
		    sizeof(word));
		write_once(words[i], word);
	}
}

static inline void
read_once_words(void *to, const void *from, size_t bytes)
{
	const any_word *words = from;
	uint64_t word;
	size_t i;

	for (i = 0; i < bytes / sizeof(word); i++) {
		word = read_once(words[i]);
		memcpy((char *)to + i * sizeof(word), &word, sizeof(word));
	}
}

static inline void
write_once_zeros(void *to, size_t bytes)
{
	any_word *words = to;
	size_t i;

	for (i = 0; i < bytes / sizeof(*words); i++)
		write_once(words[i], UINT64_C(0));
}

#endif
