/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run.c - the hashes of a node: a shallow tree of cells.
 *
 * A run keeps the low 32 bits of each block's sequence hash, 16 per bottom
 * piece; above are pieces of 16 links each:
 *
 *   level 2                     [ . . . ]
 *   level 1          [ . . . . ]  [ . . . . ]  ...
 *   level 0   [h0..h15] [h16..h31] ...            one bottom piece: level 0
 *
 * A node's run is the part [begin, begin + length) of such a tree. A piece is
 * allocated if and only if that part needs it, so the number of cells follows
 * from (begin, end, level) alone: cell_tree_size. A new run begins at 0; begin
 * moves up when a split takes away the head of a run.
 *
 * A split copies the shorter side, so however a run is cut up, each of its
 * hashes is copied at most log2(length) times:
 *
 *   [h0 .. h4|h5 .. h99]   upper short: h0..h4 are copied to a new tree, the
 *                          lower keeps the old one with begin = 5
 *   [h0 .. h90|h91 .. h99] lower short: h91..h99 are copied to a new tree,
 *                          the upper keeps the old one with length = 91
 */
#include "run.h"

#include "cell.h"

/* The lowest level of a tree with room for [0, end). */
uint32_t
run_level(uint32_t end)
{
	uint32_t level = 0, last = (end - 1) / PIECE;

	for (; last > 0; last /= PIECE)
		level++;
	return level;
}

uint32_t
run_cells_to_append(const struct node *n, uint32_t count)
{
	uint32_t end = n->begin + n->length;
	uint32_t level = run_level(end + count);

	if (n->length == 0)
		return cell_tree_size(0, count, run_level(count));
	if (level < n->level)
		level = n->level;
	return cell_tree_size(n->begin, end + count, level) -
	    cell_tree_size(n->begin, end, n->level);
}

uint32_t
run_cells_to_split(const struct node *n, uint32_t at)
{
	uint32_t rest = n->length - at, less = at < rest ? at : rest;

	return cell_tree_size(0, less, run_level(less));
}

/* ------------------------------------------------------------- reading --- */

/* The bottom piece that holds a position of the tree. */
static const uint32_t *
run_bottom(const struct kvr *k, const struct node *n, uint32_t position)
{
	return cell_at(k, links_at(k, read_once(n->run),
	    read_once(n->level) % RUN_LEVELS, position / PIECE))->piece;
}

uint32_t
run_get(const struct kvr *k, const struct node *n, uint32_t i)
{
	uint32_t position = read_once(n->begin) + i;

	return read_once(run_bottom(k, n, position)[position % PIECE]);
}

/* The last place of a hash; UINT32_MAX: it is not there. */
uint32_t
run_find(const struct kvr *k, const struct node *n, uint32_t hash)
{
	uint32_t i = n->length, position;
	const uint32_t *piece;

	if (i / PIECE > k->layout.cells)
		return UINT32_MAX; /* it is damaged */
	while (i > 0) {
		position = n->begin + i - 1;
		piece = run_bottom(k, n, position);
		do
			if (read_once(piece[position % PIECE]) == hash)
				return i - 1;
		while (--i > 0 && position-- % PIECE != 0);
	}
	return UINT32_MAX;
}

/*
 * How many leading hashes of the run equal the prompt's, of the first `limit`;
 * the first is known to be equal. Chained hashes that have diverged never meet
 * again, so the point of divergence is found by bisection.
 */
