// SPDX-License-Identifier: Apache-2.0
// services: the map of services as a picture, drawn with the positions from `sonde map --json --drawing`, and as a table. Each service is a
// button that selects it.

const SERVICES_SHAPE = {container: 5, command: 0, address: 17, class: 17};
const SERVICES_TROUBLE = ['refused', 'timed_out', 'unreachable', 'given_up', 'failed', 'reset_in', 'reset_out', 'broken', 'errors'];

const SERVICES_COLUMNS = [
	{key: 'from', title: 'From', value: (r) => r.from.name, keep: true},
	{key: 'to', title: 'To', value: (r) => r.to.name, keep: true},
	{key: 'service', title: 'Service', value: (r) => `${r.protocol}${r.port ? ' ' + r.port : ''}`, keep: true},
	{key: 'opened', title: 'Opened', kind: 'num', value: (r) => r.opened, text: (r) => formatCount(r.opened), keep: true},
	{key: 'open', title: 'Open', kind: 'num', value: (r) => r.open_now},
	{key: 'out', title: 'Out', kind: 'num', value: (r) => r.tx_bytes, text: (r) => formatBytes(r.tx_bytes), keep: true},
	{key: 'in', title: 'In', kind: 'num', value: (r) => r.rx_bytes, text: (r) => formatBytes(r.rx_bytes), keep: true},
	{key: 'rtt', title: 'Round trip', kind: 'num', value: (r) => r.rtt_us, text: (r) => (r.rtt_us ? formatTime(r.rtt_us * 1000) : '')},
	{key: 'retrans', title: 'Retransmits', kind: 'num', value: (r) => r.retrans},
	{key: 'requests', title: 'Requests', kind: 'num', value: (r) => r.requests},
	{key: 'p95', title: 'p95', kind: 'num', value: (r) => r.p95_ns, text: (r) => (r.p95_ns ? formatTime(r.p95_ns) : '')},
	{key: 'trouble', title: 'Trouble', value: (r) => SERVICES_TROUBLE.filter((k) => r[k]).map((k) => `${formatCount(r[k])} ${k.replaceAll('_', ' ')}`).join(', ')},
];

const servicesRate = (v) => `${v >= 100 ? formatCount(v) : Number(v.toPrecision(2))}/s`;
// What is written at a line, with rates in place of numbers of requests, and the share of errors. edges: the rows of the line.
function servicesWords(lines, edges, seconds) {
	const asked = edges.filter((r) => r.requests);
	let k = 0;
	return lines.map((l) => ({...l, text: l.text.replace(/(\d) us\b/, '$1 \u00b5s')})).map((line) => {
		if (!line.trouble && / requests/.test(line.text) && asked[k]) {
			const r = asked[k++];
			return {...line, text: line.text.replace(/\d[\d\s]* requests/, servicesRate(r.requests / seconds))};
		}
		const r = asked[k - 1];
		return line.trouble && r && r.errors ? {...line, text: line.text.replace(/\d[\d\s]* errors?/, (m) => `${m}, ${wordsShare(r.errors / r.requests)}`)} : line;
	});
}

// on: {pick(node)}; nodes are {name, kind}
function servicesInit(on) {
	let narrow = false;
	const box = $('map-draw'), grid = gridInit($('map-rows'), {}), ns = 'http://www.w3.org/2000/svg';

	function add(to, kind, attributes, text) {
		const e = document.createElementNS(ns, kind);
		for (const [k, v] of Object.entries(attributes))
			e.setAttribute(k, v);
		if (text !== undefined)
			e.textContent = text;
		to.append(e);
		return e;
	}
	function link(svg, l, edges, seconds) {
		const g = add(svg, 'g', {class: `link${l.trouble ? ' trouble' : ''}`});
		add(g, 'title', {}, l.title);
		add(g, 'path', {class: 'way', fill: 'none', d: l.path, 'stroke-width': l.thick, ...(l.trouble ? {'stroke-dasharray': '6 4'} : {})});
		add(g, 'path', {class: 'head', d: l.head});
		servicesWords(l.lines, edges, seconds).forEach((line, k) => add(g, 'text', {x: l.x + 5, y: l.y + k * 14 + 10, ...(line.trouble ? {class: 'bad'} : {})}, line.text));
		return g;
	}
	function node(svg, n, links, mine) {
		const here = n.kind === 'container' || n.kind === 'command', middle = n.x + n.w / 2, cut = n.label.includes('\u2026');
		const g = add(svg, 'g', {class: `box ${n.kind}`, ...(here ? {tabindex: 0, role: 'button', 'aria-pressed': mine, ...(cut ? {} : {'aria-label': `${n.label} ${n.said}`})} : {})});
		if (cut)
			add(g, 'title', {}, formatSeen(n.name));
		add(g, 'rect', {x: n.x, y: n.y, width: n.w, height: n.h, rx: SERVICES_SHAPE[n.kind], ...(here ? {} : {'stroke-dasharray': '4 3'})});
		add(g, 'text', {class: 'name', x: middle, y: n.y + n.h / 2 - 2, 'text-anchor': 'middle', 'font-weight': 'bold'}, n.label);
		g.append(' '); // separates the words of its name
		add(g, 'text', {class: 'said', x: middle, y: n.y + n.h / 2 + 12, 'text-anchor': 'middle'}, n.said);
		const lit = (is) => {
			svg.classList.toggle('some', is);
			for (const l of links)
				l.classList.toggle('lit', is);
		};
		for (const [event, is] of [['mouseenter', true], ['mouseleave', false], ['focus', true], ['blur', false]])
			g.addEventListener(event, () => lit(is));
		if (!here)
			return;
		g.addEventListener('click', () => on.pick(n));
		g.addEventListener('keydown', (e) => {
			if (e.key === 'Enter' || e.key === ' ') {
				e.preventDefault();
				on.pick(n);
			}
		});
	}
	return {
		// is(node): it is selected
		show(data, is) {
			const d = data.drawing, svg = document.createElementNS(ns, 'svg');
			for (const [k, v] of [['width', d.width + 8], ['height', d.height + 8], ['viewBox', `-4 -4 ${d.width + 8} ${d.height + 8}`], ['role', 'group'], ['aria-label', `Map of services: ${d.nodes.length} services, ${d.links.length} lines; the table holds the same`]])
				svg.setAttribute(k, v);
			Object.assign(svg.style, {width: '100%', height: 'auto', maxWidth: `${d.width + 8}px`, minWidth: `${Math.round((d.width + 8) / 1.3)}px`}); // a little smaller rather than cut
			const seconds = Math.max((data.to_ns - data.from_ns) / 1e9, 1), links = d.links.map((l) => link(svg, l, data.rows.slice(l.first_row, l.first_row + l.rows), seconds));
			d.nodes.forEach((n, i) => node(svg, n, links.filter((g, k) => d.links[k].from === i || d.links[k].to === i), is(n)));
			box.replaceChildren(svg);
			grid.set(data.rows, SERVICES_COLUMNS, '', '');
			$('map-brief').textContent = `As a table: ${data.rows.length}`;
			if (!narrow && matchMedia('(max-width: 700px)').matches) // the drawing shows two of its boxes at a time there
				$('map-table').open = narrow = true;
			$('map-left').textContent = d.left_out ? `${d.links.length} of ${d.links.length + d.left_out} lines are drawn: those with the most bytes and connections; the table has all.` : '';
			$('map-left').hidden = !d.left_out;
		},
		none() {
			box.replaceChildren();
			grid.set([], SERVICES_COLUMNS, '', '');
		},
		grab: () => (box.querySelector('[tabindex]') || box).focus(),
	};
}
