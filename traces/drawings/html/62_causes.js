// Builds the list of what makes measured steps long, above the tables of the step that is drawn.

function makeCauses(found) {
  const makeLine = (text, kind) => make('p', kind ? { class: kind } : {}, text);
  const rows = found.causes.map((cause) => make('tr', {},
    make('td', { class: 'words' }, makeLine(cause.what), makeLine(cause.wouldSave, 'meaning'),
      ...(cause.caveat ? [makeLine(cause.caveat, 'meaning')] : [])),
    make('td', { class: 'sum', title: timeText(cause.saves) }, shortTimeText(cause.saves)),
    make('td', {}, percentText(cause.share))));
  const section = make('section', { 'aria-label': 'causes of long steps' }, make('h2', {}, 'Causes of long steps'));
  if (rows.length > 0) {
    const heads = ['cause', 'would save', 'of the step'].map((head) => make('th', { scope: 'col' }, head));
    section.append(make('table', { class: 'causes' },
      make('caption', {}, 'What each costs of the mean step: how much shorter it would be without that cause'),
      make('thead', {}, make('tr', {}, ...heads)), make('tbody', {}, ...rows)));
  }
  if (found.remark) section.append(makeLine(found.remark, rows.length > 0 ? 'remark' : 'none'));
  return section;
}
