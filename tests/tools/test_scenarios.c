/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_scenarios.c - the scripts of bench/routing that compare policies, with
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
	    "(index($5, \"held\") > 0) != ($2 ~ /^held-/) "
	    "{ print \"held: \" $0 } "
	    "$2 in seen || $2 !~ /^[a-z0-9-]+$/ { print \"name: \" $2 } "
	    "{ seen[$2]; family[$1]++ } "
	    "$5 ~ /held/ { held[$1]++ } $5 ~ /quick/ { quick[$1]++ } "
	    "END { n = split(\"chat shared documents agents fleets trouble "
	    "reports engines keys\", names, \" \"); "
	    "for (i = 1; i <= n; i++) { if (!family[names[i]]) "
	    "print \"none: \" names[i]; if (!held[names[i]]) "
	    "print \"none held: \" names[i]; if (!quick[names[i]]) "
	    "print \"none quick: \" names[i]; delete family[names[i]] } "
	    "for (f in family) print \"family: \" f }' "
	    "bench/routing/scenarios.tsv"), 0);
	ck_assert_str_eq(out, "");
}
END_TEST

/* --------------------------------------------------------------- report --- */

/*
 * Means to first token of two policies and two seeds; `subject` is balanced
 * with feedback.
 */
static int
report(double simple1, double simple2, double subject1, double subject2,
    const char *more)
{
	char command[2048];

	snprintf(command, sizeof(command), "cd bench/routing; "
	    "{ row() { printf 'scenario=%%s\\npolicy=%%s\\nworkers=8\\nseed=%%s"
	    "\\nrequests=100\\nmakespan=10\\nttft_mean=%%s\\nttft_p90=%%s\\n' "
	    "\"$1\" \"$2\" \"$3\" \"$4\" \"$4\"; }; "
	    "row chat sticky 1 %g; row chat sticky 2 %g; "
	    "row chat balanced:feedback 1 %g; %s "
	    "row chat balanced:feedback 2 %g; } | "
	    "awk -v simple=sticky -v policies='sticky balanced:feedback' "
	    "-v wanted=chat -v seeds='1 2' -f scenarios.awk -f figures.awk "
	    "scenarios.tsv -",
	    simple1, simple2, subject1, more, subject2);
	return sh(command);
}

/*
 * Ratios of 1.1 and 1.2: the geometric mean is 1.149. The logarithms .0953 and
 * .1823 have a standard error of .0435, and t with one degree of freedom is
 * 12.706, so the interval is a factor of exp(.5528) either way.
 */
START_TEST(interval)
{
	ck_assert_int_eq(report(1, 1, 1.1, 1.2, ""), 0);
	has("| chat | 1.000 1.000 | 1.150 1.150 |");
	/* No p90 of 100 requests. */
	has("| chat | sticky | balanced:feedback | 1.149 (0.661-1.997) | - | "
	    "- | - | - | kept |");
	has("\n0 missed\n");
}
END_TEST

/* The same ratio twice: an interval of no width. */
START_TEST(limit)
{
	ck_assert_int_eq(report(1, 2, 1.05, 2.1, ""), 0);
	has("1.050 (1.050-1.050) | - | - | - | - | kept |");
	ck_assert_int_eq(report(1, 2, 1.06, 2.12, ""), 1);
	has("1.060 (1.060-1.060) | - | - | - | - | MISSED: TTFT mean |");
	has("\n1 missed\n");
}
END_TEST

/* 4 ms more are none, 6 ms are. */
START_TEST(negligible)
{
	ck_assert_int_eq(report(.02, .02, .024, .024, ""), 0);
	has("1.200 (1.200-1.200) | - | - | - | - | kept |");
	ck_assert_int_eq(report(.02, .02, .026, .026, ""), 1);
	has("1.300 (1.300-1.300) | - | - | - | - | MISSED: TTFT mean |");
}
END_TEST

/* A result that is missing is no result, and fails. */
START_TEST(incomplete)
{
	ck_assert_int_eq(report(1, 1, 1, 1, "exit;"), 1);
	has("| chat | | NOT RUN |");
}
END_TEST

