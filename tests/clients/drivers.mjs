// SPDX-License-Identifier: BSD-2-Clause
//
// Each SDK as its users use it. A driver has
//
//	path, key	the endpoint, and the member of its body with the history
//	user(text)	an item of the history
//	ask(list, how)	sends the history: how is { stream, signal, long, tools,
//			usage, begun }; resolves to what the user then adds:
//			{ items, calls: [{ id, name }] }
//	result(call, text)	an item with the result of a call
//
// All of them use the fetch that is given, so that their requests and answers
// can be recorded.
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, streamText, tool } from "ai";
import OpenAI from "openai";

const MODEL = "m";
const LONG = 4000;	// tokens of an answer that is left
const schema = { type: "object", properties: { query: { type: "string" } } };
const TOOLS = ["look_up", "read_file"].map((name) =>
	({ name, description: `${name} \u20ac "quoted"`, parameters: schema }));

function limit(how, name) {
	return how.long ? { [name]: LONG } : {};
}

// -------------------------------------------------------------- openai ---

function chatBody(list, how) {
	return { model: MODEL, messages: list, ...limit(how, "max_tokens"),
		...(how.tools ? { tools: TOOLS.map((f) =>
			({ type: "function", function: f })) } : {}),
		...(how.usage ? { stream_options: { include_usage: true } } :
			{}) };
}

async function chatStream(client, list, how) {
	const stream = client.chat.completions.stream(chatBody(list, how),
		{ signal: how.signal });
	stream.on("chunk", () => how.begun?.());
	return stream.finalChatCompletion();
}

function chatCalls(message) {
	return (message.tool_calls ?? []).map((call) =>
		({ id: call.id, name: call.function.name }));
}

const chatItems = {
	path: "/v1/chat/completions", key: "messages",
	user: (content) => ({ role: "user", content }),
	result: (call, content) => ({ role: "tool", tool_call_id: call.id,
		content }),
};

function openaiChat(client) {
	return { ...chatItems, name: "openai chat",
		async ask(list, how) {
			const answer = how.stream ?
				await chatStream(client, list, how) :
				await client.chat.completions.create(
					chatBody(list, how),
					{ signal: how.signal });
			const { message } = answer.choices[0];
			return { items: [message], calls: chatCalls(message) };
		} };
}

function openaiResponses(client) {
	const bodyOf = (list, how) => ({ model: MODEL, input: list,
		...limit(how, "max_output_tokens"),
		...(how.tools ? { tools: TOOLS.map((f) =>
			({ type: "function", ...f })) } : {}) });
	const stream = (list, how) => {
		const events = client.responses.stream(bodyOf(list, how),
			{ signal: how.signal });
		events.on("event", ({ type }) =>
			type.endsWith(".delta") && how.begun?.());
		return events.finalResponse();
	};
	return { name: "openai responses", path: "/v1/responses", key: "input",
		user: (content) => ({ role: "user", content }),
		result: (call, output) => ({ type: "function_call_output",
			call_id: call.id, output }),
		async ask(list, how) {
			const answer = await (how.stream ? stream(list, how) :
				client.responses.create(bodyOf(list, how),
					{ signal: how.signal }));
			const calls = answer.output.filter((item) =>
				item.type === "function_call");
			return { items: answer.output, calls: calls.map((call) =>
				({ id: call.call_id, name: call.name })) };
		} };
}

// ----------------------------------------------------------- anthropic ---