uint32_t
run_common(const struct kvr *k, const struct node *n, const uint64_t *hashes,
    uint32_t limit)
{
	uint32_t low = limit > 0, high = limit;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (run_get(k, n, middle) == (uint32_t)hashes[middle])
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ------------------------------------------------------------- growing --- */

/* Raises the tree until it has room for [0, end). */
static void
run_raise(struct kvr *k, struct node *n, uint32_t end)
{
	uint32_t level = run_level(end);

	if (n->length == 0) {
		write_once(n->begin, 0);
		write_once(n->level, (uint8_t)level);
		write_once(n->run, cell_take(k));
		return;
	}
	while (n->level < level) {
		uint32_t top = cell_take(k);

		write_once(cell_at(k, top)->piece[0], n->run);
		write_once(n->run, top);
		write_once(n->level, (uint8_t)(n->level + 1));
	}
}

/*
 * Returns where the hashes from `position` on go; *room is how many fit there.
 * Pieces that begin at `position` are allocated on the way down. *link is the
 * link to the bottom piece, NULL if that piece is the whole tree.
 */
static uint32_t *
run_room(struct kvr *k, const struct node *n, uint32_t position,
    uint32_t *room, uint32_t **link)
{
	uint32_t piece = n->run, level;

	*link = NULL;
	for (level = n->level % RUN_LEVELS; level > 0; level--) {
		uint32_t below = position >> (4 * level);

		*link = &cell_at(k, piece)->piece[below % PIECE];
		if ((position & ((UINT32_C(1) << (4 * level)) - 1)) == 0)
			write_once(**link, cell_take(k));
		piece = **link;
	}
	*room = PIECE - position % PIECE;
	return &cell_at(k, piece)->piece[position % PIECE];
}

/* Writes the low halves of two hashes in one store. */
static inline void
write_two(uint32_t *to, const uint64_t *hashes)
{
	uint32_t two[2] = { (uint32_t)hashes[0], (uint32_t)hashes[1] };

	write_once_words(to, two, sizeof(two));
}

/*
 * Appends whole pieces under one piece of links, after the one at `link`; most
 * of a long run is written here. Returns how many hashes were consumed.
 */
static uint32_t
append_pieces(struct kvr *k, uint32_t *link, uint32_t pieces,
    const uint64_t *hashes)
{
	uint32_t done, i, *to;

	cell_take_row(k, link + 1, pieces);
	for (done = 0; done < pieces; done++) {
		to = cell_at(k, *++link)->piece;
		for (i = 0; i < PIECE; i += 2, hashes += 2)
			write_two(to + i, hashes);
	}
	return done * PIECE;
}

/* The caller has made room: run_cells_to_append. */
void
run_append(struct kvr *k, struct node *n, const uint64_t *hashes,
    uint32_t count)
{
	uint32_t room, part, i, *link;

	run_raise(k, n, n->begin + n->length + count);
	while (count > 0) {
		uint32_t position = n->begin + n->length;
		uint32_t *to = run_room(k, n, position, &room, &link);

		part = room < count ? room : count;
		for (i = 0; i < part; i++)
			write_once(to[i], (uint32_t)hashes[i]);
		write_once(n->length, n->length + part);
		hashes += part;
		count -= part;
		if (link == NULL || count < PIECE)
			continue;
		i = PIECE - 1 - (position / PIECE) % PIECE;
		if (i > count / PIECE)
			i = count / PIECE;
		part = append_pieces(k, link, i, hashes);
		write_once(n->length, n->length + part);
		hashes += part;
		count -= part;
	}
}

/* Appends hashes [first, first + count) of another run. */
void
run_append_run(struct kvr *k, struct node *n, const struct node *from,
    uint32_t first, uint32_t count)
{
	uint32_t position = from->begin + first, room, part, i, *link;

	run_raise(k, n, n->begin + n->length + count);
	while (count > 0) {
		uint32_t *to = run_room(k, n, n->begin + n->length, &room,
		    &link);
		const uint32_t *source = run_bottom(k, from, position);

		add_once(k->region->counts.steps, 1);
		part = PIECE - position % PIECE;
		if (part > room)
			part = room;
		if (part > count)
			part = count;
		for (i = 0; i < part; i++)
			write_once(to[i], source[position % PIECE + i]);
		position += part;
		count -= part;
		write_once(n->length, n->length + part);
	}
}

/* ------------------------------------------------------------- cutting --- */

/* Bottom pieces [first, last], by number. */
struct span {
	uint32_t first, last;
};

static bool
span_meets(struct span s, uint32_t first, uint32_t last)
{
	return first <= s.last && last >= s.first;
}

/*
 * Frees a piece (number `at` of its level) and those below it, as far as they
 * served `had` and do not serve `keep`.
 */
static void
run_prune(struct kvr *k, uint32_t piece, uint32_t level, uint32_t at,
    struct span had, struct span keep)
{
	uint32_t first = at << (4 * level), i;
	uint32_t last = first + (UINT32_C(1) << (4 * level)) - 1;

	add_once(k->region->counts.steps, 1);
	if (region_broken(k) || !span_meets(had, first, last) ||
	    (first >= keep.first && last <= keep.last))
		return;
	for (i = 0; level > 0 && i < PIECE; i++)
		run_prune(k, cell_at(k, piece)->piece[i], level - 1,
		    at * PIECE + i, had, keep);
	if (!span_meets(keep, first, last))
		cell_give(k, piece);
}

/* Narrows a run to [begin, begin + length) of its tree. */
static void
run_narrow(struct kvr *k, struct node *n, uint32_t begin, uint32_t length)
{
	struct span had, keep;

	had.first = n->begin / PIECE;
	had.last = (n->begin + n->length - 1) / PIECE;
	keep.first = begin / PIECE;
	keep.last = (begin + length - 1) / PIECE;
	write_once(n->begin, begin);
	write_once(n->length, length);
	run_prune(k, n->run, n->level % RUN_LEVELS, 0, had, keep);
}

/*
 * Moves the first `at` hashes of `lower` to `upper`, which has no run yet. The
 * caller has made room: run_cells_to_split.
 */
void
run_split(struct kvr *k, struct node *lower, uint32_t at, struct node *upper)
{
	uint32_t rest = lower->length - at;
	struct node tail;

	write_once(upper->length, 0);
	if (at <= rest) {
		run_append_run(k, upper, lower, 0, at);
		run_narrow(k, lower, lower->begin + at, rest);
		return;
	}
	memset(&tail, 0, sizeof(tail));
	run_append_run(k, &tail, lower, at, rest);
	write_once(upper->run, lower->run);
	write_once(upper->level, lower->level);
	write_once(upper->begin, lower->begin);
	write_once(upper->length, lower->length);
	run_narrow(k, upper, upper->begin, at);
	write_once(lower->run, tail.run);
	write_once(lower->level, tail.level);
	write_once(lower->begin, tail.begin);
	write_once(lower->length, tail.length);
}
