// SPDX-License-Identifier: Apache-2.0
// A hot function with a loop, in one that its callers inline. Says "begun" when all are hot.
"use strict";

function inner(n) {
	let s = 0;
	for (let i = 0; i < n; i++)
		s = (s * 31 + i) & 0xffff;
	return s;
}

function middle(n) {
	return inner(n) + 1;
}

function outer(until) {
	let t = 0;
	while (Date.now() < until)
		for (let k = 0; k < 2000; k++)
			t = (t + middle(50)) & 0xffff;
	return t;
}

outer(Date.now() + 1500);
console.log("begun");
for (;;)
	outer(Date.now() + 1500);