/* The best is by time per request where that is reported. */
START_TEST(best_by_time_per_request)
{
	ck_assert_int_eq(sh("cd bench/routing; "
	    "{ row() { printf 'scenario=chat\\npolicy=%s\\nseed=1\\n"
	    "requests=3000\\nttft_mean=%s\\nttft_p90=%s\\n"
	    "request_mean=%s\\n' $1 $2 $2 $3; }; row sticky 1 9; row chbl 2 8; "
	    "row balanced:capacity 2 8; } | awk -v simple='sticky chbl' "
	    "-v policies='sticky chbl balanced:capacity' -v wanted=chat "
	    "-v seeds=1 -f scenarios.awk -f figures.awk scenarios.tsv -"), 0);
	has("| chat | chbl | balanced:capacity | 1.000 | 1.000 | 1.000 | - | - "
	    "| kept |");
	has("| chat | 1.000 1.000 9.00 |");
}
END_TEST

/* A shell function: row SCENARIO POLICY SEED [NAME=VALUE]... */
#define ROW "cd bench/routing; row() { printf 'scenario=%s\\npolicy=%s\\n" \
	"seed=%s\\nrequests=3000\\nmakespan=10\\n' $1 $2 $3; shift 3; " \
	"printf '%s\\n' \"$@\"; }; { "
#define REPORT "; } | awk -v simple='sticky' -v seeds=1 -v policies='sticky " \
	"dynamo:oracle balanced:oracle balanced:feedback balanced:capacity' " \
	"-f scenarios.awk -f figures.awk -v wanted="

/*
 * Overload is judged by throughput alone: 10 and 12.5 s for the same requests.
 * The mark and the utilisation must agree.
 */
START_TEST(overload)
{
	ck_assert_int_eq(sh("printf 'chat\\tx\\t-\\t-\\toverloaded\\n' "
	    "> \"$D/table\"; " ROW
	    "row x sticky 1 ttft_mean=1 utilisation=.97; "
	    "row x balanced:feedback 1 ttft_mean=9 makespan=12.5 | "
	    "sed /makespan=10/d" REPORT "x -v limit=1.2 "
	    "-v policies='sticky balanced:feedback' \"$D/table\" -"), 1);
	has("| x | sticky | balanced:feedback | - | - | - | - | 1.250 | "
	    "MISSED: 1 / throughput |");
	ck_assert_ptr_null(strstr(out, "marked as"));
	ck_assert_int_eq(sh(ROW "row chat sticky 1 ttft_mean=1 utilisation=.97;"
	    "row chat balanced:feedback 1 ttft_mean=1" REPORT "chat "
	    "-v policies='sticky balanced:feedback' scenarios.tsv -"), 0);
	has("chat is not marked as overloaded: utilisation 0.97 by sticky.");
}
END_TEST

/* Families have equal weight: (.5 * 2)^(1/2) and .9, so .949. */
START_TEST(gain_of_families)
{
	static const char rows[] = ROW
	    "for n in chat conv-8-1m unshared; do "
	    "for p in sticky dynamo:oracle balanced:oracle; do "
	    "row $n $p 1 ttft_mean=1 request_mean=1; done; "
	    "case $n in chat) v=.5;; conv*) v=2;; *) v=.9;; esac; "
	    "for p in balanced:feedback balanced:capacity; do "
	    "row $n $p 1 ttft_mean=$v request_mean=.9; done; done" REPORT;
	char command[2048];

	snprintf(command, sizeof(command), "%s%s", rows,
	    "'chat conv-8-1m unshared' -v limit=9 scenarios.tsv -");
	ck_assert_int_eq(sh(command), 0);
	has("| TTFT mean | balanced:feedback | 0.949 | <= 0.80 | |");
	has("| time per request | balanced:capacity | 0.900 | <= 0.95 | |");
	snprintf(command, sizeof(command), "%s%s", rows,
	    "'chat conv-8-1m unshared' -v limit=9 -v whole=1 scenarios.tsv -");
	ck_assert_int_eq(sh(command), 1);
	has("| TTFT mean | balanced:feedback | 0.949 | <= 0.80 | MISSED |");
	has("| time per request | balanced:capacity | 0.900 | <= 0.95 | kept ");
	has("\n2 missed\n");
}
END_TEST

