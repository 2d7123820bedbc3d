// SPDX-License-Identifier: Apache-2.0
// words: numbers, times and commands in readable form. No DOM.

const WORDS_CLOCK = new Intl.DateTimeFormat([], {hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23'});
const WORDS_MINUTE = new Intl.DateTimeFormat([], {hour: '2-digit', minute: '2-digit', hourCycle: 'h23'});
const WORDS_DAY = new Intl.DateTimeFormat([], {weekday: 'short', day: 'numeric', month: 'short'});

// In the browser's time zone: "03:10:20", with the date if it is not that of `near_ns`.
function wordsClock(ns, near_ns, fine = true) {
	const d = new Date(ns / 1e6), day = WORDS_DAY.format(d);
	return (near_ns !== undefined && day === WORDS_DAY.format(new Date(near_ns / 1e6)) ? '' : day + ' ') + (fine ? WORDS_CLOCK : WORDS_MINUTE).format(d);
}

function wordsZone() {
	const m = -new Date().getTimezoneOffset(), h = Math.floor(Math.abs(m) / 60);
	return 'UTC' + (m ? `${m < 0 ? '-' : '+'}${h}${m % 60 ? ':' + String(Math.abs(m) % 60).padStart(2, '0') : ''}` : '');
}

const wordsCores = (v) => (v >= 9.95 ? v.toFixed(1) : v >= 0.01 ? v.toFixed(2) : v > 0 ? '<0.01' : '0');
const wordsShare = (v) => (v >= 0.0995 ? Math.round(100 * v) + ' %' : v >= 0.001 ? (100 * v).toFixed(1) + ' %' : v > 0 ? '<0.1 %' : '0 %');

// Quoted as one shell word; invisible characters, or those that change the direction of text, are written in bash and zsh syntax.
function wordsQuote(text) {
	if (/^[\w@%+=:,.\/-]+$/.test(text))
		return text;
	if (formatSeen(text) === text && !/[\x00-\x1f\x7f]/.test(text.replaceAll('\n', '')))
		return `'${text.replaceAll("'", "'\\''")}'`;
	return `$'${formatSeen(text.replace(/[\\']/g, '\\$&')).replace(/[\x00-\x1f\x7f]/g, (c) => '\\x' + c.charCodeAt(0).toString(16).padStart(2, '0'))}'`;
}

// The command with the same answer. `what` and `query` are words.
function wordsCommand(verb, params) {
	const out = ['sonde', verb], behind = [];
	for (const [name, value] of Object.entries(params))
		for (const v of Array.isArray(value) ? value : [value]) {
			if (v === undefined || v === null || v === '' || v === false)
				continue;
			if (name === 'what' || name === 'query')
				behind.push(wordsQuote(v));
			else
				out.push('--' + name, ...(v === true ? [] : [wordsQuote(String(v))]));
		}
	return [...out, ...behind].join(' ');
}

// From ps's rows, by container, then command: [{name, cores, share}], largest first.
function wordsUsers(rows) {
	const by = new Map();
	for (const r of rows) {
		const key = `${r.container || ''}\n${r.comm}`, u = by.get(key) || {comm: r.comm, container: r.container, cores: 0, share: 0, n: 0};
		u.cores += r.cpu_cores || 0;
		u.share += r.share || 0;
		u.n++;
		by.set(key, u);
	}
	return [...by.values()].sort((a, b) => b.share - a.share)
		.map((u) => ({...u, name: `${formatSeen(u.comm)}${u.n > 1 ? ` (${u.n} processes)` : ''}${u.container ? ' in ' + formatSeen(u.container) : ''}`}));
}

// The sentence at the top: who uses what.
function wordsSentence({cpus, ps, chosen, who, from, to}) {
	// Shares are of all use, and the rows may be a part of it: of the whole host all of it is said.
	const rows = ps.rows, shares = rows.reduce((v, r) => v + (r.share || 0), 0) || 1, sum = rows.reduce((v, r) => v + (r.cpu_cores || 0), 0), cores = who ? sum : sum / Math.min(shares, 1), users = wordsUsers(rows), near = Date.now() * 1e6;
	const when = `${wordsClock(from, near)} to ${wordsClock(to, to - from < 864e11 ? from : near)} (${formatTime(to - from)})`;
	const name = who ? formatSeen(who) : 'This host', of = cpus ? ` of ${cpus}` : '';
	if (!rows.length || !cores)
		return [`${name} used no sampled CPU time`, ` ${chosen ? 'in the chosen part' : 'in this range'}, ${when}.`];
	const named = users.length > 4 ? 3 : 4, parts = users.slice(0, named).map((u) => `${drawShorten(u.name, 60)} ${wordsShare(u.share)}`);
	const rest = who ? users.slice(named).reduce((v, u) => v + u.share, 0) : 1 - users.slice(0, named).reduce((v, u) => v + u.share, 0);
	if (users.length > named)
		parts.push(`${shares < 0.995 ? 'all' : users.length - named} others ${wordsShare(Math.max(rest, 0))}`);
	const top = rows.reduce((a, b) => ((b.cpu_ns || 0) > (a.cpu_ns || 0) ? b : a)), part = users[0].n > 1 || users.length > 1;
	const said = who && users.length === 1 ? `, ${wordsShare(users[0].share)} of all use` : `: ${parts.join(', ')}${who ? ' of all use' : ''}`;
	return [`${name} used ${wordsCores(cores)}${of} cores`, ` from ${when}${said}.`,
		top.top_function ? ` The busiest process is ${formatSeen(top.comm)} (${top.pid})${part ? ` with ${wordsShare((top.share || 0) / (who ? shares : 1))} of this` : ''}: ${wordsShare(top.top_share || 0)} of its time in ${drawShorten(top.top_function, 80)}.` : ''];
}
