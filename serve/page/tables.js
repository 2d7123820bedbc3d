// SPDX-License-Identifier: Apache-2.0
// tables: the views below the strip, by tab: the verb that is asked, what else is asked for it, the columns of its table or how it is drawn, and the effect of
// selecting a row. Each verb that the server answers has a view here, or another place on the page (TABLES_ELSEWHERE).

const tablesCpu = (spark) => [
	{key: 'cpu', title: 'CPU', kind: 'num', value: (r) => r.cpu_ns, text: (r) => `${wordsCores(r.cpu_cores || 0)} cores`, bar: (r) => r.share || 0, keep: true},
	{key: 'share', title: 'Share', kind: 'num', value: (r) => r.share, text: (r) => wordsShare(r.share || 0), keep: true},
	{key: 'spark', title: 'Over time', kind: 'over', spark},
];
// The initial tab: containers, if there are any.
const tablesFirst = (timeline) => (timeline.groups.some((g) => g.who_is === 'container') ? 'containers' : 'processes');
const tablesBytes = (v) => (v ? formatBytes(v) : '');
const tablesTime = (v) => (v ? formatTime(v) : '');

const tablesWhy = (name, on) => ({key: 'why', title: '', draw: (r) => (name(r) ? domButton('Why?', () => on.whyWho(r), 'why', `Why: ${formatSeen(name(r))}`) : null)});

