/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_simulate_args.c - options of kvroute-replay --simulate about engines
 * under load: their effects, and the values that are refused.
 */
#include "simulate_args.h"
#include "test.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 26 };

/* Splits `line` at spaces, in place. */
static void
parse(struct settings *s, char *line)
{
	static char program[] = "kvroute-replay", simulate[] = "--simulate";
	char *argv[WORDS_MAX + 1] = { program, simulate }, *word;
	int argc = 2;

	while ((word = strsep(&line, " ")) != NULL && argc < WORDS_MAX)
		argv[argc++] = word;
	argv[argc] = NULL;
	memset(s, 0, sizeof(*s));
	optind = 0;
	simulate_args(s, argc, argv);
}

START_TEST(taken)
{
	static const struct simulate_change changes[] = {
		{ INT64_C(500000000), 1, 2, SIMULATE_DRAIN },
		{ INT64_C(10000000000), 20, 1, SIMULATE_SLOW },
		{ INT64_C(12000000000), 1, 3, SIMULATE_KILL },
		{ INT64_C(30000000000), 1, 2, SIMULATE_JOIN },
		{ INT64_C(35000000000), 20, 1, SIMULATE_SLOW_END }
	};
	char line[] = "--sequences 8,16 --batch 512 --reads own --attention "
	    "53000 --preempt --slow 1:10:35:20 --join 2:30 --drain 2:0.5 "
	    "--kill 3:12 --slo 1.5,50 --affinity hard --format json";
	struct simulate_options *o;
	struct settings s;
	uint32_t i;

	parse(&s, line);
	o = &s.simulate;
	ck_assert_uint_eq(o->n_sequences, 2);
	ck_assert_uint_eq(o->sequences[0], 8);
	ck_assert_uint_eq(o->sequences[1], 16);
	ck_assert_uint_eq(o->batch, 512);
	ck_assert_uint_eq(o->attention, 53000);
	ck_assert_uint_eq(o->affinity, 1 + KVR_AFFINITY_HARD);
	ck_assert(o->own_reads && o->preempt && s.format == SIMULATE_JSON);
	ck_assert_int_eq(o->slo_first_ns, INT64_C(1500000000));
	ck_assert_int_eq(o->slo_token_ns, 50000000);
	ck_assert_uint_eq(o->n_changes, 5);
	for (i = 0; i < 5; i++) {
		ck_assert_int_eq(o->changes[i].at, changes[i].at);
		ck_assert_uint_eq(o->changes[i].worker, changes[i].worker);
		ck_assert_int_eq(o->changes[i].kind, changes[i].kind);
		ck_assert(o->changes[i].kind != SIMULATE_SLOW ||
		    (o->changes[i].factor > 19 && o->changes[i].factor < 21));
	}
}
END_TEST

/* It applies to all policies but those with their own. */
START_TEST(affinity_of_a_policy)
{
	char line[] = "--affinity hard --policy sticky --policy balanced@none "
	    "--policy dynamo:capacity --policy balanced:feedback@hash";
	struct settings s;

	parse(&s, line);
	ck_assert_uint_eq(s.n, 4);
	ck_assert_uint_eq(s.simulate.affinity, 1 + KVR_AFFINITY_HARD);
	ck_assert_str_eq(s.wanted[0].name, "sticky");
	ck_assert_str_eq(s.wanted[1].name, "balanced:ttl=120@none");
	ck_assert(s.wanted[1].own_affinity && s.wanted[1].affinity == 0);
	ck_assert(!s.wanted[0].own_affinity && !s.wanted[2].own_affinity);
	ck_assert_str_eq(s.wanted[3].name, "balanced:feedback@hash");
	ck_assert_int_eq(s.wanted[3].index, SIMULATE_FEEDBACK);
	ck_assert(s.wanted[3].own_affinity);
	ck_assert_uint_eq(s.wanted[3].affinity, 1 + KVR_AFFINITY_HASH);
}
END_TEST

