// Builds the tables of what changed from one run of a job to another.

function makeChanges(tables) {
  const section = make('section', { 'aria-label': 'changes from A to B' }, make('h2', {}, 'What changed from A to B'));
  for (const { title, rows, remark } of tables) {
    if (rows.length > 0) {
      const heads = [title, 'A', 'B', 'change'].map((head) => make('th', { scope: 'col' }, head));
      const lines = rows.map(([what, a, b, change]) => make('tr', {},
        make('td', { class: 'words' }, what), make('td', {}, a), make('td', {}, b), make('td', { class: 'sum' }, change)));
      section.append(make('table', { class: 'causes' },
        make('thead', {}, make('tr', {}, ...heads)), make('tbody', {}, ...lines)));
    }
    if (remark) section.append(make('p', { class: rows.length > 0 ? 'remark' : 'none' }, remark));
  }
  return section;
}
