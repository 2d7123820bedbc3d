// SPDX-License-Identifier: Apache-2.0
// table: the functions of what is shown, sortable, filterable, and the lines of one function, as ordinary tables. Text
// goes in as text nodes only.

function tableCell(row, text, kind) {
	const td = document.createElement('td');
	td.className = kind;
	td.textContent = text;
	row.append(td);
	return td;
}

function tableInit(onPick) {
	const body = $('rows'), more = $('more');
	const s = {rows: [], sort: 'self', down: true, shown: 20, format: null, filter: null};
	const heads = [...document.querySelectorAll('#top .head')];

	const compare = {
		self: (a, b) => a.self[1] - b.self[1] || a.total[1] - b.total[1],
		total: (a, b) => a.total[1] - b.total[1] || a.self[1] - b.self[1],
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
		tableCell(tr, f.share(r.self[1]), 'num');
		tableCell(tr, f.short(r.self[1]), 'num cores');
		tableCell(tr, f.share(r.total[1]), 'num');
		tableCell(tr, f.short(r.total[1]), 'num cores');
		const pick = document.createElement('button'), cut = document.createElement('span');
		pick.type = 'button';
		pick.title = 'Find it in the graph';
		cut.className = 'cut';
		cut.textContent = r.name;
		pick.append(cut);
		pick.addEventListener('click', () => onPick(r));
		tableCell(tr, '', 'fn').append(pick);
		tableCell(tr, r.module, 'mod');
		return tr;
	}
	for (const h of heads) {
		const b = document.createElement('button');
		b.type = 'button';
		b.textContent = h.textContent;
		b.addEventListener('click', () => {
			s.down = h.dataset.sort === s.sort ? !s.down : h.dataset.sort === 'self' || h.dataset.sort === 'total';
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

// A place in the source, with a link where the report has a template: {file} and {line} are filled in.
function tablePlace(file, line, template) {
	const text = file ? file + (line ? ':' + line : '') : 'line not known';
	const url = template && file ? template.replaceAll('{file}', encodeURI(file).replace(/[?#]/g, encodeURIComponent))
		.replaceAll('{line}', String(line)) : '';
	if (!/^(https?|file|vscode|vscodium|idea|jetbrains|txmt|emacs|subl):/i.test(url))
		return document.createTextNode(text);
	return Object.assign(document.createElement('a'), {href: url, textContent: text, rel: 'noreferrer noopener', target: '_blank'});
}

function tableLines(name, lines, format, template) {
	$('lines-of').textContent = name ? `Lines of ${drawShorten(name, 120)}: where it stood itself, and with what it called.`
		: 'Choose a function in the graph, the table or the tree.';
	$('lines').hidden = !name;
	$('lines').tBodies[0].replaceChildren(...lines.map((l) => {
		const tr = document.createElement('tr');
		tableCell(tr, format.share(l.self), 'num');
		tableCell(tr, format.share(l.total), 'num');
		tableCell(tr, '', 'fn').append(tablePlace(l.file, l.line, template));
		return tr;
	}));
}