/* Weights of Dynamo's cost; those that are not given keep their defaults. */
START_TEST(weights_taken)
{
	static const struct {
		const char *name;
		double weights[3];
	} wanted[] = {
		{ "dynamo[credit=2,prefill=4,request=64]:capacity",
		    { 2, 4, 64 } },
		{ "dynamo[request=0.5]:ttl=120", { 1, 1, 0.5 } },
		{ "dynamo[prefill=0,credit=1000]:oracle", { 1000, 0, 0 } },
		{ "dynamo[request=3]:feedback@hard", { 1, 1, 3 } },
		{ "dynamo:ttl=120", { 1, 1, 0 } },
		{ "balanced:ttl=120", { 1, 1, 0 } }
	};
	char line[] = "--policy dynamo[credit=2,prefill=4,request=64]:capacity "
	    "--policy dynamo[request=0.5] "
	    "--policy dynamo[prefill=0,credit=1000]:oracle "
	    "--policy dynamo[request=3]:feedback@hard "
	    "--policy dynamo --policy balanced";
	struct settings s;
	size_t i;

	parse(&s, line);
	ck_assert_uint_eq(s.n, sizeof(wanted) / sizeof(wanted[0]));
	for (i = 0; i < s.n; i++) {
		ck_assert_str_eq(s.wanted[i].name, wanted[i].name);
		ck_assert_double_eq(s.wanted[i].weights.overlap_credit,
		    wanted[i].weights[0]);
		ck_assert_double_eq(s.wanted[i].weights.prefill_scale,
		    wanted[i].weights[1]);
		ck_assert_double_eq(s.wanted[i].weights.request_weight,
		    wanted[i].weights[2]);
	}
	ck_assert_int_eq(s.wanted[3].index, SIMULATE_FEEDBACK);
	ck_assert_uint_eq(s.wanted[3].affinity, 1 + KVR_AFFINITY_HARD);
}
END_TEST

START_TEST(default_policies)
{
	char line[] = "--workers 3";
	struct settings s;

	parse(&s, line);
	ck_assert_uint_eq(s.n, 2);
	ck_assert_int_eq(s.wanted[0].policy, SIMULATE_ROUND_ROBIN);
	ck_assert_int_eq(s.wanted[1].policy, SIMULATE_BALANCED);
	ck_assert_str_eq(s.wanted[1].name, "balanced:ttl=120");
}
END_TEST

/* Words of --sessions are no paths. */
START_TEST(exchange_taken)
{
	char line[] = "--replicas 4 --sessions sticky --sessions random "
	    "--exchange prefixes+loads --exchange-delay 2.5 --exchange-loss 5 "
	    "--exchange-repair off --exchange-late apply";
	char paths[] = "--sessions sticky --sessions ./sticky";
	struct simulate_options *o;
	struct settings s;

	parse(&s, line);
	o = &s.simulate;
	ck_assert_uint_eq(o->replicas, 4);
	ck_assert_int_eq(o->dealing, SIMULATE_DEALT_RANDOM);
	ck_assert_int_eq(o->exchange, SIMULATE_PREFIXES_LOADS);
	ck_assert_int_eq(o->exchange_delay_ns, 2500000);
	ck_assert(o->exchange_loss > 0.0499 && o->exchange_loss < 0.0501);
	ck_assert(!o->repair && !o->degrade);
	ck_assert_ptr_null(s.sessions);
	parse(&s, paths);
	o = &s.simulate;
	ck_assert_int_eq(o->dealing, SIMULATE_DEALT_STICKY);
	ck_assert(o->repair && o->degrade);
	ck_assert_str_eq(s.sessions, "./sticky");
}
END_TEST

START_TEST(events_taken)
{
	char line[] = "--policy balanced:events --policy balanced:counts "
	    "--event-delay 0.2 --event-loss 1 --event-replay off --bypass 25";
	struct settings s;

	parse(&s, line);
	ck_assert_int_eq(s.wanted[0].index, SIMULATE_EVENTS);
	ck_assert_int_eq(s.wanted[1].index, SIMULATE_COUNTS);
	ck_assert_int_eq(s.simulate.event_delay_ns, 200000000);
	ck_assert_double_eq_tol(s.simulate.event_loss, 0.01, 1e-9);
	ck_assert_double_eq_tol(s.simulate.bypass, 0.25, 1e-9);
	ck_assert(!s.simulate.event_replay);
}
END_TEST

