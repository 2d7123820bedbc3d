// SPDX-License-Identifier: Apache-2.0
// main: from the address to requests, from answers to the display. Only what depends on changes is requested again; a request that
// is no longer needed is aborted. What is asked first is what is seen first: the strip and the headline, what is wrong, the table, the picture.

const MAIN_TABS = Object.keys(TABLES).filter((t) => !TABLES[t].more), MAIN_MORE = Object.keys(TABLES).filter((t) => TABLES[t].more), MAIN_LASTS = ['15m', '1h', '6h', '24h', '7d'], MAIN_NOTHING_THERE = 404;
const MAIN_NODES = {'': 5000, 1: 30000, 2: 200000}; // frames of the picture, by the address's `deep`
const mainTitle = (tab) => TABLES[tab].title || tab;
// The tabs of the picture: each a kind of value, or the map.
const MAIN_PICTURES = [{id: 'pic-flame', pic: '', type: 'cpu'}, {id: 'pic-waits', pic: '', type: 'offcpu'}, {id: 'pic-heap', pic: '', type: 'inuse'}, {id: 'pic-map', pic: 'map'}];
const MAIN_LIVE = {least: 5000, most: 30000, times: 100, quiet: 60000, picture: 3}; // ms between two rounds; at least this many times the duration of the answers: viewers cost little, even on a busy host

const MAIN_OF = {cpu: 'CPU', mem: 'memory', io: 'read and written', net: 'network', pressure: 'pressure', disk: 'disks busy', requests: 'requests', errors: 'failed requests'};
const MAIN_EDGES = 'select container, comm, protocol, port, peer_container, peer_comm, peer, sum(opened) opened, sum(tx_bytes) tx_bytes, sum(rx_bytes) rx_bytes\nfrom win_edges\ngroup by 1, 2, 3, 4, 5, 6, 7 order by tx_bytes + rx_bytes desc limit 50';

let sayTimer = 0;
function say(text) {
	$('said').textContent = text;
	clearTimeout(sayTimer);
	sayTimer = setTimeout(() => { $('said').textContent = ''; }, 4000);
}

