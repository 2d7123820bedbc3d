// SPDX-License-Identifier: Apache-2.0
// build: computes the displayed tree from the rows: a range of slots, a grouping, frames hidden or joined,
// callers first, callers and callees of one function. No DOM here.
//
// A tree is in preorder: node i's subtree is [i, end[i]); children are ordered hottest first, then by name. `self` and `total`
// are arrays of columns: [counts, values]; with two sides, first the drawn columns, then those of each side (diff.js).

// Growing arrays, and the child of a node by look.
function buildTree(columns) {
	const t = {n: 0, look: [], parent: [], self: Array.from({length: columns}, () => [])};
	let size = 1 << 12, table = new Int32Array(size).fill(-1);
	const slot = (parent, look) => (Math.imul(parent, 0x9e3779b1) ^ Math.imul(look + 1, 0x85ebca6b)) >>> 7;

	function grow() {
		size *= 2;
		table = new Int32Array(size).fill(-1);
		for (let i = 1; i < t.n; i++) {
			let h = slot(t.parent[i], t.look[i]) & (size - 1);
			while (table[h] >= 0)
				h = (h + 1) & (size - 1);
			table[h] = i;
		}
	}
	t.add = (parent, look) => {
		t.look.push(look);
		t.parent.push(parent);
		for (const c of t.self)
			c.push(0);
		return t.n++;
	};
	t.child = (parent, look) => {
		let h = slot(parent, look) & (size - 1);
		for (; table[h] >= 0; h = (h + 1) & (size - 1))
			if (t.parent[table[h]] === parent && t.look[table[h]] === look)
				return table[h];
		table[h] = t.n;
		const id = t.add(parent, look);
		if (t.n * 2 > size)
			grow();
		return id;
	};
	return t;
}

// Computes sums, order and places of a grown tree.
function buildFinish(t, looks) {
	const n = t.n, k = t.self.length, total = t.self.map((c) => Float64Array.from(c));
	const children = new Int32Array(n).fill(-1), next = new Int32Array(n).fill(-1);
	for (let i = n - 1; i > 0; i--)
		for (let c = 0; c < k; c++)
			total[c][t.parent[i]] += total[c][i];
	for (let i = n - 1; i > 0; i--) {
		next[i] = children[t.parent[i]];
		children[t.parent[i]] = i;
	}
	const out = {n, look: new Uint32Array(n), depth: new Uint16Array(n), parent: new Uint32Array(n), end: new Uint32Array(n),
		x: new Float64Array(n), maxDepth: 0, self: [], total: []};
	const hottest = (a, b) => total[1][b] - total[1][a] || (looks.name[t.look[a]] < looks.name[t.look[b]] ? -1 :
		looks.name[t.look[a]] > looks.name[t.look[b]] ? 1 : t.look[a] - t.look[b]);
	const from = new Uint32Array(n), todo = [0], list = [];
	const at = new Uint32Array(n);
	for (let i = 0; todo.length; i++) {
		const id = todo.pop(), p = at[t.parent[id]];
		from[i] = id;
		at[id] = i;
		out.look[i] = t.look[id];
		out.parent[i] = i ? p : 0;
		out.depth[i] = i ? out.depth[p] + 1 : 0;
		out.maxDepth = Math.max(out.maxDepth, out.depth[i]);
		list.length = 0;
		for (let c = children[id]; c >= 0; c = next[c])
			list.push(c);
		if (list.length > 1)
			list.sort(hottest);
		for (let c = list.length - 1; c >= 0; c--)
			todo.push(list[c]);
	}
	for (let i = n - 1; i >= 0; i--) {
		out.end[i] = Math.max(out.end[i], i + 1);
		if (i)
			out.end[out.parent[i]] = Math.max(out.end[out.parent[i]], out.end[i]);
	}
	for (let c = 0; c < k; c++) {
		out.self.push(Float64Array.from(from, (id) => t.self[c][id]));
		out.total.push(Float64Array.from(from, (id) => total[c][id]));
	}
	const fill = new Float64Array(n);
	for (let i = 1; i < n; i++) {
		const p = out.parent[i];
		out.x[i] = fill[i] = fill[p];
		fill[p] += out.total[1][i];
	}
	return out;
}

