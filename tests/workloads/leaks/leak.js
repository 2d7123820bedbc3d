// SPDX-License-Identifier: Apache-2.0
// leak: keeps KIB more each 20 ms in a closure, SECONDS long; says how many bytes. leak.js KIB SECONDS [none]: drops it each 16 MiB
"use strict";
const kept = [];

function leaky(bytes)
{
	const b = Buffer.alloc(bytes, 1);
	kept.push(() => b);
}

const kib = Number(process.argv[2]);
let turns = Number(process.argv[3]) * 50;
const timer = setInterval(() => {
	leaky(kib * 1024);
	if (process.argv[4] && kept.length * kib > 16384)
		kept.length = 0;
	if (!--turns) {
		clearInterval(timer);
		console.log(kept.length * kib * 1024);
		process.stdin.once("data", () => process.exit(0));
	}
}, 20);
