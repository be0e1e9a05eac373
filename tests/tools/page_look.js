/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_look.js - looks at the page of kvroute-replay --report in each frame, and
 * writes down name=number. Sizes have a tolerance of one pixel, because text has
 * fractional positions.
 */
"use strict";

function say(text) {
	document.getElementById("said").textContent += text + "\n";
}

function boxes(svg) {
	return Array.from(svg.querySelectorAll("text"), (t) =>
	    ({ text: t.textContent, box: t.getBoundingClientRect() }));
}

function outside(svg) {
	const s = svg.getBoundingClientRect();

	return boxes(svg).filter(({ box: b }) => b.left < s.left - 1 ||
	    b.right > s.right + 1 || b.top < s.top - 1 ||
	    b.bottom > s.bottom + 1).length;
}

/* Lines of text may be close to each other. */
function meeting(svg) {
	let n = 0;

	boxes(svg).forEach(({ text, box: a }, i, all) => {
		for (const { box: b } of all.slice(0, i))
			if (Math.min(a.right, b.right) -
			    Math.max(a.left, b.left) > 1 &&
			    Math.min(a.bottom, b.bottom) -
			    Math.max(a.top, b.top) > 4) {
				n++;
				say("text on text: " + text);
			}
	});
	return n;
}

function press(d, name) {
	const key = d.querySelector(".keys button");
	const faint = () => d.querySelectorAll(".faint").length;

	if (key === null)
		return;
	key.click();
	say(name + "-faint=" + faint());
	key.click();
	say(name + "-again=" + faint());
}

window.onload = () => {
	for (const frame of document.querySelectorAll("iframe")) {
		const d = frame.contentDocument, name = frame.name;
		const drawings = Array.from(d.querySelectorAll("svg"));
		const sum = (f) => drawings.reduce((n, s) => n + f(s), 0);

		say(`${name}-wide=${d.documentElement.scrollWidth}`);
		say(`${name}-texts=${d.querySelectorAll("text").length}`);
		say(`${name}-drawings=${d.querySelectorAll("svg[role=img]")
		    .length}`);
		say(`${name}-outside=${sum(outside)}`);
		say(`${name}-meeting=${sum(meeting)}`);
		say(`${name}-wrong=${/NaN|undefined|Infinity|null/.test(
		    d.body.innerText) ? 1 : 0}`);
		press(d, name);
		if (name === "phone" || name === "none")
			say(d.body.innerText);
	}
};