// For each kind of grouping, the group of each owner; profile.rows: the looks of each group, outermost first. Numbered once, at
// the start, because addresses contain these numbers. Below a container are its commands: processes with one name are one group, like a
// server's hundred workers. Without containers there is no row for containers. profile.whoOf: container and
// process of a group, as text, by its looks.
function buildGroups(profile, looks) {
	const pids = new Map(), contained = profile.owners.some((o) => o.container !== HOST), known = new Map();
	const place = (o) => `${o.container}\n${o.comm}`, bare = profile.diff && profile.owners.some((o) => !o.comm); // a file of stacks has no processes
	for (const o of profile.owners)
		pids.set(place(o), (pids.get(place(o)) || new Set()).add(o.pid));
	const one = (o) => `${o.comm} (${o.pid})`;
	const command = (o) => { // pids mean nothing across two times
		const n = pids.get(place(o)).size;
		return profile.diff ? o.comm : n > 1 ? `${o.comm} (${formatCount(n)} processes)` : one(o);
	};
	const names = {
		nested: (o) => (bare ? [] : [contained ? o.container : '', o.comm ? command(o) : ''].filter(Boolean)),
		container: (o) => [o.container],
		process: (o) => [one(o)],
		thread: (o) => [`${one(o)} ${o.thread} (${o.tid})`],
	};
	const where = (o) => (o.container === HOST ? 'on the host' : 'in ' + o.container);
	const who = {nested: (o) => `${command(o)} ${where(o)}`, process: (o) => `${one(o)} ${where(o)}`, thread: (o) => `${one(o)} ${where(o)}`};
	Object.assign(profile, {groups: {none: null}, rows: [], whoOf: new Map()});
	for (const [by, name] of Object.entries(names))
		profile.groups[by] = profile.owners.map((o) => {
			const path = name(o), key = `${by}\n${path.join('\n')}`;
			if (!known.has(key)) {
				const row = path.map((x) => looks.add(x, '', GROUP, false, '', 0));
				known.set(key, profile.rows.push(row) - 1);
				if (who[by] && row.length)
					profile.whoOf.set(row.join(), who[by](o));
			}
			return known.get(key);
		});
}

// The nodes that are idle waits, or below one.
function buildIdle(profile, looks) {
	const t = profile.tree, idle = new Uint8Array(t.n);
	for (let i = 1; i < t.n; i++)
		idle[i] = idle[t.parent[i]] || looksIsIdle(looks, profile.frames.look[t.frame[i]]) ? 1 : 0;
	profile.idle = idle.some(Boolean) ? idle : null;
}

// The nodes that are start-up code, from the root on; the reason of a wait may precede them.
function buildStart(profile, looks) {
	const t = profile.tree, start = new Uint8Array(t.n), calls = new Uint8Array(t.n), look = (i) => profile.frames.look[t.frame[i]];
	const cached = (f) => ((known) => (l) => (known[l] === undefined ? known[l] = f(l) : known[l]))([]);
	const named = cached((l) => looksIsStart(looks, l)), started = cached((l) => LOOKS_STARTED.test(looks.name[l]));
	const first = (i) => !i || start[i] || (!t.parent[i] && looksIsReason(looks, look(i)));
	for (let i = 1; i < t.n; i++)
		if (started(look(i)))
			calls[t.parent[i]] = 1;
	for (let i = 1; i < t.n; i++)
		if (first(t.parent[i]) && (named(look(i)) || calls[i]) && !looksIsReason(looks, look(i)))
			start[i] = 1;
	profile.start = start;
}

// The nodes whose stacks stay: those through every function of `focus` and through none of `drop`.
function buildKept(profile, looks, focus, drop) {
	const t = profile.tree, bit = new Map(focus.map((fn, i) => [fn, 1 << i])), out = new Set(drop);
	const want = (1 << focus.length) - 1, mask = new Int32Array(t.n);
	for (let i = 0; i < t.n; i++) {
		const fn = looks.fn[profile.frames.look[t.frame[i]]];
		mask[i] = i ? mask[t.parent[i]] : 0;
		if (i && out.has(fn))
			mask[i] = -1;
		else if (i && mask[i] >= 0)
			mask[i] |= bit.get(fn) || 0;
	}
	return (i) => mask[i] >= 0 && (mask[i] & want) === want;
}

// Sums by (node, group) of the rows in range that stay: {node, group, sums}; group is a look, or -1.
function buildLeaves(profile, looks, o) {
	const groups = profile.groups[o.group], columns = profile.sides.length * 2;
	const kept = o.focus.length || o.drop.length ? buildKept(profile, looks, o.focus, o.drop) : () => true;
	const leaves = {node: [], group: [], sums: Array.from({length: columns}, () => [])}, idle = o.idle ? null : profile.idle;
	profile.sides.forEach((rows, side) => {
		const seen = new Map(), [from, to] = profile.diff && !side ? [o.fromA, o.toA] : [o.from, o.to];
		for (let r = 0, node = -1, keep = false; r < rows.n; r++) {
			if (rows.node[r] !== node) {
				node = rows.node[r];
				keep = kept(node) && !(idle && idle[node]);
				seen.clear();
			}
			if (!keep || (from >= 0 && (rows.slot[r] < from || rows.slot[r] > to)))
				continue;
			const group = groups ? groups[rows.owner[r]] : -1;
			let at = seen.get(group);
			if (at === undefined) {
				at = leaves.node.push(node) - 1;
				leaves.group.push(group);
				leaves.sums.forEach((c) => c.push(0));
				seen.set(group, at);
			}
			leaves.sums[side * 2][at] += rows.count[r];
			leaves.sums[side * 2 + 1][at] += side || !profile.diff ? rows.value[r] : rows.value[r] * profile.scale;
		}
	});
	return leaves;
}

