// SPDX-License-Identifier: Apache-2.0
// tables: the verb of each tab, its columns, and the effect of selecting a row. No DOM.

const tablesCpu = (spark) => [
	{key: 'cpu', title: 'CPU', kind: 'num', value: (r) => r.cpu_ns, text: (r) => `${wordsCores(r.cpu_cores || 0)} cores`, bar: (r) => r.share || 0, keep: true},
	{key: 'share', title: 'Share', kind: 'num', value: (r) => r.share, text: (r) => wordsShare(r.share || 0), keep: true},
	{key: 'spark', title: 'Over time', kind: 'over', spark},
];
// The initial tab: containers, if there are any.
const tablesFirst = (timeline) => (timeline.groups.some((g) => g.who_is === 'container') ? 'containers' : 'processes');
const tablesBytes = (v) => (v ? formatBytes(v) : '');
const tablesTime = (v) => (v ? formatTime(v) : '');

const TABLES = {
	containers: {
		verb: 'containers', query: '@containers', sort: '-cpu', params: {number: 1000},
		columns: (sparks) => [
			{key: 'name', title: 'Container', value: (r) => r.container, text: (r) => (r.container === HOST ? 'not in a container' : formatSeen(r.container)), pick: true},
			...tablesCpu((r) => sparks && sparks.of.get(`${r.container === HOST ? 'host' : 'container'}\n${r.container}`)),
			{key: 'processes', title: 'Processes', kind: 'num', value: (r) => r.processes},
			{key: 'top', title: 'Top command', value: (r) => r.top_comm},
			{key: 'fn', title: 'Hottest function', kind: 'fn', value: (r) => r.top_function},
			{key: 'mem', title: 'Memory', kind: 'num', value: (r) => r.mem_held_bytes ?? r.mem_bytes, text: (r) => tablesBytes(r.mem_bytes)},
			{key: 'net', title: 'Net', kind: 'num', value: (r) => (r.rx_bytes || 0) + (r.tx_bytes || 0), text: (r) => tablesBytes((r.rx_bytes || 0) + (r.tx_bytes || 0))},
			{key: 'restarts', title: 'Restarts', kind: 'num', value: (r) => r.restarts},
			{key: 'oom', title: 'OOM kills', kind: 'num', value: (r) => r.oom},
			{key: 'throttled', title: 'Throttled', kind: 'num', value: (r) => r.throttled_ns, text: (r) => tablesTime(r.throttled_ns)},
			{key: 'image', title: 'Image', kind: 'mod', value: (r) => r.image},
		],
		who: (r) => (r.container === HOST ? {} : {container: r.container}),
	},
	processes: {
		verb: 'ps', query: '@who', sort: '-cpu', params: {number: 2000},
		columns: (sparks) => [
			{key: 'name', title: 'Process', value: (r) => r.comm, text: (r) => `${formatSeen(r.comm)} (${r.pid})`, pick: true},
			{key: 'container', title: 'Container', value: (r) => r.container},
			...tablesCpu((r) => sparks && (sparks.of.get(`process\n${r.comm} (${r.pid})`) || (!r.container && sparks.of.get(`command\n${r.comm}`)))),
			{key: 'fn', title: 'Hottest function', kind: 'fn', value: (r) => r.top_function},
			{key: 'offcpu', title: 'Waited', kind: 'num', value: (r) => r.offcpu_ns, text: (r) => tablesTime(r.offcpu_ns)},
			{key: 'mem', title: 'Memory', kind: 'num', value: (r) => r.mem_held_bytes ?? r.mem_bytes, text: (r) => tablesBytes(r.mem_bytes)},
			{key: 'net', title: 'Net', kind: 'num', value: (r) => (r.rx_bytes || 0) + (r.tx_bytes || 0), text: (r) => tablesBytes((r.rx_bytes || 0) + (r.tx_bytes || 0))},
			{key: 'inuse', title: 'Heap', kind: 'num', value: (r) => r.inuse_bytes, text: (r) => tablesBytes(r.inuse_bytes)},
			{key: 'user', title: 'User', value: (r) => r.user},
			{key: 'unit', title: 'Unit', value: (r) => r.unit},
			{key: 'lang', title: 'Language', value: (r) => r.lang},
			{key: 'ended', title: 'Ended', value: (r) => r.ended_ns, text: (r) => (r.ended_ns ? `${wordsClock(r.ended_ns)} ${r.how || ''}` : '')},
			{key: 'args', title: 'Command line', kind: 'mod', value: (r) => r.args},
		],
		who: (r) => ({comm: r.comm, pid: String(r.pid)}),
	},
	functions: {
		verb: 'stacks', query: '@hottest', sort: '-self', narrow: true, typed: true, params: {number: 500},
		columns: () => [
			{key: 'name', title: 'Function', kind: 'fn', value: (r) => r.function, pick: true},
			{key: 'self', title: 'Self', kind: 'num', value: (r) => (r.self_ns === undefined ? r.self_value : r.self_ns), text: (r) => tablesAmount(r, 'self'), keep: true},
			{key: 'total', title: 'Total', kind: 'num', value: (r) => (r.total_ns === undefined ? r.total_value : r.total_ns), text: (r) => tablesAmount(r, 'total'), keep: true},
			{key: 'module', title: 'Module', kind: 'mod', value: (r) => [r.module, r.file].filter(Boolean).join(' \u00b7 ')},
		],
	},
	waits: {
		verb: 'waits', query: '@waiting', sort: '-total', narrow: true, params: {number: 500},
		columns: () => [
			{key: 'name', title: 'Who', value: (r) => r.comm || r.container, text: (r) => `${formatSeen(r.comm || r.container || '')}${r.pid ? ` (${r.pid})` : ''}`, pick: true},
			{key: 'container', title: 'Container', value: (r) => r.container},
			{key: 'reason', title: 'Waited for', value: (r) => r.reason, keep: true},
			{key: 'total', title: 'Time', kind: 'num', value: (r) => r.total_ns, text: (r) => tablesTime(r.total_ns), keep: true},
			{key: 'count', title: 'Times', kind: 'num', value: (r) => r.count, text: (r) => formatCount(r.count)},
			{key: 'p95', title: 'p95', kind: 'num', value: (r) => r.p95_ns, text: (r) => tablesTime(r.p95_ns)},
			{key: 'max', title: 'Longest', kind: 'num', value: (r) => r.max_ns, text: (r) => tablesTime(r.max_ns)},
			{key: 'object', title: 'Object', kind: 'mod', value: (r) => r.object},
			{key: 'fn', title: 'In', kind: 'fn', value: (r) => r.function},
			{key: 'by', title: 'Ended by', value: (r) => r.by_thread},
		],
		who: (r) => ({container: r.container || '', comm: r.comm || '', pid: r.pid ? String(r.pid) : ''}),
	},
	changes: {
		verb: 'explain', sort: '', narrow: true, params: {number: 20},
		// statements, then events, and new connections
		rows: (d) => [...d.rows, ...(d.incidents || []).map((x) => ({text: x.text, about: 'container', name: x.container})),
			...(d.happened || []).map((x) => ({text: x.text, since_ns: x.time_ns})),
			...(d.new_connections || []).map((x) => ({text: `New: ${x.text}`, since_ns: x.since_ns, about: x.from.kind, name: x.from.name}))],
		columns: () => [
			{key: 'text', title: 'What changed since the time before', value: (r) => r.text, pick: true},
			{key: 'since', title: 'Since', value: (r) => r.since_ns, text: (r) => (r.since_ns ? wordsClock(r.since_ns) : '')},
			{key: 'cause', title: 'Because', value: (r) => (r.causes || []).map((c) => `${c.what} ${formatSeen(c.name || '')}`).join('; ')},
			{key: 'q', title: 'By chance', kind: 'num', value: (r) => r.q, text: (r) => (r.q === null || r.q === undefined ? '' : r.q < 1e-4 ? '< 0.01 %' : wordsShare(r.q))},
		],
		who: (r) => (r.about === 'container' ? {container: r.name} : r.about === 'command' || r.about === 'process' ? {comm: r.name} : {}),
	},
};

