// SPDX-License-Identifier: BSD-2-Clause
//
// node make-model.mjs FILE [SEED] - a language model that has learned nothing.
//
// Routing needs an engine whose prefill costs time and whose cache is real; the
// model's answers do not matter. So the weights are random numbers, the same
// for a seed, in the form that llama.cpp reads (GGUF, version 3):
//
//	"GGUF" version tensors facts      numbers of what follows
//	key type value ...                facts: architecture, sizes, vocabulary
//	name dimensions type offset ...   tensors: what they are, where they lie
//	                                  zeros up to a multiple of 32
//	weights ...                       each tensor at a multiple of 32
//
// The vocabulary is a token for each byte, behind a few for control: the text
// of a message cannot make a control token, and a prompt has as many tokens as
// bytes, so that its shares of tokens are shares of text.
import { closeSync, openSync, renameSync, writeSync } from "node:fs";
import { CONTROL } from "./vocabulary.mjs";

const LAYERS = 4, WIDTH = 256, HEADS = 4, GROUPS = 1, INNER = 704;
const CONTEXT = 16384;	// it was trained for so many tokens, so to speak
const ALIGN = 32;
const U32 = 4, I32 = 5, F32 = 6, BOOL = 7, STRING = 8, ARRAY = 9;
const TENSOR_F32 = 0, TENSOR_F16 = 1;
const TOKEN_NORMAL = 1, TOKEN_UNKNOWN = 2, TOKEN_CONTROL = 3, TOKEN_BYTE = 6;
const BLANK = "\u2581";

const number = {
	[U32](value) {
		const bytes = Buffer.alloc(4);
		bytes.writeUInt32LE(value);
		return bytes;
	},
	[I32](value) {
		const bytes = Buffer.alloc(4);
		bytes.writeInt32LE(value);
		return bytes;
	},
	[F32](value) {
		const bytes = Buffer.alloc(4);
		bytes.writeFloatLE(value);
		return bytes;
	},
	[BOOL]: (value) => Buffer.from([value ? 1 : 0]),
	[STRING](value) {
		const text = Buffer.from(value);
		return Buffer.concat([u64(text.length), text]);
	},
};

function u32(value) {
	return number[U32](value);
}

function u64(value) {
	const bytes = Buffer.alloc(8);
	bytes.writeBigUInt64LE(BigInt(value));
	return bytes;
}

// A fact: a plain value, or a list of them.
function fact(key, type, value) {
	const name = number[STRING](key);
	if (!Array.isArray(value))
		return Buffer.concat([name, u32(type), number[type](value)]);
	return Buffer.concat([name, u32(ARRAY), u32(type), u64(value.length),
		...value.map(number[type])]);
}