// By look: the look that replaces it; -1: none.
function buildStandIns(looks, o) {
	const hide = new Set(o.hide);
	return (look) => {
		if (hide.has(looks.fn[look]))
			return -1;
		if (o.kernel && looks.origin[look] === 1)
			return looks.kernel;
		return o.runtime && looksIsRuntime(looks, look) ? looks.runtime : look;
	};
}

// Callers first, like the rows.
function buildForward(profile, looks, leaves, o) {
	const drawn = profile.diff ? 2 : 0;
	const base = profile.tree, start = profile.start, t = buildTree(leaves.sums.length + drawn), stand = buildStandIns(looks, o);
	const shown = Int32Array.from(profile.frames.look, stand), path = [];
	t.add(0, profile.frames.look[base.frame[0]]);

	function under(parent, look) {
		if (look < 0 || ((look === looks.kernel || look === looks.runtime) && t.look[parent] === look))
			return parent;
		for (let i = parent; o.merge && i; i = t.parent[i])
			if (t.look[i] === look)
				return i;
		return t.child(parent, look);
	}
	const order = Array.from(leaves.node, (_, l) => l).sort((a, b) => leaves.group[a] - leaves.group[b] || a - b);
	const known = new Int32Array(base.n).fill(-1), met = [];
	let group = -2;
	for (const l of order) {
		if (leaves.group[l] !== group) {
			group = leaves.group[l];
			while (met.length)
				known[met.pop()] = -1;
			known[0] = group < 0 ? 0 : profile.rows[group].reduce((at, look) => t.child(at, look), 0);
		}
		let i = leaves.node[l];
		const bare = o.start && start[i]; // only start-up code: its last frame stays, so that its time has a name
		for (path.length = 0; known[i] < 0; i = base.parent[i])
			path.push(i);
		let at = known[i];
		while (path.length) {
			i = path.pop();
			at = known[i] = o.start && start[i] ? at : under(at, shown[base.frame[i]]);
			met.push(i);
		}
		if (bare)
			at = under(at, shown[base.frame[leaves.node[l]]]);
		leaves.sums.forEach((c, k) => { t.self[k + drawn][at] += c[l]; });
	}
	if (profile.diff)
		diffDraw(t, o.show);
	return buildFinish(t, looks);
}

// The inverted tree: leaves first, groups stay on top.
function buildInverted(f, looks) {
	const t = buildTree(f.self.length);
	t.add(0, f.look[0]);
	for (let i = 1; i < f.n; i++) {
		if (!f.self[0][i] && !f.self[1][i] && f.self.every((c) => !c[i]))
			continue;
		const groups = [];
		let top = i, at = 0;
		while (top && looks.origin[f.look[top]] !== GROUP)
			top = f.parent[top];
		for (let k = top; k; k = f.parent[k])
			groups.push(f.look[k]);
		while (groups.length)
			at = t.child(at, groups.pop());
		for (let k = i; k !== top; k = f.parent[k])
			at = t.child(at, f.look[k]);
		t.self.forEach((c, k) => { c[at] += f.self[k][i]; });
	}
	return buildFinish(t, looks);
}

// One function: {callees, callers}, each with the function as root. Only its outermost calls, so that nothing counts twice.
function buildSandwich(f, looks, fn) {
	const down = buildTree(f.self.length), up = buildTree(f.self.length), at = new Int32Array(f.n);
	down.add(0, looks.fnLook[fn]);
	up.add(0, looks.fnLook[fn]);
	for (let i = 1; i < f.n; i++) {
		if (looks.fn[f.look[i]] !== fn)
			continue;
		let caller = 0;
		for (let k = f.parent[i]; k; k = f.parent[k])
			caller = up.child(caller, f.look[k]);
		up.self.forEach((c, k) => { c[caller] += f.total[k][i]; });
		for (let j = i; j < f.end[i]; j++) {
			at[j] = j === i ? 0 : down.child(at[f.parent[j]], f.look[j]);
			down.self.forEach((c, k) => { c[at[j]] += f.self[k][j]; });
		}
		i = f.end[i] - 1;
	}
	return {callees: buildFinish(down, looks), callers: buildFinish(up, looks)};
}
