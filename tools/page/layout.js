// SPDX-License-Identifier: Apache-2.0
// layout: where a node is, which one is at a place, what a search matches, what a function adds up to. Pure: no DOM.

// The innermost node at time-offset v and row `depth`, or -1.
function layoutAt(t, v, depth) {
	let i = 0;
	if (v < 0 || v >= t.total[0] || depth < 0)
		return -1;
	while (t.depth[i] < depth) {
		let j = i + 1;
		while (j < t.end[i] && !(v >= t.x[j] && v < t.x[j] + t.total[j]))
			j = t.end[j];
		if (j >= t.end[i])
			return -1;
		i = j;
	}
	return i;
}

// Children come hottest first.
function layoutFirstChild(t, i) {
	return i + 1 < t.end[i] ? i + 1 : -1;
}

// The neighbour to the right (step 1) or left (-1) under the same caller, or -1.
function layoutSibling(t, i, step) {
	if (!i)
		return -1;
	const p = t.parent[i];
	if (step > 0)
		return t.end[i] < t.end[p] ? t.end[i] : -1;
	let before = -1;
	for (let j = p + 1; j < i; j = t.end[j])
		before = j;
	return before;
}

function layoutIsAncestor(t, a, i) {
	return a <= i && i < t.end[a];
}

// A search text as a regular expression, or as plain text where it is none.
function layoutPattern(text) {
	try {
		return {re: new RegExp(text, 'i'), literal: false};
	} catch (e) {
		return {re: new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'i'), literal: true};
	}
}

// Matching frames, the topmost matching nodes (hottest first) and their sum, which counts nothing twice.
function layoutSearch(frames, t, re) {
	const hit = new Uint8Array(frames.n);
	let functions = 0, total = 0;
	const names = new Set();
	for (let f = 0; f < frames.n; f++) {
		if (re.test(frames.name[f]) || re.test(frames.module[f]) || re.test(frames.file[f])) {
			hit[f] = 1;
			names.add(frames.name[f] + '\n' + frames.module[f]);
		}
	}
	functions = names.size;
	const nodes = [];
	for (let i = 1; i < t.n;) {
		if (hit[t.frame[i]]) {
			nodes.push(i);
			total += t.total[i];
			i = t.end[i];
		} else {
			i++;
		}
	}
	nodes.sort((a, b) => t.total[b] - t.total[a] || a - b);
	return {hit, nodes, functions, total};
}

// Functions are told apart by name and module: -> id by frame, and one frame of each.
function layoutFunctions(frames) {
	const ids = new Map(), of = new Uint32Array(frames.n), sample = [];
	for (let f = 0; f < frames.n; f++) {
		const key = frames.name[f] + '\n' + frames.module[f];
		let id = ids.get(key);
		if (id === undefined) {
			id = sample.length;
			ids.set(key, id);
			sample.push(f);
		}
		of[f] = id;
	}
	return {of, sample};
}

// Self and total of each function within one subtree; a recursion counts once.
function layoutTop(frames, functions, t, root) {
	const n = functions.sample.length;
	const self = new Float64Array(n), total = new Float64Array(n), until = new Uint32Array(n);
	for (let i = root; i < t.end[root]; i++) {
		const f = t.frame[i], id = functions.of[f];
		if (!i || frames.origin[f] === ORIGIN_GROUP)
			continue;
		self[id] += t.self[i];
		if (i >= until[id]) {
			total[id] += t.total[i];
			until[id] = t.end[i];
		}
	}
	const rows = [];
	for (let id = 0; id < n; id++)
		if (total[id] > 0)
			rows.push({frame: functions.sample[id], self: self[id], total: total[id]});
	return rows;
}
