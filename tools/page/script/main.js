// SPDX-License-Identifier: Apache-2.0
// main: from the state to the display: trees whose inputs have changed are recomputed, then drawn.

const $ = (id) => document.getElementById(id);

function pageStart(report) {
	const profiles = report.profiles, looks = looksInit(profiles), diff = Boolean(profiles[0].diff);
	const fresh = () => stateNew(report.group, diff), start = fresh();
	for (const p of profiles) {
		spreadWaits(p);
		buildGroups(p, looks);
		buildIdle(p, looks);
		buildStart(p, looks);
	}
	if (diff)
		diffInit(profiles[0], looks, report.strings);
	const limits = {types: profiles.length, fns: looks.fnName.length, looks: looks.n, slots: (i) => (diff ? BRUSH.map((k, side) => [k.from, k.to, profiles[i].sides[side].slots])
		: [['from', 'to', profiles[i].slots], ['fromA', 'toA', 0]]),
		words: diff ? {} : {colour: COLOURS, show: [start.show]}};
	const forced = matchMedia('(forced-colors: active)');
	const page = {report, profiles, looks, diff, start, fresh, state: stateRead(location.hash, start, limits), profile: null, format: null,
		leaves: null, forward: null, hits: null, hit: null, graphs: [], active: null, hitAt: -1, depth: 0};
	const on = {
		zoom: (g, i) => page.zoomTo(g, i),
		focus: (g, i) => page.focused(g, i),
		tip: (g, i, x, y) => (i < 0 ? tipHide() : tipShow(page, g, i, x, y)),
	};
	page.upper = graphInit($('upper'), looks, on);
	page.lower = graphInit($('lower'), looks, on);
	page.active = page.lower;
	page.table = tableInit(diff ? TABLE_TWO : TABLE_ONE, (r) => {
		page.change({q: '^' + r.name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') + '$'}, true);
		page.step(1);
		page.lower.canvas.focus({preventScroll: true});
		$('graph').scrollIntoView({block: 'nearest'});
	});
	page.tree = treeInit({
		focus: (i) => page.active.focusOn(i),
		zoom: (i) => page.zoomTo(page.active, i),
		words(t, i) {
			const f = page.format, a = t.total[DIFF_A], b = t.total[DIFF_B];
			return !diff ? [f.share(t.total[1][i]), `${f.main(t.total[1][i])}, self ${f.share(t.self[1][i])}`]
				: [diffPercent(a[i], b[i]), `${f.level(a[i])} to ${f.main(b[i])}${i && looks.origin[t.look[i]] !== GROUP && !page.profile.diff.of[looks.fn[t.look[i]]].sure ? ', not sure' : ''}`];
		},
	});
	page.strip = stripInit({range: (a, b, done) => page.brush(a, b, done)});
	page.sides = diff ? brushInit(profiles[0], (patch, done) => (done ? page.change(patch) : page.sides.show({...page.state, ...patch}))) : null;
	page.theme = themeInit(() => page.profile && page.paint());
	// the parts of the state, from the widest to the narrowest
	page.selected = () => {
		const g = page.active, fn = g.focus > 0 ? looks.fn[g.tree.look[g.focus]] : page.state.fn;
		return g.focus > 0 && looks.origin[g.tree.look[g.focus]] === GROUP ? -1 : fn;
	};

	page.compute = () => {
		const s = page.state, p = profiles[s.type], key = (...k) => JSON.stringify(k);
		const leavesKey = key(s.type, s.show, s.from, s.to, s.fromA, s.toA, s.group, s.focus, s.drop, s.idle), stripKey = key(s.type, s.group, s.idle);
		const forwardKey = leavesKey + key(s.hide, s.merge, s.start, s.runtime, s.kernel), viewKey = forwardKey + key(s.view, s.fn);
		if (page.stripKey !== stripKey) {
			page.strip.show(p, looks, s, (v) => (p.value_unit === 'ns' ? `${(v / 1e9).toFixed(2)} ${p.type === 'cpu' ? 'cores' : 'at once'}`
				: `${formatInit(p, 1, 1).value(v)}/s`));
		}
		const whole = diff ? brushWhole(p, s) : null;
		p.scale = diff ? whole[1] / whole[0] : 1;
		if (page.leavesKey !== leavesKey)
			page.leaves = buildLeaves(p, looks, s);
		if (page.forwardKey !== forwardKey)
			page.forward = buildForward(p, looks, page.leaves, s);
		const fresh = page.viewKey !== viewKey;
		Object.assign(page, {profile: p, leavesKey, forwardKey, viewKey, stripKey});
		const seconds = diff || s.from < 0 ? Math.max(p.recorded_ns / 1e9, 1e-9) : stripSeconds(p, s.from, s.to);
		page.format = formatInit(p, seconds, page.forward.total[1][0]);
		if (diff)
			page.format = diffFormat(page.format, p, page.forward.total.map((c) => c[0]), whole[1]);
		if (!fresh)
			return false;
		if (s.view === 'sandwich') {
			const both = buildSandwich(page.forward, looks, s.fn);
			page.trees = [both.callers, both.callees];
		} else {
			page.trees = [null, s.view === 'callers' ? buildInverted(page.forward, looks) : page.forward];
		}
		return true;
	};

	whoInit(page);
	pageShow(page, forced);
	pageActions(page, limits);
	if ($('procs'))
		reportInit(page);
	forced.addEventListener('change', () => page.paint());
	addEventListener('beforeprint', () => page.print(true));
	addEventListener('afterprint', () => page.print(false));
	document.documentElement.classList.add('js');
	page.theme.apply();
	page.depth = history.state && history.state.depth || 0;
	page.show(true);
	document.documentElement.dataset.state = 'ready';
}

sondeUnpack('data', 'deflate').then((bytes) => pageStart(dataDecode(bytes))).catch(sondeFailed);
