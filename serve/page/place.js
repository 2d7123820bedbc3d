// SPDX-License-Identifier: Apache-2.0
// place: the view, as it is in the address, in the words of the command line. Anyone may write an address: unknown
// parts keep their defaults, and the server interprets values.
//
// last, from, to            the range of the strip (default last=1h)
// in, until                 the chosen part of it
// container, comm, pid      the selected processes
// page, query               host or sql, and the query there
// tab, sort, find           the table, a name in TABLES; default: containers if there are any, otherwise processes
// how, op, id               requests: slowest, failed, both; disks: as in DISKS_VIEWS; logs: as in LOGS_VIEWS; the operation in detail; the trace that is drawn
// why                       the card that explains is open: 1, of what is chosen; else what is asked, as an address ("container=web&from=...&to=...")
// by, of                    the strip: both, container, process, command; its resource, as in timeline --of
//   pic                       the picture: '' the flame graph, or map
//   type, view, group, colour, fold, fn, zoom, q    the picture
//   request, deep           only what threads did in these requests; how many more of its smallest frames are asked for
// compare                   '', previous, or how much earlier the compared range is
//   live

const PLACE_START = {page: 'host', last: '1h', from: '', to: '', in: '', until: '', container: '', comm: '', pid: '', tab: '', sort: '', find: '',
	by: 'both', of: 'cpu', pic: '', type: 'cpu', view: 'callees', group: 'nested', colour: 'package', fold: 'start', fn: '', zoom: '', q: '', compare: '', live: '', query: '',
	how: '', op: '', id: '', why: '', request: '', deep: ''};
const PLACE_WORDS = {page: ['host', 'sql'], by: ['both', 'container', 'process', 'command'],
	pic: ['', 'map'], view: ['callees', 'callers', 'sandwich'], group: ['nested', 'container', 'process', 'none'], colour: ['package', 'origin', 'module', 'change'], live: ['', '1'],
	how: ['', 'slowest', 'failed', 'both', 'who', 'files', 'fsync', 'calls', 'locks', 'slow', 'opens', 'full', 'deleted', 'fresh', 'burst'], deep: ['', '1', '2']};
const PLACE_MOST = 8000;

function placeRead(search) {
	const got = new URLSearchParams(search), p = {...PLACE_START};
	for (const [k, text] of got)
		if (Object.hasOwn(PLACE_START, k) && text.length <= PLACE_MOST && (!PLACE_WORDS[k] || PLACE_WORDS[k].includes(text)) && (!['tab', 'of'].includes(k) || /^[a-z]*$/.test(text)))
			p[k] = text;
	if (p.from || p.to)
		p.last = '';
	else if (!p.last)
		p.last = PLACE_START.last;
	if (!p.in || !p.until)
		p.in = p.until = '';
	return p;
}

// Only what differs from the defaults.
function placeWrite(p) {
	const q = new URLSearchParams();
	for (const [k, v] of Object.entries(p))
		if (v !== PLACE_START[k] && !(k === 'last' && (p.from || p.to)))
			q.set(k, v);
	const text = q.toString();
	return text ? '?' + text : location.pathname;
}

// The range of the strip, and of the chosen part, as on the command line; the selected processes.
const placeRange = (p) => (p.from || p.to ? {from: p.from, to: p.to} : {last: p.last});
const placeChosen = (p) => (p.in ? {from: p.in, to: p.until} : placeRange(p));
const placeWho = (p) => ({container: p.container, comm: p.comm, pid: p.pid});
const PLACE_WHY = ['container', 'comm', 'pid', 'from', 'to', 'last', 'request'];
// What the card "why" asks.
function placeWhy(p) {
	if (p.why === '1')
		return {...placeChosen(p), ...placeWho(p), request: p.request};
	const got = new URLSearchParams(p.why);
	return Object.fromEntries(PLACE_WHY.map((k) => [k, got.get(k) || '']));
}
// A time as in the address.
const placeTime = (ns) => new Date(Math.round(ns / 1e6)).toISOString().replace('.000Z', 'Z');
