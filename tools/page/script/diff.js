// SPDX-License-Identifier: Apache-2.0
// diff: a report with two sides, A (before) and B (after): what is drawn, what a change is called, how it is
// coloured, and the statistics of a function. A tree then has six columns: the drawn ones (counts, values), A's, B's.
// A's values are made comparable (per second or per sample) once, when they are read. No DOM here.

const DIFF_A = 3, DIFF_B = 5; // columns of values; those of counts precede them
const DIFF_SHOW = [['after', 'B: after'], ['before', 'A: before'], ['delta', 'Change'], ['elided', 'Gone']];

// report.strings and the looks of all profiles are known.
function diffInit(p, looks, strings) {
	const f = p.diff.functions, key = (name, module) => `${name}\n${module}`;
	const at = new Map(f.name.map((name, i) => [key(strings[name], strings[f.module[i]]), i]));
	const one = (i, bit, q, least) => ({tested: (f.flags[i] & bit) !== 0, sure: (f.flags[i] & 2 * bit) !== 0, q: q[i], least: least[i]});
	const none = {tested: false, sure: false, q: 1, least: 0};
	p.diff.of = looks.fnName.map((name, fn) => {
		const i = at.get(key(name, looks.fnModule[fn]));
		if (i === undefined)
			return {self: none, total: none, sure: false, since: 0, callers: []};
		const self = one(i, 1, f.self_q, f.self_least), total = one(i, 4, f.total_q, f.total_least);
		return {self, total, sure: self.sure || total.sure, since: f.since[i],
			callers: f.callers[i].map(([caller, gone]) => ({name: strings[caller], gone}))};
	});
}

// What is drawn: B, A, how much each node changed, or the nodes of A that B does not have. Callers come first in t.
function diffDraw(t, show) {
	const [count, value, countA, valueA, countB, valueB] = t.self;
	const there = Float64Array.from(countB);
	for (let i = t.n - 1; i > 0; i--)
		there[t.parent[i]] += there[i];
	for (let i = 0; i < t.n; i++) {
		const gone = there[i] ? 0 : 1;
		count[i] = {after: countB[i], before: countA[i], delta: Math.abs(countB[i] - countA[i]), elided: countA[i] * gone}[show];
		value[i] = {after: valueB[i], before: valueA[i], delta: Math.abs(valueB[i] - valueA[i]), elided: valueA[i] * gone}[show];
	}
}

// -4: gone, -3 to -1: less by more than half as much again, a tenth, 2 %; 0: the same; and so on to 4: new.
function diffStep(a, b) {
	if (!(a > 0) || !(b > 0))
		return a > 0 ? -4 : b > 0 ? 4 : 0;
	const times = Math.max(a / b, b / a), step = times < 1.02 ? 0 : times < 1.1 ? 1 : times < 1.5 ? 2 : 3;
	return b < a ? -step : step;
}

const DIFF_WORDS = ['gone', 'a third less and below', 'to a third less', 'to 9 % less', 'the same within 2 %', 'to 10 % more', 'to half as much again',
	'above that', 'new'];

// The same words as on the terminal.
function diffPercent(a, b) {
	if (!(a > 0) || !(b > 0))
		return a > 0 ? 'gone' : b > 0 ? 'new' : '';
	const p = 100 * (b - a) / a;
	return p >= 1000 ? `x ${Math.round(b / a)}` : `${p < 0 ? '-' : '+'}${Math.abs(p).toFixed(Math.abs(p) < 99.95 ? 1 : 0)} %`;
}

// Blue for less and orange for more, which every kind of colour vision distinguishes, or green and red; larger changes
// also differ more in lightness. Changes within the noise stay near grey.
function diffColour(step, sure, dark, scheme) {
	const [less, more] = scheme === 'redgreen' ? [150, 25] : [250, 60], far = Math.abs(step), hue = step < 0 ? less : more;
	const light = dark ? [0.39, 0.42, 0.46, 0.51, 0.55] : [0.93, 0.89, 0.83, 0.77, 0.71];
	if (!far || !sure)
		return colourOklch(dark ? 0.39 : 0.93, far ? 0.02 : 0, hue);
	return colourOklch(light[far], [0, 0.06, 0.1, 0.13, 0.16][far], hue);
}

