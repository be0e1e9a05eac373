// SPDX-License-Identifier: BSD-2-Clause
//
// node check.mjs ENGINES FOLDER - real clients through nginx. ENGINES are the
// ports of kvroute-engine, 9001,9002; FOLDER is where the ports of the
// recorders go (tees), and where the port of nginx comes from (nginx), and
// where the tally is written.
//
// How each SDK writes an answer back; the index must agree with that. Keys are
// in the order in which they are sent.
//
//   openai chat      role, content, tool_calls, others: as the engine had them,
//   create           also null, [] and reasoning_content
//   openai chat      role, others, content, refusal: null, tool_calls, parsed:
//   stream           null; content is null if there was none, tool_calls is
//                    missing then; a call has id, type, function; of
//                    reasoning_content only the last piece is left
//   openai           the items as the engine had them, reasoning with them; ids
//   responses.create kept
//   openai           the same, and each text has parsed: null, each call
//   responses.stream parsed_arguments: null
//   anthropic        role, content: the blocks as the engine had them, thinking
//   create, stream   with its signature; input is an object, so its blanks,
//                    escapes and forms of numbers are those of JSON.stringify
//   ai               role, content, reasoning_content, tool_calls; content is
//   generateText,    null if there was none, the last two are missing then;
//   streamText       arguments are parsed and written again: JSON in a string,
//                    but without the blanks that the engine had
//   openai of        content, refusal, role, annotations, audio, function_call,
//   Python, by hand  tool_calls, others: those that the engine had; a call has
//                    id, function, type, a function arguments, name
//
// ids of chat calls are kept by all. None sends usage or the id of the answer.
import { strict as assert } from "node:assert";
import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync }
	from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { makeDrivers } from "./drivers.mjs";
import { exchanges, startTee } from "./tee.mjs";

// The share of the blocks of answers that the next turn must find in the index.
// Drivers that rewrite the engine's words (ai: arguments) lose from there on.
const ANSWERS_FOUND = 0.99;
const TURNS = 30;
const PATIENCE_MS = 20000;
// Headers of a response; nginx has its own.
const HOP = ["connection", "keep-alive", "transfer-encoding", "server", "date",
	"content-length"];

const [enginePorts, folder] = process.argv.slice(2);
const engines = enginePorts.split(",").map((port) =>
	`http://127.0.0.1:${port}`);
let url;

// ------------------------------------------------------------- recording ---

// The requests and answers of clients, as exchanges of tee.mjs and in the same
// order.
const received = [];
let hold;	// called with the next body, which waits for it

async function keep(record, body) {
	try {
		for await (const piece of body)
			record.parts.push(Buffer.from(piece));
		record.complete = true;
	} catch {
		record.complete = false;	// it was left
	}
}

async function recordingFetch(where, init) {
	const record = { body: init.body, parts: [], complete: false };
	received.push(record);
	await hold?.(init.body);
	hold = undefined;
	const response = await fetch(where, init);
	record.status = response.status;
	record.headers = Object.fromEntries(response.headers);
	const [mine, theirs] = response.body.tee();
	record.end = keep(record, mine);
	return new Response(theirs, { status: response.status,
		headers: response.headers });
}

function without(headers, names) {
	return Object.fromEntries(Object.entries(headers).filter(([name]) =>
		!names.includes(name)));
}

