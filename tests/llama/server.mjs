// SPDX-License-Identifier: BSD-2-Clause
//
// node server.mjs MODEL SEQUENCES CONTEXT SECONDS - a small OpenAI-compatible
// server on a free port of 127.0.0.1, which it prints. Answers chats, streamed
// or whole, with the number of prompt tokens that llama.cpp had computed
// before, in so many sequences of so many tokens. Ends after that many seconds,
// or when its input does: nobody is left who needs it.
import { createServer } from "node:http";
import { Engine } from "./engine.mjs";
import { chatTokens } from "./vocabulary.mjs";

const MODEL = "random";
const BODY_LIMIT = 1 << 20;

async function readJson(request) {
	const parts = [];
	let length = 0;
	for await (const part of request) {
		if ((length += part.length) > BODY_LIMIT)
			throw new Error("body too large");
		parts.push(part);
	}
	return JSON.parse(Buffer.concat(parts).toString());
}

function sendJson(response, status, value) {
	const text = JSON.stringify(value);
	response.writeHead(status, { "content-type": "application/json",
		"content-length": Buffer.byteLength(text) });
	response.end(text);
}

function refuse(response, status, message) {
	sendJson(response, status, { error: { message,
		type: "invalid_request_error" } });
}

function usageOf(prompt, completion, cached) {
	return { prompt_tokens: prompt, completion_tokens: completion,
		total_tokens: prompt + completion,
		prompt_tokens_details: { cached_tokens: cached } };
}

function chunk(id, choices, usage) {
	const value = { id, object: "chat.completion.chunk", created: 0,
		model: MODEL, choices };
	if (usage !== undefined)
		value.usage = usage;
	return `data: ${JSON.stringify(value)}\n\n`;
}

function piece(id, delta, reason) {
	return chunk(id, [{ index: 0, delta, finish_reason: reason }]);
}

// Headers go out with the first token, not before.
function streamed(response, id, withUsage) {
	let begun = false;
	return {
		text(text) {
			if (!begun)
				response.writeHead(200, {
					"content-type": "text/event-stream",
					"cache-control": "no-cache" });
			response.write(piece(id, begun ? { content: text } :
				{ role: "assistant", content: text }, null));
			begun = true;
		},
		end(usage) {
			response.write(piece(id, {}, "length"));
			if (withUsage)
				response.write(chunk(id, [], usage));
			response.end("data: [DONE]\n\n");
		},
	};
}

function whole(response, id) {
	let content = "";
	return {
		text(text) {
			content += text;
		},
		end(usage) {
			const choices = [{ index: 0, finish_reason: "length",
				message: { role: "assistant", content } }];
			sendJson(response, 200, { id, object: "chat.completion",
				created: 0, model: MODEL, choices, usage });
		},
	};
}

async function complete(engine, id, body, response) {
	if (!Array.isArray(body?.messages) || body.messages.length === 0)
		return refuse(response, 400, "messages must be a list");
	const tokens = chatTokens(body.messages);
	const limit = body.max_completion_tokens ?? body.max_tokens ?? 16;
	if (!Number.isInteger(limit) || limit < 1)
		return refuse(response, 400, "max_tokens must be above 0");
	if (tokens.length + limit > engine.context)
		return refuse(response, 400, "more than a sequence holds");
	const withUsage = body.stream_options?.include_usage === true;
	const out = body.stream === true ? streamed(response, id, withUsage) :
		whole(response, id);
	let cached = 0, completion = 0;
	await engine.answer(tokens, limit, {
		isWanted: () => !response.destroyed,
		cached: (count) => { cached = count; },
		text: (text) => { completion++; out.text(text); },
	});
	if (!response.destroyed)
		out.end(usageOf(tokens.length, completion, cached));
}

async function chat(engine, id, request, response) {
	let body;
	try {
		body = await readJson(request);
	} catch (error) {
		return refuse(response, 400, error.message);
	}
	return complete(engine, id, body, response);
}

function answer(engine, id, request, response) {
	const what = `${request.method} ${request.url.split("?")[0]}`;
	if (what === "POST /v1/chat/completions")
		return chat(engine, id, request, response);
	request.resume();
	if (what === "GET /v1/models")
		return sendJson(response, 200, { object: "list", data: [
			{ id: MODEL, object: "model", owned_by: "kvroute" }] });
	if (what === "GET /health")
		return sendJson(response, 200, { status: "ok" });
	return refuse(response, 404, "no such page");
}

async function main([model, ...numbers]) {
	const [sequences, context, seconds] = numbers.map(Number);
	if (!(sequences > 0 && context > 0 && seconds > 0))
		throw new Error(
			"usage: server.mjs MODEL SEQUENCES CONTEXT SECONDS");
	setTimeout(() => process.exit(0), seconds * 1000);
	process.stdin.on("end", () => process.exit(0)).resume();
	const engine = await Engine.load(model, sequences, context);
	let requests = 0;
	const server = createServer(async (request, response) => {
		try {
			await answer(engine, `chatcmpl-${++requests}`, request,
				response);
		} catch (error) {
			console.error(error);
			response.destroy();
		}
	});
	server.keepAliveTimeout = 60000;	// longer than proxies keep them
	server.listen(0, "127.0.0.1", () => console.log(server.address().port));
}

main(process.argv.slice(2)).catch((error) => {
	console.error(error.message);
	process.exit(1);
});
