// SPDX-License-Identifier: Apache-2.0
// requests: operations with their rate, errors and latencies as small histograms, one operation in detail, and single requests; the time of such requests.

const REQUESTS_HALF = 4; // steps of a histogram in one bar: half of a power of two

// The lower end of a step in ns, and its width (schema/store/model/hist.h).
const requestsLow = (step) => (step < 8 ? step : (8 + (step & 7)) * 2 ** ((step >> 3) - 1));
const requestsWide = (step) => (step < 8 ? 1 : 2 ** ((step >> 3) - 1));

// [first step, how many, how many, ...] of several: one list
function requestsSpread(lists) {
	const all = lists.filter((x) => Array.isArray(x) && x.length > 1), from = Math.min(...all.map((x) => x[0])), to = Math.max(...all.map((x) => x[0] + x.length - 1));
	if (!all.length)
		return null;
	const out = {from, n: new Array(to - from).fill(0)};
	for (const [k, ...counts] of all)
		counts.forEach((c, i) => { out.n[k - from + i] += c; });
	return out;
}

function requestsQuantile(spread, q) {
	const all = spread ? spread.n.reduce((a, b) => a + b, 0) : 0;
	let below = 0;
	for (let i = 0; all && i < spread.n.length; i++) {
		below += spread.n[i];
		if (below >= q * all)
			return requestsLow(spread.from + i) + requestsWide(spread.from + i) / 2;
	}
	return null;
}

// One row for what differs in status only. An operation that a server of this host answered is its server's row; `both`: its clients' rows too.
function requestsRows(rows, both) {
	const by = new Map(), server = new Set(rows.filter((r) => r.side === 'server').map((r) => `${r.service}\n${r.operation}`));
	for (const r of rows) {
		if (!both && r.side === 'client' && server.has(`${r.service}\n${r.operation}`))
			continue;
		const key = [r.side, r.container, r.comm, r.pid, r.protocol, r.service, r.operation].join('\n'), x = by.get(key);
		if (x)
			x.parts.push(r);
		else
			by.set(key, {...r, parts: [r]});
	}
	const sum = (x, k) => x.parts.reduce((v, r) => v + (r[k] || 0), 0);
	return [...by.values()].map((x) => {
		const spread = requestsSpread(x.parts.map((r) => r.latency && r.latency.hist)), one = x.parts.length === 1 && x.latency;
		const total = x.parts.reduce((v, r) => v + (r.latency ? r.latency.mean_ns * (r.requests - (r.blind || 0)) : 0), 0), requests = sum(x, 'requests');
		return {...x, requests, errors: sum(x, 'errors'), per_second: sum(x, 'per_second'), spread, total_ns: total, max_ns: Math.max(0, ...x.parts.map((r) => (r.latency ? r.latency.max_ns : 0))),
			p50_ns: one ? one.p50_ns : requestsQuantile(spread, 0.5), p95_ns: one ? one.p95_ns : requestsQuantile(spread, 0.95), p99_ns: one ? one.p99_ns : requestsQuantile(spread, 0.99),
			statuses: x.parts.filter((r) => r.status).map((r) => `${r.status}: ${formatCount(r.requests)}`).join(', ')};
	});
}

// Bars of half a power of two each, from `low` to `high` steps, with lines at p50, p95 and p99.
function requestsHist(r, low, high, wide = 120, tall = 26) {
	if (!r.spread)
		return null;
	const first = Math.floor(low / REQUESTS_HALF), bars = new Array(Math.max(Math.ceil((high + 1) / REQUESTS_HALF) - first, 1)).fill(0), step = wide / bars.length;
	r.spread.n.forEach((c, i) => { bars[Math.floor((r.spread.from + i) / REQUESTS_HALF) - first] += c; });
	const top = Math.max(...bars), say = `p50 ${formatTime(r.p50_ns)}, p95 ${formatTime(r.p95_ns)}, p99 ${formatTime(r.p99_ns)}`;
	const svg = domSvg('svg', {viewBox: `0 0 ${wide} ${tall}`, class: 'hist', role: 'img', 'aria-label': say}, domSvg('title', {}, say));
	bars.forEach((c, i) => {
		const y = c ? Math.max(2, Math.sqrt(c / top) * (tall - 2)) : 0; // the square root: rare slow ones are seen too
		if (c)
			svg.append(domSvg('rect', {x: (i * step + 0.5).toFixed(1), y: (tall - y).toFixed(1), width: Math.max(step - 1, 0.5).toFixed(1), height: y.toFixed(1)}));
	});
	for (const [name, v] of [['p50', r.p50_ns], ['p95', r.p95_ns], ['p99', r.p99_ns]]) {
		const at = v >= 8 ? 8 * (Math.floor(Math.log2(v)) - 2) + (v / 2 ** Math.floor(Math.log2(v)) - 1) * 8 : v, x = (at / REQUESTS_HALF - first) * step;
		svg.append(domSvg('path', {class: name, d: `M${Math.min(wide - 0.5, Math.max(0.5, x)).toFixed(1)} 0V${tall}`}));
	}
	return svg;
}

