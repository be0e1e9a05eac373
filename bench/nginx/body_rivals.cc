// SPDX-License-Identifier: BSD-2-Clause
/*
 * body_rivals.cc - what other JSON libraries take from a body to its hashes.
 *
 *   rivals [-r rounds] file ...
 *
 * simdjson, on demand, over a buffer with the padding that it wants, and
 * RapidJSON, with its SSE4.2 loops, in a copy that it changes and that is made
 * before it is timed. Each gives the strings of `messages` to a prompt, short
 * ones together: no marks, no limits, and only whole and valid bodies, so a
 * reader that uses it takes longer. Beside it is the hash of as many bytes in
 * one piece. The files take turns, so that the processor does not learn one by
 * heart; medians of CPU time:
 *
 *   first file  library  bytes  hash_ns  whole_ns  of_hash
 */
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <simdjson.h>

#define RAPIDJSON_SSE42
#include <rapidjson/reader.h>

#include <kvroute.h>

namespace {

struct bed {
	struct kvr *k;
	struct kvr_prompt *p;
	std::vector<std::string> texts;
	size_t length; /* of this one, which is in the copy */
	std::vector<char> copy;
	simdjson::ondemand::parser parser;
	size_t bytes;
	size_t staged;
	char stage[16384];
};

void
settle(bed &d)
{
	kvr_prompt_bytes(d.p, d.stage, d.staged);
	d.staged = 0;
}

void
give(bed &d, const char *text, size_t n)
{
	d.bytes += n;
	if (n > sizeof(d.stage) - d.staged)
		settle(d);
	if (n > sizeof(d.stage)) {
		kvr_prompt_bytes(d.p, text, n);
		return;
	}
	memcpy(d.stage + d.staged, text, n);
	d.staged += n;
}

bool
by_simdjson(bed &d)
{
	simdjson::ondemand::document whole;
	simdjson::ondemand::array messages;

	if (d.parser.iterate(d.copy.data(), d.length, d.copy.size())
	    .get(whole) || whole["messages"].get(messages))
		return false;
	for (auto element : messages) {
		simdjson::ondemand::object message;

		if (element.get(message))
			return false;
		for (auto field : message) {
			simdjson::ondemand::raw_json_string key;
			std::string_view text;

			if (field.key().get(key))
				return false;
			if (!field.value().get_string().get(text))
				give(d, text.data(), text.size());
		}
	}
	return true;
}

struct handler : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, handler> {
	bed &d;

	explicit handler(bed &of) : d(of) {}
	bool
	String(const char *text, rapidjson::SizeType n, bool)
	{
		give(d, text, n);
		return true;
	}
	bool Key(const char *, rapidjson::SizeType, bool) { return true; }
};

bool
by_rapidjson(bed &d)
{
	rapidjson::InsituStringStream stream(d.copy.data());
	rapidjson::Reader reader;
	handler h(d);

	d.copy[d.length] = '\0';
	return !reader.Parse<rapidjson::kParseInsituFlag>(stream, h).IsError();
}

int64_t
median(std::vector<int64_t> &times)
{
	std::sort(times.begin(), times.end());
	return times[times.size() / 2];
}

int64_t
cpu_clock()
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void
show(bed &d, const char *name, const char *library, bool (*parse)(bed &),
    int rounds)
{
	std::vector<int64_t> whole, hash, clock;

	for (int i = 0; i < rounds; i++) {
		const std::string &text = d.texts[i % d.texts.size()];
		d.length = text.size();
		memcpy(d.copy.data(), text.data(), text.size());
		d.bytes = d.staged = 0;
		int64_t start = cpu_clock();
		kvr_prompt_begin(d.p, nullptr);
		if (!parse(d)) {
			printf("%s\t%s\tnot read\n", name, library);
			return;
		}
		settle(d);
		kvr_prompt_end(d.p, nullptr);
		whole.push_back(cpu_clock() - start);
		start = cpu_clock();
		kvr_prompt_set_bytes(d.p, nullptr, text.data(), d.bytes);
		hash.push_back(cpu_clock() - start);
		start = cpu_clock();
		clock.push_back(cpu_clock() - start);
	}
	int64_t nothing = median(clock);
	int64_t one = median(whole) - nothing, least = median(hash) - nothing;
	printf("%s\t%s\t%zu\t%lld\t%lld\t%.2f\n", name, library,
	    d.length, (long long)least, (long long)one,
	    (double)one / (double)least);
}

} // namespace

int
main(int argc, char **argv)
{
	struct kvr_options o;
	int rounds = 501, i = 1;
	bed d;

	if (argc > 2 && strcmp(argv[1], "-r") == 0) {
		rounds = std::max(1, atoi(argv[2]));
		i = 3;
	}
	kvr_options_init(&o, sizeof(o));
	o.unit = KVR_UNIT_BYTES;
	if (kvr_new(&o, &d.k) != KVR_OK ||
	    kvr_prompt_new(d.k, &d.p) != KVR_OK)
		return 1;
	printf("body\tlibrary\tbytes\thash_ns\twhole_ns\tof_hash\n");
	const char *name = argv[i];
	size_t most = 0;
	for (; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");
		char piece[65536];
		std::string text;
		size_t n;

		if (f == nullptr)
			return 1;
		while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
			text.append(piece, n);
		fclose(f);
		most = std::max(most, text.size());
		d.texts.push_back(text);
	}
	if (d.texts.empty())
		return 1;
	d.copy.assign(most + simdjson::SIMDJSON_PADDING, 0);
	show(d, name, "simdjson", by_simdjson, rounds);
	show(d, name, "rapidjson", by_rapidjson, rounds);
	kvr_prompt_free(d.p);
	kvr_free(d.k);
	return 0;
}
