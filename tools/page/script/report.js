// SPDX-License-Identifier: Apache-2.0
// report: what is above the graphs in a report (tools/page/report.h): makes processes sortable and filterable, and links spikes and
// processes to their stacks. Without it they are plain tables.

const REPORT_ROWS = 20;

function reportInit(page) {
	const cpu = page.profiles.findIndex((p) => p.type === 'cpu'), p = page.profiles[cpu], table = $('procs');
	const go = (tr, title, patch) => {
		const cell = tr.querySelector('.go'), b = document.createElement('button');
		b.type = 'button';
		b.title = title;
		b.append(...cell.childNodes);
		cell.append(b);
		b.addEventListener('click', () => {
			page.change({...page.fresh(), type: cpu, colour: page.state.colour, ...patch});
			$('graph').scrollIntoView();
			page.lower.canvas.focus({preventScroll: true});
		});
	};
	if (cpu < 0)
		return;
	const slot = (ns) => Math.max(0, Math.min(p.slots - 1, Math.floor((ns - p.slots_from_ns) / p.slot_ns)));
	for (const tr of document.querySelectorAll('#spikes tbody tr'))
		go(tr, 'Show the stacks of that time', {from: slot(Number(tr.dataset.from)), to: slot(Number(tr.dataset.to) - 1e6)});
	for (const tr of table.tBodies[0].rows) {
		const owner = p.owners.findIndex((o) => o.pid === Number(tr.dataset.pid));
		if (owner >= 0)
			go(tr, 'Show the stacks of this process', {group: 'process', zoom: p.rows[p.groups.process[owner]]});
	}

	const rows = [...table.tBodies[0].rows], heads = [...table.tHead.rows[0].cells], more = $('procs-more');
	const order = new Map(rows.map((tr, i) => [tr, i]));
	const s = {by: -1, down: true, all: false, filter: null};
	const compare = (a, b) => {
		const [x, y] = [a, b].map((tr) => tr.cells[s.by].textContent);
		return heads[s.by].classList.contains('num') ? parseFloat(x) - parseFloat(y) : x < y ? -1 : x > y ? 1 : 0;
	};
	function draw() {
		const kept = rows.filter((tr) => !s.filter || s.filter.test(tr.textContent));
		if (s.by >= 0)
			kept.sort((a, b) => (s.down ? compare(b, a) : compare(a, b)) || order.get(a) - order.get(b));
		table.tBodies[0].replaceChildren(...(s.all ? kept : kept.slice(0, REPORT_ROWS)));
		more.hidden = s.all || kept.length <= REPORT_ROWS;
		more.textContent = `Show all (${kept.length - REPORT_ROWS} left)`;
		heads.forEach((th, i) => th.setAttribute('aria-sort', i !== s.by ? 'none' : s.down ? 'descending' : 'ascending'));
	}
	heads.forEach((th, i) => {
		const b = document.createElement('button');
		b.type = 'button';
		b.textContent = th.textContent;
		b.addEventListener('click', () => {
			s.down = i === s.by ? !s.down : th.classList.contains('num') && i > 0;
			s.by = i;
			draw();
		});
		th.replaceChildren(b);
	});
	more.addEventListener('click', () => {
		s.all = true;
		draw();
	});
	$('procs-filter').addEventListener('input', () => {
		s.filter = $('procs-filter').value ? layoutPattern($('procs-filter').value).re : null;
		draw();
	});
	draw();
}