const requestsWho = (r) => `${formatSeen(r.container ? `${r.container}${r.comm ? ` (${r.comm})` : ''}` : r.comm || '')}`;
const requestsKey = (r) => [r.side, r.service, r.operation].join(' ');

// on: {why(row), pick(row)}
function requestsColumns(rows, on) {
	const all = rows.filter((r) => r.spread), low = Math.min(...all.map((r) => r.spread.from), 1e9), high = Math.max(...all.map((r) => r.spread.from + r.spread.n.length - 1), 0);
	return [
		{key: 'operation', title: 'Operation', kind: 'fn', value: (r) => r.operation, pick: true, keep: true},
		{key: 'who', title: 'Answered by', value: (r) => `${r.side === 'client' ? 'asked by ' : ''}${requestsWho(r)}`},
		{key: 'rate', title: 'Each second', kind: 'num', value: (r) => r.per_second, text: (r) => (r.per_second ? `${Number(r.per_second.toPrecision(3))}/s` : formatCount(r.requests)), keep: true},
		{key: 'errors', title: 'Failed', kind: 'num', value: (r) => r.errors, text: (r) => (r.errors ? `${formatCount(r.errors)}, ${wordsShare(r.errors / r.requests)}` : ''), bar: (r) => r.errors / r.requests, bad: true},
		{key: 'hist', title: 'How long', draw: (r) => requestsHist(r, low, high)},
		{key: 'p50', title: 'p50', kind: 'num', value: (r) => r.p50_ns, text: (r) => tablesTime(r.p50_ns)},
		{key: 'p95', title: 'p95', kind: 'num', value: (r) => r.p95_ns, text: (r) => tablesTime(r.p95_ns), keep: true},
		{key: 'p99', title: 'p99', kind: 'num', value: (r) => r.p99_ns, text: (r) => tablesTime(r.p99_ns)},
		{key: 'total', title: 'Together', kind: 'num', value: (r) => r.total_ns, text: (r) => tablesTime(r.total_ns)},
		{key: 'why', title: '', draw: (r) => domButton('Why?', () => on.why(r), 'why', `Why was ${formatSeen(r.operation)} slow?`)},
		{key: 'service', title: 'Service', kind: 'mod', value: (r) => `${r.protocol} ${r.service}`},
	];
}

const REQUESTS_SINGLE = [
	{key: 'operation', title: 'Request', kind: 'fn', value: (r) => r.operation, pick: true, keep: true},
	{key: 'when', title: 'When', value: (r) => r.time, text: (r) => wordsClock(r.time * 1e9, Date.now() * 1e6), keep: true},
	{key: 'whole', title: 'Took', kind: 'num', value: (r) => r.total_us, text: (r) => (r.total_us === null ? 'no answer' : formatTime(r.total_us * 1000)), keep: true},
	{key: 'first', title: 'First byte', kind: 'num', value: (r) => r.first_us, text: (r) => (r.first_us ? formatTime(r.first_us * 1000) : '')},
	{key: 'who', title: 'Seen at', value: (r) => `${requestsWho(r)}${r.side === 'client' ? ', as client' : ''}`},
	{key: 'status', title: 'Status', value: (r) => r.status},
	{key: 'result', title: 'Result', value: (r) => (r.result === 'ok' ? '' : r.result)},
	{key: 'service', title: 'Service', kind: 'mod', value: (r) => `${r.protocol} ${r.service}`},
];

const requestsLiteral = (text) => `'${String(text).replaceAll("'", "''")}'`;
// What an operation did over time; or all operations that `container` answered.
const requestsOverTime = (side, service, operation, container) => `select ts as time, sum(requests) requests, sum(errors) errors, sum(total_ns) total_ns, max(seconds) seconds
from win_requests where side = ${requestsLiteral(side)}${service ? ` and service = ${requestsLiteral(service)}` : ''}${operation ? ` and operation = ${requestsLiteral(operation)}` : ''}${
	container ? ` and container = ${requestsLiteral(container)}` : ''}
group by 1 order by 1`;

