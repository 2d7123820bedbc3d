// SPDX-License-Identifier: Apache-2.0
// actions: how keys, buttons and the address change the state. Each step that Back should undo is a step in the history.

function pageActions(page, limits) {
	const {looks} = page;

	// replace: no new step
	page.change = (patch, replace) => {
		Object.assign(page.state, patch);
		if (patch.view || patch.type !== undefined || patch.group)
			Object.assign(page.state, {zoom: patch.zoom || [], upZoom: []});
		const address = stateWrite(page.state, page.start) || '#';
		if (replace) {
			history.replaceState(history.state, '', address);
		} else {
			page.depth++;
			history.pushState({depth: page.depth}, '', address);
		}
		page.show();
	};
	page.zoomTo = (g, i) => {
		if (i < 0 || i === g.zoom)
			return;
		page.change({[g === page.upper ? 'upZoom' : 'zoom']: layoutPath(g.tree, i)});
	};
	page.brush = (a, b, done) => {
		const all = a < 0 || (a === 0 && b === page.profile.slots - 1);
		const patch = all ? {from: -1, to: -1} : {from: a, to: b};
		if (!done) { // while dragging: shown, but not yet a step
			page.strip.range(patch.from, patch.to);
			return;
		}
		page.change(patch);
	};
	page.step = (by) => {
		const nodes = page.hits ? page.hits.nodes : [], g = page.lower, t = g.tree;
		if (!nodes.length)
			return;
		page.hitAt = (page.hitAt + by + nodes.length + (page.hitAt < 0 && by < 0 ? 1 : 0)) % nodes.length;
		const i = nodes[page.hitAt], at = page.hitAt;
		const seen = t.total[1][i] / (t.total[1][g.zoom] || 1) * g.width >= 2 && layoutIsAncestor(t, g.zoom, i);
		page.active = g;
		if (!seen)
			page.zoomTo(g, t.parent[i]);
		page.hitAt = at;
		g.focusOn(i);
		$('hits').textContent = $('hits').textContent.replace(/^(\d+\/\d+ \u00b7 )?/, `${at + 1}/${nodes.length} \u00b7 `);
	};

	const say = (text) => { $('said').textContent = text; };
	const toggle = (k) => () => page.change({[k]: !page.state[k]});
	const cycle = (k) => () => {
		const all = limits.words[k] || STATE_WORDS[k];
		if (all.length > 1)
			page.change({[k]: all[(all.indexOf(page.state[k]) + 1) % all.length]});
	};
	const withFunction = (act) => () => {
		const fn = page.selected();
		if (fn < 0)
			say('Choose a function first.');
		else
			act(fn);
	};
	const narrow = (k) => withFunction((fn) => page.change({[k]: [...page.state[k].filter((x) => x !== fn), fn].slice(-30)}));
	const panel = (name, grab) => () => {
		page.change({panel: name}, true);
		grab();
		$('panels').scrollIntoView({block: 'nearest'});
	};
	const title = () => document.title;
	const fileName = (end) => `${page.diff ? 'diff' : 'flame'}-${page.profile.type}.${end}`;
	const describe = (i) => tipText(page, page.active, i);

	function copyStack() {
		const g = page.active, t = g.tree, path = [];
		for (let i = Math.max(g.focus, 0); i; i = t.parent[i])
			if (looks.origin[t.look[i]] !== GROUP)
				path.push(formatSeen(looks.name[t.look[i]]));
		if (!g.upward)
			path.reverse();
		const counts = (page.diff ? [DIFF_A - 1, DIFF_B - 1] : [0]).map((c) => t.total[c][Math.max(g.focus, 0)]);
		saveText(`${path.join(';')} ${counts.join(' ')}`).then((ok) => say(ok ? 'Stack copied.' : 'This browser does not let the page copy.'));
	}

	const vertical = (down) => () => page.active.move(down !== page.active.flip ? 'in' : 'out');
	const actions = {
		up: vertical(false),
		down: vertical(true),
		left: () => page.active.move('left'),
		right: () => page.active.move('right'),
		zoom: () => page.zoomTo(page.active, page.active.focus),
		reset() {
			page.change({...page.fresh(), type: page.state.type, panel: page.state.panel, colour: page.state.colour});
		},
		escape() {
			if (page.state.q)
				page.change({q: ''}, true);
			else if (page.state.zoom.length || page.state.upZoom.length)
				page.change({zoom: [], upZoom: []});
			actions.graph();
		},
		graph: () => page.active.canvas.focus({preventScroll: true}),
		back: () => page.depth > 0 && history.back(),
		search() {
			$('search').focus();
			$('search').select();
		},
		next: () => page.step(1),
		previous: () => page.step(-1),
		help: () => $('keys').showModal(),
		theme: () => page.theme.next(),
		...Object.fromEntries(STATE_TOGGLES.map((k) => [k, toggle(k)])),
		group: cycle('group'), colour: cycle('colour'), sides: cycle('show'),
		invert: () => page.change({view: page.state.view === 'callers' ? 'callees' : 'callers'}),
		sandwich: () => (page.state.view === 'sandwich' && page.active.focus <= 0 ? page.change({view: 'callees', fn: -1})
			: withFunction((fn) => page.change({view: 'sandwich', fn}))()),
		focus: narrow('focus'), hide: narrow('hide'), drop: narrow('drop'),
		type: () => page.change({type: (page.state.type + 1) % page.profiles.length, from: -1, to: -1}),
		brush: () => (page.diff ? page.sides.any && $('fromB').focus() : $('from').focus()),
		table: panel('functions', () => $('top').querySelector('button').focus()),
		tree: panel('tree', () => page.tree.grab()),
		lines: panel('lines', () => $('tab-lines').focus()),
		copy: copyStack,
		svg: () => saveFile(fileName('svg'), new Blob([saveSvg(page.active, title(), describe)], {type: 'image/svg+xml'})),
		png: () => savePng(page.active, (blob) => saveFile(fileName('png'), blob)),
	};

	for (const [id, act] of [['prev', 'previous'], ['next', 'next'], ['back', 'back'], ['reset', 'reset'], ['theme', 'theme'],
		['help', 'help']])
		$(id).addEventListener('click', actions[act]);
	for (const b of document.querySelectorAll('[data-act]'))
		b.addEventListener('click', actions[b.dataset.act]);
	for (const k of STATE_CHECKED)
		$(k).addEventListener('change', () => page.change({[k]: $(k).checked}));
	for (const k of ['group', 'colour'])
		$(k).addEventListener('change', () => page.change({[k]: $(k).value}));
	$('idle-show').addEventListener('click', toggle('idle'));
	$('view').addEventListener('change', () => {
		const view = $('view').value, fn = page.selected();
		if (view !== 'sandwich' || fn >= 0) {
			page.change({view, fn: view === 'sandwich' ? fn : -1});
			return;
		}
		say('Choose a function first.');
		$('view').value = page.state.view;
	});
	let typing = 0;
	$('search').addEventListener('input', () => {
		clearTimeout(typing);
		typing = setTimeout(() => page.change({q: $('search').value}, true), page.forward.n > 20000 ? 120 : 0);
	});
	addEventListener('popstate', (e) => {
		page.depth = e.state && e.state.depth || 0;
		page.state = stateRead(location.hash, page.start, limits);
		page.show();
	});
	$('options').open = innerWidth > 700;
	for (const [value, text] of page.diff ? [['change', 'change'], ['redgreen', 'change, red and green']] : [])
		$('colour').append(Object.assign(document.createElement('option'), {value, textContent: text}));
	keysInit(actions, page.diff);
}