static const struct {
	const char *line;
	const char *says;
} refused[] = {
	{ "--sequences 0", "--sequences 0: too small" },
	{ "--sequences 100000", "too large" },
	{ "--batch 0", "too small" },
	{ "--batch 200", "less than the 256 requests" },
	{ "--batch 31 --sequences 8,32", "less than the 32 requests" },
	{ "--attention 512", "too small (from 1000" },
	{ "--reads none", "not one of shared, own" },
	{ "--slow 1:5:10", "not WORKER:FROM:TO:FACTOR" },
	{ "--slow 1:10:5:20", "ends before it begins" },
	{ "--slow 1:5:10:0", "not from 0.000001" },
	{ "--slow 1:5:10:2 --slow 1:9:12:2", "--slow 1:9: the worker is slow" },
	{ "--kill 8:5", "--kill 8:5: there is no such worker" },
	{ "--kill 1", "not WORKER:SEC" },
	{ "--kill 1:x", "not a number" },
	{ "--kill 1:endless", "not seconds" },
	{ "--kill 1:-5", "not seconds" },
	{ "--workers 1 --drain 0:5", "--drain 0:5: no worker is left" },
	{ "--join 0:5 --join 0:6", "--join 0:6: the worker is up already" },
	{ "--slo 1", "not TTFT,TOKEN" },
	{ "--slo 0,50", "not above 0" },
	{ "--slo 1,0", "not above 0" },
	{ "--affinity firm", "not one of none, hard, hash" },
	{ "--policy balanced:feedback@firm", "not one of none, hard" },
	{ "--policy sticky@hard", "sticky@hard: it does not look at" },
	{ "--policy lmetric@hard", "it does not look at affinity" },
	{ "--policy balanced:oracle@hard", "it does not look at affinity" },
	{ "--policy ramjet:capacity@hash", "it does not look at affinity" },
	{ "--policy two-tier@hard", "it does not look at affinity" },
	{ "--policy sticky:ttl=5", "sticky needs no index" },
	{ "--policy dynamo[credit=2",
	    "not a weight: \"[credit=2\" (it has no ] at its end)" },
	{ "--policy dynamo[credit=2:capacity",
	    "not a weight: \"[credit=2\" (it has no ] at its end)" },
	{ "--policy dynamo[credit=2]5", "(it has no ] at its end)" },
	{ "--policy dynamo[request=1,request=3]", "(it is named twice)" },
	{ "--policy dynamo[credit=1e3]",
	    "not a weight: \"credit=1e3\" (it is the blocks" },
	{ "--policy dynamo[overlap=2]", "not a weight: \"overlap=2\"" },
	{ "--policy dynamo[credit]", "not a weight: \"credit\"" },
	{ "--policy dynamo[]", "not a weight: \"\"" },
	{ "--policy dynamo[credit=2,]", "not a weight: \"\"" },
	{ "--policy dynamo[credit=]", "not a weight: \"credit=\"" },
	{ "--policy dynamo[credit=two]", "not a weight: \"credit=two\"" },
	{ "--policy dynamo[credit=2x]", "not a weight: \"credit=2x\"" },
	{ "--policy dynamo[prefill=-1]", "not a weight: \"prefill=-1\"" },
	{ "--policy dynamo[prefill=nan]", "not a weight: \"prefill=nan\"" },
	{ "--policy dynamo[request=inf]", "not a weight: \"request=inf\"" },
	{ "--policy dynamo[request=1e7]", "not a weight: \"request=1e7\"" },
	{ "--policy balanced[credit=2]",
	    "not a weight: \"credit=2\" (the names are bound" },
	{ "--policy sticky[credit=2]", "sticky: it has no weights" },
	{ "--common-rate", "unrecognized option" },
	{ "--exchange some", "not one of none, all, prefixes, loads" },
	{ "--exchange-loss 101", "not from 0 to 100" },
	{ "--exchange-loss endless", "not from 0 to 100" },
	{ "--exchange-delay x", "not a number" },
	{ "--exchange-late drop", "not one of apply, degrade" },
	{ "--exchange-repair 1", "not one of off, on" },
	{ "--event-loss 101", "not from 0 to 100" },
	{ "--event-replay never", "not one of off, on" },
	{ "--bypass -1", "not from 0 to 100" }
};

/* Each is tried in another process, because it exits. */
START_TEST(not_taken)
{
	char line[128], said[512] = "";
	struct settings s;
	int pipes[2], status;
	size_t size = 0;
	ssize_t n;
	pid_t pid;

	snprintf(line, sizeof(line), "%s", refused[_i].line);
	ck_assert_int_eq(pipe(pipes), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		dup2(pipes[1], STDERR_FILENO);
		parse(&s, line);
		_exit(0);
	}
	close(pipes[1]);
	while ((n = read(pipes[0], said + size, sizeof(said) - 1 - size)) > 0)
		size += (size_t)n;
	close(pipes[0]);
	ck_assert_int_eq(n, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 2);
	ck_assert_msg(strstr(said, refused[_i].says) != NULL, "%s: %s",
	    refused[_i].line, said);
}
END_TEST

Suite *suite_simulate_args(void);

Suite *
suite_simulate_args(void)
{
	Suite *s = suite_create("simulate_args");
	TCase *c = tcase_create("simulate_args");

	tcase_add_test(c, taken);
	tcase_add_test(c, affinity_of_a_policy);
	tcase_add_test(c, weights_taken);
	tcase_add_test(c, default_policies);
	tcase_add_test(c, exchange_taken);
	tcase_add_test(c, events_taken);
	tcase_add_loop_test(c, not_taken, 0,
	    (int)(sizeof(refused) / sizeof(refused[0])));
	suite_add_tcase(s, c);
	return s;
}
