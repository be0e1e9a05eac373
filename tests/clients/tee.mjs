// SPDX-License-Identifier: BSD-2-Clause
//
// A recorder between nginx and an engine. It passes bytes on as they come and
// keeps them:
//
//	client -> nginx -> tee -> engine
//
// exchanges has one record for each request, in the order of their arrival:
// the request's body, the response's status, headers and body. A client that
// leaves is passed on, too: the engine sees its connection closed.
import { createServer, request } from "node:http";

const HOST = "127.0.0.1";

export const exchanges = [];

// Returns headers that gateways of real engines add, and SDKs read.
function extraHeaders(number) {
	return { "x-request-id": `req_${number}`, "request-id": `req_${number}`,
		"x-engine-says": "a, b;  c" };
}

function passResponse(record, from, to) {
	record.status = from.statusCode;
	record.headers = { ...from.headers, ...extraHeaders(record.number) };
	to.writeHead(from.statusCode, record.headers);
	to.flushHeaders();
	from.on("data", (piece) => {
		record.parts.push(piece);
		to.write(piece);
	});
	from.on("end", () => {
		record.complete = from.complete;
		to.end();
	});
	from.on("error", () => to.destroy());
}

function pass(enginePort, from, to) {
	const record = { number: exchanges.length, path: from.url, sent: [],
		parts: [], complete: false, left: false };
	exchanges.push(record);
	const onward = request({ host: HOST, port: enginePort, path: from.url,
		method: from.method, agent: false,
		headers: { ...from.headers, connection: "close" } });
	onward.on("response", (response) => passResponse(record, response, to));
	onward.on("error", () => to.destroy());
	from.on("data", (piece) => {
		record.sent.push(piece);
		onward.write(piece);
	});
	from.on("end", () => onward.end());
	to.on("close", () => {
		record.left = !record.complete;
		if (record.left)
			onward.destroy();
	});
}

// Resolves to the server, which listens on a free port.
export function startTee(enginePort) {
	const server = createServer((from, to) => pass(enginePort, from, to));
	server.keepAliveTimeout = 60000;	// longer than nginx keeps them
	return new Promise((done) =>
		server.listen(0, HOST, () => done(server)));
}