// --- any other verb ---

// Verbs shown elsewhere on the page, or without a table.
const TABLES_ELSEWHERE = ['timeline', 'flame', 'diff', 'map', 'sql', 'status', 'help', 'version', ...Object.values(TABLES).map((t) => t.verb)];
const TABLES_DEEP = 2, TABLES_FIRST = ['text', 'function', 'operation', 'comm', 'who comm', 'name']; // columns that come first, if present

// A readable value, by its key: durations, times, bytes, shares.
function tablesSay(key, v) {
	if (v === null || v === undefined)
		return '';
	if (Array.isArray(v))
		return v.map((x) => tablesSay('', x)).join(', ');
	if (typeof v === 'object')
		return Object.entries(v).filter(([, x]) => x !== null).map(([k, x]) => `${k} ${tablesSay(k, x)}`).join(', ');
	if (typeof v === 'boolean')
		return v ? 'yes' : '';
	if (typeof v !== 'number')
		return formatSeen(String(v));
	if (/_ns$/.test(key))
		return v > 1e17 ? wordsClock(v, Date.now() * 1e6) : formatTime(v);
	if (/_us$/.test(key))
		return v ? formatTime(v * 1000) : '';
	if (/bytes/.test(key))
		return formatBytes(v) + (/per_s$/.test(key) ? '/s' : '');
	if (/(^| )(pid|tid|port)$/.test(key))
		return String(v);
	return /share$/.test(key) ? wordsShare(v) : Number.isInteger(v) ? formatCount(v) : String(Number(v.toPrecision(4)));
}

