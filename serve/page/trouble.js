// SPDX-License-Identifier: Apache-2.0
// trouble: what is wrong, as it is told: the lines under the headline, checks, restarts with their last lines, kills for memory.

// --- the lines under the headline: the answer of overview ---

const troubleBefore = (x, say) => (x.before && x.before.latency ? `, before ${say(x.before.latency)}` : '');
function troubleSlow(x) {
	const r = x.now, whose = r.container || r.comm;
	return [`${formatSeen(r.operation)} of ${formatSeen(whose)}: p95 ${formatTime(r.latency.p95_ns)}${troubleBefore(x, (l) => formatTime(l.p95_ns))}`, r];
}
function troubleFailing(x) {
	const r = x.now, whose = r.container || r.comm;
	return [`${formatSeen(r.operation)} of ${formatSeen(whose)}: ${formatCount(r.errors)} failed, ${wordsShare(r.errors / r.requests)}`, r];
}

// on: {why(row of requests), whyCheck(row of checks)}
function troubleLines(box, d, on) {
	const line = (label, cls, ...inside) => domMake('li', {className: cls}, domMake('b', {}, label), ...inside), out = [], most = 3;
	for (const w of [...d.wrong].sort((a, b) => (b.level === 'critical') - (a.level === 'critical')).slice(0, most))
		out.push(line(w.level === 'critical' ? 'Critical' : 'Warning', w.level, linkTo(formatSeen(w.text), {tab: 'check'}), domButton('Why?', () => on.whyCheck(w), 'why', `Why: ${formatSeen(w.text)}`)));
	if (d.wrong_total > most)
		out.push(line('', '', linkTo(`${d.wrong_total - most} more of ${d.checks} checks failed`, {tab: 'check'})));
	const pending = d.wrong.length ? [] : (d.pending || []).slice(0, most);
	for (const w of pending)
		out.push(line('Pending', 'warning', linkTo(formatSeen(w.text), {tab: 'check'}), domButton('Why?', () => on.whyCheck(w), 'why', `Why: ${formatSeen(w.text)}`)));
	if (!d.wrong.length && !pending.length)
		out.push(line('Wrong', 'fine', linkTo(`nothing that ${d.checks} checks look for`, {tab: 'check'})));
	const slow = d.slowest[0] && d.slowest[0].now.latency ? troubleSlow(d.slowest[0]) : null, failing = d.failing[0] ? troubleFailing(d.failing[0]) : null;
	for (const [label, x] of [[d.slowest[0] && d.slowest[0].slower ? 'Slower' : 'Slowest', slow], ['Failing', failing]])
		if (x)
			out.push(line(label, label === 'Failing' ? 'warning' : '', linkTo(x[0], {tab: 'requests', op: requestsKey(x[1])}), domButton('Why?', () => on.why(x[1]), 'why', `Why: ${x[0]}`)));
	if (d.not_recorded.length)
		out.push(line('Not recorded', 'soft', `${d.not_recorded.map((f) => TROUBLE_FAMILIES[f] || f).join('; ')}: `, domMake('code', {}, `sudo sonde up ${d.not_recorded.join(' ')}`)));
	box.replaceChildren(...out);
}
const TROUBLE_FAMILIES = {cpu: 'CPU time', offcpu: 'what threads waited for', host: 'memory, disks, restarts', net: 'network', l7: 'requests'};

// --- checks ---

const TROUBLE_LEVEL = (r) => (r.state === 'bad' ? r.level : ['pending', 'recovered', 'fine'].includes(r.state) ? r.state : 'unknown');
const TROUBLE_TIMES = {days: 864e11, h: 36e11, min: 6e10, ms: 1e6};
const troubleUnit = (v, unit) => (TROUBLE_TIMES[unit] ? formatTime(v * TROUBLE_TIMES[unit]) : `${Number(v.toPrecision(3))} ${v === 1 ? (unit || '').replace(/s$/, '') : unit || ''}`.trim());
const troubleValue = (r) => (r.value === null ? '' : `${troubleUnit(r.value, r.unit)}${r.for_minutes && !r.lasted_minutes ? `, by the last ${r.for_minutes} min` : ''}; fails at ${troubleUnit(r.threshold, r.unit)}`);

