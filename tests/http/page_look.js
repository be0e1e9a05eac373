/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_look.js - shows the status page statuses that it may get, and writes down
 * what it shows of them. test_status_page.c puts it beside `status`, the text of
 * one status as it is written for a proxy.
 *
 * Each frame is the page; its name says which statuses it polls, one after the
 * other. Its clock goes from poll to poll.
 */
"use strict";
const POLLED = 2000;
const PADDING = 12; // of its 16 px, that a card keeps free
const ready = new Set();
const elsewhere = new Set(); // asks for something else than the status

function copy() {
	return JSON.parse(status);
}

/* What a fleet has that is not new, in round numbers. */
function fleet() {
	const s = copy(), u = s.upstreams[0], w = u.workers;

	u.shadow = null;
	u.affinity = { hit: 80, new: 9, moved: 15, moved_gray: 5, gone: 5,
	    bound: 7 };
	u.reasons = { cost: 75, tie: 0, probe: 25 };
	u.region = Object.assign(u.region, { affinity_bindings: 12345,
	    affinity_entries: 65536, cells: 1000, cells_free: 750,
	    journal: { bytes: 65536, written: 0, overruns: 0, beat_age: 4.2 },
	    tenants: { known: 3, rows: [
		{ tenant: "0123456789abcdef", share: 2, bytes: 6400, evicted: 4 },
		{ tenant: null, share: 1, bytes: 0, evicted: 0 } ] } });
	u.usage = Object.assign(u.usage, { prompt_tokens: 1000,
	    cached_tokens: 500, predicted_tokens: 600, best_tokens: 700 });
	u.times.time_to_first_token = { count: 4, sum: 1, p50: 0.25, p90: 1.5,
	    p99: 12 };
	u.times.module = { count: 4, sum: 0.001, p50: 0.00025, p90: 0.0003,
	    p99: 0.0000004 };
	for (const one of w)
		Object.assign(one, { prompt_tokens: 1000, best_tokens: 900,
		    predicted_tokens: 800, usage_prompt_tokens: 500,
		    usage_cached_tokens: 350, health: "good" });
	Object.assign(w[1], { health: "slow", polled: { running: 3,
	    waiting: 4, usage: null, surplus: 2, age: 0.5 } });
	Object.assign(w[2], { name: "192.168.100.100:30000", rank: 15,
	    health: "warming", overloaded: true, polled: null, capacity: 0,
	    learnt_capacity: 140100, retain: "feedback", backlog: 12.34 });
	return s;
}

/* A while later: each worker has had so many prompts of 100 tokens. */
function later(n, part) {
	const s = fleet(), u = s.upstreams[0];

	for (const w of u.workers) {
		w.prompt_tokens += n * 100;
		w.best_tokens += n * 90;
		w.predicted_tokens += n * 60;
	}
	u.usage.prompt_tokens += n * 100;
	u.usage.cached_tokens += n * part;
	u.reasons.cost += n * 10;
	u.region.evicted_region += 1;
	return s;
}

/* Each number is that; each text and place of a list stays. */
function all(number) {
	return JSON.parse(status.replace(/:-?[0-9][0-9.]*/g, ":" + number));
}

/* All that may be null is. */
function nulls() {
	const s = copy();

	for (const u of s.upstreams) {
		u.shadow = u.region.journal = u.region.tenants = null;
		for (const w of u.workers)
			w.polled = w.health = w.capacity_source = null;
	}
	return s;
}

function hostile() {
	const bad = "<img src=x onerror=\"console.error('ran')\">";
	const s = fleet(), u = s.upstreams[0];

	u.name = s.version = u.workers[0].name = bad;
	u.workers[0].state = u.workers[0].health = "<b> x";
	u.region.tenants.rows[0].tenant = bad;
	u.reasons[bad] = 3;
	return s;
}

function without(member) {
	const s = fleet();

	delete s.upstreams[0][member];
	return s;
}

const frames = {
	phone: [fleet(), later(1, 40), later(2, 40)],
	tablet: [fleet()],
	desk: [fleet(), later(1, 40), later(2, 40)],
	restarted: [later(2, 40), fleet(), later(1, 40)],
	nobody: [Object.assign(copy(), { upstreams: [] })],
	bare: [Object.assign(copy(), { upstreams: copy().upstreams.slice(1) })],
	zero: [all("0"), all("0")],
	huge: [all("18446744073709551615"), all("18446744073709551615")],
	nulls: [nulls(), nulls()],
	hostile: [hostile()],
	again: [503, "{", fleet()],
	broken: [without("times")]
};

