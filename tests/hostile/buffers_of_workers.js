// SPDX-License-Identifier: LGPL-2.1-or-later
// buffers_of_workers.js - threads with heaps of their own, compiled code, and memory outside
// of those heaps
"use strict";

const workers = require("worker_threads");

const BUFFER_BYTES = 3023161;
const BUFFERS = 4;
const WORKERS = 2;

function fill() {
	let sum = 0;

	for (let i = 0; i < BUFFERS; i++) {
		const buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);

		buffer.fill(i);
		for (let at = 0; at < BUFFER_BYTES; at += 1000)
			sum += buffer[at];
	}
	return sum;
}

if (workers.isMainThread) {
	let left = WORKERS, sum = fill();

	for (let i = 0; i < WORKERS; i++) {
		const worker = new workers.Worker(__filename);

		worker.on("message", (part) => {
			sum += part;
		});
		worker.on("exit", (status) => {
			if (status)
				process.exit(status);
			if (--left === 0)
				console.log(`sum ${sum}`);
		});
	}
} else {
	workers.parentPort.postMessage(fill());
}
