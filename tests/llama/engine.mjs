// SPDX-License-Identifier: BSD-2-Clause
//
// llama.cpp has a few sequences. Each keeps the tokens of its last prompt and
// answer. This is all the cache there is, and its unit is a whole sequence:
//
//	prompt           a b c d e x y
//	sequence 0       a b c d e f g h     first 5 equal: takes the prompt,
//	sequence 1       a b q r             forgets f g h, computes x y
//	sequence 2       s t u               (least recently used)
//
// A prompt goes to the idle sequence that begins most like it, or to the least
// recently used one if no sequence is at all like it: the little saved is not
// worth the sequence's content. Prompts wait while all are at work.
import { getLlama, TokenBias } from "node-llama-cpp";
import { spoken, tokenText, unspeakable } from "./vocabulary.mjs";

const ALIKE = 0.1;	// of the prompt

export class Engine {
	#bias;
	#slots = [];
	#waiting = [];
	#uses = 0;

	static async load(model, sequences, context) {
		const engine = new Engine();
		engine.context = context;
		const llama = await getLlama({ gpu: false, build: "never",
			skipDownload: true, maxThreads: 1 });
		const weights = await llama.loadModel({ modelPath: model });
		const state = await weights.createContext({ sequences,
			contextSize: context, batchSize: 512, threads: 1,
			flashAttention: true });
		for (let n = 0; n < sequences; n++)
			engine.#slots.push({ sequence: state.getSequence(),
				busy: false, used: 0 });
		engine.#bias = new TokenBias(weights.tokenizer)
			.set(unspeakable(), "never");
		return engine;
	}

	#choose(tokens) {
		let best, oldest, longest = tokens.length * ALIKE;
		for (const slot of this.#slots) {
			if (slot.busy)
				continue;
			if (oldest === undefined || slot.used < oldest.used)
				oldest = slot;
			const same = slot.sequence.compareContextTokens(tokens)
				.firstDifferentIndex;
			if (same >= longest) {
				longest = same;
				best = slot;
			}
		}
		return best ?? oldest;
	}

	async #take(tokens) {
		let slot;
		while ((slot = this.#choose(tokens)) === undefined)
			await new Promise((wake) => this.#waiting.push(wake));
		slot.busy = true;
		slot.used = ++this.#uses;
		return slot;
	}

	#release(slot) {
		slot.busy = false;
		this.#waiting.shift()?.();
	}

	// Calls to.cached() with the length of the prompt that was there
	// already, then to.text() with each piece of the answer, while
	// to.isWanted().
	async answer(tokens, limit, to) {
		const slot = await this.#take(tokens);
		try {
			if (to.isWanted())
				await this.#run(slot.sequence, tokens, limit,
					to);
		} finally {
			this.#release(slot);
		}
	}

	// At least one token is computed, to get the next one.
	async #run(sequence, tokens, limit, to) {
		const same = sequence.compareContextTokens(tokens)
			.firstDifferentIndex;
		const keep = Math.min(tokens.length - 1, same);
		await sequence.eraseContextTokenRanges([{ start: keep,
			end: sequence.nextTokenIndex }]);
		const before = sequence.tokenMeter.getState();
		const rest = tokens.slice(sequence.nextTokenIndex);
		const words = sequence.evaluate(rest, { temperature: 1, seed: 1,
			tokenBias: this.#bias, yieldEogToken: true });
		let step = await words.next();
		const { usedInputTokens, usedOutputTokens } =
			sequence.tokenMeter.diff(before);
		to.cached(tokens.length - usedInputTokens - usedOutputTokens);
		for (let n = 1; !step.done; n++) {
			const token = spoken(step.value);
			to.text(tokenText(token));
			if (n >= limit || !to.isWanted())
				break;
			step = await words.next(token);
		}
		await words.return();
	}
}
