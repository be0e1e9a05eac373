#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""routing.py - compares routing policies on modelled engines, by
kvroute-replay --simulate, and prints Markdown.

    routing.py scenarios REPLAY TRACEGEN TRACES FOLDER [NAME]...
        The library's default cost beside its rivals, on the scenarios of
        scenarios.tsv and on random loads: all, or those whose name, family or
        mark is given.
    routing.py replicas|events|windows REPLAY TRACEGEN TRACES FOLDER
        The runs of studies.tsv: several routers before the same engines; what
        events of engines are worth; sliding windows, where each figure is that
        of routing that is told of them / that is not.
    routing.py search REPLAY TRACEGEN FOLDER
        Draws loads, and lists those on which a balanced policy is more than
        1.3 times as slow as the best simple method.
    routing.py draw SEED FIRST LAST; routing.py vary TRACE SEED [NAME=VALUE]...
        Prints random loads; prints a conversation trace, varied.

It exits with 1 if a limit is missed or a result is missing. TRACES contains
conversation_trace.jsonl and agentic/. FOLDER/NAME/POLICY.SEED.kv is a result;
what is there is not run again, so an interrupted run can be continued: remove
it after a change of the code. Variables of the environment:

    SEEDS="1 2 3"    (of events: 1001 to 1003, on which nothing was tuned)
    JOBS=2           runs at a time; 0 prints only what is in FOLDER
    POLICIES=...     of scenarios
    RUNS="4-*"       runs of a study, by name; the single router always runs
    TABLE=FILE       replaces scenarios.tsv and the random loads
    RANDOM_LOADS=40  how many are drawn; they run with the first seed alone
    WORST=2          limits the mean TTFT of each scenario, over that of the
                     best rival; of search: how many loads are printed (10)
    RETURNS=0.5      the least part of its fair share for a worker that joins
    MINUTES=10       of search, 0 is one batch; SEED=1 of its draws

