// SPDX-License-Identifier: Apache-2.0
// spread: off-CPU time is stored at the end of a wait, however long the wait was. Time that exceeds what a thread can
// have spent in a slot belongs to the slots before: each thread is in one place at every moment. No DOM here.

const SPREAD_TYPES = ['wall', 'offcpu', 'runqueue'];

// Rows by (owner, slot): {first, row}: those of the k-th are row[first[k]] to row[first[k + 1] - 1].
function spreadOrder(rows, owners, slots) {
	const first = new Uint32Array(owners * slots + 2), row = new Uint32Array(rows.n);
	const key = (r) => rows.owner[r] * slots + rows.slot[r];
	for (let r = 0; r < rows.n; r++)
		first[key(r) + 2]++;
	for (let k = 2; k < first.length; k++)
		first[k] += first[k - 1];
	for (let r = 0; r < rows.n; r++)
		row[first[key(r) + 1]++] = r;
	return {first, row};
}

// The largest excess of a thread over its slots so far: by chance, if waits are sampled.
function spreadScale(rows, order, at, room) {
	let scale = 1, has = 0, holds = 0;
	for (let slot = 0; slot < room.length; slot++) {
		for (let k = order.first[at + slot]; k < order.first[at + slot + 1]; k++)
			has += rows.value[order.row[k]];
		holds += room[slot];
		if (has > holds * scale && holds)
			scale = has / holds;
	}
	return scale;
}

// From the last slot of one thread to its first one; more(row, slot, value): the part of a row in an earlier slot.
function spreadOwner(rows, order, at, room, more) {
	const scale = spreadScale(rows, order, at, room);
	let carried = [];
	for (let slot = room.length - 1; slot >= 0; slot--) {
		const own = [...order.row.subarray(order.first[at + slot], order.first[at + slot + 1])].map((row) => ({row, value: rows.value[row], own: true}));
		const parts = [...own, ...carried].sort((a, b) => b.value - a.value); // the longest one began first
		let over = slot ? parts.reduce((v, x) => v + x.value, 0) - room[slot] * scale : 0;
		carried = [];
		for (const x of parts) {
			const takes = Math.min(x.value, Math.max(over, 0));
			over -= takes;
			x.value -= takes;
			if (takes)
				carried.push({row: x.row, value: takes, own: false});
			if (x.own)
				rows.value[x.row] = x.value;
			else if (x.value)
				more(x.row, slot, x.value);
		}
	}
}

// In place. Sums stay the same, and the count stays at the end of the wait.
function spreadWaits(p) {
	const rows = p.sides[0], more = new Map();
	let n = rows.n;
	if (!SPREAD_TYPES.includes(p.type) || p.slots < 2 || p.value_unit !== 'ns')
		return;
	const order = spreadOrder(rows, p.owners.length, p.slots);
	for (let owner = 0; owner < p.owners.length; owner++)
		spreadOwner(rows, order, owner * p.slots, p.covered_ns, (row, slot, value) => {
			more.set(row, [...(more.get(row) || []), [slot, value]]);
			n++;
		});
	const out = {node: new Uint32Array(n), owner: new Uint32Array(n), slot: new Uint16Array(n), count: new Float64Array(n), value: new Float64Array(n)};
	let at = 0;
	for (let r = 0; r < rows.n; r++)
		for (const [slot, value, count] of [[rows.slot[r], rows.value[r], rows.count[r]], ...(more.get(r) || [])]) {
			out.node[at] = rows.node[r];
			out.owner[at] = rows.owner[r];
			out.slot[at] = slot;
			out.count[at] = count || 0;
			out.value[at++] = value;
		}
	Object.assign(rows, out, {n});
}
