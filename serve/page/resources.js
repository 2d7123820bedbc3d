// SPDX-License-Identifier: Apache-2.0
// resources: memory and disks by container, and by line, file system and folder where that is known.

const RESOURCES_SPACE = 'select mount, fstype, size, available, inodes, inodes_free, max(ts) ts from win_filesystem_stats where size > 0 group by mount order by 1.0 * available / size limit 12';

// timeline --of mem: each one's first and last value, and how much it grew; with the limits and processes of `containers`.
function resourcesMemory(d, containers) {
	const of = new Map((containers && containers.ok ? containers.data.rows : []).map((r) => [r.container, r])), hours = (d.to_ns - d.from_ns) / 36e11;
	return d.rows.map((r) => {
		const v = r.by_column.map((x, i) => [i, x]).filter(([, x]) => x !== null), c = of.get(r.who), part = v.length ? (v[v.length - 1][0] - v[0][0] + 1) / r.by_column.length : 0;
		const first = v.length ? v[0][1] : null, last = v.length ? v[v.length - 1][1] : null;
		return {who: r.who, host: r.who[0] === '[', values: r.by_column, now: last, most: Math.max(0, ...v.map(([, x]) => x)), growth: last === null ? null : last - first, rate: last === null || !part ? null : (last - first) / (hours * part),
			limit: c ? c.mem_limit_bytes : null, top: c ? c.top_comm : '', oom: c ? c.oom : 0};
	});
}
const resourcesSigned = (v) => (!v ? '' : `${v < 0 ? '\u2212' : '+'}${formatBytes(Math.abs(v))}`);

// on: {why(container), lines(container)}
const resourcesMemoryColumns = (on) => [
	{key: 'who', title: 'Container', value: (r) => r.who, text: (r) => (r.host ? 'whole host' : formatSeen(r.who)), pick: true},
	{key: 'now', title: 'Holds', kind: 'num', value: (r) => r.now, text: (r) => tablesBytes(r.now), keep: true},
	{key: 'growth', title: 'Grew in this range', kind: 'num', value: (r) => (r.host ? null : r.growth), text: (r) => resourcesSigned(r.growth), keep: true},
	{key: 'rate', title: 'Each hour', kind: 'num', value: (r) => r.rate, text: (r) => resourcesSigned(r.rate)},
	{key: 'spark', title: 'Over time', kind: 'over', spark: (r) => r.values},
	{key: 'limit', title: 'Of its limit', kind: 'num', value: (r) => (r.limit ? r.now / r.limit : null), text: (r) => (r.limit ? `${wordsShare(r.now / r.limit)} of ${formatBytes(r.limit)}` : ''), bar: (r) => (r.limit ? r.now / r.limit : 0)},
	{key: 'left', title: 'Full in', kind: 'num', value: (r) => (r.limit && r.rate > 0 ? (r.limit - r.now) / r.rate : null), text: (r) => (r.limit && r.rate > 1 << 20 ? formatTime(Math.max(0, (r.limit - r.now) / r.rate) * 36e11) : '')},
	{key: 'oom', title: 'Killed', kind: 'num', value: (r) => r.oom || null},
	{key: 'top', title: 'Top command', value: (r) => r.top},
	{key: 'why', title: '', draw: (r) => (r.host ? null : domButton('Why?', () => on.why(r.who), 'why', `Why: ${formatSeen(r.who)}`))},
];

// Of lines that hold memory: how much each grew, where that is known; `growth`: the answer about growth, of which it has only what grew.
function resourcesHeld(rows, growth) {
	const of = (r) => [r.who, r.function, r.file, r.module, r.line].join('\n'), known = growth && growth.ok ? new Map(growth.data.rows.map((r) => [of(r), r])) : null;
	return rows.map((r) => {
		const g = known && known.get(of(r));
		return {...r, grown_bytes: g ? g.grown_bytes : known ? 0 : null, growth_bytes_per_s: g ? g.growth_bytes_per_s : null};
	});
}

// Why nothing is said of growth: what the command says, and what it suggests.
function resourcesNoGrowth(heap) {
	return domMake('p', {className: 'half'}, `Growth by line: ${heap.error || 'not known'}. `, heap.fix ? domSaid('code', heap.fix) : '');
}

