// SPDX-License-Identifier: Apache-2.0
// tip: text for the frame under the pointer.

function tipHide() {
	$('tip').hidden = true;
}

// For a node with two sides.
function tipSides(page, t, i) {
	const f = page.format, stat = page.profile.diff.of[page.looks.fn[t.look[i]]], [a, b] = [t.total[DIFF_A][i], t.total[DIFF_B][i]];
	const own = [t.self[DIFF_A][i], t.self[DIFF_B][i]], facts = [];
	facts.push(['A, before', `${f.main(a)} \u00b7 ${f.count(t.total[DIFF_A - 1][i])}`], ['B, after', `${f.main(b)} \u00b7 ${f.count(t.total[DIFF_B - 1][i])}`]);
	facts.push(['change', `${f.changed(b - a)} (${diffPercent(a, b) || 'none'})`]);
	if (own[0] || own[1])
		facts.push(['self', `${f.level(own[0])} to ${f.level(own[1])} (${diffPercent(...own)})`]);
	if (i && page.looks.origin[t.look[i]] !== GROUP) {
		facts.push(['of the function', `total: ${diffSay(stat, f, 'total')}; self: ${diffSay(stat, f, 'self')}`]);
		if (diffWhy(stat))
			facts.push(['why', diffWhy(stat)]);
	}
	return facts;
}

// {name, where, facts: [[what, how much]...]} of a node.
function tipFacts(page, g, i) {
	const t = g.tree, l = t.look[i], looks = page.looks, f = page.format, total = t.total[1][i], facts = [];
	const where = formatSeen([looks.module[l], looks.file[l] ? looks.file[l] + (looks.line[l] ? ':' + looks.line[l] : '') : '',
		looks.inlined[l] ? 'inlined' : '', i ? ORIGINS[looks.origin[l]].name : ''].filter(Boolean).join(' \u00b7 '));
	const name = formatSeen(looks.name[l]);
	const who = i ? page.who(g, i) : '';
	if (who)
		facts.push(['process', who]);
	if (page.diff)
		return {name, where, facts: [...facts, ...tipSides(page, t, i)]};
	const rate = f.rated && f.rateUnit === 'cores' ? `${f.main(total)} \u00b7 ` : '';
	facts.push(['total', `${f.share(total)} of all \u00b7 ${rate}${f.value(total)} \u00b7 ${f.count(t.total[0][i])}`]);
	if (i)
		facts.push([g.upward ? 'of what it called' : 'of its caller', f.share(total, t.total[1][t.parent[i]])]);
	if (!g.upward)
		facts.push(['self', `${f.share(t.self[1][i])} \u00b7 ${f.main(t.self[1][i])} \u00b7 ${f.count(t.self[0][i])}`]);
	return {name, where, facts};
}

function tipText(page, g, i) {
	const t = tipFacts(page, g, i);
	return `${t.name}${t.where ? ', ' + t.where : ''}: ${t.facts.map((x) => x.join(' ')).join('; ')}`;
}

function tipShow(page, g, i, px, py) {
	const tip = $('tip'), {name, where, facts} = tipFacts(page, g, i), list = document.createElement('dl');
	const add = (kind, content) => Object.assign(document.createElement(kind), {textContent: content});
	for (const [k, v] of facts)
		list.append(add('dt', k), add('dd', v));
	tip.replaceChildren(Object.assign(add('div', name), {className: 'name'}), Object.assign(add('div', where), {className: 'where'}), list);
	tip.hidden = false;
	const w = tip.offsetWidth, h = tip.offsetHeight;
	tip.style.left = Math.max(4, Math.min(px + 14, innerWidth - w - 6)) + 'px';
	tip.style.top = (py + 18 + h > innerHeight ? Math.max(4, py - h - 12) : py + 18) + 'px';
}