// nginx asks for usage, and takes the event that only has that out again.
function withoutUsage(text) {
	return text.split(/(?<=\n\n)/).filter((event) =>
		!/^data: \{.*"choices":\[\],"usage":/.test(event)).join("");
}

function textOf(parts) {
	return Buffer.concat(parts).toString("latin1");	// byte for byte
}

// One response, and the request before it.
function compare(engine, client) {
	const asked = JSON.parse(Buffer.from(client.body));
	const passed = JSON.parse(Buffer.concat(engine.sent));
	const added = passed.stream_options !== undefined &&
		asked.stream_options === undefined;

	if (added) {
		assert.deepEqual(passed.stream_options, { include_usage: true });
		delete passed.stream_options;
		assert.deepEqual(passed, asked);
	} else {
		assert.equal(textOf(engine.sent), Buffer.from(client.body)
			.toString("latin1"));
	}
	assert.equal(client.status, engine.status);
	assert.deepEqual(without(client.headers, HOP),
		without(engine.headers, HOP));
	const sent = textOf(engine.parts);
	assert.equal(textOf(client.parts), added ? withoutUsage(sent) : sent);
	assert.ok(client.complete && engine.complete, "not complete");
	return added;
}

// Compares all since the last call; returns how often usage was asked for.
async function compareAll() {
	let added = 0;

	await Promise.all(received.map((record) => record.end));
	assert.equal(received.length, exchanges.length);
	for (const [i, client] of received.entries())
		added += compare(exchanges[i], client);
	forget();
	return added;
}

function forget() {
	received.length = exchanges.length = 0;
}

// --------------------------------------------------------------- looking ---

async function until(what, condition) {
	const end = Date.now() + PATIENCE_MS;
	while (!await condition()) {
		assert.ok(Date.now() < end, `never: ${what}`);
		await sleep(5);
	}
}

// Also while another process holds the lock of the index.
async function statusOf(path, init) {
	for (let tries = 0; tries < 100; tries++) {
		const response = await fetch(`${url}/kvroute${path}`, init);
		const state = await response.json();
		if (response.status === 200 && (path !== "/json" ||
			state.upstreams[0].region.bytes > 0))
			return state;
		await sleep(5);
	}
	throw new Error(`no ${path}`);
}

async function leases() {
	return (await statusOf("/json")).upstreams[0].region.leases;
}

function idle() {
	return until("no lease is left", async () => await leases() === 0);
}

// Requests that run or wait in all engines.
async function running() {
	const pages = await Promise.all(engines.map(async (engine) =>
		(await fetch(`${engine}/metrics`)).text()));
	return pages.join("\n").split("\n").filter((line) =>
		/^vllm:num_requests_(running|waiting)\{/.test(line))
		.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

async function fault(kind) {
	for (const engine of engines)
		await fetch(`${engine}/fault?kind=${kind}`, { method: "POST" });
}

// Asks nginx to explain a body: returns the blocks of its prompt, and how many
// of them the worker that has most is predicted to have.
async function explain(driver, body) {
	const told = await statusOf(`/explain?uri=${driver.path}`,
		{ method: "POST", body: JSON.stringify(body) });
	assert.equal(told.outcome, "prompt");
	return { blocks: told.blocks, found: Math.max(...told.candidates.map(
		(candidate) => candidate.overlap_blocks)) };
}

// ------------------------------------------------------------- measuring ---

function isSaid(item) {
	return item.role === "assistant" || item.type === "function_call" ||
		item.type === "reasoning";
}

// The items of the model in a body that follow those of the body before.
function saidSince(driver, before, body) {
	const rest = body[driver.key].slice(before[driver.key].length);
	const end = rest.findIndex((item) => !isSaid(item));
	return rest.slice(0, end < 0 ? rest.length : end);
}

// Turn n and the next one: a prompt, then the answer, then its successors.
//
//	body n		| prompt n            |
//	body n + 1	| prompt n | answer n | results |
//	blocks           0 1 2 3 4 5 6 7 8 9
//	                  prompt^     answer^
//	found            - - - - - - -			at turn n + 1
//
// Blocks that the prompt has in whole are to be found. The others up to the end
// of the answer are counted: sum is { answer, found }.
async function measure(driver, before, body, sum) {
	const said = saidSince(driver, before, body);
	const told = before[driver.key].concat(said);
	const prompt = (await explain(driver, before)).blocks;
	const answer = (await explain(driver, { ...body, [driver.key]: told }))
		.blocks;
	const { found } = await explain(driver, body);

	assert.ok(found >= prompt, `${found} of ${prompt} blocks are found`);
	sum.answer += answer - prompt;
	sum.found += Math.min(found, answer) - prompt;
}

// Returns the content in one form for all: text and calls.
function essence(items) {
	const said = { text: "", calls: [] };
	const call = (name, input) => said.calls.push({ name, input });
	const add = (item) => {
		if (item.type === "function_call")
			call(item.name, JSON.parse(item.arguments));
		else if (item.type === "tool_use")
			call(item.name, item.input);
		else if (typeof item.content === "string")
			said.text += item.content;
		else if (item.type !== "reasoning" && item.content)
			item.content.forEach(add);
		else if (item.type === "text" || item.type === "output_text")
			said.text += item.text;
		for (const { function: f } of item.tool_calls ?? [])
			call(f.name, JSON.parse(f.arguments));
	};
	items.forEach(add);
	return said;
}

// An engine has the same answer to the same body.
async function askEngine(driver, body) {
	const response = await fetch(engines[0] + driver.path,
		{ method: "POST", body: JSON.stringify({ ...body, stream: false }) });
	const answer = await response.json();
	return answer.output ?? (answer.choices ? [answer.choices[0].message] :
		[{ role: "assistant", content: answer.content }]);
}

// ----------------------------------------------------------------- cases ---

const HARD = "na\u00efve \u20ac \u{1f600} \u2028 \"quoted\" C:\\new \t\r\n\u0001" +
	" </script> \u00ff\u007f e\u0301 \ud83d\udc69\u200d\ud83d\udcbb";

// The first questions differ: cases share no prefix.
function question(driver, name, n) {
	return driver.user(`${driver.name}, ${name}, ${n}: ${HARD} ` +
		"what is in the cache? ".repeat(12));
}

function results(driver, calls, turn) {
	return calls.map((call) => driver.result(call,
		`result ${turn} of ${call.name}: ${HARD}`));
}

async function passesAll(driver, stream) {
	let asked = 0, calls = 0;

	for (const usage of [false, true])
		for (const tools of [false, true])
			for (let n = 0; n < 8; n++) {
				const { items, calls: made } = await driver.ask(
					[question(driver, "bytes", n)],
					{ stream, tools, usage: usage && stream });
				assert.ok(items.length > 0);
				calls += made.length;
				asked += stream && driver.path !==
					"/v1/responses" && driver.path !==
					"/v1/messages" && !usage;
			}
	assert.ok(calls > 0, "no tool is called");
	const added = await compareAll();
	if (driver.name !== "ai")
		assert.equal(added, asked);
}

async function leaves(driver, stream) {
	await fault("slow&seconds=600&factor=2000");
	const leave = new AbortController();
	const how = { stream, long: true, signal: leave.signal };
	const begun = new Promise((wake) => { how.begun = wake; });
	const asked = assert.rejects(driver.ask(
		[question(driver, "leaves", stream)], how));
	asked.catch(() => {});	// it is awaited below
	if (stream)
		await Promise.race([begun, asked]);
	await until("it runs", async () => await running() === 1);
	assert.equal(await leases(), 1);
	leave.abort();
	await asked;
	await until("the engine sees it", async () => await running() === 0);
	await idle();
	await until("it is passed on", () => exchanges.at(-1).left);
	await fault("none");
	await Promise.all(received.map((record) => record.end));
	forget();
	const { items } = await driver.ask([question(driver, "stays", stream)],
		{ stream });
	assert.ok(items.length > 0);
	await compareAll();
	await idle();
}

// Runs one turn: before the request goes on, the index is asked for its
// overlap.
async function turnOf(driver, list, stream, look) {
	const at = received.length;

	let failure;	// SDKs would hide it
	hold = (body) => look(JSON.parse(Buffer.from(body)))
		.catch((error) => { failure = error; });
	const answer = await driver.ask(list, { stream, tools: true });
	assert.ifError(failure);
	assert.equal(received.length, at + 1);
	await received[at].end;
	await idle();
	return { ...answer, body: JSON.parse(Buffer.from(received[at].body)) };
}

async function thirtyTurns(driver, stream) {
	const list = [question(driver, `turns ${stream}`, 0)];
	const sum = { answer: 0, found: 0 };
	let before, calls = 0;
	const look = async (body) => {
		if (before === undefined)
			return;
		assert.deepEqual(essence(saidSince(driver, before, body)),
			essence(await askEngine(driver, before)));
		await measure(driver, before, body, sum);
	};

	for (let turn = 1; turn <= TURNS; turn++) {
		const answer = await turnOf(driver, list, stream, look);
		list.push(...answer.items, ...results(driver, answer.calls, turn));
		if (answer.calls.length === 0)
			list.push(question(driver, "again", turn));
		calls += answer.calls.length;
		before = answer.body;
	}
	assert.ok(calls > TURNS / 4, `${calls} calls`);
	await compareAll();
	assert.ok(sum.answer > TURNS, `${sum.answer} blocks in answers`);
	assert.ok(sum.found >= (driver.rewrites ? 1 : sum.answer * ANSWERS_FOUND),
		`${sum.found} of ${sum.answer} blocks of answers are found`);
	return `, ${sum.found} of ${sum.answer} blocks of answers found`;
}

// -------------------------------------------------------------- running ---

async function run(name, test) {
	forget();
	hold = undefined;
	try {
		const more = await test();
		console.log(`  clients        ${name}${more ?? ""}`);
		appendFileSync(`${folder}/tally`, "1 0 0\n");
	} catch (error) {
		console.log(`    FAILED   clients: ${name}: ${error.stack}`);
		appendFileSync(`${folder}/tally`, "0 1 0\n");
		appendFileSync(`${folder}/failed`, `clients: ${name}: ` +
			`${error.message.split("\n")[0]} -- make check-clients\n`);
		await fault("none");
	}
}

async function main() {
	const tees = await Promise.all(enginePorts.split(",").map(startTee));
	writeFileSync(`${folder}/tees.new`, tees.map((server) =>
		server.address().port).join(" ") + "\n");
	renameSync(`${folder}/tees.new`, `${folder}/tees`);
	await until("nginx", () => existsSync(`${folder}/nginx`));
	url = `http://127.0.0.1:${readFileSync(`${folder}/nginx`, "utf8").trim()}`;
	for (const driver of makeDrivers(url, recordingFetch))
		for (const stream of driver.byHand ? [false] : [false, true]) {
			const name = `${driver.name}, ` +
				(stream ? "streams" : "whole");
			await run(`${name}: byte for byte`, () =>
				passesAll(driver, stream));
			await run(`${name}: leaves`, () => leaves(driver, stream));
			await run(`${name}: ${TURNS} turns`, () =>
				thirtyTurns(driver, stream));
		}
	process.exit(0);
}

main();
