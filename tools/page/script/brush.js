// SPDX-License-Identifier: Apache-2.0
// brush: chooses a time range of either side of a difference, by dragging on its drawing (tools/page/diff/diff_html.c) or by two sliders.
// A drawing has a column per slice; rows have slots, which may be two, four, ... slices.

const BRUSH = [{from: 'fromA', to: 'toA', side: 'A'}, {from: 'from', to: 'to', side: 'B'}]; // names in the state

// What an amount of each side is divided by (tools/page/diff/diff_pack.h): the recorded part of what is chosen.
function brushWhole(p, state) {
	return p.sides.map((rows, i) => {
		const a = state[BRUSH[i].from], b = state[BRUSH[i].to], all = rows.covered.reduce((v, c) => v + c, 0);
		const part = rows.covered.slice(a, b + 1).reduce((v, c) => v + c, 0);
		return p.diff.whole[i] * (a < 0 || !all ? 1 : Math.max(part / all, 1e-9));
	});
}

// on(side, from, to, done): slots, -1 for all; done: the pointer was released.
function brushOne(svg, rows, side, on) {
	const [from, to, range, all] = ['from', 'to', 'range', 'all'].map((id) => $(id + side)), veil = svg.querySelector('.veil');
	const columns = svg.viewBox.baseVal.width, high = svg.viewBox.baseVal.height, last = rows.slots - 1;
	let per = 1, drag = -1;

	const clock = (slot) => formatClock(Math.min(Math.max(rows.slots_from_ns + slot * rows.slot_ns, rows.from_ns), rows.to_ns));
	const slotAt = (e) => {
		const box = svg.getBoundingClientRect(), part = (e.clientX - box.left - 1) / Math.max(box.width - 2, 1);
		return Math.max(0, Math.min(last, Math.floor(part * columns / per)));
	};
	const choose = (a, b, done) => on(Math.min(a, b), Math.max(a, b), done);
	while (Math.ceil(columns / per) > rows.slots)
		per *= 2;
	from.max = to.max = last;
	svg.addEventListener('pointerdown', (e) => {
		drag = slotAt(e);
		svg.setPointerCapture(e.pointerId);
		choose(drag, drag, false);
	});
	svg.addEventListener('pointermove', (e) => drag >= 0 && choose(drag, slotAt(e), false));
	svg.addEventListener('pointerup', (e) => {
		if (drag >= 0)
			choose(drag, slotAt(e), true);
		drag = -1;
	});
	for (const slider of [from, to]) {
		slider.addEventListener('input', () => {
			const a = Number(from.value), b = Number(to.value);
			on(slider === from ? a : Math.min(a, b), slider === from ? Math.max(a, b) : b, true);
		});
	}
	all.addEventListener('click', () => on(-1, -1, true));
	return (a, b) => {
		const whole = a < 0, left = whole ? 0 : a, right = whole ? last : b;
		from.value = left;
		to.value = right;
		from.setAttribute('aria-valuetext', clock(left));
		to.setAttribute('aria-valuetext', clock(right + 1));
		range.textContent = `${clock(left)} to ${clock(right + 1)} UTC${whole ? '' : ' chosen'}`;
		all.disabled = whole;
		veil.setAttribute('d', whole ? '' : `M0 0H${left * per}V${high}H0zM${Math.min((right + 1) * per, columns)} 0H${columns}V${high}H${(right + 1) * per}z`);
	};
}

// on(patch, done); show(state) marks what is chosen. Does nothing without drawings.
function brushInit(p, on) {
	const shown = [...document.querySelectorAll('.drawing[data-side]')].map((svg) => {
		const i = Number(svg.dataset.side), k = BRUSH[i], rows = p.sides[i];
		const show = brushOne(svg, rows, k.side, (a, b, done) => {
			const all = a < 0 || (a === 0 && b === rows.slots - 1);
			on({[k.from]: all ? -1 : a, [k.to]: all ? -1 : b}, done);
		});
		return (state) => show(state[k.from], state[k.to]);
	});
	return {any: shown.length > 0, show: (state) => shown.forEach((f) => f(state))};
}
