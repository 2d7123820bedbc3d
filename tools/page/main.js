// SPDX-License-Identifier: Apache-2.0
// main: the page's state, and what happens on a click, a key, a search or a step back. The zoomed frame and the search
// stand in the address (#z=NODE&q=TEXT), so that Back works and a link returns to the same view.

const $ = (id) => document.getElementById(id);

function themeInit(onChange) {
	const names = ['system', 'light', 'dark'];
	const media = matchMedia('(prefers-color-scheme: dark)');
	let now = 'system';
	try {
		now = localStorage.getItem('sonde-theme') || now;
	} catch (e) { /* storage may be forbidden */ }
	function apply() {
		if (now === 'system')
			delete document.documentElement.dataset.theme;
		else
			document.documentElement.dataset.theme = now;
		$('theme').textContent = 'Theme: ' + now;
		onChange();
	}
	const theme = {
		dark: () => now === 'dark' || (now === 'system' && media.matches),
		next() {
			now = names[(names.indexOf(now) + 1) % names.length];
			try {
				localStorage.setItem('sonde-theme', now);
			} catch (e) { /* as above */ }
			apply();
		},
		apply,
	};
	media.addEventListener('change', apply);
	return theme;
}

function formatInit(head, whole) {
	const seconds = Math.max((head.to_ns - head.from_ns) / 1e9, 1e-9);
	return {
		share(v, of = whole) {
			const p = of > 0 ? 100 * v / of : 0;
			return (p >= 10 ? p.toFixed(1) : p.toFixed(2)) + ' %';
		},
		cores(v) {
			const c = v / 1e9 / seconds;
			return c >= 0.01 ? c.toFixed(2) : v ? '<0.01' : '0';
		},
		time(v) {
			const s = v / 1e9;
			return s >= 10 ? s.toFixed(1) + ' s' : s >= 1 ? s.toFixed(2) + ' s' : Math.round(s * 1000) + ' ms';
		},
		count: (v) => String(v).replace(/\B(?=(\d{3})+$)/g, '\u202f'),
	};
}