All policies of a scenario and a seed meet the same requests. A figure of a
scenario is the geometric mean over the seeds. The best rival is the best one
by that figure alone, among the policies without an index and those whose index
has the same knowledge as ours. A figure of a group is the geometric mean of
the ratios of its scenarios. Groups: all of scenarios.tsv, held, agents
(recorded sessions), users (few at a time), random, and routers, several that
exchange nothing, which are in no other group; overloaded ones are in none.
Groups have limits if all scenarios are meant. In the family keys, where text
does not identify sessions, rivals have keys, and so has balanced: @hard, and
with several routers @hash. Means of replicas, events and windows are
arithmetic, over the seeds.
"""
import concurrent.futures
import fnmatch
import functools
import inspect
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
FREE = "round-robin least-loaded least-backlog sticky chbl cache-aware".split()
BY_INDEX = ("lmetric dynamo dynamo[credit=2,prefill=4,request=64] ramjet "
            "two-tier").split()
KNOWN = ("feedback", "capacity")
FIGURES = {"ttft_mean": "TTFT mean", "ttft_p90": "TTFT p90",
           "request_mean": "s per request"}
LIMITS = {  # of a group: its figures, and its worst TTFT mean
    "all": (1.01, 1.03, 1.01, 1.25), "held": (1.02, 1.05, 1.02, 1.5),
    "agents": (.92, 1, .995, 1.05), "random": (1.01, 1.04, 1, 1.5),
    "users": (None,) * 4, "routers": (None,) * 4,
}
HITS = .95  # of those of the best method, with few users
GAP, GAP_WORST = 1.02, 1.1  # feedback over capacity, of agents
JOBS = int(os.environ.get("JOBS") or len(os.sched_getaffinity(0)))
geometric_mean = statistics.geometric_mean


def setting(name, default):
    """A variable of the environment; an empty one is absent."""
    return type(default)(os.environ.get(name) or default)


def fail(text):
    print(f"routing.py: {text}", file=sys.stderr)
    sys.exit(2)


# ------------------------------------------------------------------ loads ---

class ParkMiller:
    """Random numbers that are the same on each machine."""

    def __init__(self, state):
        self.state = state
        self.random()

    def random(self):
        self.state = self.state * 16807 % 2147483647
        return self.state / 2147483647

    def between(self, low, high):
        """Evenly on a logarithmic scale."""
        low, high = math.log(low), math.log(high)
        return math.exp(low + self.random() * (high - low))

    def whole(self, low, high):
        return int(self.between(low, high + 1))

    def two_digits(self, low, high):
        x = self.between(low, high)
        unit = 1
        while x / unit >= 100:
            unit *= 10
        return int(x / unit) * unit

    def one_of(self, words):
        words = words.split()
        return words[int(self.random() * len(words))]


def vary(trace, seed, named=True, copies=1, prompt=0, output=1, until=1e9):
    """A conversation trace, varied: requests come at random within their tick
    of three seconds; `copies` times, each but the first with fresh ids; after
    `prompt` more tokens, the same for all; with outputs `output` times as
    long; of the first `until` seconds alone.

    Each line names its session, if wanted. The trace does not: a request is of
    the session of an earlier one of which it repeats all complete blocks, two
    or more, or begins one. An id stands for the same tokens in the same place,
    so the last complete block is enough."""
    rng = ParkMiller(1 + seed * 7919 % 2147483646)
    first = [900000001 + i for i in range(int(prompt) // 512)]
    session_at = {}
    sessions = 0
    lines = []
    for request in map(json.loads, open(trace)):
        ids = request["hash_ids"]
        session = next((session_at[i] for i in reversed(ids[1:])
                        if i in session_at), None)
        if session is None:
            session = sessions = sessions + 1
        if len(ids) > 2:
            session_at[ids[-2]] = session
        for copy in range(int(copies)):
            at = request["timestamp"] + int(3000 * rng.random())
            if at >= float(until) * 1000:
                continue
            line = {"timestamp": at, "session": session + copy * 1000000,
                    "input_length": request["input_length"] + 512 * len(first),
                    "output_length": int(request["output_length"] *
                                         float(output)),
                    "hash_ids": first + ids[:1] +
                    [i + copy * 10000000 for i in ids[1:]]}
            if not named:
                del line["session"]
            lines.append((at, json.dumps(line)))
    lines.sort(key=lambda line: line[0])
    return "".join(line + "\n" for _, line in lines)


def draw(seed, n, requests=3000):
    """Random load n of a seed, a line of scenarios.tsv. Its rate is such that
    an estimate of the utilisation is between .05 and .85; what is overloaded
    nevertheless is discarded after it has run."""
    state = (n * 7919 + seed * 104729) % 67108859
    for _ in range(3):
        state = (state * state + n) % 67108859
    rng = ParkMiller(state + 1)
    group, load, computed, output, longest = draw_requests(rng)
    workers, engines, slots = draw_engines(rng, longest)
    busy = max(computed * 50e-6, output * .02 / slots)
    rate = min((.05 + .8 * rng.random()) * workers / busy, 8 * workers, 50)
    rate = int(rate) if rate >= 10 else int(rate * 100 + 1) / 100
    engines += draw_trouble(rng, workers, requests / rate)
    return (f"{group}\tfound-{seed}-{n}\t{load} --rate {rate:.6g} "
            f"--requests {requests}\t{engines}")


def draw_requests(rng):
    """The kind of requests, their lengths, what is computed of each."""
    kind = rng.one_of("shared shared documents documents documents unshared "
                      "subagents bursts chat chat")
    group = {"subagents": "agents", "bursts": "trouble",
             "unshared": "shared"}.get(kind, kind)
    prompt = rng.two_digits(*{"chat": (200, 12000), "documents": (500, 60000)}
                            .get(kind, (500, 30000)))
    private = rng.two_digits(50, 1000 if kind == "chat" else 4000)
    output = rng.two_digits(20, 1000)
    load = f"{kind} --prompt {prompt} --output {output}"
    if kind != "unshared":
        load += f" --private {private}"
    if kind == "documents":
        load += f" --documents {rng.whole(2, 800)}"
        load += f" --popularity {rng.one_of('even zipf')}"
    computed = prompt if kind == "unshared" else private
    longest = prompt + (24 if kind == "chat" else 16) * (computed + output)
    if kind == "subagents":
        computed += prompt / 5
    return group, load, computed, output, longest


def draw_engines(rng, longest):
    workers = rng.whole(2, 24)
    capacity = rng.two_digits(100000, 2000000)
    while capacity < 1.5 * longest:
        capacity *= 2
    options = f"--workers {workers} --capacity {capacity}"
    slots = 256
    if rng.random() < .35:
        slots = rng.whole(4, 64)
        options += f" --sequences {slots}"
    for share, option, values in (
            (.6, "reads", "own"), (.3, "attention", "30000 53000"),
            (.2, "batch", "2048 8192"), (.2, "preempt", ""),
            (.25, "speeds", "1,2 1,3 1,1,1,4 2,1,1"),
            (.15, "eviction", "leaf random")):
        if rng.random() < share:
            options += f" --{option}"
            if " " in values:
                values = rng.one_of(values)
            options += f" {values}" if values else ""
    return workers, options, slots


def draw_trouble(rng, workers, span):
    """Trouble in a run of `span` seconds, and what engines report."""
    at = int(span * (.2 + .3 * rng.random()))
    options = ""
    if rng.random() < .12:
        options += f" --slow 0:{at}:{int(at + span / 8 + 1)}:"
        options += str(rng.whole(2, 20))
    elif rng.random() < .12:
        options += f" --join {workers - 1}:{at + 1}"
    elif rng.random() < .08:
        options += f" --drain 0:{at + 1} --join 0:{int(at + span / 5 + 2)}"
    if rng.random() < .2:
        options += " --reports " + rng.one_of(
            "null absent=.5 absent=.95 reported=.05 noisy=.1 low=.2 "
            "rounded=2048")
    elif rng.random() < .1:
        options += " --silent 2"
    return options


# ------------------------------------------------------------------- runs ---

class Scenario:
    """A line of a table."""

    def __init__(self, line):
        self.line = line
        self.family, self.name, load, options, *marks = line.split("\t")
        self.kind, *self.arguments = load.split()
        self.options = options.split()
        self.marks = marks[0].split(",") if marks else []

    def groups(self):
        if "overloaded" in self.marks:
            return []
        if "--replicas" in self.options:
            return ["routers"]
        member = {"all": "random" not in self.marks,
                  "agents": self.kind == "sessions",
                  "users": self.family == "users"}
        return [group for group in LIMITS
                if member.get(group, group in self.marks)]

    def subject(self, knows):
        """Our policy with this knowledge."""
        return f"balanced:{knows}{self.mode()}"

    def mode(self):
        if self.family != "keys":
            return ""
        return "@hash" if "--replicas" in self.options else "@hard"

    def has_policy(self, policy):
        return not policy.startswith("balanced:") or \
            policy.endswith(self.mode() or tuple(KNOWN))


def read_table(path):
    return [Scenario(line) for line in path.read_text().splitlines()
            if line and line[0] != "#"]


def call(*command):
    """Runs a tool; returns its output."""
    command = [str(word) for word in command]
    done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n"
                           f"{done.stderr}")
    return done.stdout


def parse_results(text):
    """Lines name=value, for each policy in turn, as {name: value}."""
    results = []
    for name, _, value in (line.partition("=") for line in text.splitlines()):
        if name == "policy":
            results.append({})
        if results and value:
            results[-1][name] = value
    return results


class Runs:
    """Runs scenarios, and knows their results."""

    def __init__(self, replay, tracegen, traces, folder, policies, seeds):
        self.replay, self.tracegen = replay, tracegen
        self.trace = pathlib.Path(traces) / "conversation_trace.jsonl"
        self.agents = pathlib.Path(traces) / "agentic"
        self.folder = pathlib.Path(folder)
        self.policies = policies
        self.seeds = seeds

    def obstacle(self, run):
        """Why it cannot be run, or nothing."""
        path = {"sessions": self.agents, "conversation": self.trace,
                "trace": self.trace, "named": self.trace}.get(run.kind)
        return "" if not path or path.exists() else f"no {path}"

    def seeds_of(self, run):
        """A random load is a seed of its own."""
        return self.seeds[:1] if "random" in run.marks else self.seeds

    def path(self, run, policy, seed):
        return self.folder / run.name / f"{policy}.{seed}.kv"

    def run(self, run, seed):
        """Runs the policies whose results are missing. Without keys they are
        not told of the sessions of `conversation`."""
        drawn = seed + 1000 * ("held" in run.marks)
        work = self.folder / run.name / f".{seed}"
        for keyed in False, True:
            policies = [p for p in self.policies if run.has_policy(p) and
                        ("@" in p) == keyed and
                        not self.path(run, p, seed).exists()]
            if not policies:
                continue
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            text = call(self.replay, "--simulate", "-q", "--format", "kv",
                        "--seed", drawn, "--slo", "1,50", *run.options,
                        *(w for p in policies for w in ("--policy", p)),
                        *self.make_requests(run, drawn, keyed, work))
            results = parse_results(text)
            for policy, result in zip(policies, results, strict=True):
                new = work / "result"
                new.write_text("".join(f"{name}={value}\n" for name, value
                                       in result.items()))
                new.rename(self.path(run, policy, seed))
            shutil.rmtree(work)

    def make_requests(self, run, seed, named, work):
        """Writes the requests; returns the arguments that name them."""
        if run.kind == "sessions":
            return ["--sessions", self.agents]
        if run.kind == "trace":
            return [self.trace]
        trace = work / "trace"
        generate = [self.tracegen, "--seed", seed, *run.arguments]
        if run.kind == "generated":
            call(*generate, "--family", "sessions", "--out", work)
            return ["--sessions", work]
        if run.kind in ("conversation", "named"):
            named = named or run.kind == "named"
            trace.write_text(vary(self.trace, seed, named,
                                  **dict(a.split("=") for a in run.arguments)))
        elif run.kind == "synthetic":
            trace.write_text(call(*generate))
        else:
            trace.write_text(call(*generate, "--family", run.kind))
        return [trace]

    def run_all(self, scenarios, quiet=False):
        """Runs them with all seeds. A run that fails is reported, and its
        results are missing."""
        if JOBS == 0:
            return
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            jobs = {pool.submit(self.run, run, seed): (run.name, seed)
                    for run in scenarios for seed in self.seeds_of(run)}
            try:
                for n, job in enumerate(
                        concurrent.futures.as_completed(jobs), 1):
                    name, seed = jobs[job]
                    error = f": {job.exception()}" if job.exception() else ""
                    if error or not quiet:
                        print(f"  {n} of {len(jobs)}: {name}, seed {seed}"
                              f"{error}", file=sys.stderr, flush=True)
            except KeyboardInterrupt:
                pool.shutdown(cancel_futures=True)
                raise

    @functools.cache
    def results(self, run, policy):
        """Of each seed; an empty one is missing."""
        paths = [self.path(run, policy, seed) for seed in self.seeds_of(run)]
        return [parse_results(path.read_text())[0] if path.exists() else {}
                for path in paths]

    @functools.cache
    def value(self, run, policy, figure):
        """The mean over the seeds; None: a result is missing."""
        results = self.results(run, policy)
        if not all(figure in result for result in results):
            return None
        return geometric_mean(max(float(result[figure]), 1e-6)
                              for result in results)

    def best(self, run, knows, figure, choose=min):
        """The best rival: (value, policy)."""
        rivals = FREE + [f"{rule}:{knows}" for rule in BY_INDEX]
        values = ((self.value(run, p, figure), p) for p in rivals)
        return choose((pair for pair in values if pair[0] is not None),
                      key=lambda pair: pair[0], default=(None, None))

    def ratio(self, run, knows, figure, choose=min):
        """Ours to that of the best rival; None: a result is missing."""
        own = self.value(run, run.subject(knows), figure)
        best, _ = self.best(run, knows, figure, choose)
        return None if own is None or not best else own / best


# ----------------------------------------------------------------- tables ---

def row_of(*cells):
    return " ".join(f"| {cell}".rstrip() for cell in cells) + " |"


def is_kept(value, sign, limit):
    return value is not None and (value >= limit - 1e-9 if sign == ">=" else
                                  value <= limit + 1e-9)


def judged_line(text, policy, value, sign, limit):
    shown = "-" if value is None else f"{value:.3f}"
    if limit is None:
        return f"| {text} | {policy} | {shown} | | |"
    verdict = "kept" if is_kept(value, sign, limit) else "MISSED"
    return f"| {text} | {policy} | {shown} | {sign} {limit:.3f} | {verdict} |"


def table_head(title, *cells):
    if title:
        yield f"\n### {title}\n"
    yield row_of(*cells)
    yield "|" + "---|" * len(cells)


def family_table(runs, scenarios, family):
    yield from table_head(family, "scenario", *(
        f"{cell}{knows}" for knows in KNOWN
        for cell in ("best rival, with ", "balanced:")))
    for run in scenarios:
        if run.family == family:
            yield f"| {run.name} |" + "".join(
                family_cells(runs, run, knows) for knows in KNOWN)


def family_cells(runs, run, knows):
    """The best rival by mean TTFT, and our figures with their ratios."""
    if runs.ratio(run, knows, "ttft_mean") is None:
        return " NOT RUN | |"
    best, policy = runs.best(run, knows, "ttft_mean")
    ratios = ((figure, runs.ratio(run, knows, figure)) for figure in FIGURES)
    return f" {policy} {best:.3f} |" + "".join(
        f" {runs.value(run, run.subject(knows), figure):.3f} ({ratio:.2f})"
        for figure, ratio in ratios if ratio is not None) + " |"


def group_lines(runs, scenarios, group, limits, worst):
    for knows in KNOWN:
        policy = f"balanced:{knows}"
        ratios = {figure: {
            run.name: ratio for run in scenarios if group in run.groups() and
            (ratio := runs.ratio(run, knows, figure)) is not None}
            for figure in FIGURES}
        n = len(ratios["ttft_mean"])
        if n == 0:
            continue
        for figure, limit in zip(FIGURES, limits):
            if ratios[figure]:
                yield judged_line(f"{group}, {n}: {FIGURES[figure]}", policy,
                                  geometric_mean(ratios[figure].values()),
                                  "<=", limit)
        name, most = max(ratios["ttft_mean"].items(), key=lambda pair: pair[1])
        yield judged_line(f"{group}: worst TTFT mean, {name}", policy, most,
                          "<=", worst or limits[3])


def gap_lines(runs, scenarios):
    """Reports beside a capacity that is told, for sessions of agents."""
    ratios = {}
    for run in scenarios:
        own, told = (runs.value(run, f"balanced:{knows}", "ttft_mean")
                     for knows in KNOWN)
        if "agents" in run.groups() and own is not None and told is not None:
            ratios[run.name] = own / told
    if ratios:
        name, most = max(ratios.items(), key=lambda pair: pair[1])
        yield judged_line("agents: TTFT mean / balanced:capacity",
                          "balanced:feedback", geometric_mean(ratios.values()),
                          "<=", GAP)
        yield judged_line(f"agents: the same, worst, {name}",
                          "balanced:feedback", most, "<=", GAP_WORST)


def user_lines(runs, scenarios):
    for run in scenarios:
        for knows in KNOWN:
            if run.family == "users":
                _, rival = runs.best(run, knows, "hit_ratio", max)
                yield judged_line(f"{run.name}: hits / those of {rival}",
                                  f"balanced:{knows}",
                                  runs.ratio(run, knows, "hit_ratio", max),
                                  ">=", HITS)


def return_lines(runs, scenarios, limit):
    """The larger share, of requests or of sessions, of each worker that joins
    or recovers: the mean over the seeds with enough of them."""
    for run in scenarios:
        for knows in KNOWN:
            results = runs.results(run, run.subject(knows))
            event = "return0"
            while f"{event}_kind" in results[0]:
                shares = [max(float(result[f"{event}_share"]),
                              float(result[f"{event}_session_share"]))
                          for result in results if f"{event}_share" in result]
                shares = [share for share in shares if share >= 0]
                kind, worker, at = (results[0][f"{event}_{name}"]
                                    for name in ("kind", "worker", "at"))
                if shares:
                    yield judged_line(
                        f"{run.name}: worker {worker}, {kind} at {at} s",
                        run.subject(knows), statistics.fmean(shares), ">=",
                        limit)
                event = f"return{int(event[6:]) + 1}"


def full_lines(runs, scenarios):
    """Results that a full index has spoiled."""
    for run in scenarios:
        for policy in runs.policies:
            if any(float(result.get(figure, 0)) > 0
                   for result in runs.results(run, policy)
                   for figure in ("evicted_region", "truncated")):
                yield f"\nThe index of {policy} was full in {run.name}."


def scenario_lines(runs, scenarios, whole):
    yield ("Seconds: TTFT mean, p90, mean time per request; beside each the "
           "ratio to the best rival of that figure. Seeds: "
           f"{' '.join(map(str, runs.seeds))}.")
    for family in dict.fromkeys(run.family for run in scenarios):
        yield from family_table(runs, scenarios, family)
    figures = ("figure", "policy", "value", "limit", "")
    yield from table_head("Beside the best rival of each scenario, geometric "
                          "means", *figures)
    for group, limits in LIMITS.items():
        yield from group_lines(runs, scenarios, group,
                               limits if whole else (None,) * 4,
                               setting("WORST", 0.))
    if whole:
        yield from gap_lines(runs, scenarios)
        yield from user_lines(runs, scenarios)
    yield from table_head("Share of a worker that joins, comes back or "
                          "recovers", *figures)
    yield from return_lines(runs, scenarios, setting("RETURNS", .5))
    yield from full_lines(runs, scenarios)
    yield ""


def print_lines(lines):
    """Returns how many figures are missed or missing."""
    missed = 0
    for line in lines:
        print(line)
        missed += line.count("MISSED") + line.count("NOT RUN")
    return missed


def compare_scenarios(replay, tracegen, traces, folder, *names):
    table = setting("TABLE", "")
    scenarios = read_table(pathlib.Path(table or HERE / "scenarios.tsv"))
    if not table:
        scenarios += [Scenario(f"{draw(2027, n + 1)}\trandom")
                      for n in range(setting("RANDOM_LOADS", 40))]
    names = " ".join(names).replace(",", " ").split()
    if names:
        scenarios = [run for run in scenarios if
                     {run.family, run.name, *run.marks} & set(names)]
    if not scenarios:
        fail(f"no such scenario: {' '.join(names)}")
    policies = FREE + [f"{rule}:{knows}" for knows in KNOWN
                       for rule in BY_INDEX]
    policies += [f"balanced:{knows}{mode}" for knows in KNOWN
                 for mode in ("", "@hard", "@hash")]
    runs = Runs(replay, tracegen, traces, folder,
                setting("POLICIES", " ".join(policies)).split(),
                [int(seed) for seed in setting("SEEDS", "1 2 3").split()])
    skipped = [run for run in scenarios if runs.obstacle(run)]
    scenarios = [run for run in scenarios if not runs.obstacle(run)]
    runs.run_all(scenarios)
    missed = print_lines(scenario_lines(runs, scenarios, not names))
    for run in skipped:
        print(f"- skipped: {run.name} ({runs.obstacle(run)})")
        missed += not names
    print(f"\n{missed} missed")
    return missed


# ----------------------------------------------------------------- search ---

def judge_load(runs, run, simple):
    """How much worse a balanced policy is than the best simple method, by its
    worst figure, of which the least of the seeds counts, and 0 if the
    difference is below 5 ms: (ratio, text). (0, ""): the load is overloaded,
    requests were refused, or there are no results."""
    def value(policy, seed, figure):
        return float(runs.results(run, policy)[seed].get(figure, 0))

    def ratio(policy, seed, figure):
        own, other = (value(p, seed, figure) for p in (policy, best[seed]))
        return own / other if own - other >= .005 and other > 0 else 0

    best = []
    for seed in range(len(runs.seeds)):
        able = [p for p in simple if value(p, seed, "requests") > 0]
        best += sorted(able, key=lambda p: value(p, seed, "request_mean"))[:1]
        if not able or value(best[seed], seed, "utilisation") > .9 or \
                value(best[seed], seed, "refused") > 0:
            return 0, ""
    most, text = max(((min(ratio(policy, seed, figure)
                           for seed in range(len(best))),
                       f"{FIGURES[figure]} of {policy}".replace(
                           "s per", "time per"))
                      for policy in ("balanced:feedback", "balanced:capacity")
                      for figure in FIGURES), key=lambda pair: pair[0])
    return most, (f"{text} against {best[-1]}, utilisation "
                  f"{value(best[-1], -1, 'utilisation'):.2f}")


def search_loads(replay, tracegen, folder):
    """A second seed confirms the loads that are slow with the first."""
    shutil.rmtree(folder, ignore_errors=True)
    seed = setting("SEED", 1)
    end = time.monotonic() + 60 * setting("MINUTES", 10.)
    simple = FREE + [f"{rule}:capacity" for rule in BY_INDEX]
    found, n = [], 0
    while n == 0 or time.monotonic() < end:
        loads = [Scenario(draw(seed, n + i + 1)) for i in range(4 * JOBS)]
        n += len(loads)
        for seeds in [1], [1, 2]:
            runs = Runs(replay, tracegen, folder, folder, simple +
                        ["balanced:feedback", "balanced:capacity"], seeds)
            runs.run_all(loads, quiet=True)
            judged = [(judge_load(runs, run, simple), run) for run in loads]
            judged = [pair for pair in judged if pair[0][0] > 1.3]
            loads = [run for _, run in judged]
        found += judged
        shutil.rmtree(folder)
    print(f"# {n} loads drawn, seed {seed}; {len(found)} slower than 1.3")
    found.sort(key=lambda pair: -pair[0][0])
    for (ratio, text), run in found[:setting("WORST", 10)]:
        print(f"# {ratio:.3f}: {text}\n{run.line}")


# ---------------------------------------------------------------- studies ---

def prediction_error(results):
    """In per cent of the prompts."""
    return statistics.fmean(
        100 * float(r["error_blocks"]) * 512 *
        (float(r["requests"]) - float(r["bypassed"])) /
        float(r["prompt_tokens"]) for r in results)


def replica_lines(means, scenarios, policies):
    """Relative to one router on the same requests; marks are limits."""
    yield from table_head("", "run", "hits", "x one router's",
                          "TTFT mean, s", "x one router's", "request mean, s",
                          "seeds")
    for run in scenarios:
        one = "agents-one" if run.name.startswith("agents-") else "one"
        own, one = means(run.name, policies[0]), means(one, policies[0])
        if not own or not one:
            continue
        limits = dict(mark.split("=") for mark in run.marks)
        cells = []
        for figure, sign in ("hit_ratio", ">="), ("ttft_mean", "<="):
            ratio = own[figure] / one[figure]
            cells += [f"{own[figure]:.4f}", f"{ratio:.3f}"]
            if figure in limits:
                limit = float(limits[figure])
                kept = is_kept(ratio, sign, limit)
                cells[-1] += (f" ({sign} {limit:.2f}"
                              f"{'' if kept else ', MISSED'})")
        yield row_of(run.name, *cells, f"{own['request_mean']:.3f}",
                     own["seeds"])


def event_lines(means, scenarios, policies):
    """Cells: mean TTFT, s; hits, %; error of the prediction, %."""
    yield from table_head("", "load and condition", *policies)
    for run in scenarios:
        yield row_of(run.name, *(
            f"{m['ttft_mean']:.4f}, {100 * m['hit_ratio']:.2f}, "
            f"{m['error']:.2f}" if m else "-"
            for m in (means(run.name, policy) for policy in policies)))


def window_lines(means, scenarios, policies):
    """By capacity the error must be at most 5 % where engines say all, and
    elsewhere half of that of routing that is not told."""
    yield from table_head("", "engines", "policy",
                          "error of the prediction, %", "hits",
                          "TTFT mean, s", "request mean, s", "seeds")
    for run, policy in ((run, p) for run in scenarios for p in policies):
        told = means(run.name, policy)
        other = means(f"{run.name}.unaware", policy)
        if not told or not other:
            continue
        cells = [f"{told[figure]:.{digits}f} / {other[figure]:.{digits}f}"
                 for figure, digits in (("error", 2), ("hit_ratio", 4),
                                        ("ttft_mean", 4), ("request_mean", 3))]
        if policy == "balanced:capacity":
            limit = 5 if run.name.endswith(("full", "boundary")) else \
                max(other["error"] / 2, .05)
            cells[0] += (" (reached)" if told["error"] <= limit else
                         " (MISSED)")
        yield row_of(run.name, policy.partition("=")[0], *cells,
                     told["seeds"])


STUDIES = {  # policies, seeds, table
    "replicas": ("feedback", "1 2 3", replica_lines),
    "events": ("feedback capacity counts events oracle", "1001 1002 1003",
               event_lines),
    "windows": ("capacity feedback ttl=120", "1 2 3", window_lines),
}


def study(name, replay, tracegen, traces, folder):
    policies, seeds, table = STUDIES[name]
    policies = [f"balanced:{knows}" for knows in policies.split()]
    runs = Runs(replay, tracegen, traces, folder, policies,
                [int(seed) for seed in setting("SEEDS", seeds).split()])
    scenarios = [run for run in read_table(HERE / "studies.tsv")
                 if run.family == name and (
                     run.name.endswith("one") or
                     fnmatch.fnmatch(run.name, setting("RUNS", "*")))]
    every = [Scenario(run.line.replace(run.name, f"{run.name}.unaware", 1) +
                      " --unaware") for run in scenarios if name == "windows"]
    every = {run.name: run for run in scenarios + every}
    for run in every.values():
        if runs.obstacle(run):
            fail(runs.obstacle(run))
    runs.run_all(every.values())

    @functools.cache
    def means(name, policy):
        """Arithmetic, over the seeds that there are."""
        results = [r for r in runs.results(every[name], policy) if r]
        return results and {"seeds": len(results),
                            "error": prediction_error(results)} | {
            figure: statistics.fmean(float(r[figure]) for r in results)
            for figure in ("hit_ratio", "ttft_mean", "request_mean")}

    missed = print_lines(table(means, scenarios, policies))
    return missed + print_lines(
        f"MISSED: there are no results of {run.name}, {policy}"
        for run in every.values() for policy in policies
        if not all(runs.results(run, policy)))


def print_draws(seed, first, last):
    for n in range(int(first), int(last) + 1):
        print(draw(int(seed), n))


def print_varied(trace, seed, *variables):
    sys.stdout.write(vary(trace, int(seed),
                          **dict(v.split("=") for v in variables)))


COMMANDS = {"scenarios": compare_scenarios, "search": search_loads,
            "draw": print_draws, "vary": print_varied} | {
    name: functools.partial(study, name) for name in STUDIES}


def main(command="", *words):
    try:
        inspect.signature(COMMANDS[command]).bind(*words)
    except (KeyError, TypeError):
        fail(f"wrong arguments\n\n{__doc__}")
    try:
        sys.exit(1 if COMMANDS[command](*words) else 0)
    except OSError as error:
        fail(error)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main(*sys.argv[1:])