function anthropic(client) {
	const bodyOf = (list, how) => ({ model: MODEL, messages: list,
		max_tokens: how.long ? LONG : 500,
		...(how.tools ? { tools: TOOLS.map((f) => ({ name: f.name,
			description: f.description,
			input_schema: f.parameters })) } : {}) });
	const stream = (list, how) => {
		const events = client.messages.stream(bodyOf(list, how),
			{ signal: how.signal });
		events.on("streamEvent", ({ type }) =>
			type === "content_block_delta" && how.begun?.());
		return events.finalMessage();
	};
	return { name: "anthropic", path: "/v1/messages", key: "messages",
		user: (content) => ({ role: "user", content }),
		result: (call, content) => ({ role: "user", content: [
			{ type: "tool_result", tool_use_id: call.id,
				content }] }),
		async ask(list, how) {
			const { content } = await (how.stream ?
				stream(list, how) : client.messages.create(
					bodyOf(list, how),
					{ signal: how.signal }));
			const calls = content.filter((block) =>
				block.type === "tool_use");
			return { items: [{ role: "assistant", content }],
				calls: calls.map(({ id, name }) =>
					({ id, name })) };
		} };
}

// ------------------------------------------------------------------ ai ---

const AI_TOOLS = Object.fromEntries(TOOLS.map((f) => [f.name,
	tool({ description: f.description,
		inputSchema: jsonSchema(f.parameters) })]));

async function aiStream(options, how) {
	let failure;
	const answer = streamText({ ...options,
		onError: ({ error }) => { failure = error; } });
	for await (const part of answer.fullStream) {
		if (part.type.endsWith("-delta"))
			how.begun?.();
		if (part.type === "abort")
			throw new Error("aborted");
	}
	if (failure !== undefined)
		throw failure;
	return { messages: (await answer.response).messages,
		calls: await answer.toolCalls };
}

async function aiWhole(options) {
	const answer = await generateText(options);
	return { messages: answer.response.messages, calls: answer.toolCalls };
}

function ai(provider) {
	return { name: "ai", rewrites: true,
		path: "/v1/chat/completions", key: "messages",
		user: (content) => ({ role: "user", content }),
		result: (call, value) => ({ role: "tool", content: [
			{ type: "tool-result", toolCallId: call.id,
				toolName: call.name,
				output: { type: "text", value } }] }),
		async ask(list, how) {
			const options = { model: provider(MODEL), messages: list,
				maxRetries: 0, abortSignal: how.signal,
				...limit(how, "maxOutputTokens"),
				...(how.tools ? { tools: AI_TOOLS } : {}) };
			const { messages, calls } = await (how.stream ?
				aiStream(options, how) : aiWhole(options));
			return { items: messages, calls: calls.map((call) =>
				({ id: call.toolCallId, name: call.toolName })) };
		} };
}

// -------------------------------------------------------------- python ---

// Returns a message as openai of Python makes it: its fields in the order of
// the class, if the answer had them; unknown ones come last.
export function pythonMessage(message) {
	const { content, refusal, role, annotations, audio, function_call,
		tool_calls, ...others } = message;
	const known = { content, refusal, role, annotations, audio,
		function_call, tool_calls: tool_calls?.map((call) => ({
			id: call.id, function: {
				arguments: call.function.arguments,
				name: call.function.name },
			type: call.type })) };
	// undefined is left out by JSON.stringify
	return { ...known, ...others };
}

// By hand: there is no Python here.
function python(url, fetch) {
	return { ...chatItems, name: "as of python", byHand: true,
		async ask(list, how) {
			const answer = await fetch(`${url}/v1/chat/completions`,
				{ method: "POST", signal: how.signal,
					body: JSON.stringify(
						chatBody(list, how)) });
			const { choices } = await answer.json();
			const { message } = choices[0];
			return { items: [pythonMessage(message)],
				calls: chatCalls(message) };
		} };
}

export function makeDrivers(url, fetch) {
	const options = { apiKey: "none", fetch, maxRetries: 0 };
	const openai = new OpenAI({ ...options, baseURL: `${url}/v1` });
	const claude = new Anthropic({ ...options, baseURL: url });
	const provider = createOpenAICompatible({ name: "kvroute",
		baseURL: `${url}/v1`, apiKey: "none", fetch });
	return [openaiChat(openai), openaiResponses(openai), anthropic(claude),
		ai(provider), python(url, fetch)];
}