function mainStart() {
	const app = {place: placeRead(location.search), tab: 'containers', timeline: null, ps: null, table: null, running: null, live: 0, listening: null, changed: false, asked: 0, under: {}, round: 0, period: MAIN_LIVE.least, keys: {}, columns: {}};
	const forced = matchMedia('(forced-colors: active)');
	const theme = themeInit(() => {
		band.paint(theme.dark(), forced.matches);
		picture.paint();
	});
	const note = (id, answer) => {
		$(id).hidden = answer.ok;
		$(id).replaceChildren();
		if (answer.ok)
			return;
		const code = document.createElement('code');
		code.textContent = answer.fix;
		$(id).append(formatSeen(answer.error), ...(answer.fix ? [' \u2014 ', code] : []), ...(answer.status >= 500 || answer.status === 0 ? [' ', domButton('Ask again', () => show(true), 'quiet')] : []));
	};
	const busy = (id, is) => $(id).setAttribute('aria-busy', Boolean(is));

	// replace: no new step in the history; quiet: the display is already up to date
	function change(patch, replace, quiet) {
		if (patch.last)
			Object.assign(patch, {from: '', to: ''});
		if (['last', 'from', 'to'].some((k) => patch[k]) && patch.in === undefined)
			Object.assign(patch, {in: '', until: ''});
		if (patch.live === undefined && ['last', 'from', 'to', 'in'].some((k) => patch[k]))
			patch.live = '';
		app.place = {...app.place, ...patch};
		history[replace ? 'replaceState' : 'pushState'](null, '', placeWrite(app.place));
		if (!quiet)
			show();
	}

	// The container or process of a spike or a group of the strip.
	const whoOf = (x) => (!x || !x.who ? {} : x.who_is === 'container' ? {container: x.who} : x.who_is === 'command' ? {comm: x.who}
		: x.who_is === 'process' ? {pid: String(x.top_pid || (/\((\d+)\)$/.exec(x.who) || [])[1] || '')} : {});
	const nobody = {container: '', comm: '', pid: ''};
	const band = bandInit({choose(from, to, who) {
		const found = whoOf(who), patch = who ? {...nobody, ...found, tab: found.container ? 'containers' : found.comm || found.pid ? 'processes' : app.tab, zoom: '', fn: ''} : {};
		if (from === 0)
			Object.assign(patch, {in: '', until: '', zoom: ''});
		else if (from > 0)
			Object.assign(patch, {in: placeTime(from), until: placeTime(to), zoom: ''});
		change(patch);
	}, why(r) { whyPart({...nobody, request: '', zoom: ''}, {}, r); }});
	Object.assign(LINKS, {change: (patch) => change(patch), href: (patch) => placeWrite({...app.place, ...(patch.last ? {from: '', to: ''} : {}), ...patch})});
	const picture = pictureInit({change, deeper}, theme, forced);
	const grid = gridInit($('table'), {
		pick(r) {
			const t = TABLES[app.tab];
			if (t.pick) {
				change(t.pick(r, app.place, app.table && app.table.ok ? app.table.data : {}));
				return;
			}
			if (app.tab === 'functions') {
				if (app.place.pic)
					change({pic: '', q: `^${r.function.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`});
				else
					picture.find(r.function);
				$('graph').scrollIntoView({block: 'nearest'});
				return;
			}
			const who = {...nobody, ...t.who(r)};
			change({...(isWho(who) ? nobody : who), zoom: '', fn: ''});
		},
		sort: (key) => change({sort: key}, true, true),
	});
	const isWho = (who) => ['container', 'comm', 'pid'].every((k) => (who[k] || '') === app.place[k]) && Object.values(who).some(Boolean);
	const services = servicesInit({pick(n) {
		const who = {...nobody, ...(n.kind === 'container' ? {container: n.name} : {comm: n.name})};
		change({...(isWho(who) ? nobody : who), tab: n.kind === 'container' ? 'containers' : 'processes', zoom: '', fn: ''});
	}});
	const runs = runsInit({pick: (e) => change({...nobody, ...(e.comm ? {comm: e.comm, pid: String(e.pid)} : {}), tab: 'processes'})});
	const why = whyInit({close: () => change({why: ''})});
	const sql = sqlInit({change: (patch) => change(patch, false, true), range: () => ({...placeChosen(app.place), ...placeWho(app.place)})});

	// --- why ---

	// A part that is chosen, in ns.
	const part = (from_ns, to_ns) => ({in: placeTime(Math.floor(from_ns / 1e9) * 1e9), until: placeTime(Math.ceil(to_ns / 1e9) * 1e9)});
	// Why somebody was slow: of the chosen part, else of the part of the range in which its requests took most or it had a spike.
	async function whyWho(who, operation) {
		const p = app.place, patch = {...nobody, ...who, request: ''};
		if (p.in) {
			change({...patch, why: askQuery({...who, ...placeChosen(p)})});
			return;
		}
		const at = (side) => ask('sql', {...placeRange(p), query: requestsOverTime(side, operation ? operation.service : '', operation ? operation.operation : '', who.container || '')});
		let answer = await at(operation ? operation.side : 'server');
		if (!operation && answer.ok && !answer.data.rows.length)
			answer = await at('client');
		const worst = answer.ok ? requestsWorst(answer.data.rows) : null, t = app.timeline && app.timeline.ok ? app.timeline.data : null;
		const spike = t ? t.rows.filter((r) => r.who === (who.container || who.comm)).sort((a, b) => b.excess_core_seconds - a.excess_core_seconds)[0] : null;
		if (p !== app.place)
			return;
		say(worst ? 'Chosen: when its requests took most.' : spike ? 'Chosen: its largest spike.' : 'Nothing of it sticks out in this range: the whole range is explained.');
		whyPart(patch, who, worst || spike);
	}
	// The part is chosen, and explained for `who`; without one the whole range is.
	function whyPart(patch, who, at) {
		const chosen = at ? part(at.from_ns, at.to_ns) : {};
		change({...patch, ...chosen, why: askQuery({...who, ...(at ? {from: chosen.in, to: chosen.until} : placeRange(app.place))})});
	}
	const ways = {
		why: (r) => whyWho(r.container ? {container: r.container} : {comm: r.comm || ''}, r),
		whyWho: (r) => whyWho(r.container && !r.pid ? {container: r.container} : {comm: r.comm, pid: r.pid ? String(r.pid) : ''}),
		// A moment: the minute before it.
		whyMoment: (container, from_ns, to_ns) => whyPart({...nobody, container: container || '', request: ''}, {container}, {from_ns: Math.min(from_ns, to_ns - 6e10), to_ns: to_ns + 1e9}),
		whyCheck(r) {
			const t = app.timeline && app.timeline.ok ? app.timeline.data : null, long = Math.max(r.for_minutes || 5, 5) * 6e10, end = app.place.in ? Date.parse(app.place.until) * 1e6 : t ? t.to_ns : Date.now() * 1e6;
			const known = [...(app.ps && app.ps.ok ? app.ps.data.rows : []), ...(app.table && app.table.ok && app.tab === 'containers' ? app.table.data.rows : [])].some((x) => x.container === r.subject), link = linkOf(r.command) || {};
			const container = link.container || (known ? r.subject : '');
			whyPart({...nobody, container, request: ''}, {container}, {from_ns: end - long, to_ns: end});
		},
		flame: (operation, type) => change({request: operation, pic: '', type}),
		pick: (id) => change({id}),
	};
	// Into "(smaller frames)": the process alone, or more frames.
	function deeper(owner) {
		const p = app.place;
		if (owner && owner.pid && String(owner.pid) !== p.pid)
			change({...nobody, comm: owner.comm, pid: String(owner.pid), zoom: ''});
		else if (p.deep !== '2')
			change({deep: p.deep ? '2' : '1'});
		else
			say('All frames are drawn.');
	}

	// --- requests ---

	const key = (...k) => JSON.stringify(k);
	// An answer; requested only if the request differs, or everything is refreshed; a request in progress is awaited.
	function asked(name, verb, params, anew) {
		const k = key(verb, params), under = app.under[name], run = app.running;
		if (under && under.k === k && under.run === run)
			return under.answer;
		if (!anew && app.keys[name] === k && app[name])
			return app[name];
		const answer = ask(verb, params, run.signal).then((a) => {
			if (app.under[name].answer === answer) {
				app[name] = a;
				app.keys[name] = k;
			}
			return a;
		});
		app.under[name] = {k, run, answer};
		return answer;
	}
	const byOf = (p) => ({by: p.by === 'both' ? '' : p.by});
	function tableParams(p) {
		const t = TABLES[app.tab], time = t.ranged === false ? (p.in || p.to ? {at: p.in ? p.until : p.to} : {}) : placeChosen(p);
		return {...time, ...(t.narrow ? placeWho(p) : {}), ...(t.typed && p.type !== 'wall' ? {type: p.type === 'cpu' ? '' : p.type} : {}), ...(typeof t.params === 'function' ? t.params(p) : t.params)};
	}
	const flameParams = (p) => ({...placeChosen(p), ...placeWho(p), type: p.type === 'cpu' ? '' : p.type, request: p.request, group: 'process', nodes: MAIN_NODES[p.deep]});
	const mapParams = (p) => ({...placeChosen(p), ...placeWho(p)});
	function lengthOf(p, t) {
		const ns = p.in ? (Date.parse(p.until) - Date.parse(p.in)) * 1e6 : t ? t.to_ns - t.from_ns : 36e11;
		return `${Math.max(1, Math.round(ns / 1e9))}s`;
	}
	// [before, after] and the answer of diff, or only [after].
	async function pictures(p, t, anew) {
		if (!p.compare || p.type === 'wall' || p.request)
			return {answers: [await asked('flame', 'flame', flameParams(p), anew)], stats: null};
		const params = {...placeChosen(p), ...placeWho(p), type: p.type === 'cpu' ? '' : p.type, baseline: p.compare === 'previous' ? lengthOf(p, t) : p.compare, number: 5000};
		const stats = await asked('diff', 'diff', params, anew);
		$('graph-command').textContent = wordsCommand('diff', {...params, number: ''});
		if (!stats.ok)
			return {answers: [await asked('flame', 'flame', flameParams(p), anew)], stats};
		const side = (x) => ({...flameParams(p), last: '', from: placeTime(x.from_ns), to: placeTime(x.to_ns)});
		return {stats, answers: await Promise.all([asked('flameA', 'flame', side(stats.data.before), anew), asked('flameB', 'flame', side(stats.data.after), anew)])};
	}

	// --- display ---

	// t: the answer of the strip; rest: table and picture are shown anyway, e.g. without CPU samples
	function showNothing(t, rest) {
		$('nothing').hidden = t.ok;
		$('nothing-there').hidden = true;
		for (const id of ['over', 'sentence', 'about', 'state'])
			$(id).hidden = !t.ok;
		for (const id of ['users', 'picture'])
			$(id).hidden = !rest;
		if (t.ok)
			return;
		$('nothing-said').textContent = formatSeen(t.error);
		$('nothing-fix').textContent = t.fix || 'sonde status';
		if (t.status && !rest)
			offerStored(app.place);
	}
	// The last hour of the stored data, if that is another range.
	async function offerStored(p) {
		const answer = await asked('status', 'status', {}), d = answer.data, now = Date.now() * 1e6;

		if (!answer.ok || !d.to_ns || p !== app.place)
			return;
		const from = placeTime(Math.floor(Math.max(d.from_ns, d.to_ns - 36e11) / 1e9) * 1e9), to = placeTime(Math.ceil(d.to_ns / 1e9) * 1e9), there = $('nothing-there');

		there.hidden = p.from === from && p.to === to;
		there.textContent = `Show what is stored: ${wordsClock(Date.parse(from) * 1e6, now)} to ${wordsClock(Date.parse(to) * 1e6, now)}`;
		there.onclick = () => change({from, to, last: ''});
	}
	const ofParams = (p) => ({...placeRange(p), of: p.of, number: 20});
	// used: what is drawn if it is not CPU time
	function showTime(t, p, used) {
		const d = t.data;
		$('band-command').textContent = wordsCommand('timeline', used ? {...ofParams(p), number: ''} : {...placeRange(p), ...byOf(p)});
		note('over-note', used || {ok: true});
		app.sparks = null;
		if (used) {
			band.show(d);
			app.sparks = band.sparks();
		}
		band.show(used && used.ok ? bandUsed(used.data, d) : d);
		band.chosen(p.in ? Date.parse(p.in) * 1e6 : 0, Date.parse(p.until) * 1e6);
	}
	function showSentence(p) {
		if (!app.ps.ok)
			return;
		const rows = app.ps.data.rows.filter((r) => (!p.container || r.container === p.container) && (!p.comm || r.comm === p.comm) && (!p.pid || String(r.pid) === p.pid));
		const who = p.pid ? `${p.comm || 'process'} (${p.pid})` : p.comm || p.container, strong = document.createElement('strong');
		const words = wordsSentence({cpus: app.timeline.data.cpus, ps: {rows}, chosen: Boolean(p.in), who, from: p.in ? Date.parse(p.in) * 1e6 : app.timeline.data.from_ns, to: p.in ? Date.parse(p.until) * 1e6 : app.timeline.data.to_ns});
		strong.textContent = words[0];
		$('sentence').replaceChildren(strong, ...words.slice(1));
	}
	const commandOf = (verb, params) => wordsCommand(verb, {...params, number: '', query: verb === 'sql' ? params.query : undefined});
	// also: further answers of the view by name, as far as they are there
	function showTable(p, answer, also = {}) {
		const t = TABLES[app.tab], params = tableParams(p), d = answer.ok ? answer.data : null, grows = Boolean(t.columns);
		const rows = !d || !grows ? [] : t.rows ? t.rows(d, also, p) : d.rows.map((r) => ({unit: d.unit, ...r}));
		const sparks = app.tab === 'containers' || app.tab === 'processes' ? app.sparks || band.sparks() : null, columns = grows ? t.columns(sparks, rows, ways, p) : [];
		$('table-command').textContent = commandOf(t.verb, params);
		note('table-note', answer);
		if (d && grows && !(app.tab === 'changes' ? d.rows : rows).length)
			note('table-note', {ok: false, error: t.none ? t.none(p) : 'Nothing to show for this range.', fix: ''});
		grid.hide(!grows);
		$('find').hidden = !grows;
		const again = app.columns.tab === app.tab && app.columns.how === p.how;
		Object.assign(app.columns, {tab: app.tab, how: p.how});
		grid.set(rows, columns, p.sort && columns.some((c) => c.key === p.sort.replace(/^-/, '')) ? p.sort : p.how === 'slowest' ? '-whole' : t.sort || '', p.find,
			(r) => (app.tab === 'requests' ? Boolean(p.op) && requestsKey(r) === p.op : ['container', 'comm', 'pid'].every((k) => !p[k] || String(r[k]) === p[k]) && Boolean(p.container || p.comm || p.pid)), !again);
		$('ways').replaceChildren(...(t.ways && d ? t.ways(p) : []));
		$('view').hidden = !t.draw || !d;
		if (t.draw && d)
			t.draw($('view'), d, also, p, ways);
	}
	// Further questions of the view; it is drawn again as each answer comes.
	function askAlso(p, t, answer, anew) {
		const asks = t.also ? t.also(p, answer.ok ? answer.data : null) : {}, also = {};
		return Promise.all(Object.entries(asks).map(async ([name, [verb, params]]) => {
			also[name] = await asked(`also-${name}`, verb, params, anew);
			app.also = {tab: app.tab, also};
			if (p === app.place)
				showTable(p, answer, also);
		}));
	}
	async function showWhy(p, anew) {
		if (!p.why) {
			why.none();
			return;
		}
		const asks = placeWhy(p), params = {...asks, number: asks.request ? '' : 8}, command = wordsCommand('explain', {...params, number: ''});
		if (app.keys.why !== key('explain', params))
			why.show(asks, command, null);
		const answer = await asked('why', 'explain', params, anew);
		why.show(asks, command, answer);
	}
	async function showState(p, anew) {
		busy('state', true);
		const answer = await asked('state', 'overview', placeChosen(p), anew);
		busy('state', false);
		if (answer.ok)
			troubleLines($('state'), answer.data, ways);
		else
			$('state').replaceChildren(domMake('li', {className: 'soft'}, domMake('b', {}, 'Wrong'), formatSeen(`not known: ${answer.error}`), ' ', domButton('Ask again', () => show(true), 'quiet')));
	}
	function showPicture(p, {answers, stats}) {
		const failed = answers.find((a) => !a.ok), kind = $('type').selectedOptions[0];
		$('graph-command').textContent = stats && stats.ok ? $('graph-command').textContent : wordsCommand('flame', {...flameParams(p), group: '', nodes: ''});
		note('graph-note', failed || (stats && !stats.ok ? stats : {ok: true}));
		const side = (x) => `${wordsClock(x.from_ns)} to ${wordsClock(x.to_ns, x.from_ns)}`;
		$('graph-title').textContent = stats && stats.ok ? 'What changed' : 'Flame graph';
		$('graph-sides').textContent = stats && stats.ok ? `A: ${side(stats.data.before)}. B: ${side(stats.data.after)}. Widths are B\u2019s.` : '';
		if (failed || answers.some((a) => !a.data.rows.length)) {
			picture.none();
			return;
		}
		picture.show(answers.map((a) => a.data), app.ps.ok ? app.ps.data.rows : [], stats && stats.ok ? stats.data : null, p);
		$('graph').setAttribute('aria-label', `Flame graph of ${kind ? kind.textContent : p.type}`);
	}
	function showMap(p, answer) {
		$('map-command').textContent = wordsCommand('map', mapParams(p));
		note('map-note', answer);
		$('map-draw').hidden = $('map-table').hidden = !answer.ok;
		if (answer.ok)
			services.show(answer.data, (n) => (n.kind === 'container' ? n.name === p.container : n.kind === 'command' && n.name === p.comm));
		else
			services.none();
	}
	function showFacts(flame) {
		const t = app.timeline.data, gap = t.columns.reduce((v, c) => v + (c.recorded_ns ? 0 : c.to_ns - c.from_ns), 0), much = gap > (t.to_ns - t.from_ns) / 20, facts = [], brief = [];
		const lost = flame && flame.ok ? flame.data.losses.reduce((v, l) => v + l.n, 0) : 0, losses = t.events.filter((e) => e.event === 'lost');
		const all_lost = Math.max(lost, losses.reduce((v, e) => v + (e.n || 0), 0));
		if (gap)
			facts.push([`${formatTime(gap)} of this range were not recorded (hatched in the strip).`, much]), brief.push(`not recorded: ${formatTime(gap)}`);
		if (flame && flame.ok) {
			const d = flame.data, all = d.cpu_ns === undefined ? d.value : d.cpu_ns, unnamed = d.unnamed_ns === undefined ? d.unnamed_value : d.unnamed_ns;
			facts.push([lost ? `${formatCount(lost)} ${d.counted} shown here were lost (${d.losses.map((l) => `${l.reason} ${formatCount(l.n)}`).join(', ')}).` : 'Nothing shown here was lost.', lost > 0]);
			facts.push(...d.shed.map((text) => [formatSeen(`${text[0].toUpperCase()}${text.slice(1)}.`), true]));
			if (d.shed.length)
				brief.push('sonded recorded less');
			facts.push(...losses.map((e) => [`At ${wordsClock(e.from_ns)}: ${formatSeen(e.text)}.`, true]));
			brief.push(all_lost ? `${formatCount(all_lost)} lost` : 'nothing lost');
			facts.push([all && unnamed ? `${wordsShare(unnamed / all)} is in functions without a name.` : 'Every function has a name.']);
			if (d.elided)
				facts.push([`The ${formatCount(d.elided)} smallest frames are drawn as \u201c(smaller frames)\u201d: a click on one shows what is in it.`]);
			facts.push([`${formatCount(d.samples === undefined ? d.n : d.samples)} ${d.counted}${d.period_ns ? ` at ${Number((1e9 / d.period_ns).toPrecision(3))} Hz` : ''}; kernel ${d.kernel || 'unknown'}; ${d.cpus} CPUs.`]);
			$('host').textContent = formatSeen(d.host || '');
			document.title = `sonde${d.host ? ' \u00b7 ' + formatSeen(d.host) : ''}`;
		}
		if (app.status && app.status.ok) {
			const s = app.status.data;
			facts.push([`The store ${s.store.path}: ${formatBytes(s.store.bytes)}, from ${wordsClock(s.from_ns)} to ${wordsClock(s.to_ns)}; ${s.sonded ? 'sonded is recording' : 'sonded is not running: only sonde record adds data'}.`]);
			brief.push(formatBytes(s.store.bytes));
			const seen = s.rows.filter((r) => r.to_ns > t.from_ns && r.from_ns < t.to_ns), last = seen.reduce((v, r) => (!v || r.rec > v.rec ? r : v), null);
			const mine = seen.filter((r) => r.to_ns > last.from_ns && !seen.some((o) => o.family === r.family && o.rec > r.rec)), sum = (k) => mine.reduce((v, r) => v + (r[k] || 0), 0);
			if (mine.length) {
				const cost = `${(100 * sum('self_cores')).toFixed(2)} % of one core`;
				facts.push([`What sonde cost: ${cost} and ${formatBytes(sum('self_private_bytes') + sum('self_map_bytes'))} of memory: ${mine.sort((a, b) => b.self_cores - a.self_cores).map((r) => `${formatSeen(r.family)} ${(100 * r.self_cores).toFixed(2)} %`).join(', ')}.`]);
				brief.push(`cost ${cost}`);
			}
		}
		$('about-brief').textContent = `About what was recorded: ${brief.join(' \u00b7 ')}`;
		$('about-brief').classList.toggle('warn', Boolean(all_lost || much || (flame && flame.ok && flame.data.shed.length)));
		$('facts').replaceChildren(...facts.map(([text, warn]) => Object.assign(document.createElement('li'), {textContent: text, className: warn ? 'warn' : ''})));
	}
	function chips(p) {
		const chip = (text, patch) => {
			const li = document.createElement('li'), b = document.createElement('button');
			b.type = 'button';
			b.textContent = `${text} \u00d7`;
			b.addEventListener('click', () => change(patch));
			li.append(b);
			return li;
		};
		const who = [p.container && `container ${formatSeen(p.container)}`, p.comm && formatSeen(p.comm), p.pid && `pid ${p.pid}`].filter(Boolean).join(', ');
		$('chips').replaceChildren(...(who ? [chip(`only ${who}`, {...nobody, zoom: ''})] : []), ...(p.request ? [chip(`only requests ${drawShorten(p.request, 60)}`, {request: ''})] : []),
			...(p.deep ? [chip('with smaller frames', {deep: ''})] : []),
			...(p.in ? [chip(`only ${wordsClock(Date.parse(p.in) * 1e6)} to ${wordsClock(Date.parse(p.until) * 1e6, Date.parse(p.in) * 1e6)}`, {in: '', until: '', zoom: ''}), domMake('li', {}, domButton(p.why ? 'Why? is above' : 'Why?', () => (p.why ? domScroll('why') : change({why: askQuery({...placeChosen(p), ...placeWho(p)})})), 'why'))] : []));
		$('chips').hidden = !who && !p.in && !p.request && !p.deep;
	}
	// Which tab is active: other kinds of value use the flame graph's.
	const pictureOf = (p) => Math.max(0, MAIN_PICTURES.findIndex((x) => x.pic === p.pic && (!x.type || x.type === p.type)));
	function controls(p) {
		tabsShow($('pages'), [], ['host', 'sql'].indexOf(p.page), (i) => change({page: ['host', 'sql'][i]}), [$('page-host'), $('page-sql')]);
		$('view-host').hidden = p.page !== 'host';
		$('view-sql').hidden = p.page !== 'sql';
		for (const b of $('lasts').children)
			b.setAttribute('aria-pressed', !p.live && !p.from && !p.to && p.last === b.textContent);
		$('live').setAttribute('aria-pressed', Boolean(p.live));
		for (const k of ['from', 'to'])
			if (document.activeElement !== $(k))
				$(k).value = p[k];
		const tabs = MAIN_TABS.includes(app.tab) ? MAIN_TABS : [...MAIN_TABS, app.tab];
		tabsShow($('tabs'), tabs.map(mainTitle), tabs.indexOf(app.tab), (i) => change({tab: tabs[i], sort: '', how: '', op: '', find: ''}));
		if (document.activeElement !== $('find'))
			$('find').value = p.find;
		tabsShow($('pictures'), [], pictureOf(p), (i) => change({pic: MAIN_PICTURES[i].pic, ...(MAIN_PICTURES[i].type ? {type: MAIN_PICTURES[i].type, zoom: '', fn: ''} : {})}), MAIN_PICTURES.map((x) => $(x.id)));
		for (const [id, query] of [['band-sql', '@minutes'], ['table-sql', TABLES[app.tab].query], ['graph-sql', p.type === 'cpu' ? '@hottest' : p.type === 'offcpu' ? '@waiting' : '@allocators'], ['map-sql', MAIN_EDGES]]) {
			$(id).hidden = !query;
			$(id).onclick = () => change({page: 'sql', query});
		}
		$('graph').hidden = p.pic !== '';
		$('map').hidden = p.pic !== 'map';
		$('by').value = p.by;
		$('by-label').hidden = p.of !== 'cpu';
		$('of').value = p.of;
		if ($('of').value !== p.of)
			$('of').append(new Option(MAIN_OF[p.of] || p.of, p.of, true, true));
		$('compare').value = p.compare;
		if (p.compare && $('compare').value !== p.compare)
			$('compare').append(new Option(`${p.compare} earlier`, p.compare, true, true));
		$('type').value = p.type;
		if ($('type').value !== p.type)
			$('type').append(new Option(p.type, p.type, true, true));
		$('report').href = `/report.html?${askQuery({...placeChosen(p), ...placeWho(p)})}`;
		chips(p);
	}

	async function showFlame(p, t, first, anew) {
		const got = await (first || pictures(p, t.data, anew)), question = key(got.answers.map((a) => a.data && [a.data.from_ns, a.data.to_ns]), app.keys.flame, app.keys.diff, p.compare);
		if (anew || app.drawn !== question || got.answers.some((a) => !a.ok))
			showPicture(p, got);
		else
			picture.again(p, false);
		app.drawn = question;
		return got.answers;
	}
	// Where requests were recorded at the end of the range.
	async function showRuns(p, time, anew) {
		const params = {...placeChosen(p), ...placeWho(p), running: true}, end = p.in ? Date.parse(p.until) * 1e6 : time.to_ns;
		const known = app.status && app.status.ok && app.status.data.rows.some((r) => /\bl7\b/.test(r.family) && r.from_ns < end + 1e11 && r.to_ns > end - 1e11);
		$('runs-command').textContent = wordsCommand('requests', params);
		runs.show(known ? await asked('runs', 'requests', {...params, number: 100}, anew) : {ok: false});
	}
	// anew: repeat the same requests
	async function show(anew) {
		const began = performance.now();
		const p = app.place, run = new AbortController();
		app.tab = TABLES[p.tab] ? p.tab : app.tab;
		controls(p);
		if (app.running)
			app.running.abort();
		app.running = run;
		app.asked = began;
		app.changed = false;
		clearTimeout(app.live);
		if (p.page === 'sql') {
			sql.show(p);
			document.documentElement.dataset.state = 'ready';
			return;
		}
		document.documentElement.dataset.state = 'asking';
		for (const id of ['over', 'users', 'picture'])
			busy(id, true);
		// in the order of what is seen
		const time = asked('timeline', 'timeline', {...placeRange(p), ...byOf(p), events: true}, anew);
		const ps = asked('ps', 'ps', {...placeChosen(p), ...TABLES.processes.params}, anew);
		const reason = p.why ? showWhy(p, anew) : (why.none(), null);
		if (p.of !== 'cpu')
			asked('used', 'timeline', ofParams(p), anew);
		if (!p.tab && app.tab === 'containers')
			asked('table', 'containers', {...placeChosen(p), ...TABLES.containers.params}, anew); // most likely tab
		else if (TABLES[p.tab] && app.tab !== 'processes')
			asked('table', TABLES[app.tab].verb, tableParams(p), anew);
		const afresh = anew && !(p.live && app.round++ % MAIN_LIVE.picture); // what is wrong and the picture are the most expensive: while live, not in each round
		const state = !anew || afresh ? showState(p, anew) : null;
		const map = p.pic === 'map' ? asked('map', 'map', {...mapParams(p), drawing: true}, anew) : null;
		const first = p.compare || map ? null : pictures(p, null, afresh);
		const t = await time;
		if (!TABLES[p.tab]) { // the tab depends on what exists
			app.tab = t.ok ? tablesFirst(t.data) : 'functions';
			controls(p);
		}
		const table = app.tab === 'processes' ? ps : asked('table', TABLES[app.tab].verb, tableParams(p), anew);
		showNothing(t, t.ok);
		if (t.ok) {
			showTime(t, p, p.of === 'cpu' ? null : await asked('used', 'timeline', ofParams(p), anew));
			busy('over', false);
			await ps;
			showSentence(p);
		}
		if (t.ok || t.status === MAIN_NOTHING_THERE) {
			const answer = await table;
			showTable(p, answer);
			busy('users', false);
			performance.mark('seen');
			const more = askAlso(p, TABLES[app.tab], answer, anew);
			await ps;
			const got = map ? [await map] : await showFlame(p, t, first, afresh);
			if (map)
				showMap(p, got[0]);
			busy('picture', false);
			showNothing(t, t.ok || answer.ok || got.some((a) => a.ok));
			if (t.ok)
				showFacts(map ? null : got[got.length - 1]);
			await more;
		}
		await Promise.all([state, reason]);
		document.documentElement.dataset.state = 'ready';
		performance.mark('shown');
		app.period = Math.round(Math.min(MAIN_LIVE.most, Math.max(MAIN_LIVE.least, MAIN_LIVE.times * (performance.now() - began))));
		schedule();
		if (!app.status && t.ok)
			asked('status', 'status', {}).then((s) => { // after everything that is visible at first
				showFacts(map ? null : app.flame);
				if (s.ok)
					showRuns(p, t.data, anew);
				else
					note('over-note', s);
			});
		else if (t.ok)
			showRuns(p, t.data, anew);
		document.documentElement.dataset.asked = Number(document.documentElement.dataset.asked || 0) + 1;
	}
	// While the page is live and visible, the server reports new data; then everything is requested again, at most once per period.
	function schedule() {
		const live = Boolean(app.place.live && app.place.page === 'host' && !document.hidden);
		clearTimeout(app.live);
		$('live-period').textContent = app.place.live ? `, every ${formatTime(Math.round(app.period / 1000) * 1e9)}` : '';
		if (live && !app.listening)
			app.listening = askLive(() => {
				app.changed = true;
				soon();
			});
		if (!live && app.listening) {
			app.listening();
			app.listening = null;
		}
		if (live)
			soon();
	}
	function soon() {
		clearTimeout(app.live);
		// without recorded data, the range still moves on
		app.live = setTimeout(() => app.listening && show(true), Math.max(0, app.asked + (app.changed ? app.period : MAIN_LIVE.quiet) - performance.now()));
	}

	// --- user actions ---

	const marks = marksInit({
		here() {
			const p = app.place, t = app.timeline && app.timeline.ok ? app.timeline.data : null, moment = t && !p.from && !p.to && p.page === 'host';
			const now = {...p, live: '', ...(moment ? {last: '', from: placeTime(t.from_ns), to: placeTime(t.to_ns)} : {})}, at = placeWrite(now);
			const when = t ? `${wordsClock(p.in ? Date.parse(p.in) * 1e6 : t.from_ns)}, ${formatTime(p.in ? (Date.parse(p.until) - Date.parse(p.in)) * 1e6 : t.to_ns - t.from_ns)}` : '';
			return {at: at[0] === '?' ? at : '?last=1h', name: p.page === 'sql' ? `SQL: ${p.query}` : [p.comm || p.container || 'host', p.pic || app.tab, when].filter(Boolean).join(', ')};
		},
		go(at) {
			app.place = placeRead(at);
			history.pushState(null, '', placeWrite(app.place));
			show();
		},
		say,
	});

	function shift(by) {
		const t = app.timeline && app.timeline.ok ? app.timeline.data : null, long = t ? t.to_ns - t.from_ns : 0;
		if (t)
			change({from: placeTime(t.from_ns + by * long), to: placeTime(t.to_ns + by * long), in: '', until: ''});
	}
	const actions = {
		...picture.actions,
		mark: marks.toggle,
		jump: jumpInit(() => [
			...[...MAIN_TABS, ...MAIN_MORE].map((tab) => ({kind: 'tab', name: mainTitle(tab), go: () => change({tab, sort: '', how: '', op: '', page: 'host'})})),
			{kind: 'tab', name: 'SQL', go: () => change({page: 'sql'})},
			...marks.all().map((m) => ({kind: 'bookmark', name: m.name, go: () => {
				app.place = placeRead(m.at);
				change({});
			}})),
			...['flame graph', 'waits', 'heap'].map((name, i) => ({kind: 'picture', name, go: () => change({page: 'host', pic: '', type: MAIN_PICTURES[i].type})})),
			{kind: 'picture', name: 'map of services', go: () => change({page: 'host', pic: 'map'})},
			...[...new Set((app.ps && app.ps.ok ? app.ps.data.rows : []).map((r) => r.container).filter(Boolean))].map((c) => ({kind: 'container', name: c, go: () => change({...nobody, container: c, tab: 'containers'})})),
			...(app.ps && app.ps.ok ? app.ps.data.rows : []).map((r) => ({kind: 'process', name: `${r.comm} (${r.pid})`, go: () => change({...nobody, comm: r.comm, pid: String(r.pid), tab: 'processes'})})),
			...picture.functions().slice(0, 20000).map((name) => ({kind: 'function', name, go: () => picture.find(name)})),
		]),
		spike: () => !$('spikes').hidden && $('spikes').querySelector('button').focus(),
		brush: () => $('band-from').focus(),
		earlier: () => shift(-1), later: () => shift(1),
		into: () => app.place.in && change({from: app.place.in, to: app.place.until, in: '', until: ''}),
		live: () => change(app.place.live ? {live: ''} : {last: '15m', live: '1', in: '', until: ''}),
		tab: (k) => change({tab: MAIN_TABS[Number(k) - 1], sort: '', how: '', op: ''}),
		why: () => change({why: app.place.why ? '' : askQuery({...placeChosen(app.place), ...placeWho(app.place)})}),
		table: () => grid.first() && grid.first().focus(),
		filter: () => $('find').focus(),
		compare: () => change({compare: app.place.compare ? '' : 'previous'}),
		graph: () => (app.place.pic === 'map' ? services.grab() : picture.grab()),
		map: () => change({pic: app.place.pic === 'map' ? '' : 'map'}),
		search: () => $('search').focus(),
		sql: () => change({page: app.place.page === 'sql' ? 'host' : 'sql'}),
		escape: () => change({...nobody, in: '', until: '', zoom: '', q: '', fn: '', view: 'callees', why: '', request: '', op: '', deep: ''}),
		theme: () => theme.next(),
		help: () => $('keys').showModal(),
	};
	$('lasts').append(...MAIN_LASTS.map((last) => {
		const b = Object.assign(document.createElement('button'), {type: 'button', textContent: last});
		b.addEventListener('click', () => change({last, live: ''}));
		return b;
	}));
	for (const [id, act] of [['live', 'live'], ['earlier', 'earlier'], ['later', 'later'], ['band-into', 'into'], ['theme', 'theme'], ['help', 'help'], ['jump-open', 'jump']])
		$(id).addEventListener('click', () => actions[act]());
	$('range-form').addEventListener('submit', (e) => {
		e.preventDefault();
		const from = $('from').value.trim(), to = $('to').value.trim();
		change(from || to ? {from, to, in: '', until: ''} : {last: '1h', in: '', until: ''});
	});
	$('find').addEventListener('input', () => {
		change({find: $('find').value}, true, true);
		if (app.tab === 'processes' ? app.ps : app.table)
			showTable(app.place, app.tab === 'processes' ? app.ps : app.table, app.also && app.also.tab === app.tab ? app.also.also : {});
	});
	for (const k of ['by', 'of', 'compare', 'type'])
		$(k).addEventListener('change', () => change({[k]: $(k).value, ...(k === 'by' || k === 'of' ? {} : {zoom: '', fn: ''})}));
	for (const b of document.querySelectorAll('[data-copy]'))
		b.addEventListener('click', () => {
			const text = $(b.dataset.copy).textContent;
			if (navigator.clipboard)
				navigator.clipboard.writeText(text).then(() => say('Command copied.'), () => say('This browser does not let the page copy.'));
			else
				say('This browser lets pages copy only over https or from this host.');
		});
	addEventListener('popstate', () => {
		app.place = placeRead(location.search);
		show();
	});
	document.addEventListener('visibilitychange', schedule);
	forced.addEventListener('change', theme.apply);
	hotkeysInit(actions);
	// sonde defines the kinds of value.
	async function know() {
		const h = await ask('help', {});
		if (!h.ok)
			note('over-note', h);
		const flame = h.ok && h.data.rows.find((v) => v.verb === 'flame'), type = flame && flame.options.find((o) => o.name === 'type');
		$('type').replaceChildren(...(type ? type.help.split(/,\s*|\s+or\s+/) : ['cpu']).map((k) => new Option({cpu: 'CPU', offcpu: 'waits (off CPU)', wall: 'wall time', alloc: 'memory allocated', inuse: 'memory in use'}[k] || k, k)));
		const time = h.ok && h.data.rows.find((v) => v.verb === 'timeline'), of = time && time.options.find((o) => o.name === 'of');
		$('of').replaceChildren(...(of ? of.help.split(':')[0].replace(/\([^)]*\)/g, '').split(',').map((k) => k.trim()) : ['cpu']).map((k) => new Option(MAIN_OF[k] || k, k)));
		controls(app.place);
	}
	$('more').addEventListener('change', () => {
		const tab = $('more').value;
		$('more').value = '';
		if (tab)
			change({tab, sort: ''});
	});
	document.documentElement.classList.add('js');
	theme.apply();
	$('more').append(new Option('more', ''), ...MAIN_MORE.map((tab) => new Option(mainTitle(tab), tab)));
	askShow($('asking'));
	Promise.race([show(), new Promise((done) => setTimeout(done, 1500))]).then(know); // after everything that is visible at first
}

mainStart();
