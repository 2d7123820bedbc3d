// SPDX-License-Identifier: Apache-2.0
// strip: amounts over time, stacked by what the graph is grouped by (containers first), with a range to choose by
// dragging, or by two sliders.

const STRIP_NAMED = 7;

// By slot: sums of the hottest and of all others, of the shown data. {names, sums: [Float64Array by slot]}
function stripSums(profile, looks, state) {
	const rows = profile.sides[0], by = new Map(), groups = profile.groups[state.group] || profile.groups.nested;
	const name = groups.map((id) => formatSeen(profile.rows[id].length ? looks.name[profile.rows[id][0]] : HOST)), idle = state.idle ? null : profile.idle;
	const each = (f) => {
		for (let r = 0; r < rows.n; r++)
			if (!idle || !idle[rows.node[r]])
				f(name[rows.owner[r]], rows.slot[r], rows.value[r]);
	};
	each((who, slot, v) => by.set(who, (by.get(who) || 0) + v));
	const names = [...by].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map((x) => x[0]);
	const place = new Map(names.map((x, i) => [x, names.length > STRIP_NAMED + 1 ? Math.min(i, STRIP_NAMED) : i]));
	const shown = names.length > STRIP_NAMED + 1 ? [...names.slice(0, STRIP_NAMED), `${names.length - STRIP_NAMED} others`] : names;
	const sums = shown.map(() => new Float64Array(profile.slots));
	each((who, slot, v) => { sums[place.get(who)][slot] += v; });
	return {names: shown, sums};
}

// Recorded seconds of slots [a, b].
function stripSeconds(profile, a, b) {
	return Math.max(profile.covered_ns.slice(a, b + 1).reduce((v, c) => v + c, 0) / 1e9, 1e-9);
}

// on.range(from, to, done): slots, -1 for all; done: the pointer was released.
function stripInit(on) {
	const canvas = $('strip'), ctx = canvas.getContext('2d'), from = $('from'), to = $('to');
	const s = {profile: null, sums: null, a: -1, b: -1, palette: [], ink: '#000', soft: '#888', veil: '#fff'};
	let drag = -1;

	const clock = (slot) => formatClock(s.profile.slots_from_ns + slot * s.profile.slot_ns);
	function top() {
		let most = 0;
		for (let i = 0; i < s.profile.slots; i++)
			most = Math.max(most, s.sums.sums.reduce((v, c) => v + c[i], 0) / stripSeconds(s.profile, i, i));
		return most || 1;
	}
	// Times that were not recorded: crossed out, never drawn as idle.
	function drawGaps(step, h) {
		const covered = s.profile.covered_ns;
		ctx.strokeStyle = s.ink;
		ctx.lineWidth = 0.5;
		for (let i = 0, end; i < s.profile.slots; i = end) {
			for (end = i; end < s.profile.slots && !covered[end];)
				end++;
			if (end > i) {
				ctx.beginPath();
				ctx.rect(i * step, 0, (end - i) * step, h);
				for (const [y, y2] of [[0, h], [h, 0]]) {
					ctx.moveTo(i * step, y);
					ctx.lineTo(end * step, y2);
				}
				ctx.stroke();
			}
			end = Math.max(end, i + 1);
		}
	}
	function draw() {
		const ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
		if (!s.profile || !w)
			return;
		canvas.width = Math.round(w * ratio);
		canvas.height = Math.round(h * ratio);
		ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
		ctx.clearRect(0, 0, w, h);
		const n = s.profile.slots, most = top(), step = w / n, edge = (i) => Math.round(i * step * ratio) / ratio;
		drawGaps(step, h);
		for (let i = 0; i < n; i++) {
			const x = edge(i), wide = edge(i + 1) - x; // whole pixels: no seams
			let y = h;
			s.sums.sums.forEach((c, k) => {
				const tall = c[i] / stripSeconds(s.profile, i, i) / most * (h - 16);
				ctx.fillStyle = s.palette[Math.min(k, s.palette.length - 1)];
				ctx.fillRect(x, y - tall, Math.max(wide - (step > 4 ? 1 : 0), 0.5), tall);
				y -= tall;
			});
		}
		ctx.font = '11px system-ui, sans-serif';
		ctx.fillStyle = s.ink;
		ctx.fillText(s.label(most), 3, 11);
		if (s.a < 0)
			return;
		const left = s.a * step, right = (s.b + 1) * step;
		ctx.fillStyle = s.veil;
		ctx.fillRect(0, 0, left, h);
		ctx.fillRect(right, 0, w - right, h);
		ctx.strokeStyle = s.ink;
		ctx.lineWidth = 2;
		ctx.strokeRect(left + 1, 1, Math.max(right - left - 2, 1), h - 2);
	}
	function say() {
		const n = s.profile.slots, a = s.a < 0 ? 0 : s.a, b = s.a < 0 ? n - 1 : s.b;
		from.value = a;
		to.value = b;
		from.setAttribute('aria-valuetext', clock(a));
		to.setAttribute('aria-valuetext', clock(b + 1));
		$('range').textContent = `${clock(a)} to ${clock(b + 1)} UTC${s.a < 0 ? '' : ' chosen'}`;
		$('all-time').disabled = s.a < 0;
	}
	const slotAt = (e) => Math.max(0, Math.min(s.profile.slots - 1, Math.floor(e.offsetX / canvas.clientWidth * s.profile.slots)));
	canvas.addEventListener('pointerdown', (e) => {
		drag = slotAt(e);
		canvas.setPointerCapture(e.pointerId);
		on.range(drag, drag, false);
	});
	canvas.addEventListener('pointermove', (e) => {
		if (drag >= 0)
			on.range(Math.min(drag, slotAt(e)), Math.max(drag, slotAt(e)), false);
	});
	canvas.addEventListener('pointerup', (e) => {
		if (drag >= 0)
			on.range(Math.min(drag, slotAt(e)), Math.max(drag, slotAt(e)), true);
		drag = -1;
	});
	for (const slider of [from, to]) {
		slider.addEventListener('input', () => {
			const a = Number(from.value), b = Number(to.value);
			on.range(slider === from ? a : Math.min(a, b), slider === from ? Math.max(a, b) : b, true);
		});
	}
	$('all-time').addEventListener('click', () => on.range(-1, -1, true));
	new ResizeObserver(draw).observe(canvas);
	return {
		show(profile, looks, state, label) {
			$('time').hidden = profile.slots < 2;
			if (profile.slots < 2)
				return;
			Object.assign(s, {profile, label, sums: stripSums(profile, looks, state)});
			from.max = to.max = profile.slots - 1;
			$('who').replaceChildren(...s.sums.names.map((name) => {
				const li = document.createElement('li');
				li.append(document.createElement('i'), name);
				return li;
			}));
		},
		range(a, b) {
			if (!s.profile || $('time').hidden)
				return;
			Object.assign(s, {a, b});
			say();
			draw();
		},
		paint(dark, forced) {
			s.palette = forced ? ['CanvasText', 'GrayText'] : colourStrip(dark);
			s.ink = forced ? 'CanvasText' : dark ? '#e8eaed' : '#1b1d1f';
			s.veil = forced ? 'Canvas' : dark ? 'rgb(21 23 26 / .72)' : 'rgb(251 251 250 / .76)';
			[...$('who').querySelectorAll('i')].forEach((i, k) => { i.style.background = s.palette[Math.min(k, s.palette.length - 1)]; });
			draw();
		},
	};
}