// What a graph needs in addition to the colours around it: node(tree, node) and the words after a name.
function diffPalette(looks, diff, dark, forced, scheme) {
	// the totals of both sides were tested, like functions; containers and commands were not
	const group = (t, i) => i > 0 && looks.origin[t.look[i]] === GROUP, whole = (t, i) => !i && looks.origin[t.look[0]] === GROUP;
	const made = new Map(), sure = (t, i) => (whole(t, i) ? diff.all_sure : diff.of[looks.fn[t.look[i]]].sure);
	const step = (t, i) => diffStep(t.total[DIFF_A][i], t.total[DIFF_B][i]);
	const colours = scheme === 'change' || scheme === 'redgreen';
	return {
		node: forced || !colours ? null : (t, i) => {
			if (group(t, i))
				return colourOf('', '', GROUP, dark, 'origin');
			const key = step(t, i) * 2 + (sure(t, i) ? 1 : 0);
			if (!made.has(key))
				made.set(key, diffColour(step(t, i), sure(t, i), dark, scheme));
			return made.get(key);
		},
		mark(t, i) {
			const s = group(t, i) || sure(t, i) ? step(t, i) : 0;
			return s ? [s < 0 ? '\u25bc' : '\u25b2', diffPercent(t.total[DIFF_A][i], t.total[DIFF_B][i])] : null;
		},
	};
}

function diffLegend(dark, scheme) {
	return [...DIFF_WORDS.map((name, i) => ({name: (i < 4 ? '\u25bc ' : i > 4 ? '\u25b2 ' : '') + name, fill: diffColour(i - 4, true, dark, scheme)})),
		{name: 'pale: within the noise', fill: diffColour(1, false, dark, scheme)},
		{name: 'container, process: not tested', fill: colourOf('', '', GROUP, dark, 'origin')}];
}

// Numbers of both sides in the unit of the difference; `all`: the tree's sums, `whole`: their divisors.
function diffFormat(format, p, all, whole) {
	const d = p.diff, bytes = p.value_unit === 'bytes', digits = Math.max(all[DIFF_A], all[DIFF_B]) / whole < 1 ? 4 : 3;
	const word = d.unit === 'cores' ? ' cores' : d.unit.endsWith('per second') ? bytes ? '/s' : d.unit === 'seconds per second' ? ' s per second'
		: ` ${p.counted}/s` : bytes || d.unit === 'share' ? '' : ` ${p.counted}`;
	const level = (v) => (d.unit === 'share' ? `${(100 * v / whole).toFixed(2)} %` : bytes ? formatBytes(v / whole)
		: (v / whole).toFixed(p.value_unit === 'ns' ? digits : 1));
	const change = (v) => (v < 0 ? '-' : '+') + (d.unit === 'share' ? (100 * Math.abs(v) / whole).toFixed(2) : level(Math.abs(v)));
	return {...format, level, change, word, diffWhole: whole, main: (v) => level(v) + word,
		changed: (v) => change(v) + (d.unit === 'share' ? ' points' : word)};
}

// The statistics, over both whole sides.
function diffSay(stat, format, what) {
	const s = stat[what];
	if (s.sure)
		return `more than noise (q ${s.q < 1e-4 ? '< 0.0001' : '= ' + s.q.toFixed(4)})`;
	if (!s.tested)
		return 'too few samples to tell';
	return 'within the noise' + (s.least ? `; ${format.main(s.least * format.diffWhole)} would have been detected` : '');
}

function diffWhy(stat) {
	const say = stat.callers.slice(0, 2).map((c) => `${c.gone ? 'caller gone' : 'new caller'}: ${drawShorten(c.name, 60)}`);
	if (stat.sure && stat.since)
		say.push(`since ${formatClock(stat.since * 1e9)} UTC`);
	return say.join(', ');
}
