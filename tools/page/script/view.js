// SPDX-License-Identifier: Apache-2.0
// view: displays the state: controls, chips, graphs, hits, the text version.

// The node of a new tree that corresponds to one of an old: the same path, or else the hottest of the same look.
function viewSame(old, i, t) {
	if (!old || i < 0)
		return -1;
	const path = layoutPath(old, i), at = layoutFind(t, path), look = old.look[i];
	if (i && t.depth[at] === path.length)
		return at;
	let best = -1;
	for (let k = 1; k < t.n; k++)
		if (t.look[k] === look && (best < 0 || t.total[1][k] > t.total[1][best]))
			best = k;
	return best;
}

function pageShow(page, forced) {
	const {looks, profiles} = page;

	page.palette = (dark, plain) => ({...colourPalette(looks, dark, plain, page.state.colour),
		...(page.diff ? diffPalette(looks, page.profile.diff, dark, plain, page.state.colour) : {})});
	page.paint = () => {
		const dark = page.theme.dark(), s = page.state;
		const palette = page.palette(dark, forced.matches);
		for (const g of [page.upper, page.lower]) {
			g.palette = palette;
			g.redraw();
		}
		page.strip.paint(dark, forced.matches);
		const last = {package: 'shade: package or module', module: 'the ten hottest modules'}[s.colour];
		const all = COLOURS.includes(s.colour) ? colourLegend(looks, page.forward, dark, s.colour) : diffLegend(dark, s.colour);
		$('legend').replaceChildren(...all.map((o) => {
			const li = document.createElement('li'), box = document.createElement('i');
			box.style.background = o.fill;
			li.append(box, o.name);
			return li;
		}), ...(last ? [Object.assign(document.createElement('li'), {textContent: last})] : []));
	};
	page.print = (yes) => {
		const palette = page.palette(!yes && page.theme.dark(), false);
		page.lower.showWhole(yes, palette);
		if (!$('upper').hidden)
			page.upper.showWhole(yes, palette);
		if (!yes)
			page.paint();
	};

	page.focused = (g, i) => {
		page.active = g;
		$('focus').textContent = tipText(page, g, i);
		if (page.tree.of !== g.tree)
			page.tree.set(page.tree.of = g.tree, looks);
		page.tree.focus(i);
		if (!$('panel-lines').hidden)
			page.lines();
		for (const b of document.querySelectorAll('[data-act]'))
			b.disabled = !['svg', 'png'].includes(b.dataset.act) && page.selected() < 0;
	};
	page.lines = () => {
		const fn = page.selected();
		tableLines(fn < 0 ? '' : looks.fnName[fn], fn < 0 ? [] : layoutLines(page.profile, looks, page.leaves, fn), page.format,
			page.report.source_url);
	};

	function controls() {
		const s = page.state;
		for (const k of ['view', 'group', 'colour'])
			$(k).value = s[k];
		for (const k of STATE_CHECKED)
			$(k).checked = s[k];
		if ($('search').value !== s.q)
			$('search').value = s.q;
		$('back').disabled = page.depth <= 0;
		$('reset').disabled = stateWrite({...s, panel: 'functions'}, page.start) === '#';
		$('types').hidden = profiles.length < 2;
		tabsShow($('types'), profiles.map((p) => p.title), s.type, (i) => page.change({type: i, from: -1, to: -1}));
		$('sides').hidden = !page.diff;
		tabsShow($('sides'), DIFF_SHOW.map((x) => x[1]), DIFF_SHOW.findIndex((x) => x[0] === s.show), (i) => page.change({show: DIFF_SHOW[i][0]}));
		const panels = STATE_WORDS.panel;
		tabsShow($('panels'), [], panels.indexOf(s.panel), (i) => page.change({panel: panels[i]}, true), panels.map((k) => $('tab-' + k)));
		for (const k of panels)
			$('panel-' + k).hidden = k !== s.panel;
	}
	// How much off-CPU time is hidden, or that it is not.
	function idle() {
		const {profile: p, state: s} = page, rows = p.sides[0];
		let hidden = 0, all = 0;
		$('idle-line').hidden = !p.idle;
		if (!p.idle)
			return;
		for (let r = 0; r < rows.n; r++)
			if (s.from < 0 || (rows.slot[r] >= s.from && rows.slot[r] <= s.to)) {
				all += rows.value[r];
				hidden += p.idle[rows.node[r]] ? rows.value[r] : 0;
			}
		$('idle-said').textContent = `Idle waits are ${s.idle ? 'shown' : 'hidden'}: ${page.format.value(hidden)} of ${page.format.value(all)} (${page.format.share(hidden, all)})`;
		$('idle-show').textContent = s.idle ? 'Hide them' : 'Show them';
	}
	function chips() {
		const s = page.state, out = [];
		const chip = (text, patch) => {
			const li = document.createElement('li'), b = document.createElement('button');
			b.type = 'button';
			b.title = b.ariaLabel = 'Remove: ' + text;
			b.textContent = text + ' \u00d7';
			b.addEventListener('click', () => page.change(patch));
			li.append(b);
			out.push(li);
		};
		const name = (fn) => drawShorten(looks.fnName[fn], 60);
		if (s.view === 'sandwich')
			chip('callers and callees of ' + name(s.fn), {view: 'callees', fn: -1});
		if (s.from >= 0 && !page.diff)
			chip($('range').textContent, {from: -1, to: -1});
		for (const k of page.diff && page.sides.any ? BRUSH : [])
			if (s[k.from] >= 0)
				chip(`${k.side}: ${$('range' + k.side).textContent}`, {[k.from]: -1, [k.to]: -1});
		for (const [k, say] of [['focus', 'only through'], ['hide', 'hidden:'], ['drop', 'without']])
			for (const fn of s[k])
				chip(`${say} ${name(fn)}`, {[k]: s[k].filter((x) => x !== fn)});
		$('chips').replaceChildren(...out);
	}
	function graphs(fresh) {
		const s = page.state, both = s.view === 'sandwich', keep = page.active === page.lower ? page.lower : page.upper;
		for (const id of ['upper', 'upper-title', 'lower-title'])
			$(id).hidden = !both;
		$('upper').parentNode.classList.toggle('both', both);
		page.lower.upward = s.view === 'callers';
		page.upper.upward = true;
		if (!both)
			page.active = page.lower;
		for (const [g, t, path] of [[page.upper, page.trees[0], s.upZoom], [page.lower, page.trees[1], s.zoom]]) {
			if (!t)
				continue;
			const flip = g === page.upper || (s.flame && !both), zoom = layoutFind(t, path);
			if (fresh || g.tree !== t || g.flip !== flip)
				g.show(t, flip, zoom, both ? 0 : viewSame(keep.tree, keep.focus, t));
			else if (g.zoom !== zoom)
				g.zoomTo(zoom);
		}
		tipHide();
	}
	function hits() {
		const s = page.state, pattern = s.q ? layoutPattern(s.q) : null, t = page.trees[1];
		if (page.hitKey !== s.q || page.hitTree !== t) {
			page.hit = pattern ? layoutMatch(looks, pattern.re) : null;
			page.hits = page.hit ? layoutHits(looks, t, page.hit) : null;
			page.hitAt = -1;
		}
		Object.assign(page, {hitKey: s.q, hitTree: t});
		for (const g of [page.upper, page.lower]) {
			g.hit = page.hit;
			g.redraw();
		}
		$('search').classList.toggle('bad', Boolean(pattern && pattern.literal));
		$('hits').textContent = !page.hits ? '' : !page.hits.nodes.length ? 'nothing matches'
			: `${page.hitAt >= 0 ? `${page.hitAt + 1}/${page.hits.nodes.length} \u00b7 ` : ''}${formatCount(page.hits.functions)} `
				+ `function${page.hits.functions === 1 ? '' : 's'}, ${page.format.share(page.hits.total)}`
				+ (pattern.literal ? ' (as plain text)' : '');
		$('prev').disabled = $('next').disabled = !page.hits || !page.hits.nodes.length;
	}
	function sides(zoom) {
		const t = page.forward, f = page.format, say = (c) => `${f.main(t.total[c][zoom])}, ${f.count(t.total[c - 1][zoom])}`;
		const whole = zoom ? `Within ${drawShorten(looks.name[t.look[zoom]], 90)}: ` : '';
		const none = page.trees[1].total[1][0] ? '' : ` ${{elided: 'Nothing of A is gone in B.', delta: 'Nothing differs.'}[page.state.show] || 'There are no samples.'}`;
		$('scope').textContent = `${whole}A (before) ${say(DIFF_A)}; B (after) ${say(DIFF_B)}.${none} `
			+ 'Sure: more than noise; q: probability of a chance change, adjusted for all tests; computed for both whole sides.';
		if (!$('panel-lines').hidden)
			page.lines();
	}
	function words() {
		const s = page.state, t = page.forward, f = page.format, zoom = s.view === 'callees' ? page.lower.zoom : 0;
		const rows = layoutTop(looks, t, zoom);
		for (const r of page.diff ? rows : [])
			r.stat = page.profile.diff.of[r.fn];
		page.table.set(rows, f);
		if (page.diff) {
			sides(zoom);
			return;
		}
		const what = `${f.count(t.total[0][0])}, ${f.main(t.total[1][0])}`;
		$('scope').textContent = !t.total[1][0] ? 'There are no samples in this selection.'
			: zoom ? `Within ${drawShorten(looks.name[t.look[zoom]], 90)} (${f.share(t.total[1][zoom])} of ${what}).`
				: `Of ${what}. Click a function to find it in the graph.`;
		if (!$('panel-lines').hidden)
			page.lines();
	}

	page.show = () => {
		const fresh = page.compute();
		page.strip.range(page.state.from, page.state.to);
		if (page.diff)
			page.sides.show(page.state);
		controls();
		idle();
		chips();
		graphs(fresh);
		page.tree.of = page.active.tree;
		if (fresh)
			page.tree.set(page.active.tree, looks);
		hits();
		words();
		page.paint();
		page.tree.refresh();
		$('focus').textContent = '';
		page.focused(page.active, Math.max(page.active.focus, 0));
	};
}