function troubleEvidence(rows) {
	if (!Array.isArray(rows) || !rows.length || typeof rows[0] !== 'object')
		return '';
	const keys = Object.keys(rows[0]).filter((k) => !/_id$/.test(k));
	return domMake('details', {}, domMake('summary', {}, `What it is based on: ${rows.length} row${rows.length === 1 ? '' : 's'}`), domMake('table', {},
		domMake('thead', {}, domMake('tr', {}, ...keys.map((k) => domSaid('th', k.replaceAll('_', ' '))))),
		domMake('tbody', {}, ...rows.slice(0, 20).map((r) => domMake('tr', {}, ...keys.map((k) => domSaid('td', r[k] === null ? '' : typeof r[k] === 'number' ? String(Number(r[k].toPrecision(4))) : r[k], typeof r[k] === 'number' ? 'num' : '')))))));
}

function troubleCheck(r, on) {
	const li = domMake('li', {className: TROUBLE_LEVEL(r)}, domMake('p', {}, domSaid('b', TROUBLE_LEVEL(r), 'level'), ' ', domSaid('span', r.text), ' ', ['bad', 'pending'].includes(r.state) ? domButton('Why?', () => on.whyCheck(r), 'why', `Why: ${formatSeen(r.text)}`) : ''));
	if (r.value !== null)
		li.append(domSaid('p', troubleValue(r), 'half'));
	if (r.command)
		li.append(domMake('p', {className: 'half'}, 'See it: ', linkCommand(r.command, r.command)));
	li.append(troubleEvidence(r.evidence));
	return li;
}

function troubleChecks(box, d, on) {
	const of = (...states) => d.rows.filter((r) => states.includes(TROUBLE_LEVEL(r))), bad = [...of('critical'), ...of('warning')], list = (rows) => domMake('ul', {className: 'stories'}, ...rows.map((r) => troubleCheck(r, on)));
	const fold = (rows, title) => (rows.length ? domMake('details', {}, domMake('summary', {}, title(rows.length)), domMake('ul', {className: 'plain'}, ...rows.map((r) => domSaid('li', r.text)))) : '');
	box.replaceChildren(domSaid('h3', bad.length ? `${bad.length} of ${d.checks} checks failed at ${wordsClock(d.to_ns, Date.now() * 1e6)}` : `None of ${d.checks} checks failed at ${wordsClock(d.to_ns, Date.now() * 1e6)}`),
		bad.length ? list(bad) : '', of('pending').length ? list(of('pending')) : '', of('recovered').length ? list(of('recovered')) : '',
		fold(of('fine'), (n) => `${n} ${n === 1 ? 'check is' : 'checks are'} fine`),
		fold(of('unknown'), (n) => `${n} ${n === 1 ? 'was' : 'were'} not measured: what they need was not recorded`));
}

// --- restarts, and what else happened ---

function troubleLog(log, none) {
	if (!log || !log.length)
		return none ? domSaid('p', none, 'half') : '';
	return domMake('pre', {className: 'lines', tabIndex: 0, ariaLabel: 'The last lines of its log'}, log.map((l) => formatSeen(l.line) + (l.cut ? ' \u2026' : '')).join('\n'));
}
const TROUBLE_ENDED = /^(stopped|restart loop|restarted|oom kill|failed|killed)$/;

function troubleEvent(e, on) {
	const near = Date.now() * 1e6, many = e.count > 1, ended = TROUBLE_ENDED.test(e.kind) && e.subject === 'container';
	const when = many && e.last_ns - e.first_ns > 1e9 ? `${formatCount(e.count)} times, ${wordsClock(e.first_ns, near)} to ${wordsClock(e.last_ns, e.first_ns)}` : `${many ? `${formatCount(e.count)} times, ` : ''}${wordsClock(e.first_ns, near)}`;
	const who = e.container || (e.subject === 'container' ? e.name : '');
	return domMake('li', {className: e.bad ? 'warning' : ''}, domMake('p', {}, domSaid('b', e.name || e.comm || 'host', 'level'), ' ', domSaid('span', [e.kind, e.detail].filter(Boolean).join(': ')), ' ',
		e.bad ? domButton('Why?', () => on.whyMoment(who, e.first_ns, e.last_ns), 'why', `Why: ${formatSeen(e.text)}`) : ''),
	domSaid('p', [when, e.caused_by ? `by ${e.caused_by}` : '', e.comm && e.pid ? `${e.comm} (${e.pid})` : ''].filter(Boolean).join('; '), 'half'),
	ended && e.bad ? troubleLog(e.log, 'Its last lines are not in the store: it wrote none, its log is not a file of Docker\u2019s or Podman\u2019s or the journal, or log-lines is off (sonde config show log-lines).') : troubleLog(e.log, ''));
}

