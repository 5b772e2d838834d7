// Draws every chart at a fixed width and leaves them, as SVG and PNG, in the page for the program that opened it.
(async () => {
  'use strict';
  const {datasets, charts: specs} = JSON.parse(document.getElementById('report-data').textContent);
  const kWidth = 760;
  const kScale = 2;  // pixels of PNG a unit
  const done = {};
  for (const [id, spec] of Object.entries(specs)) {
    try {
      const compiled = charts.compile(spec, charts.rowsOf(datasets, spec.data.name), kWidth, false);
      compiled.background = charts.paper(false);
      compiled.padding = 12;
      const view = new vega.View(vega.parse(compiled), {renderer: 'none'});
      const svg = await view.toSVG();
      const canvas = await view.toCanvas(kScale);
      done[id] = {svg, png: canvas.toDataURL('image/png').split(',')[1]};
      view.finalize();
    } catch (error) {
      done[id] = {error: String(error)};
    }
  }
  // No character of it means anything to HTML.
  const bytes = new TextEncoder().encode(JSON.stringify(done));
  let text = '';
  for (let i = 0; i < bytes.length; i += 3000) text += btoa(String.fromCharCode(...bytes.subarray(i, i + 3000)));
  const out = document.createElement('pre');
  out.id = 'layline-charts';
  out.textContent = text;
  document.body.replaceChildren(out);
})();
