/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_process.c - processes that are killed in the middle of their work.
 *
 * Four processes work on one region (process.h). One after the other is
 * stopped, examined, and killed; a new one takes its seat.
 *
 *   stopped    version even, or another's      nothing is lost
 *              version odd, the lock is its    the next call empties the
 *                                              index, and counts it
 *
 * A stopped process stays where it is, so the effect of its death is known
 * before it dies. Half of all deaths are untimed; for the others the victim is
 * continued and stopped again until it is in the middle of a change. Some die
 * two at a time, so that a process may die while it recovers the index, too.
 */
#include "id.h"
#include "plain.h"
#include "process.h"
#include "soak.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KILLS = 200, LEAST = 8, KILLS_SOAK = 8000, CHECK_EVERY = 10 };
enum { ROOMY = 1 << 20, TIGHT = 48 << 10 };

static struct board *board;
static struct kvr *k;
static struct kvr_prompt *p;
static pid_t child[PROCESS_SEATS];
static uint64_t seed, chance, owners, deaths, inside, losses, checked;
static uint64_t odd;  /* the version at which the last loss was */
static bool whole;
static char file[48];

static uint32_t
pick(uint32_t n)
{
	return (uint32_t)(plain_random(&chance) % n);
}

/* A process ended by itself: it found something wrong, or its alarm rang. */
static _Noreturn void
say_wrong(uint32_t seat, int status)
{
	ck_abort_msg("seat %u ended with status %x: %s (KVR_SEED=%" PRIu64 ")",
	    seat, (unsigned)status, board->seat[seat].wrong, seed);
	abort();
}

static void
sit(uint32_t seat)
{
	fflush(NULL);
	child[seat] = process_start(board, seat, ++owners,
	    plain_random(&chance), whole);
	ck_assert_int_gt(child[seat], 0);
}

static struct kvr_stats
stats(void)
{
	struct kvr_stats s = { .size = sizeof(s) };

	ck_assert_int_eq(kvr_stats_get(k, &s), KVR_OK);
	return s;
}

/* --------------------------------------------------------------- death --- */

/* Stops it where it is; is it in the middle of a change? */
static bool
stop(uint32_t seat)
{
	int status, stopped = process_stop(k, child[seat], &status);

	if (stopped < 0)
		say_wrong(seat, status);
	return stopped == 1;
}

static bool
aim(uint32_t seat)
{
	int status, stopped = process_aim(k, child[seat], &status);

	if (stopped < 0)
		say_wrong(seat, status);
	return stopped == 1;
}

/*
 * A change that is broken off is one loss, even if the process that recovers
 * it dies doing so, and the next one too. The version counts them.
 */
static void
murder(uint32_t seat, bool aimed)
{
	bool in = aimed ? aim(seat) : stop(seat);
	int status;

	if (in) {
		inside++;
		losses += process_version(k) != odd;
		odd = process_version(k);
	}
	ck_assert_int_eq(kill(child[seat], SIGKILL), 0);
	ck_assert_int_eq(waitpid(child[seat], &status, 0), child[seat]);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	deaths++;
}

/* Ends the leases of the dead process, as its supervisor would. */
static void
bury(uint32_t seat)
{
	uint32_t ended = PROCESS_LEASES + 1;
	uint64_t at = 0;

	ck_assert_int_eq(kvr_owner_reap(k, atomic_load(
	    &board->seat[seat].owner), atomic_load(&board->clock), &at,
	    &ended), KVR_OK);
	ck_assert_uint_eq(at, 0);
	ck_assert_uint_le(ended, PROCESS_LEASES);
	sit(seat);
}

/* ------------------------------------------------------------ the rest --- */

static void
look(void)
{
	uint32_t family = pick(PROCESS_FAMILIES);
	uint32_t n = process_length[pick(PROCESS_LENGTHS)];
	const char *wrong;

	ck_assert_int_eq(process_prompt(p, family, n), KVR_OK);
	wrong = process_match(k, p, family, n, atomic_load(&board->clock),
	    whole, &checked);
	ck_assert_msg(wrong == NULL, "%s (KVR_SEED=%" PRIu64 ")", wrong, seed);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
}

/* All but one go on: none of them waits for the dead. */
static void
others_alive(uint32_t dead)
{
	uint64_t before[PROCESS_SEATS];
	uint32_t i;
	int status;

	for (i = 0; i < PROCESS_SEATS; i++)
		before[i] = atomic_load(&board->seat[i].calls);
	/* one that hangs is ended by its alarm */
	for (i = 0; i < PROCESS_SEATS; i++)
		while (i != dead &&
		    atomic_load(&board->seat[i].calls) == before[i]) {
			if (waitpid(child[i], &status, WNOHANG) != 0)
				say_wrong(i, status);
			(void)usleep(100);
		}
}

