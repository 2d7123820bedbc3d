// SPDX-License-Identifier: Apache-2.0
// sql: read-only SQL queries: views and named queries; the result as a table, as CSV and JSON, and as a line chart if it has a time.

const SQL_FIRST = 'select function, sum(samples) n\nfrom cpu_samples\ngroup by 1 order by 2 desc limit 10';

function sqlCsv(rows) {
	const names = rows.length ? Object.keys(rows[0]) : [], field = (v) => (v === null || v === undefined ? '' : /[",\r\n]/.test(String(v)) ? `"${String(v).replaceAll('"', '""')}"` : String(v));
	return [names, ...rows.map((r) => names.map((n) => r[n]))].map((line) => line.map(field).join(',') + '\r\n').join('');
}

// The column of time and those of numbers, or null: input for a line chart.
function sqlSeries(rows) {
	const names = rows.length > 2 ? Object.keys(rows[0]) : [], time = names.find((n) => /^(ts|time|minute|hour|day|at|from|from_ns|ts_ns)$/i.test(n));
	const ms = (v) => (typeof v === 'number' ? (v > 1e17 ? v / 1e6 : v > 1e11 ? v : v * 1000) : Date.parse(v));
	const numbers = names.filter((n) => n !== time && !/^(ts|pid|tid|line|port)$|(^|_)id$/.test(n) && rows.every((r) => r[n] === null || typeof r[n] === 'number')).slice(0, 4);
	if (!time || !numbers.length || rows.some((r) => !Number.isFinite(ms(r[time]))))
		return null;
	const at = new Map(); // several rows with the same time are summed
	for (const r of rows) {
		const p = at.get(ms(r[time])) || {t: ms(r[time]), v: numbers.map(() => 0)};
		numbers.forEach((n, k) => { p.v[k] += r[n] || 0; });
		at.set(p.t, p);
	}
	return at.size > 2 ? {numbers, points: [...at.values()].sort((a, b) => a.t - b.t)} : null;
}

const sqlRange = ({points, numbers}) => `${numbers.map((n, k) => `${n}: ${Math.min(0, ...points.map((p) => p.v[k]))} to ${Math.max(...points.map((p) => p.v[k]))}`).join(', ')}; from ${
	wordsClock(points[0].t * 1e6)} to ${wordsClock(points[points.length - 1].t * 1e6)}`;

function sqlChart(series) {
	const ns = 'http://www.w3.org/2000/svg', svg = document.createElementNS(ns, 'svg'), {points, numbers} = series;
	const from = points[0].t, long = Math.max(points[points.length - 1].t - from, 1), top = Math.max(...points.flatMap((p) => p.v), 1e-9);
	svg.setAttribute('viewBox', '0 0 1000 160');
	svg.setAttribute('preserveAspectRatio', 'none');
	svg.setAttribute('class', 'chart');
	svg.setAttribute('role', 'img');
	svg.setAttribute('aria-label', sqlRange(series));
	const steps = points.slice(1).map((p, i) => p.t - points[i].t).sort((a, b) => a - b), gap = 4 * steps[steps.length >> 1]; // gaps have no line
	numbers.forEach((n, k) => {
		const path = document.createElementNS(ns, 'path');
		path.setAttribute('d', points.map((p, i) => `${i && p.t - points[i - 1].t <= gap ? 'L' : 'M'}${((p.t - from) / long * 1000).toFixed(1)} ${(155 - p.v[k] / top * 150).toFixed(1)}`).join(''));
		path.setAttribute('class', `line${k}`);
		svg.append(path);
	});
	return svg;
}

function sqlSave(name, text, type) {
	const a = Object.assign(document.createElement('a'), {href: URL.createObjectURL(new Blob([text], {type})), download: name});
	a.click();
	setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

// on: {change(patch), range(): the current range}
function sqlInit(on) {
	const grid = gridInit($('sql-rows'), {}), s = {rows: [], asked: '', known: false, running: null};

	// The definition of the view, from the store.
	async function schema(name) {
		const a = await ask('sql', {query: `.schema ${name}`});
		$('sql-schema-of').hidden = $('sql-schema').hidden = !a.ok;
		$('sql-schema-of').textContent = name;
		$('sql-schema').textContent = a.ok ? formatSeen(a.text.split('\n{\n')[0]) : ''; // the rest is an answer without rows
	}
	function pick(list, items, label, fill) {
		$(list).replaceChildren(...items.map((x) => {
			const li = document.createElement('li'), b = document.createElement('button');
			b.type = 'button';
			b.textContent = label(x);
			if (x.about)
				b.title = x.about;
			b.addEventListener('click', () => {
				$('sql-query').value = fill(x);
				if (x.view)
					schema(x.name);
				run();
			});
			li.append(b);
			return li;
		}));
	}
	async function know() {
		if (s.known)
			return;
		s.known = true;
		const [views, named] = await Promise.all([ask('sql', {query: '.views'}), ask('sql', {query: '@'})]);
		if (views.ok && views.data)
			pick('sql-views', views.data.rows.map((r) => ({name: r.view, view: true})), (x) => x.name, (x) => `select *\nfrom ${x.name}\nlimit 20`);
		if (named.ok)
			pick('sql-named', [...named.text.matchAll(/^(@\S+)\s+(.*)$/gm)].map((m) => ({name: m[1], about: m[2]})), (x) => x.name, (x) => x.name);
		s.known = views.ok && named.ok;
		if (!s.known) {
			$('sql-note').hidden = false;
			$('sql-note').textContent = `The lists of views and queries are missing: ${formatSeen((views.ok ? named : views).error)}`;
		}
	}
	async function run() {
		const query = $('sql-query').value.trim(), narrow = query[0] === '@' || /\bwin_/.test(query), params = {query, ...(narrow ? on.range() : {})};
		if (!query)
			return;
		s.asked = query;
		on.change({query});
		if (s.running)
			s.running.abort();
		s.running = new AbortController();
		$('sql-note').hidden = true;
		$('sql-said').textContent = 'Asking \u2026';
		$('sql-command').textContent = wordsCommand('sql', params);
		const start = performance.now(), a = await ask('sql', params, s.running.signal);
		s.rows = a.ok && a.data ? a.data.rows : [];
		$('sql-note').hidden = a.ok;
		$('sql-note').textContent = a.ok ? '' : a.error;
		$('sql-said').textContent = a.ok ? `${formatCount(s.rows.length)} row${s.rows.length === 1 ? '' : 's'} in ${formatTime((performance.now() - start) * 1e6)}` : '';
		for (const id of ['sql-csv', 'sql-json'])
			$(id).disabled = !s.rows.length;
		const names = s.rows.length ? Object.keys(s.rows[0]) : [], series = sqlSeries(s.rows);
		grid.set(s.rows, names.map((n) => ({key: n, title: n, kind: s.rows.every((r) => r[n] === null || typeof r[n] === 'number') ? 'num' : 'fn', value: (r) => r[n],
			text: (r) => (r[n] === null ? 'NULL' : formatSeen(typeof r[n] === 'object' ? JSON.stringify(r[n]) : String(r[n]))), keep: true})), '', '');
		$('sql-chart').replaceChildren(...(series ? [sqlChart(series), Object.assign(document.createElement('p'), {className: 'half', textContent: sqlRange(series)})] : []));
	}
	$('sql-form').addEventListener('submit', (e) => {
		e.preventDefault();
		run();
	});
	$('sql-query').addEventListener('keydown', (e) => {
		if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) {
			e.preventDefault();
			run();
		}
	});
	$('sql-csv').addEventListener('click', () => sqlSave('sonde.csv', sqlCsv(s.rows), 'text/csv'));
	$('sql-json').addEventListener('click', () => sqlSave('sonde.json', JSON.stringify(s.rows, null, 1), 'application/json'));
	return {
		show(place) {
			know();
			if (!$('sql-query').value)
				$('sql-query').value = place.query || SQL_FIRST;
			if (place.query && place.query !== s.asked) {
				$('sql-query').value = place.query;
				run();
			}
		},
	};
}
