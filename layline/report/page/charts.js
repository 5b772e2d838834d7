// What pages and exported charts share: data, colours, sizes. Defines `charts`.
const charts = (() => {
  'use strict';
  const cache = new Map();

  // Rows of a dataset from its columns; texts are stored as positions in a list of words.
  function rowsOf(datasets, name) {
    if (cache.has(name)) return cache.get(name);
    const {fields, columns, size} = datasets[name];
    const valueOf = columns.map((c) => Array.isArray(c) ? (i) => c[i] : (i) => c.words[c.at[i]] ?? null);
    const rows = [];
    for (let i = 0; i < size; i++) {
      const row = {};
      fields.forEach((field, f) => { row[field] = valueOf[f](i); });
      rows.push(row);
    }
    cache.set(name, rows);
    return rows;
  }

  const kLight = {
    text: '#1c2128', muted: '#57606a', grid: '#e3e7ec', empty: '#eef0f3', paper: '#ffffff', inside: '#ffffff',
    category: ['#3b6fb6', '#e07b39', '#3f9e6e', '#b5489a', '#8c6d1f', '#7a5fc7', '#c4453c', '#3a92a8', '#7a7a7a',
      '#8a9a2f', '#24477a', '#f0b27a'],
  };
  const kDark = {
    text: '#e6e9ee', muted: '#a3acb8', grid: '#2d333b', empty: '#22272e', paper: '#14181e', inside: '#0d1117',
    category: ['#6ea8ff', '#ff9d5c', '#5fd39a', '#e58ad0', '#d9b44a', '#b39dff', '#ff7f78', '#6fd3ec', '#b5b5b5',
      '#cfe06a', '#4f7fd0', '#ffd0a3'],
  };

  function config(isDark, width) {
    const c = isDark ? kDark : kLight;
    return {
      background: null,
      font: 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif',
      view: {stroke: null, continuousWidth: 300},
      axis: {
        labelColor: c.muted, titleColor: c.text, gridColor: c.grid, domainColor: c.muted, tickColor: c.muted,
        labelFontSize: 11, titleFontSize: 11, titleFontWeight: 500, labelLimit: width < 500 ? 150 : 200,
      },
      header: {labelColor: c.text, labelFontSize: 12, labelFontWeight: 600, labelPadding: 4},
      legend: {
        orient: 'top', labelColor: c.text, titleColor: c.text, labelFontSize: 11, titleFontSize: 11,
        columns: Math.max(1, Math.floor(width / 190)), labelLimit: 180, symbolOpacity: 1, gradientLength: Math.min(200, width - 80),
      },
      title: {color: c.text, anchor: 'start', fontSize: 14},
      range: {category: c.category},
      mark: {color: c.category[0]},
      bar: {color: c.category[0]},
      text: {color: c.text},
      style: {
        prediction: {color: c.text},
        inside: {color: c.inside, align: 'left', baseline: 'middle', dx: 6, fontSize: 11},
        nothing: {color: c.empty},
        cell_with_edge: {stroke: c.paper, strokeWidth: 0.7},
      },
    };
  }

  // Gives a specification its width: that of the place, or of as many facets as fit in it.
  function fit(spec, width) {
    if (!spec.facet) {
      spec.width = width;
      spec.autosize = {type: 'fit-x', contains: 'padding'};
      return spec;
    }
    const {cell_width: wanted = 240, axis_width: axis = 60, axis_width_of_each: each = false, max_columns: limit = 4} =
        spec.usermeta || {};
    const gap = 20;
    const ofEach = each ? axis : 0;
    const once = each ? 0 : axis;
    const most = spec.facet.sort ? spec.facet.sort.length : 99;
    const fitting = Math.floor((width - once + gap) / (wanted * 0.8 + ofEach + gap));
    const columns = Math.max(1, Math.min(most, limit, fitting));
    spec.columns = columns;
    const cell = (width - once - (columns - 1) * gap) / columns - ofEach - 6;
    spec.spec.width = Math.max(80, Math.floor(Math.min(cell, spec.columns === 1 ? Math.max(720, wanted * 1.6) : wanted * 1.6)));
    spec.facet.header = {labelLimit: spec.spec.width + axis, labelAnchor: 'start'};
    spec.spacing = gap;
    return spec;
  }

  // Vega-Lite warns of what it changes by itself; both are meant here.
  const kMeant = /Dropping "fit|Detected faceted independent scales/;
  const logger = {
    level: () => logger, error: (...text) => (console.error(...text), logger),
    warn: (...text) => (kMeant.test(text.join(' ')) || console.warn(...text), logger), info: () => logger, debug: () => logger,
  };

  // A Vega specification with its rows in it. Rows are copied, since Vega writes into them.
  function compile(spec, rows, width, isDark) {
    const sized = fit(structuredClone(spec), width);
    sized.config = config(isDark, width);
    const compiled = vegaLite.compile(sized, {logger}).spec;
    const source = compiled.data.find((d) => d.name === spec.data.name);
    source.values = rows.map((row) => ({...row}));
    return compiled;
  }

  return {rowsOf, compile, paper: (isDark) => (isDark ? kDark : kLight).paper};
})();
