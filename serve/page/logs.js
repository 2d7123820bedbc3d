// SPDX-License-Identifier: Apache-2.0
// logs: what family logs counted, as `sonde logs` answers: messages by pattern, lines by who wrote them, patterns that are new, bursts. Each is an entry of LOGS_VIEWS by `how`:
// the words of its button, the option that asks for it.

const logsNumber = (key, title, text, more) => ({key, title, kind: 'num', value: (r) => r[key], text: (r) => (r[key] ? text(r[key]) : ''), ...more});
const logsTime = (key, title) => ({key, title, value: (r) => r[key], text: (r) => (r[key] ? wordsClock(r[key], Date.now() * 1e6) : '')});
const logsWho = {key: 'source', title: 'Who', value: (r) => r.source, pick: true, keep: true};
const LOGS_PATTERNS = [
	{key: 'level', title: 'Level', value: (r) => r.level, keep: true}, logsNumber('messages', 'Times', formatCount, {keep: true}), logsWho,
	{key: 'pattern', title: 'What', kind: 'fn', value: (r) => r.pattern, text: (r) => (r.pattern === '~other' ? 'other messages, past the limit of patterns' : formatSeen(r.pattern)), keep: true},
	logsTime('first_ns', 'First'), logsTime('last_ns', 'Last'),
	{key: 'process', title: 'Process', value: (r) => (r.comm ? `${r.comm}${r.pid ? ` (${r.pid})` : ''}` : '')},
	{key: 'sample', title: 'One of them', kind: 'mod', value: (r) => r.sample},
];
const LOGS_SOURCES = [
	logsWho, {key: 'kind', title: 'Read from', value: (r) => r.kind}, logsNumber('lines', 'Lines', formatCount, {keep: true}), logsNumber('bytes', 'Size', formatBytes),
	logsNumber('errors', 'Errors', formatCount, {keep: true}), logsNumber('warnings', 'Warnings', formatCount, {keep: true}), logsNumber('burst_lines', 'Lines in a burst', formatCount),
	logsNumber('cuts', 'Truncated', formatCount),
];
const LOGS_VIEWS = {'': {text: 'By pattern', option: ''}, who: {text: 'By who wrote', option: ''}, fresh: {text: 'New', option: 'new'}, burst: {text: 'In a burst', option: 'burst'}};
const logsView = (p) => LOGS_VIEWS[p.how] || LOGS_VIEWS[''];
const logsParams = (p) => ({number: 500, ...(logsView(p).option ? {[logsView(p).option]: true} : {})});
const logsRows = (d, p) => (logsView(p) === LOGS_VIEWS.who ? d.sources : d.rows);
const logsColumns = (p) => (logsView(p) === LOGS_VIEWS.who ? LOGS_SOURCES : LOGS_PATTERNS);
const logsWays = (p) => [domMake('div', {className: 'choice', role: 'group', ariaLabel: 'What of the logs'}, ...Object.entries(LOGS_VIEWS).map(([how, v]) => {
	const b = domButton(v.text, () => LINKS.change({how, sort: ''}));
	b.setAttribute('aria-pressed', logsView(p) === v);
	return b;
}))];
const logsNone = (p) => (p.how === 'fresh' ? 'No pattern is new.' : p.how === 'burst' ? 'Nothing wrote far more lines than usual.' : 'No warnings or errors. Only those have patterns, and other lines in a burst.');
// What the table does not say by itself.
function logsSaid(d, p) {
	const lines = d.sources.reduce((n, s) => n + s.lines, 0), errors = d.sources.reduce((n, s) => n + s.errors, 0), cuts = d.sources.reduce((n, s) => n + s.cuts, 0);
	const all = d.sources_total || d.sources.length, said = d.sources.length < all ? [] : [`${formatCount(lines)} lines of ${formatCount(all)} ${all === 1 ? 'log' : 'logs'}, ${formatCount(errors)} errors.`];
	if (p.how === 'fresh' && d.rows.length && d.rows.every((r) => r.new === null))
		said.push('No logs were recorded before this range: which patterns are new is not known, all of them are shown.');
	if (cuts)
		said.push(`A file was truncated or rotated too fast to follow ${cuts === 1 ? 'once' : `${formatCount(cuts)} times`}: lines from just before may be missing.`);
	return domSaid('p', said.join(' '), 'half');
}