static void
begin(size_t bytes, const char *path)
{
	uint32_t i;

	seed = chance = test_seed();
	whole = bytes == ROOMY;
	board = process_board(bytes, path, &k);
	ck_assert_ptr_nonnull(board);
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	for (i = 0; i < PROCESS_SEATS; i++)
		sit(i);
}

/* All end; returns the number of leases they leave open. */
static void
leave(void)
{
	uint64_t at;
	uint32_t i;
	int status;

	atomic_store(&board->leave, 1);
	for (i = 0; i < PROCESS_SEATS; i++) {
		ck_assert_int_eq(waitpid(child[i], &status, 0), child[i]);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			say_wrong(i, status);
		checked += atomic_load(&board->seat[i].checked);
		at = 0;
		ck_assert_int_eq(kvr_owner_reap(k, atomic_load(
		    &board->seat[i].owner), atomic_load(&board->clock), &at,
		    NULL), KVR_OK);
	}
}

/* All ended and all due reclaimed: no cell, no load, no lease is left. */
static void
nothing_is_left(void)
{
	struct kvr_worker_stats w = { .size = sizeof(w) };
	uint32_t left = 1;
	uint64_t id = 0;

	while (left != 0)
		ck_assert_int_eq(kvr_expire(k, atomic_load(&board->clock) +
		    PROCESS_TTL, 1000, &left), KVR_OK);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	ck_assert_uint_eq(stats().leases, 0);
	ck_assert_uint_eq(stats().entries, 0);
	ck_assert_uint_eq(stats().cells_free, stats().cells - 1);
	while (kvr_worker_next(k, &id) == KVR_OK && id != 0) {
		ck_assert_int_eq(kvr_worker_stats_get(k, id, &w), KVR_OK);
		ck_assert_uint_eq(w.requests + w.prefill_tokens +
		    w.active_blocks + w.output_blocks, 0);
	}
}

static void
verify(const char *how)
{
	struct kvr_stats s;

	leave();
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	s = stats();
	ck_assert_uint_gt(checked, deaths);
	ck_assert_uint_gt(
	    s.observes + s.lease_commits + s.lease_finishes, deaths);
	ck_assert_uint_ge(inside, deaths / 3);
	printf("    killed %s: %" PRIu64 " deaths, %" PRIu64 " of them with the"
	    " lock in the middle of a change\n", how, deaths, inside);
	ck_assert_uint_ge(s.recoveries, losses);
	ck_assert_uint_le(s.recoveries, inside);
	nothing_is_left();
	soak_row("killed %s: %" PRIu64 " deaths, %" PRIu64 " inside"
	    " a change, emptied %" PRIu64 " times, %" PRIu64 " overlaps seen",
	    how, deaths, inside, s.recoveries, checked);
	kvr_prompt_free(p);
	process_board_end(board, k);
}

/* --------------------------------------------------------------- tests --- */

/* One at a time: each loss is counted before the next can happen. */
START_TEST(killed_one_at_a_time)
{
	uint64_t i, n = LEAST +
	    soak_amount(KILLS, KILLS_SOAK) / (1 + 3 * (uint64_t)_i);
	uint32_t seat;

	begin(_i == 0 ? ROOMY : TIGHT, NULL);
	for (i = 0; i < n; i++) {
		(void)usleep(pick(3000));
		seat = pick(PROCESS_SEATS);
		murder(seat, i % 2 == 0);
		if (pick(2) == 0) /* one of them recovers, or this process */
			others_alive(seat);
		bury(seat);
		ck_assert_uint_eq(stats().recoveries, losses);
		if (i % CHECK_EVERY == 0) {
			look();
			others_alive(PROCESS_SEATS);
		}
		soak_progress("killed_one_at_a_time", i, n);
	}
	ck_assert_uint_eq(losses, inside);
	verify(_i == 0 ? "one by one, roomy" : "one by one, tight");
}
END_TEST

/* Two at a time: the process that recovers may be the next to die. */
START_TEST(killed_with_the_heir)
{
	uint64_t i, n = LEAST + soak_amount(KILLS, KILLS_SOAK) / 8;
	uint32_t seat, other;

	begin(ROOMY, NULL);
	for (i = 0; i < n; i++) {
		(void)usleep(pick(2000));
		seat = pick(PROCESS_SEATS);
		other = (seat + 1 + pick(PROCESS_SEATS - 1)) % PROCESS_SEATS;
		murder(seat, true);
		murder(other, true);
		bury(seat);
		bury(other);
		if (i % CHECK_EVERY == 0)
			look();
		soak_progress("killed_with_the_heir", i, n);
	}
	verify("two by two");
}
END_TEST

