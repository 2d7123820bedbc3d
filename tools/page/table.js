// SPDX-License-Identifier: Apache-2.0
// table: the functions of what is shown, sortable, as an ordinary table: the accessible twin of the canvas. Text goes
// in as text nodes only.

function tableCell(row, text, kind) {
	const td = document.createElement('td');
	td.className = kind;
	td.textContent = text;
	row.append(td);
	return td;
}

function tableInit(body, more, format, onPick) {
	const s = {rows: [], sort: 'self', down: true, shown: 20};
	const heads = [...document.querySelectorAll('#top .head')];

	const compare = {
		self: (a, b) => a.self - b.self || a.total - b.total,
		total: (a, b) => a.total - b.total || a.self - b.self,
		name: (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
		module: (a, b) => (a.module < b.module ? -1 : a.module > b.module ? 1 : a.self - b.self),
	};
	function draw() {
		const rows = s.rows.slice().sort((a, b) => (s.down ? -1 : 1) * compare[s.sort](a, b)).slice(0, s.shown);
		body.replaceChildren(...rows.map(line));
		more.hidden = s.rows.length <= s.shown;
		more.textContent = `Show more (${s.rows.length - rows.length} left)`;
		for (const h of heads)
			h.closest('th').setAttribute('aria-sort',
				h.dataset.sort !== s.sort ? 'none' : s.down ? 'descending' : 'ascending');
	}
	function line(r) {
		const tr = document.createElement('tr');
		tableCell(tr, format.share(r.self), 'num');
		tableCell(tr, format.cores(r.self), 'num cores');
		tableCell(tr, format.share(r.total), 'num');
		tableCell(tr, format.cores(r.total), 'num cores');
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
	return {
		set(rows) {
			s.rows = rows;
			draw();
		},
	};
}