/* ------------------------------------------------ in the page's window --- */

/* Called by each frame before its own script. */
function prepare(w) {
	const answers = frames[w.name], real = w.setTimeout;
	let n = 0;

	w.performance.now = () => 1000000 + POLLED * n;
	w.fetch = async (url) => {
		const answer = answers[n++];

		if (url !== "?format=json")
			elsewhere.add(w.name);
		return { ok: typeof answer !== "number", status: answer,
		    json: async () => w.JSON.parse(typeof answer === "string" ?
		    answer : JSON.stringify(answer)) };
	};
	w.setTimeout = (f) => n < answers.length ? real(f, 0) :
	    ready.add(w.name);
}

/* ----------------------------------------------------------- the report --- */

function say(text) {
	document.getElementById("said").textContent += text + "\n";
}

function text(e) {
	return e.textContent.replace(/[\s\u00a0]+/g, " ").trim();
}

/* Of a table, each cell with its classes; of a list, its pairs. */
function lines(card) {
	return [...card.querySelectorAll("tbody tr")].map((tr) =>
	    [...tr.children].map((td) => text(td) + (td.className === "" ? "" :
	    `{${td.className}}`)).join("|")).concat(
	    [...card.querySelectorAll("dt")].map((dt) => text(dt) + "|" +
	    text(dt.nextElementSibling)),
	    [...card.querySelectorAll(":scope > li")].map(text));
}

function title(card) {
	const h3 = card.querySelector("h3");

	return card.classList.contains("hints") ? "hint" :
	    card.classList.contains("tile") ? "tile" :
	    h3 === null ? "other" : text(h3);
}

function tell(name, u) {
	for (const card of u.querySelectorAll(".card")) {
		const what = title(card);

		if (what === "tile")
			say(`${name}|tile|` +
			    [...card.children].map(text).join("|"));
		for (const line of lines(card))
			say(`${name}|${what}|${line}`);
	}
	for (const path of u.querySelectorAll("path"))
		say(`${name}|curve|${path.getAttribute("class")}|` +
		    (path.getAttribute("d").match(/L/g) || []).length);
}

/* What is drawn beyond its cell, or beyond its card or on the edge of that. */
function outside(d) {
	let n = 0;

	for (const card of d.querySelectorAll(".card")) {
		const edge = card.getBoundingClientRect();

		for (const e of card.querySelectorAll("td, dt, dd, b, span, li")) {
			const own = e.getBoundingClientRect();
			const range = d.createRange();

			range.selectNodeContents(e);
			for (const r of range.getClientRects())
				n += r.right > edge.right - PADDING ||
				    r.left < edge.left + PADDING ||
				    (e.tagName === "TD" &&
				    r.right > own.right + 1);
		}
	}
	return n;
}

function report(frame) {
	const d = frame.contentDocument, name = frame.name;
	const main = d.getElementById("upstreams");

	say(`${name}-state=${text(d.getElementById("state"))}`);
	say(`${name}-wide=${d.documentElement.scrollWidth}`);
	say(`${name}-outside=${outside(d)}`);
	say(`${name}-wrong=` + (main.innerText.match(
	    /NaN|undefined|Infinity|null|\[object/g) || []).length);
	say(`${name}-images=${d.images.length}`);
	say(`${name}-elsewhere=${Number(elsewhere.has(name))}`);
	say(`${name}-upstreams=${d.querySelectorAll(".upstream").length}`);
	if (main.children.length === 0)
		say(`${name}|${text(main)}`);
	for (const u of d.querySelectorAll(".upstream"))
		tell(name, u);
}

/* What is there is found: text that leaves its card. */
function spoil(frame) {
	const card = frame.contentDocument.createElement("div");

	card.className = "card";
	card.style.width = "4rem";
	card.innerHTML = "<b>unbreakable_and_long</b><i>NaN</i>";
	frame.contentDocument.getElementById("upstreams").append(card);
	frame.name = "spoilt";
	report(frame);
}

function look() {
	const all = [...document.querySelectorAll("iframe")];

	if (ready.size < all.length) {
		setTimeout(look, 10);
		return;
	}
	all.forEach(report);
	spoil(all.find((frame) => frame.name === "desk"));
}

window.onload = look;
