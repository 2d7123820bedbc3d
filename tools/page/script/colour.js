// SPDX-License-Identifier: Apache-2.0
// colour: three schemes. By package: the hue shows where a frame comes from, the shade its package: a package has the same
// colour in every report. By origin: one colour each, also different in lightness, so that colour-blind people can distinguish them.
// By module: one colour per file. Fills have a contrast of at least 4.5 to the text on them in both themes (OKLCH
// keeps the lightness constant).

const ORIGINS = [ // enum fold_origin, scripts by runtime (looks.js); light, dark: lightness in the scheme by origin
	{name: 'native', from: 205, to: 300, chroma: 0.1, light: 0.76, dark: 0.395, hue: 240},
	{name: 'kernel', from: 40, to: 85, chroma: 0.12, light: 0.84, dark: 0.46, hue: 60},
	{name: 'Go', from: 150, to: 190, chroma: 0.1, light: 0.92, dark: 0.53, hue: 170},
	{name: 'JIT', from: 330, to: 375, chroma: 0.12, light: 0.68, dark: 0.33, hue: 350},
	{name: 'group', from: 250, to: 250, chroma: 0.012, light: 0.86, dark: 0.4, hue: 250},
	{name: 'unknown', from: 0, to: 0, chroma: 0, light: 0.84, dark: 0.4, hue: 0},
	{name: 'off CPU', from: 105, to: 130, chroma: 0.08, light: 0.62, dark: 0.26, hue: 110},
	{name: 'script', from: 285, to: 320, chroma: 0.09, light: 0.8, dark: 0.42, hue: 300},
	{name: 'Python', from: 285, to: 320, chroma: 0.1, light: 0.87, dark: 0.5, hue: 290},
	{name: 'Ruby', from: 5, to: 30, chroma: 0.12, light: 0.7, dark: 0.35, hue: 20},
	{name: 'PHP', from: 265, to: 285, chroma: 0.1, light: 0.8, dark: 0.43, hue: 275},
	{name: 'JavaScript', from: 90, to: 105, chroma: 0.12, light: 0.9, dark: 0.5, hue: 98},
	{name: 'Java', from: 30, to: 45, chroma: 0.12, light: 0.74, dark: 0.38, hue: 40},
];
const COLOURS = ['package', 'origin', 'module'];

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

function colourOf(name, module, origin, dark, scheme) {
	const o = ORIGINS[origin] || ORIGINS[5], base = dark ? 0.43 : 0.82;
	if (scheme === 'origin')
		return colourOklch(o[dark ? 'dark' : 'light'], o.chroma, o.hue);
	const p = colourHash(scheme === 'module' ? module : colourPackage(name, module, origin));
	if (scheme === 'module')
		return colourOklch(base + ((p >>> 10) % 5 - 2) * 0.02, module ? 0.09 : 0, p % 360);
	const hue = o.from + (o.to - o.from) * (p % 1024) / 1023;
	const shade = ((p >>> 10) % 5 - 2) * 0.014 + (colourHash(name) % 3 - 1) * 0.008;
	return colourOklch(base + shade, o.chroma * (0.8 + (p >>> 14) % 5 * 0.08), hue);
}

// The colours of a graph: fill(look), and those around it.
function colourPalette(looks, dark, forced, scheme) {
	if (forced)
		return {fill: () => 'Canvas', quiet: 'Canvas', text: 'CanvasText', hit: 'Highlight', hitText: 'HighlightText',
			small: 'GrayText', edge: 'CanvasText', ring: 'Highlight', border: true};
	const made = [];
	return {fill: (i) => made[i] || (made[i] = colourOf(looks.name[i], looks.module[i], looks.origin[i], dark, scheme)),
		quiet: dark ? '#2c3035' : '#e4e6e8', text: dark ? '#ffffff' : '#161616', hit: dark ? '#ffd54a' : '#6a1bd1',
		hitText: dark ? '#161616' : '#ffffff', small: dark ? '#4a5057' : '#b9bec3', edge: dark ? '#fff' : '#000',
		ring: dark ? '#ffffff' : '#000000', border: false};
}

// [{name, fill}]: the origins that occur, or the ten modules with the most self samples.
function colourLegend(looks, tree, dark, scheme) {
	const sums = new Map();
	for (let i = 1; i < tree.n; i++) {
		const l = tree.look[i], key = scheme === 'module' ? looks.module[l] : looks.origin[l];
		sums.set(key, (sums.get(key) || 0) + tree.self[1][i] + (scheme === 'module' ? 0 : 1));
	}
	if (scheme === 'module')
		return [...sums].sort((a, b) => b[1] - a[1]).slice(0, 10).map(([name]) => ({name: name || '(none)',
			fill: colourOf('', name, 0, dark, scheme)}));
	return ORIGINS.map((o, i) => ({name: o.name, i, fill: scheme === 'origin' ? colourOf('', '', i, dark, scheme)
		: colourOklch(dark ? 0.43 : 0.82, o.chroma, (o.from + o.to) / 2)})).filter((o) => sums.has(o.i) && o.i !== GROUP);
}

// For the strip: eight colours that are distinct for every kind of colour vision (after Okabe and Ito), the last for all others.
function colourStrip(dark) {
	return dark ? ['#e69f00', '#56b4e9', '#009e73', '#f0e442', '#4d8fd1', '#d55e00', '#cc79a7', '#8a9096']
		: ['#e69f00', '#56b4e9', '#009e73', '#c7b800', '#0072b2', '#d55e00', '#cc79a7', '#9aa0a6'];
}
