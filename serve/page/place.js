// SPDX-License-Identifier: Apache-2.0
// place: what is looked at, as it stands in the address, in the words of the command line. Anybody may write an address: what is not
// understood is left at its start, and what values mean is told by the server.
//
//   last, from, to            the range of the strip (last=1h where there is none)
//   in, until                 a part of it that was chosen
//   container, comm, pid      who is looked at
//   page, query               host or sql, and what is asked there
//   tab, sort, find           the table: one of the page's, or any verb; without a tab containers, where there are any, else processes
//   by, of                    the strip: both, container, process, command; what it is of, as timeline --of has it
//   pic                       the picture: '' the flame graph, or map
//   type, view, group, colour, fold, fn, zoom, q    the picture
//   compare                   '', previous, or a time that the same range is compared with so much earlier
//   live

const PLACE_START = {page: 'host', last: '1h', from: '', to: '', in: '', until: '', container: '', comm: '', pid: '', tab: '', sort: '', find: '',
	by: 'both', of: 'cpu', pic: '', type: 'cpu', view: 'callees', group: 'nested', colour: 'package', fold: 'start', fn: '', zoom: '', q: '', compare: '', live: '', query: ''};
const PLACE_WORDS = {page: ['host', 'sql'], by: ['both', 'container', 'process', 'command'],
	pic: ['', 'map'], view: ['callees', 'callers', 'sandwich'], group: ['nested', 'container', 'process', 'none'], colour: ['package', 'origin', 'module', 'change'], live: ['', '1']};
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

// Only what differs from the start.
function placeWrite(p) {
	const q = new URLSearchParams();
	for (const [k, v] of Object.entries(p))
		if (v !== PLACE_START[k] && !(k === 'last' && (p.from || p.to)))
			q.set(k, v);
	const text = q.toString();
	return text ? '?' + text : location.pathname;
}

// The range of the strip, and of what is chosen in it, as the command line has them; who is looked at.
const placeRange = (p) => (p.from || p.to ? {from: p.from, to: p.to} : {last: p.last});
const placeChosen = (p) => (p.in ? {from: p.in, to: p.until} : placeRange(p));
const placeWho = (p) => ({container: p.container, comm: p.comm, pid: p.pid});
// An instant as it stands there.
const placeTime = (ns) => new Date(Math.round(ns / 1e6)).toISOString().replace('.000Z', 'Z');
