// SPDX-License-Identifier: Apache-2.0
// state: the view, in the address, so that Back works and a link returns to the same view. Functions and looks
// are numbers in it, which are valid within one report.

const STATE_START = {type: 0, view: 'callees', fn: -1, group: 'nested', colour: 'package', flame: false, merge: false,
	start: true, idle: false, runtime: false, kernel: false, hide: [], focus: [], drop: [], from: -1, to: -1, fromA: -1, toA: -1, q: '', zoom: [], upZoom: [],
	panel: 'functions', show: 'after'};
const STATE_WORDS = {view: ['callees', 'callers', 'sandwich'], group: ['nested', 'container', 'process', 'thread', 'none'],
	colour: ['package', 'origin', 'module', 'change', 'redgreen'], show: ['after', 'before', 'delta', 'elided'], panel: ['functions', 'tree', 'lines']};

const STATE_TOGGLES = Object.keys(STATE_START).filter((k) => typeof STATE_START[k] === 'boolean');
const STATE_CHECKED = STATE_TOGGLES.filter((k) => k !== 'idle'); // have a checkbox

// diff: the report has two sides
function stateNew(group, diff) {
	const s = {...STATE_START, colour: diff ? 'change' : STATE_START.colour, group: STATE_WORDS.group.includes(group) ? group : 'nested'};
	for (const k of ['hide', 'focus', 'drop', 'zoom', 'upZoom'])
		s[k] = [];
	return s;
}

// Only what differs from the initial state.
function stateWrite(s, start) {
	const parts = [];
	for (const [k, v] of Object.entries(s)) {
		const text = Array.isArray(v) ? v.join('.') : v === true ? '1' : String(v);
		const was = Array.isArray(start[k]) ? start[k].join('.') : start[k] === true ? '1' : String(start[k]);
		if (text !== was)
			parts.push(`${k}=${encodeURIComponent(v === false ? '0' : text)}`);
	}
	return '#' + parts.join('&');
}

// Hostile: anyone may write an address. Values out of range keep their defaults.
function stateRead(hash, start, limits) {
	const got = new URLSearchParams(hash.replace(/^#/, '')), s = {...start};
	const number = (text, below) => (/^\d{1,9}$/.test(text) && Number(text) < below ? Number(text) : -1);
	for (const [k, text] of got) {
		if (!Object.hasOwn(start, k))
			continue;
		if (Object.hasOwn(STATE_WORDS, k))
			s[k] = (limits.words[k] || STATE_WORDS[k]).includes(text) ? text : start[k];
		else if (k === 'zoom' || k === 'upZoom' || Array.isArray(start[k]))
			s[k] = text.split('.').slice(0, 2000).map((x) => number(x, limits.looks)).filter((x) => x >= 0);
		else if (typeof start[k] === 'boolean')
			s[k] = text === '1';
		else if (k === 'q')
			s.q = text.slice(0, 1000);
		else
			s[k] = number(text, {type: limits.types, fn: limits.fns}[k] || 65535);
	}
	for (const k of ['hide', 'focus', 'drop'])
		s[k] = [...new Set(s[k])].filter((fn) => fn < limits.fns).slice(0, 30);
	s.type = Math.max(s.type, 0);
	for (const [from, to, slots] of limits.slots(s.type))
		if (s[from] < 0 || s[to] < s[from] || s[to] >= slots)
			s[from] = s[to] = -1;
	if (s.view === 'sandwich' && s.fn < 0)
		s.view = 'callees';
	return s;
}