// A blank is written as this kind of vocabulary writes it.
function byteTokens() {
	return Array.from({ length: 256 }, (_, byte) => byte === 32 ? BLANK :
		`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
}

function tokenKind(token, id) {
	if (id === 0)
		return TOKEN_UNKNOWN;
	if (id < CONTROL.length)
		return TOKEN_CONTROL;
	return token === BLANK ? TOKEN_NORMAL : TOKEN_BYTE;
}

function facts() {
	const tokens = [...CONTROL, ...byteTokens()];
	const kinds = tokens.map(tokenKind);
	return [
		fact("general.architecture", STRING, "llama"),
		fact("general.name", STRING, "random"),
		fact("llama.block_count", U32, LAYERS),
		fact("llama.context_length", U32, CONTEXT),
		fact("llama.embedding_length", U32, WIDTH),
		fact("llama.feed_forward_length", U32, INNER),
		fact("llama.attention.head_count", U32, HEADS),
		fact("llama.attention.head_count_kv", U32, GROUPS),
		fact("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
		fact("llama.rope.dimension_count", U32, WIDTH / HEADS),
		fact("llama.vocab_size", U32, tokens.length),
		fact("tokenizer.ggml.model", STRING, "llama"),
		fact("tokenizer.ggml.tokens", STRING, tokens),
		fact("tokenizer.ggml.scores", F32, tokens.map(() => 0)),
		fact("tokenizer.ggml.token_type", I32, kinds),
		fact("tokenizer.ggml.unknown_token_id", U32, 0),
		fact("tokenizer.ggml.bos_token_id", U32, 1),
		fact("tokenizer.ggml.eos_token_id", U32, 2),
		fact("tokenizer.ggml.add_bos_token", BOOL, false),
		fact("tokenizer.ggml.add_space_prefix", BOOL, false),
	];
}

// A row of weights is as long as its factor.
function matrix(name, columns, rows) {
	return { name, sizes: [columns, rows], type: TENSOR_F16,
		bytes: columns * rows * 2 };
}

function norm(name) {
	return { name, sizes: [WIDTH], type: TENSOR_F32, bytes: WIDTH * 4 };
}

function layer(n) {
	const at = `blk.${n}.`;
	const shared = WIDTH / HEADS * GROUPS;
	return [
		norm(at + "attn_norm.weight"),
		matrix(at + "attn_q.weight", WIDTH, WIDTH),
		matrix(at + "attn_k.weight", WIDTH, shared),
		matrix(at + "attn_v.weight", WIDTH, shared),
		matrix(at + "attn_output.weight", WIDTH, WIDTH),
		norm(at + "ffn_norm.weight"),
		matrix(at + "ffn_gate.weight", WIDTH, INNER),
		matrix(at + "ffn_up.weight", WIDTH, INNER),
		matrix(at + "ffn_down.weight", INNER, WIDTH),
	];
}

function tensors() {
	const words = CONTROL.length + 256;
	const list = [
		matrix("token_embd.weight", WIDTH, words),
		norm("output_norm.weight"),
		matrix("output.weight", WIDTH, words),
	];
	for (let n = 0; n < LAYERS; n++)
		list.push(...layer(n));
	return list;
}

function aligned(offset) {
	return Math.ceil(offset / ALIGN) * ALIGN;
}

function describe(list) {
	let offset = 0;
	return list.map(({ name, sizes, type, bytes }) => {
		const line = Buffer.concat([number[STRING](name),
			u32(sizes.length), ...sizes.map(u64), u32(type),
			u64(offset)]);
		offset = aligned(offset + bytes);
		return line;
	});
}

// xorshift32: 32 bits at a time, from a seed that is not 0.
function generator(seed) {
	let state = (seed >>> 0) || 1;
	return () => {
		state ^= state << 13;
		state ^= state >>> 17;
		state ^= state << 5;
		return state >>> 0;
	};
}

// Fills in half floats of either sign, 2^-5 to 2^-4 in size: with about this
// variance the sums of 256 of them stay as large as the input.
function fill(bytes, random) {
	for (let at = 0; at < bytes.length; at += 2) {
		const bits = random();
		const sign = bits >>> 16 & 0x8000;
		bytes.writeUInt16LE(sign | 10 << 10 | bits & 0x3ff, at);
	}
}

function weights({ type, sizes, bytes }, random) {
	const data = Buffer.alloc(aligned(bytes));
	if (type === TENSOR_F16)
		fill(data, random);
	else
		for (let n = 0; n < sizes[0]; n++)
			data.writeFloatLE(1, n * 4);
	return data;
}

// Whole or not at all: an interrupted run leaves no half of a model.
function write(path, seed) {
	const random = generator(seed);
	const list = tensors();
	const known = facts();
	const head = Buffer.concat([Buffer.from("GGUF"), u32(3),
		u64(list.length), u64(known.length), ...known,
		...describe(list)]);
	const file = openSync(path + ".new", "w");
	writeSync(file, head);
	writeSync(file, Buffer.alloc(aligned(head.length) - head.length));
	for (const tensor of list)
		writeSync(file, weights(tensor, random));
	closeSync(file);
	renameSync(path + ".new", path);
}

const [path, seed = "1"] = process.argv.slice(2);
if (path === undefined) {
	console.error("usage: make-model.mjs FILE [SEED]");
	process.exit(2);
}
write(path, Number(seed));
