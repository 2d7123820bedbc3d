// SPDX-License-Identifier: Apache-2.0
// layout: the position of a node, the node at a position, matches of a search, sums of a function or a line. No DOM.

// The innermost node at offset v and row `depth`, or -1.
function layoutAt(t, v, depth) {
	let i = 0;
	if (v < 0 || v >= t.total[1][0] || depth < 0)
		return -1;
	while (t.depth[i] < depth) {
		let j = i + 1;
		while (j < t.end[i] && !(v >= t.x[j] && v < t.x[j] + t.total[1][j]))
			j = t.end[j];
		if (j >= t.end[i])
			return -1;
		i = j;
	}
	return i;
}

// Children are sorted hottest first.
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

// The looks from below the root to a node; and the node at the end of such a path from a given node, as far as it exists.
function layoutPath(t, i) {
	const path = [];
	for (; i; i = t.parent[i])
		path.unshift(t.look[i]);
	return path;
}

function layoutFind(t, path, i = 0) {
	for (const look of path) {
		let j = i + 1;
		while (j < t.end[i] && t.look[j] !== look)
			j = t.end[j];
		if (j >= t.end[i])
			break;
		i = j;
	}
	return i;
}

// A search text as a regular expression, or as plain text if it is not valid.
function layoutPattern(text) {
	try {
		return {re: new RegExp(text, 'i'), literal: false};
	} catch (e) {
		return {re: new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'i'), literal: true};
	}
}

function layoutMatch(looks, re) {
	const hit = new Uint8Array(looks.n);
	for (let i = 0; i < looks.n; i++)
		hit[i] = re.test(looks.name[i]) || re.test(looks.module[i]) || re.test(looks.file[i]) ? 1 : 0;
	return hit;
}

// The topmost matching nodes (hottest first) and their sum, which counts nothing twice.
function layoutHits(looks, t, hit) {
	const nodes = [], functions = new Set();
	let total = 0;
	for (let i = 1; i < t.n; i++)
		if (hit[t.look[i]])
			functions.add(looks.fn[t.look[i]]);
	for (let i = 1; i < t.n;) {
		if (hit[t.look[i]]) {
			nodes.push(i);
			total += t.total[1][i];
			i = t.end[i];
		} else {
			i++;
		}
	}
	nodes.sort((a, b) => t.total[1][b] - t.total[1][a] || a - b);
	return {nodes, functions: functions.size, total};
}

// Self and total of each function within one subtree; a recursion counts once.
function layoutTop(looks, t, root) {
	const n = looks.fnName.length, columns = t.self.length;
	const self = t.self.map(() => new Float64Array(n)), total = t.self.map(() => new Float64Array(n));
	const until = new Uint32Array(n), rows = [];
	for (let i = root; i < t.end[root]; i++) {
		const id = looks.fn[t.look[i]];
		if (!i || looks.origin[t.look[i]] === GROUP)
			continue;
		for (let c = 0; c < columns; c++) {
			self[c][id] += t.self[c][i];
			if (i >= until[id])
				total[c][id] += t.total[c][i];
		}
		until[id] = Math.max(until[id], t.end[i]);
	}
	for (let id = 0; id < n; id++)
		if (total.some((c) => c[id] > 0))
			rows.push({fn: id, name: looks.fnName[id], module: looks.fnModule[id], self: self.map((c) => c[id]),
				total: total.map((c) => c[id])});
	return rows;
}

// Self and total of each line of a function, from the leaves of a view: arrays, one number per side.
function layoutLines(profile, looks, leaves, fn) {
	const base = profile.tree, frames = profile.frames, lines = new Map(), end = new Uint32Array(base.n);
	const sides = profile.sides.length, none = () => new Array(sides).fill(0);
	for (let i = base.n - 1; i > 0; i--) {
		end[i] = Math.max(end[i], i + 1);
		end[base.parent[i]] = Math.max(end[base.parent[i]], end[i]);
	}
	for (let side = 0; side < sides; side++) {
		const self = new Float64Array(base.n), until = new Map();
		leaves.node.forEach((node, l) => { self[node] += leaves.sums[2 * side + 1][l]; });
		const total = self.slice();
		for (let i = base.n - 1; i > 0; i--)
			total[base.parent[i]] += total[i];
		for (let i = 1; i < base.n; i++) {
			const f = base.frame[i];
			if (looks.fn[frames.look[f]] !== fn || !total[i])
				continue;
			const key = `${frames.file[f]}:${frames.line[f]}`;
			if (!lines.has(key))
				lines.set(key, {file: frames.file[f], line: frames.line[f], self: none(), total: none()});
			lines.get(key).self[side] += self[i];
			if (i >= (until.get(key) || 0)) {
				lines.get(key).total[side] += total[i];
				until.set(key, end[i]);
			}
		}
	}
	return [...lines.values()].sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : a.line - b.line));
}