/* conv-16-* hit less and wait longer; one agent is missing in `few`. */
START_TEST(figures)
{
	static const char rows[] = ROW
	    "for n in $names; do case $n in conv-16-*) h=.49;; *) h=.5;; esac;"
	    "row $n sticky 1 ttft_mean=9; "
	    "row $n dynamo:oracle 1 ttft_mean=2 ttft_p90=2; "
	    "row $n balanced:oracle 1 ttft_mean=.9 hit_ratio=.5; "
	    "row $n balanced:feedback 1 ttft_mean=1 ttft_p90=2 hit_ratio=$h; "
	    "row $n balanced:capacity 1 ttft_mean=.9 ttft_p90=1 hit_ratio=.5; "
	    "done" REPORT "\"$names\" -v whole=1 scenarios.tsv -";
	char command[2048];

	snprintf(command, sizeof(command), "names=$(awk -F '\\t' '"
	    "$2 ~ /^(conv-.*m|conv-.*k|agents-.*)$/ { print $2 }' "
	    "bench/routing/scenarios.tsv | paste -s -d ' '); %s", rows);
	ck_assert_int_eq(sh(command), 1);
	has("| hits / balanced:oracle, 8 workers | balanced:feedback | 1.000 | "
	    ">= 0.99 | kept |");
	has("| hits / balanced:oracle, 16 workers | balanced:feedback | 0.980 "
	    "| >= 0.99 | MISSED |");
	has("| hits / balanced:oracle, 16 workers | balanced:capacity | 1.000 "
	    "| >= 0.99 | kept |");
	has("| TTFT mean / dynamo:oracle | balanced:feedback | 0.500 | "
	    "<= 0.86 | kept |");
	has("| TTFT mean / dynamo:oracle, 8 workers | balanced:capacity | "
	    "0.450 | | |");
	has("| TTFT p90 / dynamo:oracle | balanced:feedback | 1.000 | "
	    "<= 0.89 | MISSED |");
	has("| / balanced:oracle | balanced:feedback | 1.111 | <= 1.15 | kept");
	has("| / balanced:oracle | balanced:capacity | 1.000 | <= 1.05 | kept");
	has("| / dynamo:oracle | balanced:feedback | 0.500 | <= 0.50 | kept |");
	snprintf(command, sizeof(command), "names='agents-8-1m-once "
	    "agents-16-2m-twice'; %s", rows);
	ck_assert_int_eq(sh(command), 1);
	has("| / balanced:oracle | balanced:feedback | - | <= 1.15 | MISSED |");
}
END_TEST

/* The larger of both shares, seed 2 has too few; a mean over seeds 1 and 3. */
START_TEST(returned)
{
	ck_assert_int_eq(sh(ROW "for seed in 1 2 3; do "
	    "a=$((seed == 2 ? -1 : seed)); row fleet-joins sticky $seed "
	    "ttft_mean=1; row fleet-joins balanced:feedback $seed ttft_mean=1 "
	    "return0_kind=join return0_worker=8 return0_at=600.000 "
	    "return0_share=.$a return0_session_share=-1.0000 "
	    "return1_kind=slow-end return1_worker=9 return1_at=700.000 "
	    "return1_share=-1.0000 return1_session_share=0.$((seed + 4)); done "
	    "| sed s/=[.]-1/=-1.0/" REPORT "fleet-joins -v seeds='1 2 3' "
	    "-v policies='sticky balanced:feedback' scenarios.tsv -"), 1);
	has("| fleet-joins | worker 8, join at 600 s | balanced:feedback | "
	    "0.20 | MISSED |");
	has("| fleet-joins | worker 9, slow-end at 700 s | balanced:feedback | "
	    "0.60 | kept |");
	has("\n1 missed\n");
}
END_TEST

#define KEYS "; } | awk -v simple='sticky' -v seeds=1 -v policies='sticky " \
	"balanced:feedback balanced:feedback@soft balanced:feedback@tie' " \
	"-v named='conversation images' -f scenarios.awk -f figures.awk " \
	"-v wanted="

/*
 * A policy with keys is compared with itself, and in its own family with the
 * best simple method. What names no session is not judged, nor expected.
 */