// The part of the range in which requests took most: {from_ns, to_ns}; null: none sticks out.
function requestsWorst(rows) {
	const cost = rows.map((r) => (r.requests ? (r.total_ns / r.requests + 1e9 * r.errors / r.requests) : 0)), sorted = cost.filter(Boolean).sort((a, b) => a - b), usual = sorted[sorted.length >> 1];
	let at = cost.indexOf(Math.max(...cost)), end = at;
	if (!sorted.length || cost[at] < 1.5 * usual)
		return null;
	const edge = usual + (cost[at] - usual) / 3;
	while (at > 0 && cost[at - 1] > edge)
		at--;
	while (end + 1 < cost.length && cost[end + 1] > edge)
		end++;
	return {from_ns: rows[at].time * 1e9, to_ns: (rows[end].time + Math.max(rows[end].seconds || 10, rows[end].time === rows[at].time ? 20 : 0)) * 1e9};
}

function requestsChart(title, rows, value, say) {
	const values = rows.map(value), most = Math.max(0, ...values.filter((v) => v !== null));
	return domMake('figure', {}, domSaid('figcaption', `${title}, at most ${say(most)}`), domLine(values, `${title} over time, at most ${say(most)}`));
}

// The operation in detail. series: the answer of requestsOverTime, or null while it is asked.
function requestsDetail(box, r, series, on) {
	const share = r.errors / Math.max(r.requests, 1), facts = [
		['answered by', requestsWho(r)], ['asked by', r.side === 'client' ? requestsWho(r) : null], ['service', `${r.protocol} ${r.service}`],
		['requests', `${formatCount(r.requests)}, ${Number((r.per_second || 0).toPrecision(3))} each second`], ['failed', r.errors ? `${formatCount(r.errors)}, ${wordsShare(share)}` : 'none'],
		['answers', r.statuses], ['took', r.p50_ns === null ? null : `p50 ${formatTime(r.p50_ns)}, p95 ${formatTime(r.p95_ns)}, p99 ${formatTime(r.p99_ns)}, at most ${formatTime(r.max_ns)}`],
		['to the first byte', r.parts.length === 1 && r.first_byte ? `p50 ${formatTime(r.first_byte.p50_ns)}, p99 ${formatTime(r.first_byte.p99_ns)}` : null],
		['not yet read', r.parts.length === 1 && r.queue ? `p50 ${formatTime(r.queue.p50_ns)}, p99 ${formatTime(r.queue.p99_ns)} in the socket's buffer` : null]]
		.filter(([k, v]) => v && !(k === 'answered by' && r.side === 'client'));
	const rows = series && series.ok ? series.data.rows : [];
	box.replaceChildren(
		domMake('h3', {}, 'Operation ', domButton('Close', on.close, 'quiet')),
		domSaid('pre', r.operation, 'whole'),
		domMake('div', {className: 'line'}, domButton('Why was it slow?', () => on.why(r), 'why'), domButton('Where its time goes', () => on.time(r)), domButton('The slowest one, with all that it asked', () => on.trace(r)), domButton('Its flame graph', () => on.flame(r))),
		domMake('div', {className: 'columns-2'}, domMake('dl', {className: 'facts'}, ...facts.flatMap(([k, v]) => [domSaid('dt', k), domSaid('dd', v)])),
			domMake('figure', {className: 'spread'}, domSaid('figcaption', r.spread ? `How long: ${formatTime(requestsLow(r.spread.from))} to ${formatTime(r.max_ns)}, on a logarithmic scale; lines at p50, p95, p99` : 'How long: none was answered'),
				r.spread ? requestsHist(r, r.spread.from - REQUESTS_HALF, r.spread.from + r.spread.n.length + REQUESTS_HALF, 360, 80) : null)),
		!series ? domSaid('p', 'Over time: asked \u2026', 'half') : !series.ok ? domSaid('p', `Over time: ${series.error}`, 'note') : domMake('div', {className: 'charts'},
			requestsChart('Requests each second', rows, (x) => x.requests / Math.max(x.seconds || 1, 1), (v) => `${Number(v.toPrecision(3))}/s`),
			requestsChart('Failed each second', rows, (x) => x.errors / Math.max(x.seconds || 1, 1), (v) => `${Number(v.toPrecision(3))}/s`),
			requestsChart('Took on average', rows, (x) => (x.requests ? x.total_ns / x.requests : null), formatTime)));
}