function pageStart(profile) {
	const {head, frames, tree} = profile;
	const canvas = $('canvas'), ctx = canvas.getContext('2d');
	const format = formatInit(head, tree.total[0]);
	const functions = layoutFunctions(frames);
	const still = matchMedia('(prefers-reduced-motion: reduce)');
	const forced = matchMedia('(forced-colors: active)');
	const view = {tree, frames, palette: null, search: null, zoom: 0, focus: -1, x0: 0, x1: tree.total[0] || 1,
		width: 0, height: 0, scroll: 0, charWidth: 7};
	let text = '', shown = 0, hitAt = -1, queued = false, motion = 0, table = null, depthOfZoom = 0;

	function redraw() {
		if (queued)
			return;
		queued = true;
		requestAnimationFrame(() => {
			queued = false;
			view.scroll = $('scroll').scrollTop;
			drawTree(ctx, view);
			shown = shown || performance.now();
		});
	}

	function resize() {
		const ratio = window.devicePixelRatio || 1, box = $('scroll');
		$('tall').style.height = (tree.maxDepth + 1) * ROW + 'px';
		view.width = Math.max(box.clientWidth, 50);
		view.height = box.clientHeight;
		canvas.width = Math.round(view.width * ratio);
		canvas.height = Math.round(view.height * ratio);
		canvas.style.width = view.width + 'px';
		canvas.style.height = view.height + 'px';
		ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
		ctx.font = FONT;
		view.charWidth = ctx.measureText('MMMMMMMMMM').width / 10;
		redraw();
	}

	function paint() {
		const dark = theme.dark();
		view.palette = colourPalette(frames, dark, forced.matches);
		$('legend').replaceChildren(...colourLegend(frames, dark).map((o) => {
			const li = document.createElement('li'), box = document.createElement('i');
			box.style.background = o.fill;
			li.append(box, o.name);
			return li;
		}), Object.assign(document.createElement('li'), {textContent: 'shade: package or module'}));
		redraw();
	}

	const pathText = (i) => frames.name[tree.frame[i]];

	function describe(i) {
		const f = tree.frame[i], where = frames.module[f] ? ', ' + frames.module[f] : '';
		return `${pathText(i)}${where}, ${format.share(tree.total[i])}, ${format.cores(tree.total[i])} cores, `
			+ `self ${format.share(tree.self[i])}`;
	}

	function focusOn(i) {
		if (i < 0)
			return;
		view.focus = i;
		$('focus').textContent = describe(i);
		const y = tree.depth[i] * ROW, box = $('scroll');
		if (y < box.scrollTop)
			box.scrollTop = y;
		else if (y + ROW > box.scrollTop + view.height)
			box.scrollTop = y + ROW - view.height;
		redraw();
	}

	function glide(x0, x1) {
		const from = [view.x0, view.x1], start = performance.now(), id = ++motion;
		if (still.matches || document.hidden) {
			[view.x0, view.x1] = [x0, x1];
			redraw();
			return;
		}
		(function step(now) {
			if (id !== motion)
				return;
			const k = Math.min(1, Math.max(0, (now - start) / 140)), e = 1 - (1 - k) ** 3;
			view.x0 = k < 1 ? from[0] + (x0 - from[0]) * e : x0;
			view.x1 = k < 1 ? from[1] + (x1 - from[1]) * e : x1;
			redraw();
			if (k < 1)
				requestAnimationFrame(step);
		})(start);
	}

	function tableFill() {
		const rows = layoutTop(frames, functions, tree, view.zoom);
		for (const r of rows) {
			r.name = frames.name[r.frame];
			r.module = frames.module[r.frame];
		}
		table.set(rows);
		$('scope').textContent = view.zoom
			? `Within ${drawShorten(pathText(view.zoom), 90)} (${format.share(tree.total[view.zoom])} of all); `
				+ 'percent of all CPU time shown in this report.'
			: 'In the whole report. A click on a function finds it in the graph.';
	}

	function showZoom(i) {
		view.zoom = i;
		hideTip();
		glide(tree.x[i], tree.x[i] + (tree.total[i] || 1));
		if (i && (view.focus < 0 || !layoutIsAncestor(tree, i, view.focus)))
			view.focus = i;
		focusOn(view.focus);
		$('back').disabled = depthOfZoom <= 0;
		$('reset').disabled = !i && !text;
		tableFill();
	}

	function showSearch(q) {
		text = q;
		hitAt = -1;
		if ($('search').value !== q)
			$('search').value = q;
		const pattern = q ? layoutPattern(q) : null;
		view.search = pattern ? layoutSearch(frames, tree, pattern.re) : null;
		$('search').classList.toggle('bad', Boolean(pattern && pattern.literal));
		$('hits').textContent = !view.search ? '' : !view.search.nodes.length ? 'nothing matches'
			: `${format.count(view.search.functions)} function${view.search.functions === 1 ? '' : 's'}, `
				+ `${format.share(view.search.total)}${pattern.literal ? ' (as plain text)' : ''}`;
		$('prev').disabled = $('next').disabled = !view.search || !view.search.nodes.length;
		$('reset').disabled = !view.zoom && !text;
		redraw();
	}

	function address(zoom, q) {
		const parts = [];
		if (zoom)
			parts.push('z=' + zoom);
		if (q)
			parts.push('q=' + encodeURIComponent(q));
		return '#' + parts.join('&');
	}

	function readAddress() {
		const got = new URLSearchParams(location.hash.slice(1));
		const z = Number(got.get('z') || 0);
		if ((got.get('q') || '') !== text)
			showSearch(got.get('q') || '');
		showZoom(Number.isInteger(z) && z > 0 && z < tree.n ? z : 0);
	}

	function zoomTo(i) {
		if (i < 0 || i === view.zoom)
			return;
		depthOfZoom++;
		history.pushState({depth: depthOfZoom}, '', address(i, text));
		showZoom(i);
	}

	function searchFor(q) {
		showSearch(q);
		history.replaceState(history.state, '', address(view.zoom, q));
	}

	function step(by) {
		const hits = view.search ? view.search.nodes : [];
		if (!hits.length)
			return;
		hitAt = (hitAt + by + hits.length + (hitAt < 0 && by < 0 ? 1 : 0)) % hits.length;
		const i = hits[hitAt];
		const seen = tree.total[i] / (tree.total[view.zoom] || 1) * view.width >= 2 && layoutIsAncestor(tree, view.zoom, i);
		if (!seen)
			zoomTo(tree.parent[i]);
		focusOn(i);
		$('hits').textContent = $('hits').textContent.replace(/^(\d+\/\d+ \u00b7 )?/, `${hitAt + 1}/${hits.length} \u00b7 `);
	}

	function nodeAt(x, y) {
		const v = view.x0 + x * (view.x1 - view.x0) / view.width;
		return layoutAt(tree, v, Math.floor((y + $('scroll').scrollTop) / ROW));
	}

	function hideTip() {
		$('tip').hidden = true;
	}

	function showTip(i, px, py) {
		const f = tree.frame[i], tip = $('tip'), p = tree.parent[i];
		const add = (kind, content) => Object.assign(document.createElement(kind), {textContent: content});
		const name = add('div', pathText(i)), where = add('div', [frames.module[f],
			frames.file[f] ? frames.file[f] + (frames.line[f] ? ':' + frames.line[f] : '') : '',
			frames.inlined(f) ? 'inlined' : '', i ? ORIGINS[frames.origin[f]].name : '']
			.filter(Boolean).join(' \u00b7 '));
		const list = document.createElement('dl');
		const fact = (k, v) => list.append(add('dt', k), add('dd', v));
		name.className = 'name';
		where.className = 'where';
		fact('total', `${format.share(tree.total[i])} of all \u00b7 ${format.cores(tree.total[i])} cores \u00b7 `
			+ `${format.time(tree.total[i])} \u00b7 ${format.count(tree.totalSamples[i])} samples`);
		if (i)
			fact('of its caller', format.share(tree.total[i], tree.total[p]));
		fact('self', `${format.share(tree.self[i])} \u00b7 ${format.cores(tree.self[i])} cores \u00b7 `
			+ `${format.count(tree.samples[i])} samples`);
		tip.replaceChildren(name, where, list);
		tip.hidden = false;
		const w = tip.offsetWidth, h = tip.offsetHeight;
		tip.style.left = Math.max(4, Math.min(px + 14, innerWidth - w - 6)) + 'px';
		tip.style.top = (py + 18 + h > innerHeight ? Math.max(4, py - h - 12) : py + 18) + 'px';
	}

	function restoreFocus() {
		canvas.focus({preventScroll: true});
	}

	const actions = {
		up: () => focusOn(view.focus < 0 ? 0 : tree.parent[view.focus]),
		down: () => focusOn(view.focus < 0 ? 0 : layoutFirstChild(tree, view.focus)),
		left: () => focusOn(view.focus < 0 ? 0 : layoutSibling(tree, view.focus, -1)),
		right: () => focusOn(view.focus < 0 ? 0 : layoutSibling(tree, view.focus, 1)),
		zoom: () => zoomTo(view.focus),
		reset() {
			if (text)
				showSearch('');
			if (view.zoom)
				zoomTo(0);
			else
				history.replaceState(history.state, '', address(0, ''));
		},
		escape() {
			if (text)
				searchFor('');
			else
				zoomTo(0);
			restoreFocus();
		},
		back() {
			if (depthOfZoom > 0)
				history.back();
		},
		search() {
			$('search').focus();
			$('search').select();
		},
		next: () => step(1),
		previous: () => step(-1),
		help: () => $('keys').showModal(),
		theme: () => theme.next(),
		table() {
			$('top').scrollIntoView();
			$('top').querySelector('button').focus();
		},
	};

	const theme = themeInit(() => view.palette && paint());
	document.documentElement.classList.add('js');
	table = tableInit($('rows'), $('more'), format, (r) => {
		searchFor('^' + r.name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') + '$');
		step(1);
		$('graph').scrollIntoView({block: 'nearest'});
	});
	for (const [id, action] of [['prev', 'previous'], ['next', 'next'], ['back', 'back'], ['reset', 'reset'],
		['theme', 'theme'], ['help', 'help']])
		$(id).addEventListener('click', actions[action]);
	let typing = 0;
	$('search').addEventListener('input', () => {
		clearTimeout(typing);
		typing = setTimeout(() => searchFor($('search').value), tree.n > 20000 ? 120 : 0);
	});
	canvas.addEventListener('mousemove', (e) => {
		const i = nodeAt(e.offsetX, e.offsetY);
		if (i < 0)
			hideTip();
		else
			showTip(i, e.clientX, e.clientY);
	});
	canvas.addEventListener('mouseleave', hideTip);
	canvas.addEventListener('click', (e) => {
		const i = nodeAt(e.offsetX, e.offsetY);
		if (i >= 0) {
			view.focus = i;
			zoomTo(i);
			focusOn(i);
		}
	});
	$('scroll').addEventListener('scroll', () => {
		hideTip();
		redraw();
	});
	window.addEventListener('popstate', (e) => {
		depthOfZoom = e.state && e.state.depth || 0;
		readAddress();
	});
	forced.addEventListener('change', paint);
	keysInit(actions);
	theme.apply();
	paint();
	new ResizeObserver(resize).observe($('scroll'));
	resize();
	depthOfZoom = history.state && history.state.depth || 0;
	showSearch('');
	readAddress();

	window.__sonde = {
		ready: true,
		nodes: tree.n,
		get shown() { // when the graph was first drawn, ms since the page was asked for
			return shown;
		},
		frameAt: (x, y) => {
			const i = nodeAt(x, y);
			return i < 0 ? null : node(i);
		},
		focused: () => (view.focus < 0 ? null : node(view.focus)),
		matches: () => (view.search ? {functions: view.search.functions, nodes: view.search.nodes.length,
			share: view.search.total / tree.total[0]} : null),
		view: () => ({zoom: node(view.zoom), search: text, rowHeight: ROW, width: view.width,
			x0: view.x0, x1: view.x1, scroll: $('scroll').scrollTop}),
		find: (name) => {
			for (let i = 0; i < tree.n; i++)
				if (frames.name[tree.frame[i]] === name)
					return node(i);
			return null;
		},
	};
	function node(i) {
		const f = tree.frame[i];
		return {id: i, name: frames.name[f], module: frames.module[f], self_ns: tree.self[i], total_ns: tree.total[i],
			self_samples: tree.samples[i], total_samples: tree.totalSamples[i], depth: tree.depth[i],
			x: (tree.x[i] - view.x0) * view.width / (view.x1 - view.x0), y: tree.depth[i] * ROW - $('scroll').scrollTop,
			width: tree.total[i] * view.width / (view.x1 - view.x0)};
	}
}

async function pageLoad() {
	if (typeof DecompressionStream === 'undefined')
		throw new Error('this browser is too old for it (no DecompressionStream; Chrome 80, Firefox 113, Safari 16.4 have it)');
	pageStart(dataDecode(await dataUnpack($('data').textContent)));
}

pageLoad().catch((e) => {
	$('note').textContent = 'The graph cannot be shown: ' + e.message + '. The table below stands by itself.';
	$('note').hidden = false;
	window.__sonde = {ready: false, error: e.message};
});