START_TEST(with_keys)
{
	static const char rows[] = ROW
	    "row chat sticky 1 ttft_mean=1; "
	    "row chat balanced:feedback 1 ttft_mean=1; "
	    "row conv-8-1m sticky 1 ttft_mean=1; "
	    "row conv-8-1m balanced:feedback 1 ttft_mean=1; "
	    "row conv-8-1m balanced:feedback@soft 1 ttft_mean=$v; "
	    "row keys-images sticky 1 ttft_mean=1; "
	    "row keys-images balanced:feedback 1 ttft_mean=2; "
	    "row keys-images balanced:feedback@soft 1 ttft_mean=.9; "
	    "$skip; row keys-images balanced:feedback@tie 1 ttft_mean=2"
	    KEYS "'chat conv-8-1m keys-images' scenarios.tsv -";
	char command[2048];

	snprintf(command, sizeof(command), "v=1.02; skip=:; %s", rows);
	ck_assert_int_eq(sh(command), 0);
	has("| chat | | no session ids | - | - | - | - | - | not judged |");
	has("| conv-8-1m | balanced:feedback | balanced:feedback@soft | 1.020");
	has("| keys-images | balanced:feedback | balanced:feedback@soft | "
	    "0.450");
	has("| keys-images | sticky | balanced:feedback@soft | 0.900");
	has("| scenario | sticky | balanced:feedback |\n");
	has("| scenario | sticky | balanced:feedback | balanced:feedback@soft "
	    "| balanced:feedback@tie |\n");
	snprintf(command, sizeof(command), "v=1.03; skip=:; %s", rows);
	ck_assert_int_eq(sh(command), 1);
	has("\n1 missed\n");
	snprintf(command, sizeof(command), "v=1.02; skip=exit; %s", rows);
	ck_assert_int_eq(sh(command), 1);
	has("| keys-images | | NOT RUN |");
}
END_TEST

/* ------------------------------------------------------------------ runs -- */

/* Tools that know few options, and count their runs. */
static const char tools[] =
"cat > \"$D/replay\" <<'END'\n"
"#!/bin/sh\n"
"case \"$*\" in *--help*) echo ' --workers N'; echo ' --capacity N'; exit;; "
"esac\n"
"echo \"$*\" >> \"$D/runs\"\n"
"while [ $# -gt 0 ]; do case $1 in --seed) seed=$2;; --policy)\n"
"printf '%spolicy=%s\\nseed=%s\\nrequests=9\\nttft_mean=1\\nttft_p90=2\\n'"
" \"$sep\" \"$2\" \"$seed\"; sep='\n'; esac; shift; done\n"
"END\n"
"cat > \"$D/tracegen\" <<'END'\n"
"#!/bin/sh\n"
"case \"$*\" in *--help*) echo ' --family NAME  documents, chat'; "
"echo ' --requests N'; esac\n"
"END\n"
"chmod +x \"$D/replay\" \"$D/tracegen\"";

#define SCENARIOS "POLICIES='sticky balanced:feedback' " \
	"sh bench/routing/scenarios.sh \"$D/replay\" \"$D/tracegen\" " \
	"\"$D\" \"$D/out\" chat trouble-slow documents-6 2> /dev/null"

/* Each result is made once; what is missing is made again. */
START_TEST(resumed)
{
	ck_assert_int_eq(sh(tools), 0);
	ck_assert_int_eq(sh("SEEDS='1 2' " SCENARIOS), 0);
	has("| chat | 1.000 2.000 | 1.000 2.000 |");
	has("skipped: trouble-slow "
	    "(no --prompt,no --rate,no --slow,no shared)");
	has("skipped: documents-6 (no --documents,no --output,"
	    "no --popularity,no --prompt,no --rate,no --reads)");
	has("skipped: conv-8-1m (no conversation_trace.jsonl)");
	ck_assert_int_eq(sh("sort \"$D/runs\" | sed \"s|$D/||\""), 0);
	ck_assert_str_eq(out,
	    "--simulate -q --format kv --seed 1 --workers 8 --policy sticky "
	    "--policy balanced:feedback out/chat/.1/trace\n"
	    "--simulate -q --format kv --seed 2 --workers 8 --policy sticky "
	    "--policy balanced:feedback out/chat/.2/trace\n");
	ck_assert_int_eq(sh("SEEDS='1 2' " SCENARIOS), 0);
	ck_assert_int_eq(sh("wc -l < \"$D/runs\""), 0);
	ck_assert_int_eq(atoi(out), 2);
	ck_assert_int_eq(sh("rm \"$D/out/chat/sticky.2.kv\""), 0);
	ck_assert_int_eq(sh("SEEDS='1 2' " SCENARIOS), 0);
	ck_assert_int_eq(sh("tail -n 1 \"$D/runs\""), 0);
	has("--seed 2 --workers 8 --policy sticky ");
	ck_assert_ptr_null(strstr(out, "balanced"));
}
END_TEST

