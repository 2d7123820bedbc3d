// SPDX-License-Identifier: Apache-2.0
// data: from the packed text in the page to typed arrays. The format is specified in tools/page/flame_pack.h. No DOM here.

const HOST = '[host]'; // parent of processes outside of containers

// Reads varints; numbers may be larger than 32 bits, so no shifts.
function dataReader(bytes, at) {
	return {
		uint() {
			let v = 0, unit = 1, b;
			do {
				if (at >= bytes.length)
					throw new Error('the data is incomplete');
				b = bytes[at++];
				v += (b & 127) * unit;
				unit *= 128;
			} while (b > 127);
			return v;
		},
		int() {
			const v = this.uint();
			return v % 2 ? -(v + 1) / 2 : v / 2;
		},
		column(n, array, read) {
			for (let i = 0; i < n; i++)
				array[i] = read.call(this, i);
			return array;
		},
	};
}

function dataFrames(strings, n, r) {
	const u = r.uint, text = () => strings[r.uint()];
	return {
		n,
		name: r.column(n, new Array(n), text),
		module: r.column(n, new Array(n), text),
		file: r.column(n, new Array(n), text),
		line: r.column(n, new Uint32Array(n), u),
		flags: r.column(n, new Uint8Array(n), u),
	};
}

// Nodes come in preorder, callers before callees.
function dataNodes(n, r) {
	const t = {n, frame: new Uint32Array(n), parent: new Uint32Array(n)}, path = [];
	let depth = 0, seen = -1;
	for (let i = 0; i < n; i++) {
		depth += r.int();
		t.parent[i] = depth ? path[depth - 1] : 0;
		path[depth] = i;
	}
	r.column(n, t.frame, () => {
		const back = r.uint();
		return back ? seen + 1 - back : ++seen;
	});
	return t;
}

function dataRows(side, period, r) {
	const n = side.rows, u = r.uint;
	let node = 0, slot = 0;
	const rows = {
		n, label: side.label, slots: side.slots || 0, slots_from_ns: side.slots_from_ns, slot_ns: side.slot_ns,
		from_ns: side.from_ns, to_ns: side.to_ns, covered: side.covered_ns || [],
		node: r.column(n, new Uint32Array(n), () => (node += r.uint())),
		owner: r.column(n, new Uint32Array(n), u),
		slot: r.column(n, new Uint16Array(n), () => (slot += r.int())),
		count: r.column(n, new Float64Array(n), u),
		value: null,
	};
	rows.value = r.column(n, new Float64Array(n), (i) => rows.count[i] * period + r.int());
	return rows;
}

function dataProfile(head, p, r) {
	const strings = head.strings;
	p.owners = p.owners.map(([pid, tid, comm, thread, container]) => ({pid, tid, comm: strings[comm],
		thread: strings[thread], container: strings[container] || HOST}));
	p.frames = dataFrames(strings, p.frames, r);
	p.tree = dataNodes(p.nodes, r);
	p.sides = p.sides.map((side) => dataRows(side, p.period, r));
	return p;
}

function dataDecode(bytes) {
	const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
	const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
	if (head.v !== 2)
		throw new Error('the data has an unknown version');
	const r = dataReader(bytes, 4 + size);
	for (const p of head.profiles)
		dataProfile(head, p, r);
	return head;
}