/* -------------------------------------------------------- warm restart --- */

/* The blocks of all workers, for each family. */
struct known {
	uint32_t blocks[PROCESS_FAMILIES][2 * (PROCESS_NAMES + 2)];
	uint64_t held;
};

static struct known
remember(void)
{
	struct kvr_overlap v[PROCESS_NAMES + 2];
	struct known known;
	uint32_t family;
	size_t i, n;

	memset(&known, 0, sizeof(known));
	for (family = 0; family < PROCESS_FAMILIES; family++) {
		ck_assert_int_eq(process_prompt(p, family, PROCESS_LONGEST),
		    KVR_OK);
		ck_assert_int_eq(kvr_match(k, p, atomic_load(&board->clock),
		    v, sizeof(v[0]), PROCESS_NAMES + 2, &n), KVR_OK);
		for (i = 0; i < n; i++) /* by slot */
			known.blocks[family][id_slot(v[i].worker)] =
			    v[i].blocks;
	}
	known.held = stats().held_blocks;
	return known;
}

/* All are stopped, wherever they are; is one in the middle of a change? */
static bool
stop_all(bool aimed)
{
	uint32_t i, first = pick(PROCESS_SEATS);
	bool in = aimed && aim(first);

	for (i = 0; i < PROCESS_SEATS; i++)
		if (i != first || !aimed)
			in |= stop(i);
	return in;
}

static void
kill_all(void)
{
	uint32_t i;

	for (i = 0; i < PROCESS_SEATS; i++) {
		ck_assert_int_eq(kill(child[i], SIGKILL), 0);
		ck_assert_int_eq(waitpid(child[i], NULL, 0), child[i]);
	}
}

/* All are dead; the next open finds the live entries, or an empty index. */
static void
reopen(bool in)
{
	struct known before, after;
	uint64_t emptied = 0;

	memset(&before, 0, sizeof(before));
	if (!in) {
		kill_all(); /* one of them may have had the lock */
		before = remember();
		emptied = stats().recoveries;
		kvr_free(k);
	} else {
		kvr_free(k);
		kill_all();
	}
	ck_assert_int_eq(process_attach(board, &k), KVR_OK);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	after = remember();
	ck_assert_mem_eq(&before, &after, sizeof(before));
	losses += in;
	ck_assert_uint_eq(stats().recoveries, losses);
	ck_assert(in || emptied == losses);
	ck_assert_uint_gt(stats().workers, 0);
}

/* Waits until the processes have made so many calls: a sleep may be none. */
static void
some_calls(int64_t n)
{
	int64_t end = atomic_load(&board->clock) + n;
	uint32_t tries;

	for (tries = 0; tries < 10000 &&
	    atomic_load(&board->clock) < end; tries++)
		(void)usleep(500);
}

START_TEST(all_killed_and_opened_again)
{
	uint64_t i, n = soak_amount(24, 1000), lost = 0, kept = 0;
	char path[] = "/tmp/kvroute-process-XXXXXX";
	uint32_t seat;
	bool in;

	ck_assert_ptr_nonnull(mkdtemp(path));
	(void)snprintf(file, sizeof(file), "%s/region", path);
	begin(ROOMY, file);
	/* On a slow machine one is nearly always in the middle of a change. */
	for (i = 0; i < n || (kept == 0 && i < 20 * n); i++) {
		some_calls(200 + pick(200));
		in = stop_all(i % 2 == 0);
		reopen(in);
		lost += in;
		kept += !in && stats().held_blocks > 0;
		for (seat = 0; seat < PROCESS_SEATS; seat++)
			bury(seat);
		soak_progress("all_killed_and_opened_again", i, n);
	}
	ck_assert_uint_ge(lost, n / 4);
	ck_assert(kept > 0 || n < 10); /* a few under a checker */
	leave();
	nothing_is_left();
	ck_assert_int_eq(unlink(file), 0);
	strcat(file, ".lock");
	ck_assert_int_eq(unlink(file), 0);
	ck_assert_int_eq(rmdir(path), 0);
	soak_row("all killed, file opened again: %" PRIu64 " times; %" PRIu64
	    " in the middle of a change, else all was as before", n, lost);
	kvr_prompt_free(p);
	process_board_end(board, k);
}
END_TEST

Suite *suite_process(void);

Suite *
suite_process(void)
{
	Suite *s = suite_create("process");
	TCase *t = tcase_create("process");

	tcase_add_loop_test(t, killed_one_at_a_time, 0, 2);
	tcase_add_test(t, killed_with_the_heir);
	tcase_add_test(t, all_killed_and_opened_again);
	suite_add_tcase(s, t);
	return s;
}
