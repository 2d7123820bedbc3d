// SPDX-License-Identifier: Apache-2.0
// band: the time strip: CPU by container and command, stacked; marks for events; spikes as buttons; a part is chosen by dragging, by
// two sliders, or by a click on a spike. Times that were not recorded are hatched, never drawn as idle.

const BAND_NAMED = 7, BAND_HEAD = 20, BAND_NEAR = 18; // pixels: marks that are nearer to each other are one, with their number

// The columns and who is in them, of timeline's answer: {n, from, to, names, kinds, sums: [by name][by column], all, gap: [by column]} in cores.
function bandSums(t) {
	const n = t.columns.length, long = t.columns.map((c) => (c.recorded_ns || 0)), cores = (v, i) => (long[i] ? (v || 0) / long[i] : 0);
	const named = t.groups.slice(0, t.groups.length > BAND_NAMED + 1 ? BAND_NAMED : BAND_NAMED + 1);
	const sums = named.map((g) => g.by_column_ns.map(cores)), all = t.cpu_by_column_ns.map(cores);
	const rest = all.map((v, i) => Math.max(v - sums.reduce((x, s) => x + s[i], 0), 0)), more = rest.some((v) => v > 1e-3);
	return {n, from: n ? t.columns[0].from_ns : 0, to: n ? t.columns[n - 1].to_ns : 1, groups: named, rest: more, gap: t.cpu_by_column_ns.map((v) => v === null),
		names: [...named.map((g) => formatSeen(g.who)), ...(more ? ['all others'] : [])], sums: [...sums, ...(more ? [rest] : [])], all};
}

// The answer of `timeline --of`, in the form of the one of CPU time: stacked by container, or the host's values without containers.
function bandUsed(t, cpu) {
	const n = t.rows.length ? t.rows[0].by_column.length : 0, step = (t.to_ns - t.from_ns) / Math.max(n, 1);
	const inside = t.rows.filter((r) => r.who[0] !== '['), shown = inside.length ? inside : t.rows;
	return {
		unit: t.unit, cpus: 0, events: cpu ? cpu.events : [], rows: [],
		columns: Array.from({length: n}, (_, i) => ({from_ns: t.from_ns + i * step, to_ns: t.from_ns + (i + 1) * step, recorded_ns: 1})),
		groups: shown.map((r) => ({who: r.who, who_is: r.who[0] === '[' ? 'host' : 'container', by_column_ns: r.by_column})),
		cpu_by_column_ns: Array.from({length: n}, (_, i) => (shown.some((r) => r.by_column[i] !== null) ? shown.reduce((v, r) => v + (r.by_column[i] || 0), 0) : null)),
	};
}
const BAND_TOLD = 6;
const BAND_UNITS = {cores: (v) => `${wordsCores(v)} cores`, bytes: formatBytes, 'bytes/s': (v) => `${formatBytes(v)}/s`, share: wordsShare,
	'per second': (v) => `${Number(v.toPrecision(3))}/s`, seconds: (v) => formatTime(v * 1e9)};

