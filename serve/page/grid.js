// SPDX-License-Identifier: Apache-2.0
// grid: a table that sorts and filters, for containers, processes, functions, waits, or SQL results. Text is inserted as text nodes only. On a narrow
// screen each row is a card (serve.css), which names its values.

const GRID_STEP = 30;

// A small line: use over time.
function gridSpark(values) {
	const ns = 'http://www.w3.org/2000/svg', svg = document.createElementNS(ns, 'svg'), path = document.createElementNS(ns, 'path');
	const step = Math.max(1, Math.ceil(values.length / 60)), sums = [];
	for (let i = 0; i < values.length; i += step)
		sums.push(values.slice(i, i + step).reduce((v, x) => v + (x || 0), 0));
	const top = Math.max(...sums, 1), x = (i) => (i / Math.max(sums.length - 1, 1) * 60).toFixed(1), y = (v) => (15 - v / top * 14).toFixed(1);
	svg.setAttribute('viewBox', '0 0 60 16');
	svg.setAttribute('class', 'spark');
	svg.setAttribute('aria-hidden', 'true');
	path.setAttribute('d', `M0 16${sums.map((v, i) => `L${x(i)} ${y(v)}`).join('')}L60 16z`);
	svg.append(path);
	return svg;
}

// columns: [{key, title, kind: 'num' | 'fn' | 'mod' | 'text', value(row), text(row), bar(row): 0 to 1, spark(row): [...], draw(row): an element or null}]; columns
// that are empty in all rows are omitted.
// on: {pick(row), sort(key)}; picked(row): is it selected
function gridInit(box, on) {
	const s = {rows: [], columns: [], sort: '', down: true, find: null, shown: GRID_STEP, picked: () => false};
	const table = document.createElement('table'), head = table.createTHead(), body = table.createTBody(), more = Object.assign(document.createElement('button'), {type: 'button', className: 'more', hidden: true});
	box.replaceChildren(table, more);

	const text = (c, r) => (c.text ? c.text(r) : formatSeen(String(c.value(r) === null || c.value(r) === undefined ? '' : c.value(r))));
	const filled = (c) => s.rows.some((r) => { const v = c.value(r); return v !== null && v !== undefined && v !== '' && v !== 0; });
	function cell(c, r) {
		const td = document.createElement('td'), bar = document.createElement('i');
		td.className = c.kind || (c.draw ? 'act' : 'text');
		td.dataset.label = c.title;
		if (c.bar) {
			bar.className = 'bar';
			bar.style.width = `${Math.max(0, Math.min(1, c.bar(r))) * 100}%`;
		}
		if (c.spark) {
			const values = c.spark(r);
			if (values)
				td.append(gridSpark(values));
			return td;
		}
		if (c.draw) {
			td.append(c.draw(r) || '');
			return td;
		}
		if (c.pick && on.pick) {
			const b = document.createElement('button'), cut = document.createElement('span');
			b.type = 'button';
			cut.className = c.whole ? '' : 'cut';
			cut.textContent = text(c, r);
			b.title = text(c, r);
			b.append(cut);
			b.addEventListener('click', () => on.pick(r));
			td.append(b);
		} else {
			const span = document.createElement('span');
			span.className = 'cut';
			span.textContent = text(c, r);
			if (c.kind && c.kind !== 'num')
				span.title = span.textContent;
			td.append(span, ...(c.bar ? [bar] : []));
		}
		return td;
	}
	function draw() {
		const columns = s.columns.filter((c) => c.spark || c.draw || c.keep || filled(c)), by = columns.find((c) => c.key === s.sort);
		let rows = s.find ? s.rows.filter((r) => columns.some((c) => !c.spark && !c.draw && c.kind !== 'num' && s.find.test(text(c, r)))) : s.rows.slice();
		if (by) {
			const compare = (a, b) => { const x = by.value(a), y = by.value(b); return x === y ? 0 : x === null || x === undefined ? -1 : y === null || y === undefined ? 1 : x < y ? -1 : 1; };
			rows.sort((a, b) => (s.down ? -1 : 1) * compare(a, b));
		}
		const left = rows.length - s.shown;
		rows = rows.slice(0, s.shown);
		const tr = document.createElement('tr');
		for (const c of columns) {
			const th = document.createElement('th'), b = document.createElement('button');
			th.scope = 'col';
			th.className = c.kind || 'text';
			if (c.spark || c.draw) {
				th.textContent = c.title;
			} else {
				th.setAttribute('aria-sort', c.key !== s.sort ? 'none' : s.down ? 'descending' : 'ascending');
				b.type = 'button';
				b.textContent = c.title;
				b.addEventListener('click', () => {
					s.down = c.key === s.sort ? !s.down : c.kind === 'num';
					s.sort = c.key;
					draw();
					if (on.sort)
						on.sort((s.down ? '-' : '') + c.key);
				});
				th.append(b);
			}
			tr.append(th);
		}
		head.replaceChildren(tr);
		body.replaceChildren(...rows.map((r) => {
			const line = document.createElement('tr');
			line.append(...columns.map((c) => cell(c, r)));
			if (s.picked(r))
				line.setAttribute('aria-current', 'true');
			return line;
		}));
		more.hidden = left <= 0;
		more.textContent = left > 0 ? `Show more (${left} left)` : '';
	}
	more.addEventListener('click', () => {
		s.shown += 100;
		draw();
	});
	return {
		// sort: "-cpu", "name"
		// fresh: another table than before
		set(rows, columns, sort, find, picked, fresh = true) {
			Object.assign(s, {rows, columns, sort: sort.replace(/^-/, ''), down: sort[0] === '-', find: find ? layoutPattern(find).re : null, picked: picked || (() => false)});
			if (fresh)
				s.shown = GRID_STEP;
			draw();
		},
		rows: () => s.rows,
		first: () => body.querySelector('button'),
		hide(is) { box.hidden = is; },
	};
}