#define RUN "--simulate -q --format kv --seed 1 --workers 8 "

/* Only runs with keys see the sessions that were found in a conversation. */
START_TEST(keyed_runs)
{
	ck_assert_int_eq(sh(tools), 0);
	ck_assert_int_eq(sh("printf '%s\\n' '{\"timestamp\": 0, "
	    "\"input_length\": 9, \"output_length\": 1, \"hash_ids\": [0]}' "
	    "> \"$D/conversation_trace.jsonl\"; "
	    "printf 'chat\\ta\\tconversation\\t--workers 8\\n"
	    "chat\\tb\\tchat\\t--workers 8\\n' > \"$D/table\"; "
	    "sed -i '2a for last; do :; done; case $last in "
	    "*/*) grep -c session \"$last\" >> \"$D/named\";; esac' "
	    "\"$D/replay\"; JOBS=1 TABLE=\"$D/table\" SEEDS=1 POLICIES='sticky "
	    "balanced:feedback balanced:feedback@soft balanced:feedback@tie' "
	    "sh bench/routing/scenarios.sh \"$D/replay\" \"$D/tracegen\" "
	    "\"$D\" \"$D/out\" 2> /dev/null"), 0);
	ck_assert_int_eq(sh("sed \"s|$D/||\" \"$D/runs\"; cat \"$D/named\"; "
	    "ls \"$D/out/a\" \"$D/out/b\" | grep @"), 0);
	ck_assert_str_eq(out,
	    RUN "--policy sticky --policy balanced:feedback out/a/.1/plain\n"
	    RUN "--policy balanced:feedback@soft out/a/.1/trace\n"
	    RUN "--policy sticky --policy balanced:feedback out/b/.1/trace\n"
	    "0\n1\n0\nbalanced:feedback@soft.1.kv\n");
}
END_TEST

START_TEST(no_such_scenario)
{
	ck_assert_int_eq(sh(tools), 0);
	ck_assert_int_eq(sh("sh bench/routing/scenarios.sh \"$D/replay\" "
	    "\"$D/tracegen\" \"$D\" \"$D/out\" nonsense 2>&1"), 2);
	has("no such scenario: nonsense");
}
END_TEST

/* ---------------------------------------------------------------- search -- */

#define DRAW(seed, first, last) "awk -v seed=" #seed " -v first=" #first \
	" -v last=" #last " -f bench/routing/draw.awk"

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

/*
 * Two simple methods, of which sticky is the best, and balanced, in a folder
 * of files as scenarios.sh makes them.
 */
static int
worst(double utilisation, double seed1, double seed2)
{
	char command[1024];

	snprintf(command, sizeof(command), "cd \"$D\"; rm -f *.kv; "
	    "row() { printf 'scenario=x\\npolicy=%%s\\nseed=%%s\\n"
	    "requests=9\\nttft_mean=%%s\\nttft_p90=.01\\nrequest_mean=%%s\\n"
	    "utilisation=%g\\nrefused=0\\n' $1 $2 $3 $4 > $1.$2.kv; }; "
	    "for s in 1 2; do row chbl $s .001 3; row sticky $s .1 2; done; "
	    "row balanced:feedback 1 %g 1; row balanced:feedback 2 %g 1; "
	    "cd - > /dev/null; awk -v simple='chbl sticky' "
	    "-f bench/routing/worst.awk \"$D\"/*.kv", utilisation, seed1,
	    seed2);
	return sh(command);
}

/* The least of the seeds; 5 ms are none; overload is discarded. */
START_TEST(worst_of_a_load)
{
	ck_assert_int_eq(worst(.5, .2, .15), 0);
	ck_assert_str_eq(out, "1.500\tTTFT mean of balanced:feedback against "
	    "sticky, utilisation 0.50\n");
	ck_assert_int_eq(worst(.5, .2, .1045), 0);
	ck_assert_str_eq(out, "");
	ck_assert_int_eq(worst(.91, .2, .15), 0);
	ck_assert_str_eq(out, "");
}
END_TEST

