// SPDX-License-Identifier: Apache-2.0
// trace: one request with all that was asked for it, as a waterfall; below it, what threads do in such requests.

// The trees of trace's answer, as they come: [{rows, from_us, long_us, key}]
function traceTrees(rows) {
	const trees = [];
	for (const r of rows) {
		if (!r.depth || !trees.length)
			trees.push({rows: [], key: r.trace || r.span});
		trees[trees.length - 1].rows.push(r);
	}
	for (const t of trees) {
		const from = Math.min(...t.rows.map((r) => r.start_us || 0)), to = Math.max(...t.rows.map((r) => (r.start_us || 0) + (r.total_us || 0)));
		Object.assign(t, {from_us: from, long_us: Math.max(to - from, 1)});
	}
	return trees;
}

const traceEnd = (e) => (e ? `${e.container ? `${e.container} (${e.comm} ${e.pid})` : `${e.comm} ${e.pid}`}` : '');

function traceRow(r, t, colours) {
	const who = r.answered_by || r.asked_by, name = who ? who.container || who.comm : r.service, bad = r.result !== 'ok', took = r.total_us === null ? 'no answer' : formatTime(r.total_us * 1000);
	if (!colours.has(name))
		colours.set(name, colours.size % 8);
	const track = domMake('span', {className: 'track'}), bar = domMake('i', {className: `s${colours.get(name)}${bad ? ' failed' : ''}`}), inner = r.answered_by && r.asked_by ? r.answered_by.total_us : null;
	const at = ((r.start_us || 0) - t.from_us) / t.long_us, wide = (r.total_us || 0) / t.long_us;
	bar.style.left = `${at * 100}%`;
	bar.style.width = `max(2px, ${wide * 100}%)`;
	track.append(bar);
	if (inner !== null && r.total_us && inner < r.total_us) { // the server's own time, within the client's
		const core = domMake('i', {className: 'inner'});
		core.style.left = `${(at + wide * (1 - inner / r.total_us) / 2) * 100}%`;
		core.style.width = `${wide * inner / r.total_us * 100}%`;
		track.append(core);
	}
	const said = [`${formatSeen(r.operation)}: ${took}${bad ? `, ${r.result}` : ''}${r.status ? `, status ${r.status}` : ''}`, r.asked_by ? `asked by ${traceEnd(r.asked_by)}: ${formatTime(r.asked_by.total_us * 1000)}` : '',
		r.answered_by ? `answered by ${traceEnd(r.answered_by)}: ${formatTime(r.answered_by.total_us * 1000)}` : '', r.linked_by ? `belongs to the one above: ${r.linked_by}` : ''].filter(Boolean).join('\n');
	const label = domSaid('span', r.operation, 'call'), li = domMake('li', {title: said}, label, domSaid('span', name || '', 'who'), track, domSaid('span', `${took}${bad ? ` ${r.result}` : r.status && r.status !== '200' ? ` ${r.status}` : ''}`, bad ? 'took bad' : 'took'));
	label.style.paddingLeft = `${Math.min(r.depth, 12) * 14}px`;
	li.tabIndex = 0;
	li.setAttribute('aria-label', said.replaceAll('\n', '; '));
	return li;
}

// time: the answer of explain --request for the root's operation, or null while it is asked.
function traceTime(root, time, on) {
	const box = domMake('section', {className: 'story'}, domMake('h3', {}, `Where the time of requests like this one went: ${drawShorten(root.operation, 80)}`));
	if (!time) {
		box.append(domSaid('p', 'Asked \u2026', 'half'));
		return box;
	}
	if (!time.ok) {
		box.append(domSaid('p', `${time.error}${time.fix ? `: ${time.fix}` : ''}`, 'note'));
		return box;
	}
	box.append(whyParts(time.data), domMake('div', {className: 'line'}, domButton('Their flame graph on the CPU', () => on.flame(root.operation, 'cpu')), domButton('Their flame graph of waits', () => on.flame(root.operation, 'offcpu'))));
	return box;
}

// on: {pick(key), flame(operation, type)}; id: of the tree that is drawn
function traceDraw(box, answer, id, time, on) {
	const trees = traceTrees(answer.rows), t = trees.find((x) => x.key === id || x.rows.some((r) => r.span === id)) || trees[0], colours = new Map();
	if (!t) {
		box.replaceChildren(domSaid('p', 'No single request was kept in this range.', 'note'));
		return null;
	}
	const root = t.rows[0];
	const others = trees.slice(0, 20).map((x) => domMake('li', {}, domButton(`${drawShorten(x.rows[0].operation, 60)}, ${formatTime(x.long_us * 1000)}, at ${wordsClock(x.rows[0].time_ns, Date.now() * 1e6)}`, () => on.pick(x.key), x === t ? 'quiet now' : 'quiet')));
	box.replaceChildren(
		domMake('h3', {}, `${formatSeen(root.operation)} took ${formatTime(t.long_us * 1000)}, ${t.rows.length} request${t.rows.length === 1 ? '' : 's'}, at ${wordsClock(root.time_ns, Date.now() * 1e6)}${root.trace ? `, trace ${root.trace}` : ''}`),
		domMake('ol', {className: 'waterfall', ariaLabel: 'Waterfall'}, ...t.rows.map((r) => traceRow(r, t, colours))),
		domMake('p', {className: 'axis half'}, domMake('span', {}, '0'), domMake('span', {}, formatTime(t.long_us * 500)), domMake('span', {}, formatTime(t.long_us * 1000))),
		traceTime(root, time, on),
		trees.length > 1 ? domMake('details', {}, domMake('summary', {}, `The ${trees.length} slowest that no other request caused`), domMake('ul', {className: 'plain'}, ...others)) : '',
		answer.unlinked ? domSaid('p', `${formatCount(answer.unlinked)} of ${formatCount(answer.asked)} requests have no known parent.`, 'half') : '');
	return root;
}
