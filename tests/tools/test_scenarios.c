/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_scenarios.c - bench/routing/routing.py, which compares policies, with
 * tools that print made-up results.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/kvr-scenarios-XXXXXX";
static char out[65536]; /* of the last command */

/* Runs a shell command; keeps its output and returns its exit status. */
static int
sh(const char *command)
{
	FILE *f;
	size_t n;
	int status;

	ck_assert_int_eq(setenv("D", folder, 1), 0);
	f = popen(command, "r");
	ck_assert_ptr_nonnull(f);
	n = fread(out, 1, sizeof(out) - 1, f);
	out[n] = '\0';
	status = pclose(f);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
has(const char *text)
{
	ck_assert_msg(strstr(out, text) != NULL, "%s\nis not in\n%s", text,
	    out);
}

static void
make_folder(void)
{
	strcpy(strrchr(folder, '-'), "-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void
remove_folder(void)
{
	ck_assert_int_eq(sh("rm -rf \"$D\""), 0);
}

/* ---------------------------------------------------------------- table --- */

START_TEST(table_is_sound)
{
	ck_assert_int_eq(sh("awk -F '\\t' '/^#/ { next } "
	    "NF < 4 || NF > 5 { print \"fields: \" $0 } "
	    "NF == 5 && "
	    "$5 !~ /^(held|overloaded|quick)(,(overloaded|quick))*$/ "
	    "{ print \"last: \" $0 } "
	    "$2 ~ /^held-/ && $5 !~ /held/ { print \"held: \" $0 } "
	    "$2 in seen || $2 !~ /^[a-z0-9-]+$/ { print \"name: \" $2 } "
	    "{ seen[$2]; family[$1]++ } "
	    "$5 ~ /held/ { held[$1]++ } $5 ~ /quick/ { quick[$1]++ } "
	    "END { n = split(\"chat shared documents agents users fleets "
	    "trouble reports engines keys\", names, \" \"); "
	    "for (i = 1; i <= n; i++) { if (!family[names[i]]) "
	    "print \"none: \" names[i]; "
	    "if (!held[names[i]] && names[i] != \"users\") "
	    "print \"none held: \" names[i]; if (!quick[names[i]]) "
	    "print \"none quick: \" names[i]; delete family[names[i]] } "
	    "for (f in family) print \"family: \" f }' "
	    "bench/routing/scenarios.tsv"), 0);
	ck_assert_str_eq(out, "");
}
END_TEST

/* --------------------------------------------------------------- report --- */

/*
 * Shell functions: row SCENARIO POLICY SEED [NAME=VALUE]... writes a result,
 * three SCENARIO POLICY SEED MEAN P90 REQUEST too; scenario FAMILY NAME
 * REQUESTS MARKS [OPTIONS] adds a line to a table.
 */
#define ROWS "row() { mkdir -p \"$D/out/$1\"; f=\"$D/out/$1/$2.$3.kv\"; " \
	"printf 'policy=%s\\nworkers=8\\nseed=%s\\nrequests=3000\\n' $2 $3 " \
	"> \"$f\"; shift 3; printf '%s\\n' \"$@\" >> \"$f\"; }; " \
	"three() { row $1 $2 $3 ttft_mean=$4 ttft_p90=$5 request_mean=$6; }; " \
	"scenario() { printf '%s\\t%s\\t%s\\t%s\\t%s\\n' $1 $2 $3 " \
	"\"${5:---workers 8}\" $4 >> \"$D/table\"; }; " \
	"rm -rf \"$D/out\" \"$D/table\"; "
#define SCRIPT "python3 bench/routing/routing.py "
#define TOOLS "\"$D/replay\" \"$D/tracegen\" \"$D\" \"$D/out\" "
/* Judges the existing results of named scenarios; or of the own table. */
#define JUDGE "RANDOM_LOADS=0 JOBS=0 " SCRIPT "scenarios " TOOLS
#define OWN_TABLE "TABLE=\"$D/table\" "

/* Each figure has its own best rival, and each knowledge its own rivals. */
START_TEST(best_rival_of_each_figure)
{
	ck_assert_int_eq(sh(ROWS
	    "three chat sticky 1 1 9 3; three chat chbl 1 3 4 2; "
	    "three chat lmetric:feedback 1 1.1 8 9; "
	    "three chat lmetric:capacity 1 .5 8 9; "
	    "three chat balanced:feedback 1 1.1 4 2.2; "
	    "three chat balanced:capacity 1 1.1 6 1; "
	    ": > \"$D/table\"; scenario chat chat chat; "
	    "SEEDS=1 " OWN_TABLE JUDGE "chat"), 0);
	has("| chat | sticky 1.000 | 1.100 (1.10) 4.000 (1.00) "
	    "2.200 (1.10) | lmetric:capacity 0.500 | 1.100 (2.20) "
	    "6.000 (1.50) 1.000 (0.50) |\n");
	/* without limits */
	has("| all, 1: TTFT mean | balanced:capacity | 2.200 | | |\n");
	has("| all: worst TTFT mean, chat | balanced:feedback | 1.100 | | |");
	has("\n0 missed\n");
}
END_TEST

/* 1 and 4 are 2, and so are 2 and 2. */
START_TEST(means_of_seeds)
{
	ck_assert_int_eq(sh(ROWS "scenario chat chat chat; "
	    "three chat sticky 1 1 1 1; three chat sticky 2 4 4 4; "
	    "for k in feedback capacity; do for s in 1 2; do "
	    "three chat balanced:$k $s 2 4 1; done; done; "
	    "SEEDS='1 2' " OWN_TABLE JUDGE "chat"), 0);
	has("| chat | sticky 2.000 | 2.000 (1.00) 4.000 (2.00) 1.000 (0.50) | "
	    "sticky 2.000 | 2.000 (1.00) 4.000 (2.00) 1.000 (0.50) |\n");
}
END_TEST

/* Ratios of .5 and 2 in the mean are 1, and the worst is 2. */
START_TEST(limits)
{
	ck_assert_int_eq(sh(ROWS
	    "for n in a b; do scenario chat $n chat; three $n sticky 1 1 1 1; "
	    "case $n in a) v=.5;; *) v=2;; esac; "
	    "for k in feedback capacity; do "
	    "three $n balanced:$k 1 $v 1 1.02; done; done; "
	    "SEEDS=1 " OWN_TABLE JUDGE), 1);
	has("| all, 2: TTFT mean | balanced:feedback | 1.000 | <= 1.010 | "
	    "kept |\n");
	has("| all, 2: s per request | balanced:feedback | 1.020 | <= 1.010 | "
	    "MISSED |\n");
	has("| all: worst TTFT mean, b | balanced:feedback | 2.000 | "
	    "<= 1.250 | MISSED |\n");
	has("\n4 missed\n");
	ck_assert_int_eq(sh("WORST=2 SEEDS=1 " OWN_TABLE JUDGE "a b"), 0);
	has("worst TTFT mean, b | balanced:capacity | 2.000 | "
	    "<= 2.000 | kept |\n");
	ck_assert_int_eq(sh("WORST=1.9 SEEDS=1 " OWN_TABLE JUDGE "a b"), 1);
	has("\n2 missed\n");
}
END_TEST

/* A result that is missing is no result, and fails: ours, or of a seed. */
START_TEST(incomplete)
{
	ck_assert_int_eq(sh(ROWS "three chat sticky 1 1 1 1; "
	    "three chat balanced:feedback 1 1 1 1; SEEDS=1 "
	    "JOBS=0 " SCRIPT "scenarios " TOOLS "engines-8-slots"), 1);
	has("| engines-8-slots | NOT RUN | | NOT RUN | |\n");
	has("\n2 missed\n");
	ck_assert_int_eq(sh("mv \"$D/out/chat\" \"$D/out/engines-8-slots\"; "
	    "SEEDS=1 " JUDGE "engines-8-slots"), 1);
	has("| engines-8-slots | sticky 1.000 | 1.000 (1.00) 1.000 (1.00) "
	    "1.000 (1.00) | NOT RUN | |\n");
	has("\n1 missed\n");
	ck_assert_int_eq(sh(ROWS "scenario chat chat chat; "
	    "three chat sticky 1 1 1 1; "
	    "for k in feedback capacity; do for s in 1 2; do "
	    "three chat balanced:$k $s 1 1 1; done; done; "
	    "SEEDS='1 2' " OWN_TABLE JUDGE "chat"), 1);
	has("| chat | NOT RUN | | NOT RUN | |\n");
}
END_TEST

/*
 * Overloaded loads are in no group, and those with several routers in one of
 * their own; random ones have the first seed alone.
 */
START_TEST(groups)
{
	ck_assert_int_eq(sh(ROWS
	    "scenario chat plain chat; scenario chat over chat overloaded; "
	    "scenario chat kept chat held,quick; "
	    "scenario agents session sessions; "
	    "scenario users few users; scenario chat drawn chat random; "
	    "scenario chat many chat held '--replicas 4'; v=1; "
	    "mkdir \"$D/agentic\"; "
	    "for n in plain over kept session few drawn many; do "
	    "v=$((v * 2)); for s in 1 2; do "
	    "case $n$s in drawn2) continue;; esac; three $n sticky $s 1 1 1; "
	    "for k in feedback capacity; do three $n balanced:$k $s $v 1 1; "
	    "done; done; done; SEEDS='1 2' " OWN_TABLE JUDGE
	    "chat agents users"), 0);
	/* 2, 8, 16, 32 */
	has("| all, 4: TTFT mean | balanced:feedback | 9.514 | | |\n");
	has("| held, 1: TTFT mean | balanced:feedback | 8.000 | | |\n");
	has("| agents, 1: TTFT mean | balanced:feedback | 16.000 | | |\n");
	has("| random, 1: TTFT mean | balanced:feedback | 64.000 | | |\n");
	has("| users, 1: TTFT mean | balanced:feedback | 32.000 | | |\n");
	has("| routers, 1: TTFT mean | balanced:capacity | 128.000 | | |\n");
	has("| over | sticky 1.000 | 4.000 (4.00) ");
}
END_TEST

/* Agents by reports and by capacity, and hits of few users, if all is meant. */
START_TEST(single_figures)
{
	ck_assert_int_eq(sh(ROWS
	    "scenario agents a sessions; scenario agents b sessions; "
	    "scenario users u users; mkdir \"$D/agentic\"; "
	    "for n in a b; do three $n sticky 1 9 9 9; "
	    "three $n balanced:capacity 1 1 1 1; done; "
	    "three a balanced:feedback 1 1 1 1; "
	    "three b balanced:feedback 1 1.21 1 1; "
	    "row u sticky 1 hit_ratio=.5 ttft_mean=1; "
	    "row u lmetric:capacity 1 hit_ratio=.8 ttft_mean=2; "
	    "row u balanced:feedback 1 hit_ratio=.48 ttft_mean=1; "
	    "row u balanced:capacity 1 hit_ratio=.72 ttft_mean=1; "
	    "SEEDS=1 " OWN_TABLE JUDGE), 1);
	has("| agents: TTFT mean / balanced:capacity | balanced:feedback | "
	    "1.100 | <= 1.020 | MISSED |\n");
	has("| agents: the same, worst, b | balanced:feedback | 1.210 | "
	    "<= 1.100 | MISSED |\n");
	has("| u: hits / those of sticky | balanced:feedback | 0.960 | "
	    ">= 0.950 | kept |\n");
	has("| u: hits / those of lmetric:capacity | balanced:capacity | "
	    "0.900 | >= 0.950 | MISSED |\n");
}
END_TEST

/* The larger of both shares, seed 2 has too few; a mean over seeds 1 and 3. */
START_TEST(returned)
{
	ck_assert_int_eq(sh(ROWS "scenario fleets joins chat; "
	    "for seed in 1 2 3; do "
	    "case $seed in 2) a=-1;; *) a=.$seed;; esac; "
	    "three joins sticky $seed 1 1 1; for k in feedback capacity; do "
	    "row joins balanced:$k $seed ttft_mean=1 ttft_p90=1 "
	    "request_mean=1 "
	    "return0_kind=join return0_worker=8 return0_at=600.000 "
	    "return0_share=$a return0_session_share=-1.0000 "
	    "return1_kind=slow-end return1_worker=9 return1_at=700.000 "
	    "return1_share=-1.0000 return1_session_share=0.$((seed + 4)); done;"
	    " done; SEEDS='1 2 3' " OWN_TABLE JUDGE "fleets"), 1);
	has("| joins: worker 8, join at 600.000 s | balanced:feedback | "
	    "0.200 | >= 0.500 | MISSED |\n");
	has("| joins: worker 9, slow-end at 700.000 s | "
	    "balanced:capacity | 0.600 | >= 0.500 | kept |\n");
	has("\n2 missed\n");
	ck_assert_int_eq(sh("RETURNS=.2 SEEDS='1 2 3' " OWN_TABLE JUDGE
	    "fleets"), 0);
	has("worker 8, join at 600.000 s | balanced:capacity | 0.200 | "
	    ">= 0.200 | kept |\n");
}
END_TEST

/* A random load has one seed: others are no shares of nothing. */
START_TEST(returned_at_random)
{
	ck_assert_int_eq(sh(ROWS "scenario fleets drawn chat random; "
	    "three drawn sticky 1 1 1 1; for k in feedback capacity; do "
	    "row drawn balanced:$k 1 ttft_mean=1 ttft_p90=1 request_mean=1 "
	    "return0_kind=join return0_worker=8 return0_at=6 "
	    "return0_share=.6 return0_session_share=.5; done; "
	    "SEEDS='1 2 3' " OWN_TABLE JUDGE "fleets"), 0);
	has("worker 8, join at 6 s | balanced:capacity | 0.600 | >= 0.500 | "
	    "kept |\n");
}
END_TEST

/* Where keys separate sessions, ours has them too. */
START_TEST(with_keys)
{
	ck_assert_int_eq(sh(ROWS
	    "three keys-images sticky 1 1 1 1; for k in feedback capacity; do "
	    "three keys-images balanced:$k@hard 1 .9 .9 .9; done; "
	    "SEEDS=1 " JUDGE "keys-images"), 0);
	has("| keys-images | sticky 1.000 | 0.900 (0.90) 0.900 (0.90) "
	    "0.900 (0.90) | sticky 1.000 | 0.900 (0.90) ");
}
END_TEST

/* A scenario that cannot run is listed, and counts as missing. */
START_TEST(skipped)
{
	ck_assert_int_eq(sh(ROWS
	    "scenario chat lost conversation; scenario chat there chat; "
	    "three there sticky 1 1 1 1; for k in feedback capacity; do "
	    "row there balanced:$k 1 ttft_mean=1 ttft_p90=1 request_mean=1 "
	    "evicted_region=0; done; SEEDS=1 " OWN_TABLE JUDGE
	    "lost there"), 0);
	has("- skipped: lost (no ");
	has("/conversation_trace.jsonl)\n");
	ck_assert_ptr_null(strstr(out, "| lost |"));
	ck_assert_ptr_null(strstr(out, "was full"));
	ck_assert_int_eq(sh("sed -i s/evicted_region=0/evicted_region=5/ "
	    "\"$D/out/there/balanced:feedback.1.kv\"; "
	    "SEEDS=1 " OWN_TABLE JUDGE), 1);
	has("\n1 missed\n");
	has("The index of balanced:feedback was full in there.\n");
}
END_TEST

/* ---------------------------------------------------------------- studies - */

#define PLACES "mkdir -p \"$D/agentic\"; : > \"$D/conversation_trace.jsonl\"; "
#define STUDY(name) "JOBS=0 " SCRIPT name " " TOOLS

/* Means over the seeds, beside those of one router, and their limits. */
START_TEST(replicas)
{
	ck_assert_int_eq(sh(PLACES ROWS "told() { row $1 balanced:feedback "
	    "$2 hit_ratio=$3 ttft_mean=$4 request_mean=9 error_blocks=0 "
	    "bypassed=0 prompt_tokens=1; }; for s in 1 2; do "
	    "told one $s .5 1; told agents-one $s .5 1; "
	    "told 4-all $s .$((3 + s)) 1.1; told 4-nothing $s .1 3; done; "
	    "SEEDS='1 2' RUNS='4-[an][lo][lt]*' " STUDY("replicas")), 1);
	has("| 4-nothing | 0.1000 | 0.200 | 3.0000 | 3.000 | 9.000 | 2 |\n");
	has("| 4-all | 0.4500 | 0.900 (>= 0.99, MISSED) | 1.1000 | "
	    "1.100 (<= 1.02, MISSED) | 9.000 | 2 |\n");
	ck_assert_ptr_null(strstr(out, "no results"));
	ck_assert_int_eq(sh("rm \"$D/out/one/balanced:feedback.2.kv\"; "
	    "SEEDS='1 2' RUNS='' " STUDY("replicas")), 1);
	has("MISSED: there are no results of one, balanced:feedback\n");
}
END_TEST

START_TEST(events)
{
	ck_assert_int_eq(sh(PLACES ROWS "for p in feedback capacity counts "
	    "events oracle; do row chats-late balanced:$p 1 hit_ratio=.25 "
	    "ttft_mean=.5 request_mean=1 error_blocks=2 bypassed=1000 "
	    "prompt_tokens=20480000; done; "
	    "SEEDS=1 RUNS=chats-late " STUDY("events")), 0);
	/* 2 blocks of 512 tokens of each of 2,000 prompts */
	has("| chats-late | 0.5000, 25.00, 10.00 | 0.5000, 25.00, 10.00 |");
}
END_TEST

START_TEST(windows)
{
	ck_assert_int_eq(sh(PLACES ROWS
	    "for p in capacity feedback ttl=120; do "
	    "for n in chats-dual chats-dual.unaware; do case $n in "
	    "*.*) e=3;; *) e=2;; esac; row $n balanced:$p 1 hit_ratio=.25 "
	    "ttft_mean=.5 request_mean=1 error_blocks=$e bypassed=0 "
	    "prompt_tokens=30720000; done; done; "
	    "SEEDS=1 RUNS=chats-dual " STUDY("windows")), 1);
	has("| chats-dual | balanced:capacity | 10.00 / 15.00 (MISSED) | "
	    "0.2500 / 0.2500 | 0.5000 / 0.5000 | 1.000 / 1.000 | 1 |\n");
	has("| chats-dual | balanced:ttl | 10.00 / 15.00 | ");
	ck_assert_int_eq(sh("rmdir \"$D/agentic\"; " STUDY("windows") "2>&1"),
	    2);
	has("routing.py: no ");
}
END_TEST

/* ------------------------------------------------------------------ runs -- */

/* Tools that count their runs. */
static const char tools[] =
"cat > \"$D/replay\" <<'END'\n"
"#!/bin/sh\n"
"echo \"$*\" >> \"$D/runs\"\n"
"while [ $# -gt 0 ]; do case $1 in --seed) seed=$2;; --policy)\n"
"printf '%spolicy=%s\\nseed=%s\\nrequests=9\\nttft_mean=1\\nttft_p90=2\\n"
"request_mean=3\\n' \"$sep\" \"$2\" \"$seed\"; sep='\n'; esac; shift; done\n"
"END\n"
"printf '#!/bin/sh\\n' > \"$D/tracegen\"\n"
"chmod +x \"$D/replay\" \"$D/tracegen\"";

#define SCENARIOS "POLICIES='sticky balanced:feedback balanced:capacity' " \
	SCRIPT "scenarios " TOOLS "users-1-8-0 conv-8-1m 2> \"$D/err\""
#define RUN(seed) "--simulate -q --format kv --seed " seed " --slo 1,50 "

/* Each result is made once; a missing one is made again. */
START_TEST(resumed)
{
	ck_assert_int_eq(sh(tools), 0);
	ck_assert_int_eq(sh("SEEDS='1 2' " SCENARIOS), 0);
	has("| users-1-8-0 | sticky 1.000 | 1.000 (1.00) 2.000 (1.00) "
	    "3.000 (1.00) | sticky 1.000 | 1.000 (1.00) ");
	has("skipped: conv-8-1m (no ");
	ck_assert_int_eq(sh("sort \"$D/runs\" | sed \"s|$D/||\""), 0);
	ck_assert_str_eq(out,
	    RUN("1") "--workers 4 --capacity 45000 --policy sticky "
	    "--policy balanced:feedback --policy balanced:capacity "
	    "out/users-1-8-0/.1/trace\n"
	    RUN("2") "--workers 4 --capacity 45000 --policy sticky "
	    "--policy balanced:feedback --policy balanced:capacity "
	    "out/users-1-8-0/.2/trace\n");
	ck_assert_int_eq(sh("SEEDS='1 2' " SCENARIOS), 0);
	ck_assert_int_eq(sh("wc -l < \"$D/runs\""), 0);
	ck_assert_int_eq(atoi(out), 2);
	ck_assert_int_eq(sh("rm \"$D/out/users-1-8-0/sticky.2.kv\""), 0);
	ck_assert_int_eq(sh("SEEDS='1 2' " SCENARIOS), 0);
	ck_assert_int_eq(sh("tail -n 1 \"$D/runs\""), 0);
	has("--seed 2 --slo 1,50 --workers 4 --capacity 45000 "
	    "--policy sticky ");
	ck_assert_ptr_null(strstr(out, "balanced"));
}
END_TEST

/* Progress, and why a run fails. */
START_TEST(failed_run)
{
	ck_assert_int_eq(sh(tools), 0);
	ck_assert_int_eq(sh("sed -i '2a case $* in *\"--seed 2\"*) "
	    "echo no memory >&2; exit 3;; esac' \"$D/replay\"; "
	    "SEEDS='1 2' " SCENARIOS), 1);
	has("| users-1-8-0 | NOT RUN | | NOT RUN | |\n");
	ck_assert_int_eq(sh("cat \"$D/err\""), 0);
	has(" of 2: users-1-8-0, seed 1\n");
	has(" of 2: users-1-8-0, seed 2: ");
	has("/replay --simulate -q ");
	has(": exit 3\nno memory\n");
}
END_TEST

/*
 * Only in the family keys is a policy run with keys, in place of itself. Only
 * such runs see the sessions that were found in a conversation.
 */
START_TEST(keyed_runs)
{
	ck_assert_int_eq(sh(tools), 0);
	ck_assert_int_eq(sh("printf '%s\\n' '{\"timestamp\": 0, "
	    "\"input_length\": 9, \"output_length\": 1, \"hash_ids\": [0]}' "
	    "> \"$D/conversation_trace.jsonl\"; "
	    "printf 'chat\\ta\\tconversation\\t--workers 8\\n"
	    "keys\\tb\\tconversation\\t--workers 8\\n"
	    "keys\\tc\\tchat\\t--workers 8\\n' > \"$D/table\"; "
	    "sed -i '2a for last; do :; done; "
	    "grep -c session \"$last\" >> \"$D/named\"' "
	    "\"$D/replay\"; JOBS=1 SEEDS=1 POLICIES='sticky "
	    "balanced:feedback balanced:feedback@hard' " OWN_TABLE
	    SCRIPT "scenarios " TOOLS "2> /dev/null"), 1);
	/* none by capacity */
	ck_assert_int_eq(sh("sed \"s|$D/||\" \"$D/runs\"; cat \"$D/named\"; "
	    "ls \"$D/out/a\" \"$D/out/b\" \"$D/out/c\" | grep balanced"), 0);
	ck_assert_str_eq(out,
	    RUN("1") "--workers 8 --policy sticky --policy balanced:feedback "
	    "out/a/.1/trace\n"
	    RUN("1") "--workers 8 --policy sticky out/b/.1/trace\n"
	    RUN("1") "--workers 8 --policy balanced:feedback@hard "
	    "out/b/.1/trace\n"
	    RUN("1") "--workers 8 --policy sticky out/c/.1/trace\n"
	    RUN("1") "--workers 8 --policy balanced:feedback@hard "
	    "out/c/.1/trace\n"
	    "0\n0\n1\n0\n0\nbalanced:feedback.1.kv\n"
	    "balanced:feedback@hard.1.kv\nbalanced:feedback@hard.1.kv\n");
}
END_TEST

START_TEST(no_such_scenario)
{
	ck_assert_int_eq(sh(SCRIPT "scenarios " TOOLS "nonsense 2>&1"), 2);
	has("no such scenario: nonsense");
	ck_assert_int_eq(sh(SCRIPT "nonsense 2>&1"), 2);
	has("RANDOM_LOADS=40");
	ck_assert_int_eq(sh(SCRIPT "replicas a b 2>&1"), 2);
	has("wrong arguments");
}
END_TEST

/* ---------------------------------------------------------------- search -- */

#define DRAW(seed, first, last) SCRIPT "draw " #seed " " #first " " #last

/* A line depends on seed and number; each is one of scenarios.tsv. */
START_TEST(drawn)
{
	char first[sizeof(out)];

	ck_assert_int_eq(sh(DRAW(3, 7, 7)), 0);
	memcpy(first, out, sizeof(first));
	ck_assert_int_eq(sh(DRAW(3, 1, 9) " | sed -n 7p"), 0);
	ck_assert_str_eq(out, first);
	has("\tfound-3-7\t");
	ck_assert_int_eq(sh(DRAW(4, 7, 7)), 0);
	ck_assert_str_ne(out, first);
	ck_assert_int_eq(sh(DRAW(1, 1, 2000) " | awk -F '\\t' '"
	    "NF != 4 || $0 ~ /[ \\t]-[0-9]|inf|nan|e[+-]/ { print } "
	    "{ split($3, part, \" \"); kinds[part[1]]++ } "
	    "$4 !~ /^--workers [0-9]+ --capacity [0-9]+/ { print } "
	    "END { for (k in kinds) n += kinds[k] > 100; "
	    "if (n != 6) print n \" kinds\" }'"), 0);
	ck_assert_str_eq(out, "");
}
END_TEST

/* Runs two simple methods, with sticky the better one, and balanced. */
static int
worst(double utilisation, double seed1, double seed2)
{
	char command[2048];

	snprintf(command, sizeof(command), "%sslow() { row x $1 $2 "
	    "ttft_mean=$3 ttft_p90=.01 request_mean=$4 utilisation=%g "
	    "refused=0; }; "
	    "for s in 1 2; do slow chbl $s .001 3; slow sticky $s .1 2; done; "
	    "slow balanced:feedback 1 %g 1; slow balanced:feedback 2 %g 1; "
	    "PYTHONPATH=bench/routing python3 -B -c 'import os, routing as r; "
	    "runs = r.Runs(\"\", \"\", \"\", os.environ[\"D\"] + \"/out\", [], "
	    "[1, 2]); load = r.Scenario(\"\tx\tchat\t\"); "
	    "ratio, text = r.judge_load(runs, load, [\"chbl\", \"sticky\"]); "
	    "print(round(ratio, 3), text, sep=\"\\t\")'", ROWS, utilisation,
	    seed1, seed2);
	return sh(command);
}

/* The least of the seeds counts; 5 ms do not; overload is discarded. */
START_TEST(worst_of_a_load)
{
	ck_assert_int_eq(worst(.5, .2, .15), 0);
	ck_assert_str_eq(out, "1.5\tTTFT mean of balanced:feedback against "
	    "sticky, utilisation 0.50\n");
	ck_assert_int_eq(worst(.5, .2, .1045), 0);
	ck_assert_str_eq(out, "0\tTTFT mean of balanced:feedback against "
	    "sticky, utilisation 0.50\n");
	ck_assert_int_eq(worst(.91, .2, .15), 0);
	ck_assert_str_eq(out, "0\t\n");
}
END_TEST

/* One batch: the loads with 7 workers are slow, and are run twice. */
START_TEST(searched)
{
	ck_assert_int_eq(sh("cat > \"$D/replay\" <<'END'\n"
	    "#!/bin/sh\n"
	    "case \"$*\" in *'--workers 7 '*) slow=7;; *) slow=1;; esac\n"
	    "while [ $# -gt 0 ]; do case $1 in --seed) seed=$2;; --policy)\n"
	    "case $2 in bal*) t=$slow;; *) t=1;; esac\n"
	    "printf '%spolicy=%s\\nseed=%s\\nrequests=9\\nttft_mean=%s\\n"
	    "request_mean=1\\n' \"$sep\" \"$2\" \"$seed\" $t; sep='\n'\n"
	    "esac; shift; done\n"
	    "END\n"
	    "printf '#!/bin/sh\\n' > \"$D/tracegen\"\n"
	    "chmod +x \"$D/replay\" \"$D/tracegen\"\n"
	    "MINUTES=0 SEED=2 JOBS=10 WORST=2 " SCRIPT "search "
	    "\"$D/replay\" \"$D/tracegen\" \"$D/out\""), 0);
	has("# 40 loads drawn, seed 2; ");
	has("# 7.000: TTFT mean of balanced:feedback against round-robin, ");
	has("--workers 7 ");
	ck_assert_ptr_null(strstr(out, "--workers 8 "));
	ck_assert_ptr_null(strstr(out, "seed 2; 0 slower"));
}
END_TEST

/* ------------------------------------------------------------------ vary -- */

#define VARY "printf '%s\\n' '{\"timestamp\": 3000, \"input_length\": 600, " \
	"\"output_length\": 7, \"hash_ids\": [0, 5]}' | " SCRIPT \
	"vary /dev/stdin "

START_TEST(varied)
{
	char first[256];
	int at = 0;

	ck_assert_int_eq(sh(VARY "1"), 0);
	ck_assert_int_eq(sscanf(out, "{\"timestamp\": %d", &at), 1);
	ck_assert_int_ge(at, 3000);
	ck_assert_int_lt(at, 6000);
	has("\"input_length\": 600, \"output_length\": 7, "
	    "\"hash_ids\": [0, 5]}\n");
	memcpy(first, out, sizeof(first));
	ck_assert_int_eq(sh(VARY "1"), 0);
	ck_assert_str_eq(out, first);
	ck_assert_int_eq(sh(VARY "2"), 0);
	ck_assert_str_ne(out, first);
	ck_assert_int_eq(sh(VARY "1 copies=2 output=4 prompt=1100"), 0);
	has("\"input_length\": 1624, \"output_length\": 28, "
	    "\"hash_ids\": [900000001, 900000002, 0, 5]}\n");
	has("\"hash_ids\": [900000001, 900000002, 0, 10000005]}\n");
	has("\"session\": 1, ");
	has("\"session\": 1000001, ");
	ck_assert_int_eq(sh(VARY "1 until=3"), 0);
	ck_assert_str_eq(out, "");
	ck_assert_int_eq(sh(VARY "1 until=6"), 0);
	ck_assert_str_eq(out, first);
}
END_TEST

/* The last complete block of an earlier request shows it, but not the first. */
START_TEST(sessions_of_a_conversation)
{
	ck_assert_int_eq(sh("for ids in '0, 1, 2' '0, 3' '0, 1, 4, 5' "
	    "'0, 1, 4, 6, 7' '0, 1, 8' '0, 9, 10' '0, 3, 11'; do "
	    "at=$((at + 3000)); echo '{\"timestamp\": '$at', "
	    "\"input_length\": 1, \"output_length\": 1, "
	    "\"hash_ids\": ['\"$ids\"']}'; done | "
	    SCRIPT "vary /dev/stdin 1 | "
	    "sed 's/.*session\": \\([0-9]*\\).*/\\1/' | paste -s -d ' '"), 0);
	ck_assert_str_eq(out, "1 2 1 1 1 3 4\n");
}
END_TEST

Suite *suite_scenarios(void);

Suite *
suite_scenarios(void)
{
	Suite *s = suite_create("scenarios");
	TCase *c = tcase_create("scenarios");

	tcase_add_checked_fixture(c, make_folder, remove_folder);
	tcase_add_test(c, table_is_sound);
	tcase_add_test(c, best_rival_of_each_figure);
	tcase_add_test(c, means_of_seeds);
	tcase_add_test(c, limits);
	tcase_add_test(c, incomplete);
	tcase_add_test(c, groups);
	tcase_add_test(c, single_figures);
	tcase_add_test(c, returned);
	tcase_add_test(c, returned_at_random);
	tcase_add_test(c, with_keys);
	tcase_add_test(c, skipped);
	tcase_add_test(c, replicas);
	tcase_add_test(c, events);
	tcase_add_test(c, windows);
	tcase_add_test(c, resumed);
	tcase_add_test(c, failed_run);
	tcase_add_test(c, keyed_runs);
	tcase_add_test(c, no_such_scenario);
	tcase_add_test(c, drawn);
	tcase_add_test(c, worst_of_a_load);
	tcase_add_test(c, searched);
	tcase_add_test(c, varied);
	tcase_add_test(c, sessions_of_a_conversation);
	suite_add_tcase(s, c);
	return s;
}