/* One batch: the loads with 7 workers are slow, and are run twice. */
START_TEST(searched)
{
	ck_assert_int_eq(sh("cat > \"$D/replay\" <<'END'\n"
	    "#!/bin/sh\n"
	    "case \"$*\" in *--help*) exit;; esac\n"
	    "case \"$*\" in *'--workers 7 '*) slow=7;; *) slow=1;; esac\n"
	    "while [ $# -gt 0 ]; do case $1 in --seed) seed=$2;; --policy)\n"
	    "case $2 in bal*) t=$slow;; *) t=1;; esac\n"
	    "printf '%spolicy=%s\\nseed=%s\\nrequests=9\\nttft_mean=%s\\n"
	    "request_mean=1\\n' \"$sep\" \"$2\" \"$seed\" $t; sep='\n'\n"
	    "esac; shift; done\n"
	    "END\n"
	    "printf '#!/bin/sh\\n' > \"$D/tracegen\"\n"
	    "chmod +x \"$D/replay\" \"$D/tracegen\"\n"
	    "MINUTES=0 SEED=2 JOBS=10 WORST=2 sh bench/routing/search.sh "
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
	"\"output_length\": 7, \"hash_ids\": [0, 5]}' | awk -v seed=1 "

START_TEST(varied)
{
	char first[256];
	int at = 0;

	ck_assert_int_eq(sh(VARY "-f bench/routing/vary.awk"), 0);
	ck_assert_int_eq(sscanf(out, "%d ", &at), 1);
	ck_assert_int_ge(at, 3000);
	ck_assert_int_lt(at, 6000);
	has("\"input_length\": 600, \"output_length\": 7, "
	    "\"hash_ids\": [0, 5]}\n");
	memcpy(first, out, sizeof(first));
	ck_assert_int_eq(sh(VARY "-f bench/routing/vary.awk"), 0);
	ck_assert_str_eq(out, first);
	ck_assert_int_eq(sh(VARY "-v seed=2 -f bench/routing/vary.awk"), 0);
	ck_assert_str_ne(out, first);
	ck_assert_int_eq(sh(VARY "-v copies=2 -v output=4 -v prompt=1100 "
	    "-f bench/routing/vary.awk"), 0);
	has("\"input_length\": 1624, \"output_length\": 28, "
	    "\"hash_ids\": [900000001, 900000002, 0, 5]}\n");
	has("\"hash_ids\": [900000001, 900000002, 0, 10000005]}\n");
	has("\"session\": 1, ");
	has("\"session\": 1000001, ");
	ck_assert_int_eq(sh(VARY "-v until=3 -f bench/routing/vary.awk"), 0);
	ck_assert_str_eq(out, "");
	ck_assert_int_eq(sh(VARY "-v until=6 -f bench/routing/vary.awk"), 0);
	ck_assert_str_eq(out, first);
}
END_TEST

/* The last complete block of an earlier request tells, but not the first. */
START_TEST(sessions_of_a_conversation)
{
	ck_assert_int_eq(sh("for ids in '0, 1, 2' '0, 3' '0, 1, 4, 5' "
	    "'0, 1, 4, 6, 7' '0, 1, 8' '0, 9, 10' '0, 3, 11'; do echo "
	    "'{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1, "
	    "\"hash_ids\": ['\"$ids\"']}'; done | awk -v seed=1 -f "
	    "bench/routing/vary.awk | sed 's/.*session\": \\([0-9]*\\).*/\\1/' "
	    "| paste -s -d ' '"), 0);
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
	tcase_add_test(c, interval);
	tcase_add_test(c, limit);
	tcase_add_test(c, negligible);
	tcase_add_test(c, incomplete);
	tcase_add_test(c, best_by_time_per_request);
	tcase_add_test(c, overload);
	tcase_add_test(c, gain_of_families);
	tcase_add_test(c, figures);
	tcase_add_test(c, returned);
	tcase_add_test(c, with_keys);
	tcase_add_test(c, resumed);
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
