// SPDX-License-Identifier: BSD-2-Clause
//
// The model file and the server must agree on this: a few tokens of control,
// then one for each byte.

export const CONTROL = ["<unk>", "<s>", "</s>", "<|system|>", "<|user|>",
	"<|assistant|>", "<|close|>"];

const FIRST_BYTE = CONTROL.length;
const BLANK = FIRST_BYTE + 32;

const ROLES = { system: 3, developer: 3, user: 4, assistant: 5 };
const BEGIN = 1, ASSISTANT = 5, CLOSE = 6;

function contentText(content) {
	if (!Array.isArray(content))
		return String(content ?? "");
	return content.map((part) => String(part?.text ?? "")).join("");
}

// The prompt of a chat: one more message changes no token before it.
export function chatTokens(messages) {
	const tokens = [BEGIN];
	for (const message of messages) {
		tokens.push(ROLES[message?.role] ?? ROLES.user);
		for (const byte of Buffer.from(contentText(message?.content)))
			tokens.push(FIRST_BYTE + byte);
		tokens.push(CLOSE);
	}
	tokens.push(ASSISTANT);
	return tokens;
}

export function tokenText(token) {
	return String.fromCharCode(token - FIRST_BYTE);
}

// The end of the text cannot be forbidden, but passed over.
export function spoken(token) {
	return token < FIRST_BYTE ? BLANK : token;
}

// Returns all but small letters and blanks. A text of small letters and blanks
// comes back byte for byte in the prompt of the next turn.
export function unspeakable() {
	const tokens = [];
	for (let token = 0; token < FIRST_BYTE + 256; token++)
		if (!/^[a-z ]$/.test(tokenText(token)))
			tokens.push(token);
	return tokens;
}