// title: of the tab; also(place): further questions by name; rows(answer, also, place); columns(sparks, rows, on); draw(box, answer, also, place, on): instead of a
// table, or below it; none(place): what is said where there are no rows; needs: the family that records it
const TABLES = {
	containers: {
		verb: 'containers', needs: 'cpu', query: '@containers', sort: '-cpu', params: {number: 1000},
		columns: (sparks, rows, on) => [
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
			tablesWhy((r) => (r.container === HOST ? '' : r.container), on),
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
			{key: 'ended', title: 'Ended', value: (r) => r.ended_ns, text: (r) => (r.ended_ns ? `${wordsClock(r.ended_ns, Date.now() * 1e6)} ${r.how || ''}` : '')},
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
		verb: 'waits', query: '@waiting', sort: '-total', narrow: true, params: {number: 500}, rows: (d) => d.rows.filter((r) => !r.background),
		columns: () => [
			{key: 'name', title: 'Who', value: (r) => r.comm || r.container, text: (r) => `${formatSeen(r.comm || r.container || '')}${r.pid ? ` (${r.pid})` : ''}`, pick: true},
			{key: 'container', title: 'Container', value: (r) => r.container},
			{key: 'reason', title: 'Waited for', value: (r) => `${r.reason === 'run queue' ? 'a CPU' : r.reason}${r.partial ? ', not over' : ''}`, keep: true},
			{key: 'total', title: 'Time', kind: 'num', value: (r) => (r.partial ? -1 / Math.max(r.total_ns, 1) : r.total_ns), text: (r) => tablesTime(r.total_ns), keep: true}, // those not over last: most are of threads without work
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
		verb: 'explain', sort: '', narrow: true, params: {number: 20}, none: () => 'No sum differs by more than noise from the time before.',
		// statements, then events, and new connections
		rows: (d) => [...d.rows, ...(d.incidents || []).map((x) => ({text: x.text, about: 'container', name: x.container})),
			...(d.happened || []).map((x) => ({text: x.text, since_ns: x.time_ns})),
			...(d.new_connections || []).map((x) => ({text: `New: ${x.text}`, since_ns: x.since_ns, about: x.from.kind, name: x.from.name}))],
		columns: () => [
			{key: 'text', title: 'What changed since the time before', value: (r) => r.text, pick: true, whole: true},
			{key: 'since', title: 'Since', value: (r) => r.since_ns, text: (r) => (r.since_ns ? wordsClock(r.since_ns, Date.now() * 1e6) : '')},
			{key: 'cause', title: 'Because', value: (r) => (r.causes || []).map((c) => TABLES_CAUSES[c.what](formatSeen(c.name || ''))).join('; ')},
			{key: 'q', title: 'By chance', kind: 'num', value: (r) => r.q, text: (r) => (r.q === null || r.q === undefined ? '' : r.q < 1e-4 ? '< 0.01 %' : wordsShare(r.q))},
		],
		who: (r) => (r.about === 'container' ? {container: r.name} : r.about === 'command' || r.about === 'process' ? {comm: r.name} : {}),
	},
	requests: {
		verb: 'requests', sort: '-total', narrow: true, needs: 'l7',
		params: (p) => ({number: 500, slowest: p.how === 'slowest' || p.how === 'failed', failed: p.how === 'failed'}),
		also: (p) => (p.op && !p.how.match(/slowest|failed/) ? {series: ['sql', {...placeChosen(p), query: requestsOverTime(...tablesOperation(p.op))}]} : {}),
		rows: (d, also, p) => (p.how === 'slowest' || p.how === 'failed' ? d.rows : requestsRows(d.rows, p.how === 'both')),
		columns: (sparks, rows, on, p) => (p.how === 'slowest' || p.how === 'failed' ? REQUESTS_SINGLE : requestsColumns(rows, on)),
		draw(box, d, also, p, on) {
			const single = p.how === 'slowest' || p.how === 'failed', all = single ? [] : requestsRows(d.rows, true), r = p.op ? all.find((x) => requestsKey(x) === p.op) : null;
			const detail = domMake('section', {className: 'story', ariaLabel: 'Operation'});
			if (r)
				requestsDetail(detail, r, also.series, {...on, close: () => LINKS.change({op: ''}), time: () => LINKS.change({why: askQuery({...placeChosen(p), request: r.operation})}),
					trace: () => LINKS.change({tab: 'trace', id: '', request: r.operation}), flame: () => LINKS.change({request: r.operation, pic: '', type: 'cpu'})});
			box.replaceChildren(r ? detail : p.op && !single ? domSaid('p', `${p.op}: not asked in this range.`, 'note') : '');
		},
		ways: (p) => [domMake('div', {className: 'choice', role: 'group', ariaLabel: 'Which requests'}, ...[['', 'By operation'], ['both', 'With both ends'], ['slowest', 'Slowest ones'], ['failed', 'Failed ones']].map(([how, text]) => {
			const b = domButton(text, () => LINKS.change({how, op: '', sort: ''}));
			b.setAttribute('aria-pressed', p.how === how);
			return b;
		}))],
		pick: (r, p) => (p.how === 'slowest' || p.how === 'failed' ? {tab: 'trace', id: r.trace || '', request: r.operation} : {op: requestsKey(r) === p.op ? '' : requestsKey(r)}),
		who: () => ({}),
	},
	check: {
		verb: 'check', title: 'checks', ranged: false, params: () => ({all: true}), draw: (box, d, also, p, on) => troubleChecks(box, d, on),
	},
	events: {
		verb: 'events', title: 'restarts', narrow: true, needs: 'host', params: () => ({number: 200}), draw: (box, d, also, p, on) => troubleEvents(box, d, on),
	},
	memory: {
		verb: 'timeline', sort: '-growth', narrow: true, needs: 'host', params: () => ({of: 'mem', number: 200}),
		also: (p) => ({containers: ['containers', {...placeChosen(p), number: 1000}], heap: ['heap', {...placeChosen(p), ...placeWho(p), growth: true}]}),
		rows: (d, also) => resourcesMemory(d, also.containers), columns: (sparks, rows, on) => resourcesMemoryColumns({why: (container) => on.whyWho({container})}),
		draw: (box, d, also) => box.replaceChildren(resourcesLines(also.heap), domMake('p', {className: 'half'}, 'Who was killed for memory: ', linkTo('the kills, as stories', {tab: 'oom'}))),
		who: (r) => (r.host ? {} : {container: r.who}),
	},
	disk: {
		verb: 'containers', sort: '-moved', narrow: true, needs: 'host', params: () => ({sort: 'io', number: 1000}),
		also: (p) => ({io: ['timeline', {...placeChosen(p), of: 'io', number: 200}], space: ['sql', {...placeChosen(p), query: RESOURCES_SPACE}], fills: ['sql', {...placeChosen(p), query: '@fills'}]}),
		rows: (d, also) => resourcesDisk(d, also.io), columns: (sparks, rows, on) => resourcesDiskColumns({why: (container) => on.whyWho({container})}),
		draw: (box, d, also) => box.replaceChildren(resourcesSpace(also.space), resourcesFills(also.fills)),
		who: (r) => (r.container === HOST ? {} : {container: r.container}),
	},
	disks: {
		verb: 'disk', title: 'disks by request and file', narrow: true, needs: 'disk', more: true, params: disksParams,
		rows: (d, also, p) => disksRows(d, p), columns: (sparks, rows, on, p) => disksView(p).columns, ways: disksWays,
		who: (r) => ({container: r.container || '', comm: r.comm || '', pid: r.pid ? String(r.pid) : ''}),
	},
	logs: {
		verb: 'logs', narrow: true, needs: 'logs', more: true, params: logsParams, rows: (d, also, p) => logsRows(d, p), columns: (sparks, rows, on, p) => logsColumns(p), ways: logsWays, none: logsNone,
		draw: (box, d, also, p) => box.replaceChildren(logsSaid(d, p)),
		who: (r) => (r.container ? {container: r.container} : {}),
	},
	oom: {
		verb: 'oom', title: 'kills for memory', narrow: true, needs: 'host', more: true, params: () => ({number: 20}), draw: (box, d, also, p, on) => troubleOoms(box, d, on),
	},
	trace: {
		verb: 'trace', title: 'one request', narrow: true, needs: 'l7', more: true, params: (p) => (p.id ? {id: p.id} : {number: 20}),
		also: (p, d) => (d && d.rows.length ? {time: ['explain', {...placeChosen(p), request: tablesRoot(d, p).operation}]} : {}),
		draw: (box, d, also, p, on) => traceDraw(box, d.rows.length ? {...d, rows: tablesTrees(d, p)} : d, p.id, also.time || null, on),
	},
	net: {
		verb: 'net', title: 'connections', sort: '-bytes', narrow: true, needs: 'net', more: true, params: () => ({number: 500}),
		columns: () => [
			{key: 'who', title: 'Who', value: (r) => tablesEnd(r.who), pick: true},
			{key: 'side', title: 'Is', value: (r) => r.side},
			{key: 'other', title: 'With', value: (r) => (r.other && (r.other.container || r.other.comm) ? tablesEnd(r.other) : r.peer_name || r.peer), keep: true},
			{key: 'service', title: 'Service', value: (r) => `${r.protocol}${r.port ? ` ${r.port}` : ''}${r.quic ? ' QUIC' : ''}`, keep: true},
			{key: 'opened', title: 'Opened', kind: 'num', value: (r) => r.opened, text: (r) => formatCount(r.opened || 0)},
			{key: 'bytes', title: 'Bytes', kind: 'num', value: (r) => (r.tx_bytes || 0) + (r.rx_bytes || 0), text: (r) => `${formatBytes(r.tx_bytes || 0)} out, ${formatBytes(r.rx_bytes || 0)} in`, keep: true},
			{key: 'rtt', title: 'Round trip', kind: 'num', value: (r) => r.rtt_us, text: (r) => (r.rtt_us ? formatTime(r.rtt_us * 1000) : '')},
			{key: 'retrans', title: 'Sent again', kind: 'num', value: (r) => r.retrans},
			{key: 'trouble', title: 'Trouble', value: (r) => SERVICES_TROUBLE.filter((k) => r[k]).map((k) => `${formatCount(r[k])} ${k.replaceAll('_', ' ')}`).join(', ')},
		],
		who: (r) => ({container: r.who.container || '', comm: r.who.comm || '', pid: r.who.pid ? String(r.who.pid) : ''}),
	},
	heap: {
		verb: 'heap', title: 'memory by line', sort: '-inuse', narrow: true, needs: 'mem', more: true, params: () => ({number: 100}),
		also: (p) => ({growth: ['heap', {...placeChosen(p), ...placeWho(p), growth: true, number: 100}]}),
		rows: (d, also) => resourcesHeld(d.rows, also.growth),
		draw: (box, d, also) => box.replaceChildren(...(also.growth && !also.growth.ok ? [resourcesNoGrowth(also.growth)] : also.growth && !also.growth.data.rows.length ? [domSaid('p', 'Nothing holds more and more memory.', 'half')] : [])),
		columns: () => [
			{key: 'fn', title: 'Line', kind: 'fn', value: (r) => r.function, text: (r) => `${formatSeen(r.function)}${r.file ? ` (${formatSeen(r.file)}${r.line ? ':' + r.line : ''})` : ''}`, pick: true},
			{key: 'inuse', title: 'In use', kind: 'num', value: (r) => r.inuse_bytes, text: (r) => tablesBytes(r.inuse_bytes), keep: true},
			{key: 'grown', title: 'Grew in this range', kind: 'num', value: (r) => r.grown_bytes, text: (r) => (r.grown_bytes ? resourcesSigned(r.grown_bytes) : ''), keep: true},
			{key: 'growth', title: 'Grows each hour', kind: 'num', value: (r) => r.growth_bytes_per_s, text: (r) => (r.growth_bytes_per_s ? resourcesSigned(r.growth_bytes_per_s * 3600) : ''), keep: true},
			{key: 'alloc', title: 'Allocated', kind: 'num', value: (r) => r.alloc_bytes, text: (r) => tablesBytes(r.alloc_bytes)},
			{key: 'whose', title: 'Whose', value: (r) => r.who},
			{key: 'module', title: 'File', kind: 'mod', value: (r) => r.module},
		],
		pick: (r, p, d) => ({pic: '', type: d.touched ? 'mem' : 'inuse', q: `^${r.function.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`}),
		who: () => ({}),
	},
	neighbours: {
		verb: 'neighbours', title: 'who had the CPU', sort: '-total', narrow: true, needs: 'offcpu', more: true, params: () => ({number: 200}),
		columns: () => [
			{key: 'who', title: 'Waited for a CPU', value: (r) => tablesEnd(r), pick: true},
			{key: 'by', title: 'Who had it meanwhile', value: (r) => (r.by_comm || r.by_container ? tablesEnd({container: r.by_container, comm: r.by_comm, pid: r.by_pid}) : r.who === 'idle' ? 'no process: the CPU was idle' : r.who), keep: true},
			{key: 'share', title: 'Share', kind: 'num', value: (r) => r.share, text: (r) => wordsShare(r.share || 0), bar: (r) => r.share || 0, keep: true},
			{key: 'total', title: 'Time', kind: 'num', value: (r) => r.total_ns, text: (r) => tablesTime(r.total_ns), keep: true},
			{key: 'count', title: 'Times', kind: 'num', value: (r) => r.count, text: (r) => formatCount(r.count)},
		],
		who: (r) => ({container: r.container || '', comm: r.comm || '', pid: r.pid ? String(r.pid) : ''}),
	},
	wakers: {
		verb: 'wakers', title: 'who ended waits', sort: '-total', narrow: true, needs: 'offcpu', more: true, params: () => ({number: 200}),
		columns: () => [
			{key: 'who', title: 'Waited', value: (r) => tablesEnd(r), pick: true},
			{key: 'reason', title: 'For', value: (r) => r.reason, keep: true},
			{key: 'by', title: 'Ended by', value: (r) => (r.by_comm || r.by_container ? tablesEnd({container: r.by_container, comm: r.by_comm, pid: r.by_pid}) : r.context), keep: true},
			{key: 'share', title: 'Share', kind: 'num', value: (r) => r.share, text: (r) => wordsShare(r.share || 0), bar: (r) => r.share || 0},
			{key: 'total', title: 'Time', kind: 'num', value: (r) => r.total_ns, text: (r) => tablesTime(r.total_ns), keep: true},
			{key: 'count', title: 'Times', kind: 'num', value: (r) => r.count, text: (r) => formatCount(r.count)},
			{key: 'fn', title: 'In', kind: 'fn', value: (r) => r.function},
		],
		who: (r) => ({container: r.container || '', comm: r.comm || '', pid: r.pid ? String(r.pid) : ''}),
	},
};
// What `explain` names as a cause, in words.
const TABLES_CAUSES = {neighbour: (name) => `${name} had the CPU`, quota: (name) => `CPU quota of ${name}`, waker: (name) => `woken by ${name}`};
const TABLES_ELSEWHERE = ['overview', 'timeline', 'flame', 'diff', 'map', 'sql', 'status', 'help', 'version']; // of verbs: shown in other places of the page

const tablesEnd = (e) => `${e.container ? `${e.container}${e.comm ? ` (${e.comm})` : ''}` : e.comm || ''}${e.pid ? ` ${e.pid}` : ''}`;
// "server 10.0.0.2:80 GET /cart", as requestsKey writes it
function tablesOperation(op) {
	const [side, service] = op.split(' ', 2);
	return [side, service, op.slice(side.length + service.length + 2)];
}
// The trees of an operation first, if one is meant.
function tablesTrees(d, p) {
	const trees = traceTrees(d.rows), mine = trees.filter((t) => p.request && t.rows.some((r) => r.operation === p.request));
	return [...mine, ...trees.filter((t) => !mine.includes(t))].flatMap((t) => t.rows);
}
const tablesRoot = (d, p) => tablesTrees(d, p)[0];

function tablesAmount(r, of) {
	if (r[of + '_cores'] !== undefined)
		return `${wordsCores(r[of + '_cores'] || 0)} cores`;
	const v = r[`${of}_value`] === undefined ? r[of + '_ns'] : r[`${of}_value`];
	return r.unit === 'bytes' ? formatBytes(v || 0) : r.unit && r.unit !== 'ns' ? formatCount(v || 0) : formatTime(v || 0);
}
