// SPDX-License-Identifier: Apache-2.0
// why: the answer of `sonde explain` for the chosen part as a chain of sentences, each a link to what shows it; where the time of some requests went.

const WHY_SURE = {certain: 'certain', likely: 'likely', possible: 'possible'};

// Parts of a time with their shares, as bars: rows of explain --request.
function whyParts(d) {
	const asked = d.rows.filter((r) => r.what === 'asked'), own = d.rows.filter((r) => r.what !== 'asked');
	const one = (r) => domMake('li', {}, domBar(r.share, r.what === 'asked' ? 'asked' : ''), domSaid('span', r.text));
	return domMake('div', {}, domSaid('p', `${formatCount(d.requests)} request${d.requests === 1 ? '' : 's'} that were kept, ${formatTime(d.took_ns)} together.`, 'half'),
		domMake('ol', {className: 'parts'}, ...own.map(one)), ...(asked.length ? [domSaid('p', 'Meanwhile they asked:', 'half'), domMake('ol', {className: 'parts'}, ...asked.map(one))] : []));
}

function whyLink(l, first) {
	const li = domMake('li', {className: l.sure}), said = domMake('p', {}, linkCommand(l.command, `${l.text.startsWith(l.who) ? l.text : l.text[0].toUpperCase() + l.text.slice(1)}.`));
	if (!first)
		said.append(' ', domSaid('span', `${WHY_SURE[l.sure] || l.sure}${l.share === null ? '' : `: ${wordsShare(l.share)} of the added time`}`, 'sure-how'));
	li.append(said, domMake('p', {className: 'command'}, domMake('code', {tabIndex: 0}, formatSeen(l.command))));
	return li;
}

// What differed, too.
function whyOthers(d) {
	if (d.changed === undefined) // nothing could be compared
		return domSaid('p', `What else differed is not known: ${(d.warnings || []).join('; ')}.`, 'half');
	const items = [...d.rows.map((r) => domMake('li', {}, linkCommand(r.command, r.text), ...(r.causes || []).map((c) => domSaid('small', ` because: ${c.what} ${c.name || ''}`)))),
		...(d.incidents || []).map((x) => domMake('li', {}, linkTo(formatSeen(x.text), {container: x.container, comm: '', pid: '', tab: x.oom ? 'oom' : 'events'}))),
		...(d.happened || []).map((x) => domMake('li', {}, linkTo(`${formatSeen(x.text)}, at ${wordsClock(x.time_ns, Date.now() * 1e6)}`, {tab: 'events'}))),
		...(d.hung || []).map((x) => domSaid('li', x.text)), ...(d.new_connections || []).map((x) => domMake('li', {}, linkTo(`New: ${formatSeen(x.text)}`, {tab: 'net'})))];
	if (!items.length)
		return domSaid('p', 'Nothing else changed by more than noise.', 'half');
	const box = domMake('details', {open: !d.chain || !d.chain.links.length}, domMake('summary', {}, d.chain && d.chain.links.length ? `What else differed: ${items.length}` : `What differed: ${items.length}`), domMake('ul', {className: 'plain'}, ...items));
	return box;
}

// What of the host was at its limit, whether or not it was so before.
function whyLimits(limits) {
	if (!limits || !limits.length)
		return [];
	return [domSaid('p', 'The host was at its limit:'), domMake('ul', {className: 'plain limits'}, ...limits.map((l) => domMake('li', {}, linkCommand(l.command, l.text))))];
}

function whyChain(c) {
	if (!c)
		return [];
	const notes = [];
	if (c.others)
		notes.push(domSaid('p', `Also slower, or failing more: ${c.others}.`, 'half'));
	if (c.not_recorded && c.links.length)
		notes.push(domSaid('p', `Not recorded, and could tell more: ${c.not_recorded}; sudo sonde up FAMILY.`, 'half'));
	if (c.links.length)
		return [domMake('ol', {className: 'chain'}, ...c.links.map((l, i) => whyLink(l, !i))), ...notes];
	const said = !c.requests_known ? 'Requests were not recorded in both windows: whether users felt anything is not known (sudo sonde up l7).'
		: !c.requests ? 'No requests were seen in this range.' : `Nothing was felt: none of ${formatCount(c.requests)} requests took longer than before, or failed more often.`;
	return [domSaid('p', said), ...notes];
}

// Only a part of what was asked about is explained.
function whyAsked(d) {
	return d.slower ? [domSaid('p', `Only in this part of ${wordsClock(d.asked_from_ns, d.from_ns)} to ${wordsClock(d.asked_to_ns, d.from_ns)} ${formatSeen(d.slower)} was slower.`, 'half')] : [];
}

const WHY_ABOUT = ({container, comm, pid}) => (pid ? `${comm || 'process'} (${pid})` : comm || container || '');

// on: {close(), request()}
function whyInit(on) {
	const box = $('why'), title = (p, from, to) => {
		const who = formatSeen(WHY_ABOUT(p)), near = Date.now() * 1e6;
		return p.request ? `Where did the time of ${formatSeen(p.request)} go` : `Why was ${who ? `${who}` : 'it'} slow${from ? `, ${wordsClock(from, near)} to ${wordsClock(to, to - from < 864e11 ? from : near)}` : ''}`;
	};
	$('why-close').addEventListener('click', on.close);
	return {
		// answer null: it is being asked
		show(p, command, answer) {
			box.hidden = false;
			box.setAttribute('aria-busy', !answer);
			$('why-command').textContent = command;
			const d = answer && answer.ok ? answer.data : null;
			$('why-title').textContent = `${title(p, d && d.from_ns, d && d.to_ns)}?`;
			if (!answer)
				$('why-said').replaceChildren(domMake('p', {className: 'half'}, 'Asking what users felt, and going along its requests to the cause \u2026'), domMake('div', {className: 'bones'}));
			else if (!d)
				$('why-said').replaceChildren(domSaid('p', answer.error, 'note'), ...(answer.fix ? [domMake('p', {className: 'half'}, 'What to do: ', domSaid('code', answer.fix))] : []));
			else if (d.took_ns !== undefined && !d.chain)
				$('why-said').replaceChildren(whyParts(d));
			else
				$('why-said').replaceChildren(...whyLimits(d.limits), ...whyChain(d.chain), whyOthers(d), ...whyAsked(d), domSaid('p', d.before_from_ns ? `Compared with ${wordsClock(d.before_from_ns, d.from_ns)} to ${wordsClock(d.before_to_ns, d.from_ns)}.` : '', 'half'));
		},
		none() { box.hidden = true; },
	};
}