// on: {choose(from_ns, to_ns, spike or group or null), draft(from_ns, to_ns), why(spike)}; ns of whole columns, 0 for all
function bandInit(on) {
	const canvas = $('band'), ctx = canvas.getContext('2d'), from = $('band-from'), to = $('band-to');
	const s = {t: null, sums: null, a: -1, b: -1, palette: [], ink: '#000', soft: '#888', line: '#ddd', veil: '#fff', top: 1, say: BAND_UNITS.cores};
	let drag = -1, moved = false;

	const at = (ns) => (ns - s.sums.from) / (s.sums.to - s.sums.from);
	const column = (x) => Math.max(0, Math.min(s.sums.n - 1, Math.floor(x / canvas.clientWidth * s.sums.n)));
	const edge = (i) => (i >= s.sums.n ? s.sums.to : s.t.columns[i].from_ns);

	function hatch(x, w, h) {
		ctx.save();
		ctx.beginPath();
		ctx.rect(x, BAND_HEAD, w, h - BAND_HEAD);
		ctx.clip();
		ctx.strokeStyle = s.line;
		ctx.lineWidth = 1;
		ctx.beginPath();
		for (let k = x - h; k < x + w; k += 7) {
			ctx.moveTo(k, h);
			ctx.lineTo(k + h, 0);
		}
		ctx.stroke();
		ctx.restore();
	}
	function bars(w, h) {
		const {n, sums, gap} = s.sums, step = w / n, ratio = window.devicePixelRatio || 1, x = (i) => Math.round(i * step * ratio) / ratio;
		for (let i = 0, end; i < n; i = end) {
			for (end = i; end < n && gap[end];)
				end++;
			if (end > i)
				hatch(x(i), x(end) - x(i), h);
			end = Math.max(end, i + 1);
		}
		for (let i = 0; i < n; i++) {
			let y = h;
			sums.forEach((c, k) => {
				const tall = c[i] / s.top * (h - BAND_HEAD);
				ctx.fillStyle = s.palette[Math.min(k, s.palette.length - 1)];
				ctx.fillRect(x(i), y - tall, Math.max(x(i + 1) - x(i) - (step > 5 ? 1 : 0), 0.5), tall);
				y -= tall;
			});
		}
	}
	function lines(w, h) {
		ctx.font = '11px system-ui, sans-serif';
		for (const v of [s.top, s.top / 2]) {
			const y = Math.round(h - v / s.top * (h - BAND_HEAD)) + 0.5;
			ctx.strokeStyle = s.line;
			ctx.lineWidth = 1;
			ctx.beginPath();
			ctx.moveTo(0, y);
			ctx.lineTo(w, y);
			ctx.stroke();
			ctx.fillStyle = s.soft;
			ctx.fillText(s.say === BAND_UNITS.cores ? `${Number(v.toFixed(2))}${v === s.top ? ' cores' : ''}` : s.say(v), 4, y - 3);
		}
	}
	// Marks, those near each other as one: [{x, n}]
	function clusters() {
		const xs = s.t.events.filter((x) => x.event !== 'began' && x.event !== 'kept').map((e) => at(e.from_ns) * canvas.clientWidth).sort((a, b) => a - b), out = [];
		for (const x of xs) {
			const last = out[out.length - 1];
			if (last && x - last.from < BAND_NEAR)
				last.n++;
			else
				out.push({from: x, n: 1});
		}
		return out;
	}
	function marks(h) {
		for (const c of clusters()) {
			const x = Math.round(c.from) + 0.5;
			ctx.strokeStyle = ctx.fillStyle = s.mark;
			ctx.lineWidth = 1;
			ctx.setLineDash([3, 3]);
			ctx.beginPath();
			ctx.moveTo(x, BAND_HEAD - 6);
			ctx.lineTo(x, h);
			ctx.stroke();
			ctx.setLineDash([]);
			ctx.beginPath();
			ctx.moveTo(x - 4, BAND_HEAD - 12);
			ctx.lineTo(x + 4, BAND_HEAD - 12);
			ctx.lineTo(x, BAND_HEAD - 5);
			ctx.fill();
			if (c.n > 1)
				ctx.fillText(formatCount(c.n), x + 6, BAND_HEAD - 6);
		}
		canvas.dataset.marks = clusters().map((c) => c.n).join(' ');
	}
	// Where there are seconds: windows that were kept of the flight ring, as a bar along the bottom.
	function windows(w, h) {
		const kept = s.t.events.filter((e) => e.event === 'kept').map((e) => [Math.max(at(e.from_ns) * w, 0), Math.min(at(e.to_ns) * w, w)]);
		ctx.fillStyle = s.ink;
		for (const [a, b] of kept) {
			ctx.fillRect(a, h - 4, Math.max(b - a, 2), 4);
			ctx.fillRect(a, h - 9, 1.5, 9);
			ctx.fillRect(Math.max(b, a + 2) - 1.5, h - 9, 1.5, 9);
		}
		canvas.dataset.kept = kept.map((x) => x.map(Math.round).join('-')).join(' ');
	}
	function draw() {
		const ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
		if (!s.sums || !w)
			return;
		canvas.width = Math.round(w * ratio);
		canvas.height = Math.round(h * ratio);
		ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
		ctx.clearRect(0, 0, w, h);
		bars(w, h);
		lines(w, h);
		marks(h);
		windows(w, h);
		if (s.a < 0)
			return;
		const left = s.a / s.sums.n * w, right = (s.b + 1) / s.sums.n * w;
		ctx.fillStyle = s.veil;
		ctx.fillRect(0, 0, left, h);
		ctx.fillRect(right, 0, w - right, h);
		ctx.strokeStyle = s.ink;
		ctx.lineWidth = 2;
		ctx.strokeRect(left + 1, 1, Math.max(right - left - 2, 1), h - 2);
	}
	function say() {
		const a = s.a < 0 ? 0 : s.a, b = s.a < 0 ? s.sums.n - 1 : s.b;
		from.max = to.max = s.sums.n - 1;
		from.value = a;
		to.value = b;
		from.setAttribute('aria-valuetext', wordsClock(edge(a)));
		to.setAttribute('aria-valuetext', wordsClock(edge(b + 1)));
		$('band-range').textContent = `${wordsClock(edge(a))} to ${wordsClock(edge(b + 1), edge(a))} ${wordsZone()}${s.a < 0 ? '' : ', chosen'}`;
		for (const id of ['band-all', 'band-into'])
			$(id).disabled = s.a < 0;
	}
	function draft(a, b) {
		Object.assign(s, {a: Math.min(a, b), b: Math.max(a, b)});
		say();
		draw();
	}
	function choose(spike) {
		if (s.a < 0 || (s.a === 0 && s.b === s.sums.n - 1))
			on.choose(0, 0, null);
		else
			on.choose(edge(s.a), edge(s.b + 1), spike || null);
	}
	// The group under the pointer.
	function groupAt(x, y) {
		const i = column(x), h = canvas.clientHeight;
		let up = (h - y) / (h - BAND_HEAD) * s.top;
		for (let k = 0; k < s.sums.sums.length; k++) {
			up -= s.sums.sums[k][i];
			if (up < 0)
				return k;
		}
		return -1;
	}
	function tip(e) {
		const i = column(e.offsetX), k = groupAt(e.offsetX, e.offsetY), box = $('tip'), add = (kind, text, cls) => Object.assign(document.createElement(kind), {textContent: text, className: cls || ''});
		const list = document.createElement('dl');
		if (s.sums.gap[i]) {
			list.append(add('dt', 'nothing was recorded'), add('dd', ''));
		} else {
			list.append(add('dt', 'all'), add('dd', s.say(s.sums.all[i])));
			s.sums.names.forEach((name, j) => {
				if (s.sums.sums[j][i] >= 0.005)
					list.append(add('dt', (j === k ? '\u25b8 ' : '') + drawShorten(name, 40)), add('dd', s.say(s.sums.sums[j][i])));
			});
		}
		const told = s.t.events.filter((x) => x.event !== 'began' && Math.abs(at(x.from_ns) * canvas.clientWidth - e.offsetX) < BAND_NEAR / 2 || x.from_ns >= edge(i) && x.from_ns < edge(i + 1) || x.event === 'kept' && x.from_ns < edge(i + 1) && x.to_ns > edge(i));
		for (const x of told.slice(0, BAND_TOLD))
			list.append(add('dt', x.event), add('dd', formatSeen(x.text)));
		if (told.length > BAND_TOLD)
			list.append(add('dt', 'and'), add('dd', `${told.length - BAND_TOLD} more: see the list below`));
		box.replaceChildren(add('div', `${wordsClock(edge(i))} to ${wordsClock(edge(i + 1), edge(i))}`, 'name'), list);
		box.hidden = false;
		box.style.left = Math.max(4, Math.min(e.clientX + 14, innerWidth - box.offsetWidth - 6)) + 'px';
		box.style.top = Math.max(4, Math.min(e.clientY + 18, innerHeight - box.offsetHeight - 6)) + 'px';
	}
	canvas.addEventListener('pointerdown', (e) => {
		if (!s.sums || !s.sums.n)
			return;
		drag = column(e.offsetX);
		moved = false;
		canvas.setPointerCapture(e.pointerId);
	});
	canvas.addEventListener('pointermove', (e) => {
		if (!s.sums || !s.sums.n)
			return;
		if (drag >= 0 && (moved || column(e.offsetX) !== drag)) {
			moved = true;
			draft(drag, column(e.offsetX));
			tipHide();
		} else if (drag < 0) {
			tip(e);
		}
	});
	canvas.addEventListener('pointerleave', tipHide);
	canvas.addEventListener('pointerup', (e) => {
		if (drag < 0)
			return;
		if (moved) {
			choose(null);
		} else {
			const k = groupAt(e.offsetX, e.offsetY), i = drag, spike = spikeAt(i);
			if (spike)
				on.choose(spike.from_ns, spike.to_ns, spike);
			else
				draft(i, i), choose(k >= 0 ? s.sums.groups[k] : null);
		}
		drag = -1;
	});
	function spikeAt(i) {
		return s.t.rows.find((r) => r.from_ns < edge(i + 1) && r.to_ns > edge(i));
	}
	for (const slider of [from, to]) {
		slider.addEventListener('input', () => draft(slider === from ? Number(from.value) : Math.min(from.value, to.value), slider === from ? Math.max(from.value, to.value) : Number(to.value)));
		slider.addEventListener('change', () => choose(null));
	}
	$('band-all').addEventListener('click', () => on.choose(0, 0, null));
	new ResizeObserver(draw).observe(canvas);

	function spikes() {
		$('spikes').replaceChildren(...s.t.rows.map((r) => {
			const b = document.createElement('button');
			b.type = 'button';
			b.className = 'spike';
			b.textContent = `\u25b2 ${drawShorten(r.who === null ? 'in total' : r.who, 24)} ${wordsCores(r.peak_cores)} cores at ${wordsClock(r.from_ns, s.sums.to, false)}`;
			b.title = `from ${wordsClock(r.from_ns)} for ${formatTime(r.to_ns - r.from_ns)}; usually ${wordsCores(r.usual_cores)} cores`;
			b.addEventListener('click', () => on.choose(r.from_ns, r.to_ns, r));
			return domMake('span', {className: 'pair'}, b, domButton('Why?', () => on.why(r), 'why', `Why? ${b.textContent}`));
		}));
		$('spikes').hidden = !s.t.rows.length;
	}
	function events() {
		const told = s.t.events.filter((e) => e.event !== 'began');
		$('happened').hidden = !told.length;
		$('happened-brief').textContent = `${told.length} mark${told.length === 1 ? '' : 's'}: ${[...new Set(told.map((e) => e.event))].join(', ')}`;
		$('happened-list').replaceChildren(...told.map((e) => {
			const li = document.createElement('li'), b = document.createElement('b');
			b.textContent = wordsClock(e.from_ns) + ' ';
			if (e.event === 'kept')
				li.append(b, domButton(formatSeen(e.text), () => on.choose(e.from_ns, e.to_ns, null), 'why'));
			else
				li.append(b, formatSeen(e.text));
			return li;
		}));
	}
	return {
		show(t) {
			const had = s.sums;
			Object.assign(s, {t, sums: bandSums(t), say: BAND_UNITS[t.unit || 'cores'] || formatCount});
			const most = Math.max(...s.sums.all, 0.01);
			s.top = t.unit ? most : t.cpus && most > t.cpus * 0.5 ? Math.max(t.cpus, Math.ceil(most)) : [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 4, 8, 16, 32, 64, 128].find((v) => v >= most) || most;
			$('band-who').replaceChildren(...s.sums.names.map((name, k) => {
				const li = document.createElement('li'), i = document.createElement('i'), b = document.createElement('button'), g = s.sums.groups[k];
				b.type = 'button';
				b.textContent = drawShorten(name, 32);
				b.disabled = !g;
				b.addEventListener('click', () => on.choose(-1, -1, g));
				li.append(i, b);
				return li;
			}));
			spikes();
			events();
			if (!had || s.a >= s.sums.n)
				s.a = s.b = -1;
			this.paint(s.dark, s.forced);
		},
		// The chosen part, in ns; 0: all.
		chosen(a, b) {
			if (!s.sums || !s.sums.n)
				return;
			s.a = s.b = -1;
			for (let i = 0; a && i < s.sums.n; i++)
				if (edge(i) < b && edge(i + 1) > a)
					Object.assign(s, {a: s.a < 0 ? i : s.a, b: i});
			say();
			draw();
		},
		paint(dark, forced) {
			const css = getComputedStyle(document.documentElement), of = (name) => css.getPropertyValue(name).trim();
			Object.assign(s, {dark, forced, palette: forced ? ['CanvasText', 'GrayText'] : colourStrip(dark), ink: forced ? 'CanvasText' : of('--fg'), soft: forced ? 'CanvasText' : of('--soft'),
				line: forced ? 'GrayText' : of('--line'), mark: forced ? 'CanvasText' : of('--hit'), veil: forced ? 'Canvas' : dark ? 'rgb(21 23 26 / .72)' : 'rgb(251 251 250 / .76)'});
			[...$('band-who').querySelectorAll('i')].forEach((i, k) => { i.style.background = s.palette[Math.min(k, s.palette.length - 1)]; });
			draw();
		},
		sparks: () => s.sums && s.sums.n ? {of: new Map(s.t.groups.map((g) => [`${g.who_is}\n${g.who}`, g.by_column_ns])), n: s.sums.n} : null,
	};
}