// {who: {comm}} becomes "who comm"; a time given in two forms appears once; the grid omits columns that are null or 0 in all rows.
function tablesFlat(row, before = '', deep = 0) {
	const out = {};
	for (const [k, v] of Object.entries(row)) {
		if (typeof row[k + '_ns'] === 'number' && typeof v === 'string')
			continue;
		if (v && typeof v === 'object' && !Array.isArray(v) && deep < TABLES_DEEP)
			Object.assign(out, tablesFlat(v, `${before}${k} `, deep + 1));
		else
			out[before + k] = v;
	}
	return out;
}

// about: the verb's entry in `sonde help --json`
function tablesOfVerb(about) {
	const has = (part, name) => about[part].some((o) => o.name === name);
	return {
		verb: about.verb, sort: '', flat: true, narrow: about.filters.length > 0, ranged: about.range.length > 0, at: has('options', 'at'),
		params: has('options', 'number') ? {number: 500} : {},
		columns(sparks, rows) {
			const said = (k) => rows.some((r) => typeof r[k] === 'string' && r[k]), first = [...TABLES_FIRST, ...Object.keys(rows[0] || {})].find(said);
			const keys = [...new Set(rows.slice(0, 200).flatMap(Object.keys))], number = (k) => rows.every((r) => r[k] === null || r[k] === undefined || typeof r[k] === 'number');
			return [first, ...keys.filter((k) => k !== first)].filter(Boolean).map((k) => ({key: k, title: k[0].toUpperCase() + k.slice(1).replace(/_(ns|us)$/, '').replaceAll('_', ' '),
				kind: number(k) ? 'num' : /^(command|evidence|detail|args)$/.test(k) ? 'mod' : 'text', value: (r) => r[k], text: (r) => tablesSay(k, r[k]), pick: k === first}));
		},
		who: (r) => ({container: r.container || r['who container'] || '', comm: r.comm || r['who comm'] || '', pid: r.pid || r['who pid'] ? String(r.pid || r['who pid']) : ''}),
	};
}

function tablesAmount(r, of) {
	if (r[of + '_cores'] !== undefined)
		return `${wordsCores(r[of + '_cores'] || 0)} cores`;
	const v = r[`${of}_value`] === undefined ? r[of + '_ns'] : r[`${of}_value`];
	return r.unit === 'bytes' ? formatBytes(v || 0) : r.unit && r.unit !== 'ns' ? formatCount(v || 0) : formatTime(v || 0);
}
