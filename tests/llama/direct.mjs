// SPDX-License-Identifier: BSD-2-Clause
//
// node direct.mjs PORT SEQUENCES TALLY - asks one fresh server, with nothing
// between, whether its numbers are those of its cache.
import { appendFileSync } from "node:fs";
import { strict as assert } from "node:assert";

const [port, sequences, tally] = process.argv.slice(2);
const base = `http://127.0.0.1:${port}`;
const ANSWER = 4;

function chatOf(name, ...more) {
	const content = `${name}, ${"be brief. ".repeat(60)}`;

	return [{ role: "system", content }, ...more];
}

function post(body, signal) {
	return fetch(`${base}/v1/chat/completions`, { method: "POST", signal,
		body: typeof body === "string" ? body : JSON.stringify(body) });
}

async function ask(messages) {
	const answer = await post({ messages, max_tokens: ANSWER });
	assert.equal(answer.status, 200);
	const { usage, choices } = await answer.json();
	return { prompt: usage.prompt_tokens, message: choices[0].message,
		cached: usage.prompt_tokens_details.cached_tokens };
}

// The data of each event, until the last.
async function events(answer) {
	const text = await answer.text();
	const list = text.split("\n\n").filter(Boolean)
		.map((event) => event.replace(/^data: /, ""));
	assert.equal(list.pop(), "[DONE]");
	return list.map(JSON.parse);
}

async function stream(messages, options) {
	const answer = await post({ messages, max_tokens: ANSWER, stream: true,
		...options });
	assert.match(answer.headers.get("content-type"), /^text\/event-stream/);
	return events(answer);
}

// The order matters: each finds the cache that the one before it leaves.
const cases = {
	async "it is well and has a model"() {
		const health = await (await fetch(`${base}/health`)).json();
		assert.equal(health.status, "ok");
		const models = await (await fetch(`${base}/v1/models`)).json();
		assert.equal(models.data.length, 1);
	},

	async "a token is a byte, and nothing is cached at first"() {
		const messages = chatOf("first");
		const { prompt, cached } = await ask(messages);
		assert.equal(prompt, messages[0].content.length + 4);
		assert.equal(cached, 0);
	},

	async "of the same prompt all but one token is cached"() {
		const { prompt, cached } = await ask(chatOf("first"));
		assert.equal(cached, prompt - 1);
	},

	async "a chat finds its last prompt and answer"() {
		const before = await ask(chatOf("first"));
		const after = await ask(chatOf("first", before.message,
			{ role: "user", content: "and now?" }));
		assert.equal(before.message.content.length, ANSWER);
		assert.equal(after.cached, before.prompt + ANSWER - 1);
	},

	async "another answer is found up to where it differs"() {
		const { message } = await ask(chatOf("second"));
		await ask(chatOf("second", message,
			{ role: "user", content: "go on" }));
		const { prompt } = await ask(chatOf("second"));
		const other = { role: "assistant", content: "OTHER" };
		const { cached } = await ask(chatOf("second", other));
		assert.equal(cached, prompt);
	},

	async "streams say the same, to those who ask"() {
		const { prompt } = await ask(chatOf("first"));
		const told = await stream(chatOf("first"),
			{ stream_options: { include_usage: true } });
		const last = told.pop();
		assert.deepEqual(last.choices, []);
		assert.equal(last.usage.prompt_tokens, prompt);
		assert.equal(last.usage.prompt_tokens_details.cached_tokens,
			prompt - 1);
		assert.equal(told.filter((event) =>
			event.choices[0].delta.content).length, ANSWER);
		const untold = await stream(chatOf("first"), {});
		assert.equal(untold.length, told.length);
		assert.ok(untold.every((event) => event.usage === undefined));
	},

	async "the least recently used sequence is given up"() {
		const names = Array.from({ length: Number(sequences) + 1 },
			(_, n) => `number ${n}`);
		for (const name of names)
			assert.ok((await ask(chatOf(name))).cached < 20);
		const kept = await ask(chatOf(names.at(-2)));
		assert.equal(kept.cached, kept.prompt - 1);
		assert.ok((await ask(chatOf(names[0]))).cached < 20);
	},

	async "more prompts than sequences wait for their turn"() {
		const names = Array.from({ length: Number(sequences) * 3 },
			(_, n) => `together ${n}`);
		const answers = await Promise.all(names.map((name) =>
			ask(chatOf(name))));
		for (const { message } of answers)
			assert.match(message.content, /^[a-z ]{4}$/);
	},

	async "who leaves early is no harm to others"() {
		const leave = new AbortController();
		const left = post({ messages: chatOf("gone"), stream: true,
			max_tokens: 2000 }, leave.signal);
		const reader = (await left).body.getReader();
		await reader.read();
		leave.abort();
		await assert.rejects(async () => {
			while (!(await reader.read()).done);
		});
		for (let n = 0; n < Number(sequences); n++)
			await ask(chatOf(`after ${n}`));
	},

	async "what is no chat is refused"() {
		for (const body of ["", "{", "[]", "{}", '{"messages":[]}',
			{ messages: chatOf("x"), max_tokens: 0 },
			{ messages: chatOf("x".repeat(9000)) }])
			assert.equal((await post(body)).status, 400);
		assert.equal((await fetch(`${base}/else`)).status, 404);
	},
};

for (const [name, run] of Object.entries(cases)) {
	try {
		await run();
		console.log(`  llama          ${name}`);
		appendFileSync(tally, "1 0 0\n");
	} catch (error) {
		console.log(`    FAILED   llama: ${name}: ${error.stack}`);
		appendFileSync(tally, "0 1 0\n");
	}
}
