// SPDX-License-Identifier: Apache-2.0
// colour: hue by where a frame comes from, shade by its package: the same package has the same colour in every report.
// Fills keep a contrast of at least 4.5 to the text drawn on them in both themes (OKLCH holds the lightness still).

const ORIGIN_GROUP = 4;
const ORIGINS = [
	{name: 'native', from: 205, to: 300, chroma: 0.09},
	{name: 'kernel', from: 40, to: 85, chroma: 0.11},
	{name: 'Go', from: 150, to: 190, chroma: 0.09},
	{name: 'JIT', from: 330, to: 375, chroma: 0.09},
	{name: 'group', from: 250, to: 250, chroma: 0.012},
	{name: 'unknown', from: 0, to: 0, chroma: 0},
];

function colourHash(text) {
	let h = 0x811c9dc5;
	for (let i = 0; i < text.length; i++)
		h = Math.imul(h ^ text.charCodeAt(i), 0x01000193) >>> 0;
	h ^= h >>> 15;
	return Math.imul(h, 0x2c1b3c6d) >>> 0;
}

// Go: up to the last dot of the import path; C++ and Rust: the outermost namespace or crate; else the module.
function colourPackage(name, module, origin) {
	if (origin === 2) {
		const head = name.split(/[[(]/, 1)[0];
		const dot = head.indexOf('.', head.lastIndexOf('/') + 1);
		return dot > 0 ? head.slice(0, dot) : module;
	}
	if (origin === 0 && name.includes('::')) {
		const head = name.replace(/^[<&*\s]+/, '').split(/[<(]/, 1)[0];
		const word = head.slice(head.lastIndexOf(' ') + 1);
		const cut = word.indexOf('::');
		return cut > 0 ? word.slice(0, cut) : module;
	}
	return module;
}

// OKLCH to CSS rgb (B. Ottosson's matrices); the chroma is lowered until the colour exists.
function colourOklch(l, c, h) {
	const a = c * Math.cos(h * Math.PI / 180), b = c * Math.sin(h * Math.PI / 180);
	const x = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3;
	const y = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
	const z = (l - 0.0894841775 * a - 1.291485548 * b) ** 3;
	const linear = [4.0767416621 * x - 3.3077115913 * y + 0.2309699292 * z,
		-1.2684380046 * x + 2.6097574011 * y - 0.3413193965 * z,
		-0.0041960863 * x - 0.7034186147 * y + 1.707614701 * z];
	if (c > 0.005 && linear.some((v) => v < -0.001 || v > 1.001))
		return colourOklch(l, c * 0.9, h);
	const rgb = linear.map((v) => {
		v = Math.min(1, Math.max(0, v));
		return Math.round(255 * (v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055));
	});
	return `rgb(${rgb[0]},${rgb[1]},${rgb[2]})`;
}

function colourOf(name, module, origin, dark) {
	const o = ORIGINS[origin] || ORIGINS[5];
	const p = colourHash(colourPackage(name, module, origin));
	const hue = o.from + (o.to - o.from) * (p % 1024) / 1023;
	const shade = ((p >>> 10) % 5 - 2) * 0.014 + (colourHash(name) % 3 - 1) * 0.008;
	return colourOklch((dark ? 0.43 : 0.82) + shade, o.chroma * (0.8 + (p >>> 14) % 5 * 0.08), hue);
}

// All fills of a report: {fill, quiet (not matched)} by frame, and the colours around them.
function colourPalette(frames, dark, forced) {
	if (forced) {
		const same = new Array(frames.n).fill('Canvas');
		return {fill: same, quiet: same, text: 'CanvasText', hit: 'Highlight', hitText: 'HighlightText',
			small: 'GrayText', edge: 'CanvasText', ring: 'Highlight', border: true};
	}
	const fill = new Array(frames.n), quiet = new Array(frames.n);
	for (let f = 0; f < frames.n; f++) {
		fill[f] = colourOf(frames.name[f], frames.module[f], frames.origin[f], dark);
		quiet[f] = dark ? '#2c3035' : '#e4e6e8';
	}
	return {fill, quiet, text: dark ? '#ffffff' : '#161616', hit: dark ? '#ffd54a' : '#6a1bd1',
		hitText: dark ? '#161616' : '#ffffff', small: dark ? '#4a5057' : '#b9bec3', edge: dark ? '#fff' : '#000',
		ring: dark ? '#ffffff' : '#000000', border: false};
}

function colourLegend(frames, dark) {
	const used = new Set(frames.origin);
	return ORIGINS.map((o, i) => ({name: o.name, fill: colourOklch(dark ? 0.43 : 0.82, o.chroma, (o.from + o.to) / 2), i}))
		.filter((o) => used.has(o.i) && o.i !== ORIGIN_GROUP);
}
