// SPDX-License-Identifier: Apache-2.0
// profile: converts the answer of `flame --json --group process` to the profile that tools/page draws (data.js has it from a report): nodes, owners, and a
// row for each node with self time. Two answers are two sides, A before and B after. No DOM.

const PROFILE_ORIGIN = {native: 0, kernel: 1, go: 2, jit: 3, group: GROUP, unknown: 5, off: 6};

// "nginx (812)" and ps's rows -> which process that is.
function profileOwner(name, ps) {
	const found = /^([^]*) \((\d+)\)$/.exec(name), comm = found ? found[1] : name, pid = found ? Number(found[2]) : 0;
	const all = (ps || []).filter((r) => r.pid === pid), one = all.find((r) => r.comm === comm) || all[0];
	return {pid, tid: pid, comm, thread: comm, container: one && one.container || HOST};
}

// The statistics of `diff --json` in the form of diff.js.
function profileStats(looks, stats) {
	const none = {tested: false, sure: false, q: 1, least: 0}, nothing = {self: none, total: none, sure: false, since: 0, callers: []};
	const one = (x) => ({tested: x.tested, sure: x.significant, q: x.q === null ? 1 : x.q, least: x.detectable || 0}), at = new Map();
	for (const r of stats ? stats.rows : [])
		at.set(`${r.function}\n${r.module || ''}`, {self: one(r.self), total: one(r.total), sure: r.significant, since: (r.since_ns || 0) / 1e9,
			callers: [...r.new_callers.map((c) => ({name: c.function, gone: false})), ...r.gone_callers.map((c) => ({name: c.function, gone: true}))]});
	return looks.fnName.map((name, fn) => at.get(`${name}\n${looks.fnModule[fn]}`) || nothing);
}

function profileMake(answers, ps) {
	const last = answers[answers.length - 1], cpu = last.type === 'cpu' && last.unit === 'ns', n = answers.reduce((v, a) => v + a.rows.length, 0) + 1;
	const frames = {n: 0, name: ['all'], module: [''], file: [''], line: new Uint32Array(n), flags: new Uint8Array(n)};
	const tree = {n: 1, frame: new Uint32Array(n), parent: new Uint32Array(n)}, owners = [], sides = [];
	const amount = (r) => (cpu ? r.self_ns : r.self_value), count = (r) => (cpu ? r.self_samples : r.self_n);
	frames.flags[0] = GROUP;
	for (const a of answers) {
		const place = new Uint32Array(a.rows.length), owner = new Int32Array(a.rows.length).fill(-1), counted = [];
		a.rows.forEach((r, i) => {
			if (!i)
				return;
			if (r.origin === 'group') { // processes become rows of the picture again, below their containers
				owner[i] = owners.push(profileOwner(r.name, ps)) - 1;
				place[i] = 0;
			} else {
				owner[i] = owner[r.parent] >= 0 ? owner[r.parent] : owners.push({pid: 0, tid: 0, comm: '', thread: '', container: HOST}) - 1;
				place[i] = tree.n++;
				tree.parent[place[i]] = place[r.parent];
				tree.frame[place[i]] = place[i];
				frames.name[place[i]] = r.name;
				frames.module[place[i]] = r.module || '';
				frames.file[place[i]] = r.file || '';
				frames.line[place[i]] = r.line || 0;
				frames.flags[place[i]] = (PROFILE_ORIGIN[r.origin] === undefined ? 5 : PROFILE_ORIGIN[r.origin]) | (r.inlined ? 16 : 0);
			}
			if (place[i] && (amount(r) || count(r)))
				counted.push(i);
		});
		const rows = {n: counted.length, node: Uint32Array.from(counted, (i) => place[i]), owner: Uint32Array.from(counted, (i) => owner[i]),
			slot: new Uint16Array(counted.length), count: Float64Array.from(counted, (i) => count(a.rows[i])),
			value: Float64Array.from(counted, (i) => amount(a.rows[i]))};
		sides.push(rows);
	}
	frames.n = tree.n;
	return {type: last.type, value_unit: last.unit, counted: last.counted, cumulative: last.cumulative, period: 0, slots: 1,
		recorded_ns: last.recorded_ns || (last.to_ns - last.from_ns), frames, tree, owners, sides};
}

// {profile, looks}: input for build.js. stats: the answer of diff for two answers; null: none.
function profileOf(answers, ps, stats) {
	const p = profileMake(answers, ps), two = answers.length > 1;
	if (two) {
		const whole = (a) => Math.max(p.value_unit === 'ns' ? a.recorded_ns : p.cumulative ? a.recorded_ns / 1e9 : 1, 1e-9);
		p.diff = {unit: stats ? stats.unit : p.value_unit === 'ns' ? (p.type === 'cpu' ? 'cores' : 'seconds per second') : p.value_unit, whole: answers.map(whole), of: [],
			all_sure: Boolean(stats && stats.all && stats.all.significant)};
		p.scale = p.diff.whole[1] / p.diff.whole[0];
	}
	const looks = looksInit([p]);
	buildGroups(p, looks);
	buildIdle(p, looks);
	buildStart(p, looks);
	if (two)
		p.diff.of = profileStats(looks, stats);
	return {profile: p, looks};
}
