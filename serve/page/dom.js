// SPDX-License-Identifier: Apache-2.0
// dom: elements with text and attributes; links to other views of the page. Text goes in as text nodes only.

function domMake(kind, props = {}, ...inside) {
	const e = Object.assign(document.createElement(kind), props);
	e.append(...inside.filter((x) => x !== null && x !== undefined && x !== ''));
	return e;
}

const domSaid = (kind, text, cls) => domMake(kind, {className: cls || '', textContent: formatSeen(String(text))});

function domButton(text, act, cls, about) {
	const b = domMake('button', {type: 'button', className: cls || '', textContent: text, onclick: act});
	if (about)
		b.setAttribute('aria-label', about);
	return b;
}

function domSvg(kind, attributes, ...inside) {
	const e = document.createElementNS('http://www.w3.org/2000/svg', kind);
	for (const [k, v] of Object.entries(attributes))
		e.setAttribute(k, v);
	e.append(...inside);
	return e;
}

// A bar of `share` (0 to 1) of its box.
function domBar(share, cls) {
	const bar = domMake('i', {className: cls || ''});
	bar.style.width = `${Math.max(0, Math.min(1, share || 0)) * 100}%`;
	return domMake('span', {className: 'amount-bar', ariaHidden: 'true'}, bar);
}

// A line chart of values over time. `say`: what a screen reader reads; `limit`: a value to draw as a second, straight line.
function domLine(values, say, limit) {
	const known = values.map((v, i) => [i, v]).filter(([, v]) => v !== null && v !== undefined), top = Math.max(...known.map(([, v]) => v), limit || 0, 1e-9) * 1.05;
	const x = (i) => (i / Math.max(values.length - 1, 1) * 300).toFixed(1), y = (v) => (60 - v / top * 58).toFixed(1);
	const svg = domSvg('svg', {viewBox: '0 0 300 60', preserveAspectRatio: 'none', class: 'growth', role: 'img', 'aria-label': say});
	if (known.length)
		svg.append(domSvg('path', {class: 'area', d: `M${x(known[0][0])} 60${known.map(([i, v]) => `L${x(i)} ${y(v)}`).join('')}L${x(known[known.length - 1][0])} 60z`}));
	if (limit)
		svg.append(domSvg('path', {class: 'limit', d: `M0 ${y(limit)}H300`}));
	return svg;
}

// --- links ---

const LINKS = {change: () => {}, href: () => '?'}; // set by main

// A link to the view that `patch` of the address makes.
function linkTo(text, patch, cls) {
	const a = domMake('a', {textContent: text, href: LINKS.href(patch), className: cls || ''});
	a.addEventListener('click', (e) => {
		if (e.ctrlKey || e.metaKey || e.shiftKey || e.button)
			return;
		e.preventDefault();
		LINKS.change(patch);
	});
	return a;
}

// The words of a command as a shell reads them; null if it is no plain one.
function linkWords(command) {
	const words = [], part = /\$'((?:\\.|[^'\\])*)'|'([^']*)'|\\(.)|([^\s'\\]+)|(\s+)/gs;
	let word = null, at = 0;
	for (const m of command.matchAll(part)) {
		if (m.index !== at)
			return null;
		at = m.index + m[0].length;
		if (m[5] !== undefined) {
			words.push(...(word === null ? [] : [word]));
			word = null;
		} else {
			word = (word || '') + (m[1] !== undefined ? m[1].replace(/\\x([0-9a-fA-F]{2})/g, (x, hex) => String.fromCharCode(parseInt(hex, 16))).replace(/\\(.)/gs, '$1') : m[2] ?? m[3] ?? m[4]);
		}
	}
	return at === command.length ? [...words, ...(word === null ? [] : [word])] : null;
}

const LINK_TABS = {disk: 'disks', ps: 'processes', stacks: 'functions', lines: 'functions', explain: 'changes'};
const LINK_PLACE = {container: 'container', comm: 'comm', pid: 'pid'};

// "sonde waits --container web --from A --to B": the part of the address that shows the same; null: nothing on the page does.
function linkOf(command) {
	const words = linkWords(command || ''), patch = {container: '', comm: '', pid: '', zoom: '', fn: ''}, given = {};
	let at = 0;
	if (!words)
		return null;
	while (at < words.length && !/(^|\/)sonde$/.test(words[at]))
		at++;
	const verb = words[++at];
	for (at++; at < words.length; at++) {
		const m = /^--([a-z-]+)(?:=(.*))?$/s.exec(words[at]);
		if (!m)
			given.what = words[at];
		else if (m[2] !== undefined)
			given[m[1]] = m[2];
		else
			given[m[1]] = at + 1 < words.length && !/^--/.test(words[at + 1]) ? words[++at] : '1';
	}
	for (const [option, name] of Object.entries(LINK_PLACE))
		if (given[option] && given[option] !== '1')
			patch[name] = given[option];
	if (given.from && given.to)
		Object.assign(patch, Number.isFinite(Date.parse(given.from)) && Number.isFinite(Date.parse(given.to)) ? {in: placeTime(Date.parse(given.from) * 1e6), until: placeTime(Date.parse(given.to) * 1e6)} : {from: given.from, to: given.to});
	else if (given.last)
		patch.last = given.last;
	if (verb === 'flame' || verb === 'diff')
		return {...patch, pic: '', type: given.type || 'cpu', compare: verb === 'diff' ? 'previous' : '', request: given.request || ''};
	if (verb === 'map')
		return {...patch, pic: 'map'};
	if (verb === 'timeline')
		return {...patch, of: given.of || 'cpu', ...(given.of === 'mem' ? {tab: 'memory'} : given.of === 'io' ? {tab: 'disk'} : {})};
	if (verb === 'sql')
		return given.what === '@fills' ? {...patch, tab: 'disk'} : given.what ? {page: 'sql', query: given.what} : null;
	const tab = verb === 'waits' && given.neighbours ? 'neighbours' : verb === 'containers' && given.sort === 'io' ? 'disk' : verb === 'containers' && given.sort === 'mem' ? 'memory' : LINK_TABS[verb] || verb;
	return TABLES[tab] ? {...patch, tab, sort: '', find: '', how: given.slowest ? 'slowest' : given.failed && tab === 'requests' ? 'failed' : tab === 'disks' ? Object.keys(DISKS_VIEWS).find((k) => k && given[k]) || '' : tab === 'logs' && given.new ? 'fresh' : tab === 'logs' && given.burst ? 'burst' : ''} : null;
}

// The command as a link, where the page has its view; else as text.
function linkCommand(command, text) {
	const patch = linkOf(command);
	return patch ? linkTo(text, patch) : domSaid('span', text);
}

// Where the view of a place is.
function domScroll(id) {
	$(id).scrollIntoView({block: 'nearest'});
}
