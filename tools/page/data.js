// SPDX-License-Identifier: Apache-2.0
// data: from the packed text in the page to typed arrays. The format is specified in tools/flame_pack.h. No DOM here.

// base64 of a zlib stream -> bytes.
async function dataUnpack(text) {
	const raw = atob(text.trim());
	const packed = new Uint8Array(raw.length);
	for (let i = 0; i < raw.length; i++)
		packed[i] = raw.charCodeAt(i);
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Reads varints; numbers may be larger than 32 bits, so no shifts.
function dataReader(bytes, at) {
	return {
		uint() {
			let v = 0, unit = 1, b;
			do {
				if (at >= bytes.length)
					throw new Error('the data ends early');
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

function dataFrames(head, r) {
	const n = head.frames, u = r.uint;
	const text = () => head.strings[r.uint()];
	const f = {
		n,
		name: r.column(n, new Array(n), text),
		module: r.column(n, new Array(n), text),
		file: r.column(n, new Array(n), text),
		line: r.column(n, new Uint32Array(n), u),
		flags: r.column(n, new Uint8Array(n), u),
	};
	f.origin = f.flags.map((v) => v & 7);
	f.inlined = (i) => (f.flags[i] & 16) !== 0;
	return f;
}

// Nodes come in preorder: node i's subtree is [i, end[i]).
function dataNodes(head, r) {
	const n = head.nodes;
	const t = {
		n, frame: new Uint32Array(n), depth: new Uint16Array(n), parent: new Uint32Array(n), end: new Uint32Array(n),
		self: new Float64Array(n), total: new Float64Array(n), samples: new Float64Array(n),
		totalSamples: new Float64Array(n), x: new Float64Array(n), maxDepth: 0,
	};
	let depth = 0, seen = -1;
	r.column(n, t.depth, () => (depth += r.int()));
	r.column(n, t.frame, () => {
		const back = r.uint();
		return back ? seen + 1 - back : ++seen;
	});
	r.column(n, t.samples, r.uint);
	r.column(n, t.self, (i) => t.samples[i] * head.period_ns + r.int());
	dataLink(t);
	return t;
}

// Parents, ends, totals and left edges, all from the depths.
function dataLink(t) {
	const path = [];
	for (let i = 0; i < t.n; i++) {
		const d = t.depth[i];
		for (let k = d; k < path.length; k++)
			t.end[path[k]] = i;
		path.length = d;
		t.parent[i] = d ? path[d - 1] : 0;
		path.push(i);
		t.maxDepth = Math.max(t.maxDepth, d);
	}
	for (const i of path)
		t.end[i] = t.n;
	for (let i = t.n - 1; i >= 0; i--) {
		t.total[i] += t.self[i];
		t.totalSamples[i] += t.samples[i];
		if (i) {
			t.total[t.parent[i]] += t.total[i];
			t.totalSamples[t.parent[i]] += t.totalSamples[i];
		}
	}
	const next = new Float64Array(t.n);
	for (let i = 1; i < t.n; i++) {
		const p = t.parent[i];
		t.x[i] = next[p];
		next[i] = t.x[i];
		next[p] += t.total[i];
	}
}

function dataDecode(bytes) {
	const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
	const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
	if (head.v !== 1)
		throw new Error('data of an unknown version');
	const r = dataReader(bytes, 4 + size);
	return {head, frames: dataFrames(head, r), tree: dataNodes(head, r)};
}