function resourcesLines(heap) {
	if (!heap)
		return domSaid('p', 'By line: asked \u2026', 'half');
	if (!heap.ok)
		return resourcesNoGrowth(heap);
	const rows = heap.data.rows.slice(0, 12), most = Math.max(...rows.map((r) => r.grown_bytes || 0), 1);
	if (!rows.length)
		return domMake('p', {className: 'half'}, `By line: nothing holds more and more memory${heap.data.touched ? ' (shared memory is not in it)' : ''}. `, linkTo('What holds memory', {tab: 'heap'}));
	return domMake('div', {}, domSaid('p', 'By line, what grew most first:', 'half'), domMake('ol', {className: 'parts'}, ...rows.map((r) => domMake('li', {}, domBar((r.grown_bytes || 0) / most),
		domMake('span', {}, linkTo(`${formatSeen(r.function)}${r.file ? ` (${formatSeen(r.file)}${r.line ? ':' + r.line : ''})` : ''}`, {pic: '', type: heap.data.touched ? 'mem' : 'inuse', q: `^${r.function.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`}),
			` of ${formatSeen(r.who || r.module || '')}: ${resourcesSigned(r.grown_bytes || 0)} to ${formatBytes(r.inuse_bytes || 0)}${r.growth_bytes_per_s ? `, ${resourcesSigned(r.growth_bytes_per_s * 3600)} each hour` : ''}`)))));
}

// --- disks ---

function resourcesDisk(d, io) {
	const of = new Map((io && io.ok ? io.data.rows : []).map((r) => [r.who, r.by_column])), seconds = Math.max((d.to_ns - d.from_ns) / 1e9, 1);
	return d.rows.filter((r) => r.read_bytes || r.write_bytes).map((r) => ({...r, seconds, moved: r.read_bytes === null && r.write_bytes === null ? null : (r.read_bytes || 0) + (r.write_bytes || 0), values: of.get(r.container) || null}));
}
const resourcesDiskColumns = (on) => [
	{key: 'name', title: 'Container', value: (r) => r.container, text: (r) => (r.container === HOST ? 'not in a container' : formatSeen(r.container)), pick: true},
	{key: 'write', title: 'Written', kind: 'num', value: (r) => r.write_bytes, text: (r) => tablesBytes(r.write_bytes), keep: true},
	{key: 'read', title: 'Read', kind: 'num', value: (r) => r.read_bytes, text: (r) => tablesBytes(r.read_bytes), keep: true},
	{key: 'moved', title: 'Each second', kind: 'num', value: (r) => r.moved, text: (r) => (r.moved ? `${formatBytes(r.moved / r.seconds)}/s` : ''), keep: true},
	{key: 'spark', title: 'Over time', kind: 'over', spark: (r) => r.values},
	{key: 'top', title: 'Top command', value: (r) => r.top_comm},
	{key: 'why', title: '', draw: (r) => (r.container === HOST ? null : domButton('Why?', () => on.why(r.container), 'why', `Why: ${formatSeen(r.container)}`))},
];

function resourcesSpace(answer) {
	if (!answer)
		return domSaid('p', 'File systems: asked \u2026', 'half');
	if (!answer.ok || !answer.data.rows.length)
		return domMake('p', {className: 'half'}, 'File systems were not recorded in this range. ', domMake('code', {}, 'sudo sonde up host'));
	return domMake('div', {}, domSaid('p', 'File systems, the fullest first:', 'half'), domMake('ol', {className: 'parts'}, ...answer.data.rows.map((r) => {
		const used = 1 - r.available / r.size;
		return domMake('li', {className: used > 0.9 ? 'bad' : ''}, domBar(used), domSaid('span', `${r.mount}: ${wordsShare(used)} full, ${formatBytes(r.available)} of ${formatBytes(r.size)} left${r.inodes && r.inodes_free / r.inodes < 0.1 ? `, ${wordsShare(r.inodes_free / r.inodes)} of its inodes` : ''} (${r.fstype})`));
	})));
}

const RESOURCES_FILLS = {'file system': 'Free space went down by', container: 'Containers wrote', process: 'Processes wrote', folder: 'Folders that were written to', file: 'Files that were written to', deleted: 'Deleted files that are still open', found: 'What fills them'};
function resourcesFills(answer) {
	if (!answer)
		return domSaid('p', 'What fills them: asked \u2026', 'half');
	if (!answer.ok)
		return domSaid('p', `What fills them: ${answer.error}`, 'half');
	const kinds = [...new Set(answer.data.rows.map((r) => r.kind))].filter((k) => k !== 'container'), most = Math.max(...answer.data.rows.map((r) => r.bytes || 0), 1);
	if (!kinds.length)
		return domSaid('p', 'What fills them: nothing was written that fills a file system.', 'half');
	return domMake('div', {}, ...kinds.flatMap((k) => [domSaid('p', `${RESOURCES_FILLS[k] || k}:`, 'half'), domMake('ol', {className: 'parts'}, ...answer.data.rows.filter((r) => r.kind === k).slice(0, 8).map((r) =>
		domMake('li', {}, ...(r.bytes === null ? [] : [domBar(r.bytes / most)]), domSaid('span', `${r.name}: ${r.bytes === null ? '' : formatBytes(r.bytes) + ', '}${r.text}`))))]));
}
