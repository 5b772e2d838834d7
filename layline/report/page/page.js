// Draws the charts of a report as they come into view, and makes the filters work.
(() => {
  'use strict';
  const {datasets, charts: specs} = JSON.parse(document.getElementById('report-data').textContent);
  const selects = [...document.querySelectorAll('select[data-field]')];
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const kPrintWidth = 680;    // pixels of a sheet
  const kCanvasFrom = 3000;  // rows: so many points are drawn faster on a canvas
  const views = new Map();
  let isPrinting = false;

  const chosen = () => selects.filter((s) => s.value !== '').map((s) => [s.dataset.field, s.value]);
  const keeps = (row, choice) => choice.every(([field, value]) => !(field in row) || String(row[field]) === value);
  const rowsFor = (name) => {
    const choice = chosen();
    const rows = charts.rowsOf(datasets, name);
    return choice.length === 0 ? rows : rows.filter((row) => keeps(row, choice));
  };

  function say(place, text) {
    const line = document.createElement('p');
    line.className = 'nothing';
    line.textContent = text;
    place.replaceChildren(line);
  }

  function draw(figure) {
    const place = figure.querySelector('.chart');
    const spec = specs[figure.dataset.chart];
    if (views.has(figure)) views.get(figure).finalize();
    views.delete(figure);
    place.style.minHeight = `${place.clientHeight}px`;
    const rows = rowsFor(spec.data.name);
    if (rows.length === 0) {
      say(place, 'No runs match the filters.');
      figure.dataset.state = 'empty';
    } else {
      try {
        const compiled = charts.compile(spec, rows, isPrinting ? Math.min(place.clientWidth, kPrintWidth) : place.clientWidth,
            dark.matches && !isPrinting);
        place.replaceChildren();
        const renderer = rows.length > kCanvasFrom ? 'canvas' : 'svg';
        const view = new vega.View(vega.parse(compiled), {renderer, hover: false, logLevel: vega.Error});
        view.initialize(place).run();
        views.set(figure, view);
        figure.dataset.state = 'drawn';
      } catch (error) {
        say(place, `This chart could not be drawn (${error.message}); its table is below.`);
        figure.dataset.state = 'failed';
        console.error(figure.dataset.chart, error);
      }
    }
    place.style.minHeight = '';
    figure.dataset.width = place.clientWidth;
  }

  const figures = [...document.querySelectorAll('figure[data-chart]')];
  const isDrawn = (figure) => 'state' in figure.dataset;
  const redraw = () => figures.filter(isDrawn).forEach(draw);

  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting || isDrawn(entry.target)) continue;
      draw(entry.target);
      watcher.unobserve(entry.target);
    }
  }, {rootMargin: '600px'});
  figures.forEach((figure) => watcher.observe(figure));

  // Rows of tables go with the filters where a column shows the field.
  function filterTables() {
    const choice = chosen();
    for (const table of document.querySelectorAll('table')) {
      const at = choice.map(([field, value]) => [[...table.tHead.rows[0].cells].findIndex((c) => c.dataset.field === field), value])
          .filter(([index]) => index >= 0);
      for (const row of table.tBodies[0].rows) {
        row.hidden = !at.every(([index, value]) => row.cells[index].textContent === value);
      }
    }
  }

  const status = document.getElementById('filter-status');
  function filtersChanged() {
    redraw();
    filterTables();
    const name = 'runs' in datasets ? 'runs' : Object.keys(datasets)[0];
    if (name) status.textContent = `${rowsFor(name).length.toLocaleString('en')} of ${datasets[name].size.toLocaleString('en')} runs`;
  }
  selects.forEach((select) => select.addEventListener('change', filtersChanged));
  const form = document.querySelector('form.filters');
  if (form) {
    form.addEventListener('submit', (event) => event.preventDefault());
    form.addEventListener('reset', () => setTimeout(filtersChanged));
    filtersChanged();
  }

  dark.addEventListener('change', redraw);
  addEventListener('beforeprint', () => {
    isPrinting = true;
    figures.forEach(draw);
  });
  addEventListener('afterprint', () => {
    isPrinting = false;
    redraw();
  });
  let waiting = 0;
  addEventListener('resize', () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (isPrinting) return;
      figures.filter((f) => isDrawn(f) && Number(f.dataset.width) !== f.querySelector('.chart').clientWidth).forEach(draw);
    }, 150);
  });
})();
