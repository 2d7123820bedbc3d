// SPDX-License-Identifier: Apache-2.0
// picture: the flame graph of the view, drawn by tools/page's modules; with two sides if it is compared. The state is in the address (place.js);
// it contains functions by name.

const PICTURE_ALL = {type: 0, focus: [], drop: [], hide: [], show: 'after', from: -1, to: -1, fromA: -1, toA: -1}; // further input of build.js
const PICTURE_SMALLER = '(smaller frames)';
const PICTURE_FOLDS = ['start', 'kernel', 'runtime', 'merge', 'idle', 'flame'];

// on: {change(patch, replace), deeper(owner)}: owner: {comm, pid} of the process, or null
function pictureInit(on, theme, forced) {
	const pic = {profile: null, looks: null, diff: false, format: null, state: null, trees: null, forward: null, forwardKey: '', hit: null, hits: null, place: null, lower: null, upper: null, active: null, hitAt: -1};
	const drawn = {
		zoom: (g, i) => zoomTo(g, i),
		focus: (g, i) => focused(g, i),
		tip: (g, i, x, y) => (i < 0 ? tipHide() : tipShow(pic, g, i, x, y)),
	};
	const empty = {n: 0, name: [], module: [], origin: [], inlined: [], file: [], line: [], fn: [], fnName: [], fnModule: [], fnLook: []};
	pic.upper = graphInit($('upper'), empty, drawn);
	pic.lower = graphInit($('lower'), empty, drawn);
	pic.active = pic.lower;
	const tree = treeInit({
		focus: (i) => pic.active.focusOn(i),
		zoom: (i) => zoomTo(pic.active, i),
		words(t, i) {
			const f = pic.format;
			return pic.diff ? [diffPercent(t.total[DIFF_A][i], t.total[DIFF_B][i]), `${f.level(t.total[DIFF_A][i])} to ${f.main(t.total[DIFF_B][i])}`]
				: [f.share(t.total[1][i]), `${f.main(t.total[1][i])}, self ${f.share(t.self[1][i])}`];
		},
	});

	function stateOf(p) {
		const folds = p.fold.split('.'), name = p.fn;
		const s = {...PICTURE_ALL, view: p.view, group: p.group, colour: p.colour === 'change' && !pic.diff ? 'package' : pic.diff && p.colour === 'package' ? 'change' : p.colour, fn: pic.looks.fnName.indexOf(name)};
		for (const k of PICTURE_FOLDS)
			s[k] = folds.includes(k);
		if (s.view === 'sandwich' && s.fn < 0)
			s.view = 'callees';
		return s;
	}
	// For what is drawn: the other graph may still have a tree of an older answer.
	const shown = () => [pic.upper, pic.lower].filter((g) => g.tree && pic.trees && pic.trees.includes(g.tree));
	// The hottest node with a name.
	function named(t, name) {
		let best = 0;
		for (let i = 1; name && i < t.n; i++)
			if (pic.looks.name[t.look[i]] === name && (!best || t.total[1][i] > t.total[1][best]))
				best = i;
		return best;
	}
	const seconds = () => Math.max(pic.profile.recorded_ns / 1e9, 1e-9);
	function build() {
		const {profile: p, looks, state: s} = pic;
		pic.leaves = buildLeaves(p, looks, s);
		pic.forward = buildForward(p, looks, pic.leaves, s);
		pic.forwardKey = JSON.stringify(s) + p.made;
		pic.format = formatInit(p, seconds(), pic.forward.total[1][0]);
		if (pic.diff)
			pic.format = diffFormat(pic.format, p, pic.forward.total.map((c) => c[0]), p.diff.whole[1]);
		if (s.view === 'sandwich') {
			const both = buildSandwich(pic.forward, looks, s.fn);
			pic.trees = [both.callers, both.callees];
		} else {
			pic.trees = [null, s.view === 'callers' ? buildInverted(pic.forward, looks) : pic.forward];
		}
	}
	function hits() {
		const q = pic.place.q, pattern = q ? layoutPattern(q) : null, t = pic.trees[1];
		pic.hit = pattern ? layoutMatch(pic.looks, pattern.re) : null;
		pic.hits = pic.hit ? layoutHits(pic.looks, t, pic.hit) : null;
		pic.hitAt = -1;
		for (const g of shown()) {
			g.hit = pic.hit;
			g.redraw();
		}
		$('search').classList.toggle('bad', Boolean(pattern && pattern.literal));
		$('hits').textContent = !pic.hits ? '' : !pic.hits.nodes.length ? 'nothing matches'
			: `${formatCount(pic.hits.functions)} function${pic.hits.functions === 1 ? '' : 's'}, ${pic.format.share(pic.hits.total)}`;
		$('prev').disabled = $('next').disabled = !pic.hits || !pic.hits.nodes.length;
	}
	function draw(fresh) {
		const s = pic.state, both = s.view === 'sandwich';
		for (const id of ['upper', 'upper-title', 'lower-title'])
			$(id).hidden = !both;
		$('graph').classList.toggle('both', both);
		pic.lower.upward = s.view === 'callers';
		pic.upper.upward = true;
		if (!both)
			pic.active = pic.lower;
		for (const [g, t] of [[pic.upper, pic.trees[0]], [pic.lower, pic.trees[1]]]) {
			if (!t)
				continue;
			const zoom = g === pic.lower ? named(t, pic.place.zoom) : 0;
			g.looks = pic.looks;
			if (fresh || g.tree !== t)
				g.show(t, g === pic.upper || (s.flame && !both), zoom, zoom);
			else if (g.zoom !== zoom)
				g.zoomTo(zoom);
		}
		tree.set(pic.active.tree, pic.looks);
		paint();
		hits();
		focused(pic.active, Math.max(pic.active.focus, 0));
	}
	function paint() {
		if (!pic.profile)
			return;
		const dark = theme.dark(), s = pic.state, plain = forced.matches;
		const palette = {...colourPalette(pic.looks, dark, plain, s.colour), ...(pic.diff ? diffPalette(pic.looks, pic.profile.diff, dark, plain, s.colour) : {})};
		for (const g of shown()) {
			g.palette = palette;
			g.redraw();
		}
		const all = COLOURS.includes(s.colour) ? colourLegend(pic.looks, pic.forward, dark, s.colour) : diffLegend(dark, s.colour);
		$('legend').replaceChildren(...all.map((o) => {
			const li = document.createElement('li'), i = document.createElement('i');
			i.style.background = o.fill;
			li.append(i, o.name);
			return li;
		}));
	}
	function focused(g, i) {
		pic.active = g;
		if (!g.tree || !g.tree.n)
			return;
		$('focus').textContent = tipText(pic, g, i) + (isSmaller(g, i) ? '. Enter or a click shows what is in it.' : '');
		tree.focus(i);
		const fn = selected();
		for (const b of document.querySelectorAll('[data-act]'))
			b.disabled = fn < 0;
	}
	const selected = () => {
		const g = pic.active;
		return g.focus > 0 && pic.looks && pic.looks.origin[g.tree.look[g.focus]] !== GROUP ? pic.looks.fn[g.tree.look[g.focus]] : -1;
	};
	// The process whose row is above a node.
	function ownerOf(g, i) {
		for (; i > 0; i = g.tree.parent[i]) {
			const found = pic.looks.origin[g.tree.look[i]] === GROUP ? /^([^]*) \((\d+)\)$/.exec(pic.looks.name[g.tree.look[i]]) : null;
			if (found)
				return {comm: found[1], pid: Number(found[2])};
		}
		return null;
	}
	const isSmaller = (g, i) => i > 0 && pic.looks.name[g.tree.look[i]] === PICTURE_SMALLER;
	function zoomTo(g, i) {
		if (i > 0 && g.tree && isSmaller(g, i)) {
			on.deeper(ownerOf(g, i));
			return;
		}
		if (g !== pic.lower || i < 0 || i === g.zoom)
			return;
		g.zoomTo(i);
		pic.place = {...pic.place, zoom: i ? pic.looks.name[g.tree.look[i]] : ''};
		on.change({zoom: pic.place.zoom}, false, true);
	}
	function step(by) {
		const nodes = pic.hits ? pic.hits.nodes : [], g = pic.lower;
		if (!nodes.length)
			return;
		pic.hitAt = (pic.hitAt + by + nodes.length + (pic.hitAt < 0 && by < 0 ? 1 : 0)) % nodes.length;
		pic.active = g;
		g.focusOn(nodes[pic.hitAt]);
	}
	for (const k of ['view', 'group', 'colour'])
		$(k).addEventListener('change', () => on.change({[k]: $(k).value, ...(k === 'view' && $(k).value === 'sandwich' ? {fn: selected() >= 0 ? pic.looks.fnName[selected()] : pic.place.fn} : {})}));
	for (const k of PICTURE_FOLDS)
		$('fold-' + k).addEventListener('change', () => on.change({fold: PICTURE_FOLDS.filter((x) => $('fold-' + x).checked).join('.') || 'none'}));
	let typing = 0;
	$('search').addEventListener('input', () => {
		clearTimeout(typing);
		typing = setTimeout(() => {
			pic.place = {...pic.place, q: $('search').value};
			on.change({q: pic.place.q}, true, true);
			if (pic.trees)
				hits();
		}, 60);
	});
	$('prev').addEventListener('click', () => step(-1));
	$('next').addEventListener('click', () => step(1));
	const vertical = (down) => pic.active.move(down !== pic.active.flip ? 'in' : 'out');
	const actions = {
		up: () => vertical(false), down: () => vertical(true), left: () => pic.active.move('left'), right: () => pic.active.move('right'),
		zoom: () => zoomTo(pic.active, pic.active.focus),
		out() {
			zoomTo(pic.lower, 0);
			if (pic.trees)
				pic.lower.focusOn(0);
		},
		next: () => step(1), previous: () => step(-1),
		sandwich: () => (selected() >= 0 ? on.change({view: 'sandwich', fn: pic.looks.fnName[selected()], zoom: ''}) : on.change({view: 'callees', fn: ''})),
		invert: () => on.change({view: pic.place.view === 'callers' ? 'callees' : 'callers', zoom: ''}),
		tree() {
			$('panel-tree').hidden = !$('panel-tree').hidden;
			$('tree-open').setAttribute('aria-expanded', !$('panel-tree').hidden);
			tree.refresh();
			if (!$('panel-tree').hidden)
				tree.grab();
		},
		copy() {
			const g = pic.active, t = g.tree, path = [];
			for (let i = Math.max(g.focus, 0); i; i = t.parent[i])
				if (pic.looks.origin[t.look[i]] !== GROUP)
					path.push(formatSeen(pic.looks.name[t.look[i]]));
			if (!g.upward)
				path.reverse();
			say(navigator.clipboard ? 'Stack copied.' : 'This browser does not let the page copy.');
			if (navigator.clipboard)
				navigator.clipboard.writeText(path.join(';'));
		},
	};
	for (const b of document.querySelectorAll('[data-act]'))
		b.addEventListener('click', () => actions[b.dataset.act]());
	$('tree-open').addEventListener('click', actions.tree);
	let made = 0;
	return {
		actions, paint,
		// answers: one, or before and after; stats: the answer of diff, or null
		show(answers, ps, stats, place) {
			const {profile, looks} = profileOf(answers, ps, stats);
			profile.made = ++made;
			Object.assign(pic, {profile, looks, diff: answers.length > 1, place});
			whoInit(pic);
			$('graph').classList.remove('bare');
			this.again(place, true);
		},
		// Shows the same answers in another way.
		again(place, fresh) {
			pic.place = place;
			if (!pic.profile)
				return;
			const was = JSON.stringify(pic.state);
			pic.state = stateOf(place);
			for (const k of ['view', 'group'])
				$(k).value = pic.state[k];
			$('colour').value = pic.state.colour;
			for (const k of PICTURE_FOLDS)
				$('fold-' + k).checked = pic.state[k];
			if (document.activeElement !== $('search'))
				$('search').value = place.q;
			const other = fresh || was !== JSON.stringify(pic.state);
			if (other)
				build();
			draw(other);
		},
		none() {
			pic.profile = pic.looks = pic.trees = null;
			$('graph').classList.add('bare');
			$('focus').textContent = '';
		},
		grab: () => pic.active.canvas.focus({preventScroll: true}),
		find(name) {
			const q = '^' + name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') + '$';
			pic.place = {...pic.place, q};
			$('search').value = q;
			on.change({q}, true, true);
			if (pic.trees) {
				hits();
				step(1);
			}
		},
		functions: () => (pic.looks ? pic.looks.fnName : []),
	};
}
