// SPDX-License-Identifier: Apache-2.0
// table: the functions of the view, sortable, filterable, and the lines of one function, as ordinary tables. Text
// is inserted as text nodes only.

function tableCell(row, text, kind) {
	const td = document.createElement('td');
	td.className = kind;
	td.textContent = text;
	row.append(td);
	return td;
}

// The columns before the function: of one profile, and of a difference. compare: by `data-sort`.
const TABLE_ONE = {
	sort: 'self', start: 'self total',
	compare: {
		self: (a, b) => a.self[1] - b.self[1] || a.total[1] - b.total[1],
		total: (a, b) => a.total[1] - b.total[1] || a.self[1] - b.self[1],
	},
	cells: (r, f) => [[f.share(r.self[1]), 'num'], [f.short(r.self[1]), 'num cores'], [f.share(r.total[1]), 'num'],
		[f.short(r.total[1]), 'num cores']],
};
const tableMoved = (c) => c[DIFF_B] - c[DIFF_A], tableQ = (r) => (r.stat.self.tested ? r.stat.self : r.stat.total).q;
const TABLE_TWO = {
	sort: 'sure', start: 'sure self selfA selfB total totalA totalB',
	compare: {
		sure: (a, b) => a.stat.sure - b.stat.sure || Math.abs(tableMoved(a.self)) - Math.abs(tableMoved(b.self))
			|| Math.abs(tableMoved(a.total)) - Math.abs(tableMoved(b.total)),
		self: (a, b) => tableMoved(a.self) - tableMoved(b.self),
		selfA: (a, b) => a.self[DIFF_A] - b.self[DIFF_A],
		selfB: (a, b) => a.self[DIFF_B] - b.self[DIFF_B],
		total: (a, b) => tableMoved(a.total) - tableMoved(b.total),
		totalA: (a, b) => a.total[DIFF_A] - b.total[DIFF_A],
		totalB: (a, b) => a.total[DIFF_B] - b.total[DIFF_B],
		q: (a, b) => tableQ(a) - tableQ(b),
	},
	cells(r, f) {
		const of = (c) => [[c[DIFF_A] || c[DIFF_B] ? f.change(tableMoved(c)) : '', 'num amount'], [diffPercent(c[DIFF_A], c[DIFF_B]), 'num'],
			...[DIFF_A, DIFF_B].map((k) => [c[DIFF_A] || c[DIFF_B] ? f.level(c[k]) : '', 'num cores'])];
		const tested = r.stat.self.tested || r.stat.total.tested, q = tableQ(r);
		return [[r.stat.sure ? 'yes' : tested ? 'no' : 'few', 'sure'], ...of(r.self), ...of(r.total),
			[!tested ? '' : q < 1e-4 ? '<0.0001' : q.toFixed(4), 'num cores']];
	},
};

function tableInit(kind, onPick) {
	const body = $('rows'), more = $('more');
	const s = {rows: [], sort: kind.sort, down: true, shown: 20, format: null, filter: null};
	const heads = [...document.querySelectorAll('#top .head')];

	const compare = {
		...kind.compare,
		name: (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
		module: (a, b) => (a.module < b.module ? -1 : a.module > b.module ? 1 : a.self[1] - b.self[1]),
	};
	function draw() {
		const all = s.filter ? s.rows.filter((r) => s.filter.test(r.name) || s.filter.test(r.module)) : s.rows.slice();
		const rows = all.sort((a, b) => (s.down ? -1 : 1) * compare[s.sort](a, b)).slice(0, s.shown);
		body.replaceChildren(...rows.map(line));
		more.hidden = all.length <= s.shown;
		more.textContent = `Show more (${all.length - rows.length} left)`;
		for (const h of heads)
			h.closest('th').setAttribute('aria-sort',
				h.dataset.sort !== s.sort ? 'none' : s.down ? 'descending' : 'ascending');
		for (const h of document.querySelectorAll('#top .rate'))
			h.textContent = s.format.unit || 'amount';
	}
	function line(r) {
		const tr = document.createElement('tr'), f = s.format;
		for (const [text, what] of kind.cells(r, f))
			tableCell(tr, text, what);
		const pick = document.createElement('button'), cut = document.createElement('span');
		pick.type = 'button';
		pick.title = 'Find it in the graph';
		cut.className = 'cut';
		cut.textContent = formatSeen(r.name);
		pick.append(cut);
		pick.addEventListener('click', () => onPick(r));
		const td = tableCell(tr, '', 'fn'), why = r.stat ? diffWhy(r.stat) : '';
		td.append(pick);
		if (why)
			td.append(Object.assign(document.createElement('small'), {textContent: why, className: 'why'}));
		tr.classList.toggle('noise', Boolean(r.stat && !r.stat.sure));
		tableCell(tr, formatSeen(r.module), 'mod');
		return tr;
	}
	for (const h of heads) {
		const b = document.createElement('button');
		b.type = 'button';
		b.textContent = h.textContent;
		b.addEventListener('click', () => {
			s.down = h.dataset.sort === s.sort ? !s.down : kind.start.split(' ').includes(h.dataset.sort);
			s.sort = h.dataset.sort;
			draw();
		});
		h.replaceChildren(b);
	}
	more.addEventListener('click', () => {
		s.shown += 100;
		draw();
	});
	$('filter').addEventListener('input', () => {
		s.filter = $('filter').value ? layoutPattern($('filter').value).re : null;
		draw();
	});
	return {
		set(rows, format) {
			Object.assign(s, {rows, format});
			draw();
		},
	};
}

// A source location, with a link if the report has a template: {file} and {line} are filled in.
function tablePlace(file, line, template) {
	const text = file ? formatSeen(file) + (line ? ':' + line : '') : 'line unknown';
	const url = template && file ? template.replaceAll('{file}', encodeURI(file).replace(/[?#]/g, encodeURIComponent))
		.replaceAll('{line}', String(line)) : '';
	if (!/^(https?|file|vscode|vscodium|idea|jetbrains|txmt|emacs|subl):/i.test(url))
		return document.createTextNode(text);
	return Object.assign(document.createElement('a'), {href: url, textContent: text, rel: 'noreferrer noopener', target: '_blank'});
}

function tableLines(name, lines, format, template) {
	$('lines-of').textContent = name ? `Lines of ${drawShorten(name, 120)}: self time, and total time with what it called.`
		: 'Choose a function in the graph, the table or the tree.';
	$('lines').hidden = !name;
	const sides = lines.length ? lines[0].self.length : 1, show = sides > 1 ? format.level : format.share;
	$('lines').tHead.rows[0].replaceChildren(...(sides > 1 ? ['Self A', 'Self B', 'Total A', 'Total B', 'Line'] : ['Self', 'Total', 'Line'])
		.map((text) => Object.assign(document.createElement('th'), {textContent: text, scope: 'col', className: text === 'Line' ? '' : 'num'})));
	$('lines').tBodies[0].replaceChildren(...lines.map((l) => {
		const tr = document.createElement('tr');
		for (const v of [...l.self, ...l.total])
			tableCell(tr, show(v), 'num');
		tableCell(tr, '', 'fn').append(tablePlace(l.file, l.line, template));
		return tr;
	}));
}