function troubleEvents(box, d, on) {
	const bad = d.rows.filter((e) => e.bad).sort((a, b) => b.last_ns - a.last_ns), others = d.rows.filter((e) => !e.bad), loops = bad.filter((e) => /restart/.test(e.kind)).length;
	box.replaceChildren(domSaid('h3', bad.length ? `${bad.length} ended badly or went wrong${loops ? `, ${loops} in a restart loop` : ''}` : 'Nothing restarted, failed or was killed in this range'),
		domMake('ul', {className: 'stories'}, ...bad.map((e) => troubleEvent(e, on))),
		others.length ? domMake('details', {open: !bad.length}, domMake('summary', {}, `What else happened: ${others.length}`), domMake('ul', {className: 'plain'}, ...others.map((e) => domMake('li', {}, domSaid('b', wordsClock(e.last_ns, Date.now() * 1e6)), ' ', formatSeen(e.text))))) : '');
}

// --- kills for memory ---

function troubleHolders(rows, victim, most) {
	return domMake('ol', {className: 'parts'}, ...rows.map((t) => domMake('li', {className: t.pid && t.pid === victim ? 'bad' : ''}, domBar(t.bytes / most), domSaid('span', `${t.name}${t.pid ? ` (${t.pid})` : ''}: ${formatBytes(t.bytes)}${t.pid && t.pid === victim ? ', which was killed' : ''}`))));
}

function troubleOom(r, on) {
	const name = r.own_limit && r.kernel_told ? r.container || r.cgroup : '', whose = name || 'its cgroup', held = (r.anon_bytes || 0) + (r.shmem_bytes || 0), most = Math.max(r.limit_bytes || 0, ...r.tasks.map((t) => t.bytes), 1);
	const values = (r.memory || []).map((m) => m.bytes), known = values.filter((v) => v !== null), grown = known.length > 1 ? known[known.length - 1] - known[0] : 0, from = r.time_ns - 6e10;
	const why = !r.kernel_told ? 'The kernel\u2019s log does not say whose limit was reached.'
		: `${r.own_limit ? `${whose} reached its memory limit of ${formatBytes(r.limit_bytes)}` : 'the host had no memory left'}${r.asked_by ? ` when ${r.asked_by} asked for more` : ''}; ${r.comm} held ${formatBytes(held)} itself.`;
	const story = domMake('li', {className: 'critical'}, domMake('p', {}, domSaid('b', r.container || 'host', 'level'), ' ', domSaid('span', `${r.comm} (${r.pid}) was killed at ${wordsClock(r.time_ns, Date.now() * 1e6)}: ${r.own_limit ? 'its container was out of memory' : 'out of memory'}`), ' ',
		domButton('Why?', () => on.whyMoment(r.container, from, r.time_ns), 'why', `Why was ${formatSeen(r.comm)} killed?`)), domSaid('p', name ? why : why[0].toUpperCase() + why.slice(1))); // a name is not changed
	if (known.length > 1)
		story.append(domMake('figure', {}, domSaid('figcaption', `Before: ${formatBytes(known[0])} to ${formatBytes(known[known.length - 1])} in ${formatTime(r.memory[r.memory.length - 1].from_ns - r.memory[0].from_ns)}${grown > 0 ? `, ${formatBytes(grown / Math.max((r.memory[r.memory.length - 1].from_ns - r.memory[0].from_ns) / 6e10, 1))} more each minute` : ''}${r.limit_bytes ? `; the dashed line is the limit, ${formatBytes(r.limit_bytes)}` : ''}`),
			domLine(values, `Memory before the kill, ${formatBytes(known[0])} to ${formatBytes(known[known.length - 1])}`, r.limit_bytes)));
	if (r.tasks.length)
		story.append(domSaid('p', 'Who held memory:', 'half'), troubleHolders(r.tasks, r.pid, most));
	if (r.containers.length)
		story.append(domSaid('p', 'Other containers at that time:', 'half'), troubleHolders(r.containers, 0, Math.max(most, ...r.containers.map((c) => c.bytes))));
	if (r.hottest.length)
		story.append(domMake('p', {className: 'half'}, `On the CPU in the minute before: ${r.hottest.filter((h) => h.share >= 0.005).map((h) => `${formatSeen(h.function)} ${wordsShare(h.share)}`).join(', ')} `, linkTo('flame graph', {container: r.container || '', comm: '', pid: '', in: placeTime(from), until: placeTime(r.time_ns + 1e9), pic: '', type: 'cpu'})));
	story.append(troubleLog(r.log, ''));
	return story;
}

function troubleOoms(box, d, on) {
	box.replaceChildren(domSaid('h3', d.rows.length ? `${d.rows.length} kill${d.rows.length === 1 ? '' : 's'} for memory` : 'Nothing was killed for memory in this range'), domMake('ul', {className: 'stories'}, ...d.rows.map((r) => troubleOom(r, on))));
}
