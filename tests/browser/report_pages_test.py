#!/usr/bin/env python3
"""Opens reports in headless Chromium, wide and narrow, light and dark, and looks at what is drawn.

report_pages_test.py LAYLINE CHROMIUM SOURCE_FOLDER [--pictures FOLDER]
"""

import argparse
import csv
import os
import subprocess
import tempfile
import unittest

from chromium import Browser

ARGUMENTS = None

DRAW_ALL = """(async () => {
  for (const figure of document.querySelectorAll('figure[data-chart]')) {
    figure.scrollIntoView();
    for (let i = 0; i < 500 && !figure.dataset.state; i++) await new Promise((done) => setTimeout(done, 20));
  }
})()"""
STATES = "Object.fromEntries([...document.querySelectorAll('figure[data-chart]')].map((f) => [f.dataset.chart, f.dataset.state ?? null]))"
# Marks with something to see in each chart; of a canvas, whether any pixel is set.
MARKS = """Object.fromEntries([...document.querySelectorAll('figure[data-chart]')].map((figure) => {
  const canvas = figure.querySelector('canvas');
  if (canvas) {
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    return [figure.dataset.chart, pixels.some((value) => value > 0) ? 1 : 0];
  }
  const marks = figure.querySelectorAll('svg g.role-mark > path, svg g.role-mark > line, svg g.role-mark > text');
  return [figure.dataset.chart, [...marks].filter((m) => m.getBoundingClientRect().width > 0 || m.getBoundingClientRect().height > 0).length];
}))"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def choose(field, value):
    return f"""(() => {{
      const select = document.querySelector('select[data-field="{field}"]');
      select.value = {value!r};
      select.dispatchEvent(new Event('change'));
      return select.value;
    }})()"""


def make_report(arguments, page):
    subprocess.run([ARGUMENTS.layline, "report", *arguments, "--output", page], check=True,
                   stdout=subprocess.DEVNULL)


class ReportPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="layline-pages-")
        data = os.path.join(ARGUMENTS.source, "data", "published")
        cls.pages = {"paper": cls.file("paper.html"), "runs": cls.file("runs.html")}
        make_report(["paper", "--data", data], cls.pages["paper"])
        make_report([os.path.join(data, "nanotron_h100.csv"), os.path.join(data, "bigscience_a100.csv")],
                    cls.pages["runs"])
        cls.browser = Browser(ARGUMENTS.chromium)

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    @classmethod
    def file(cls, name):
        return os.path.join(cls.folder.name, name)

    def opened(self, path, width, dark=False):
        page = self.browser.page(width, dark=dark)
        page.open(path)
        page.evaluate(DRAW_ALL)
        return page

    def expect_drawn(self, page):
        states = page.evaluate(STATES)
        self.assertEqual([c for c, state in states.items() if state != "drawn"], [])
        self.assertEqual([c for c, marks in page.evaluate(MARKS).items() if marks == 0], [])
        self.assertEqual(page.complaints(), [])

    def test_every_chart_is_drawn_at_every_width_in_both_schemes(self):
        for name, path in self.pages.items():
            for width in (1280, 390):
                for dark in (False, True):
                    with self.subTest(page=name, width=width, dark=dark):
                        page = self.opened(path, width, dark)
                        self.expect_drawn(page)
                        self.assertLessEqual(page.evaluate(OVERFLOW), 0)
                        self.assertGreaterEqual(len(page.evaluate(STATES)), 10)

    def test_pages_ask_for_nothing_but_themselves(self):
        page = self.opened(self.pages["paper"], 1280)
        self.assertEqual(len(page.requests()), 1, page.requests())

    def test_filters_change_what_is_drawn_and_listed_and_can_be_undone(self):
        page = self.opened(self.pages["paper"], 1280)
        before = page.evaluate(MARKS)
        rows = "[...document.querySelectorAll('figure[data-chart=best-layouts] tbody tr')].filter((r) => !r.hidden).length"
        rows_before = page.evaluate(rows)
        self.assertEqual(page.evaluate(choose("model", "Llama-65B")), "Llama-65B")
        page.wait("document.getElementById('filter-status').textContent === '132 of 839 runs'")
        after = page.evaluate(MARKS)
        for chart in ("best-layouts", "kernels", "micro-batch", "predicted-measured", "memory"):
            self.assertLess(after[chart], before[chart], chart)
            self.assertGreater(after[chart], 0, chart)
        self.assertEqual(after["systems"], before["systems"])
        self.assertLess(page.evaluate(rows), rows_before)
        self.assertGreater(page.evaluate(rows), 0)
        page.evaluate("document.querySelector('form.filters button').click()")
        page.wait("document.getElementById('filter-status').textContent === '839 of 839 runs'")
        self.assertEqual(page.evaluate(MARKS), before)
        self.assertEqual(page.evaluate(rows), rows_before)
        self.assertEqual(page.complaints(), [])

    def test_filters_that_nothing_passes_say_so(self):
        page = self.opened(self.pages["paper"], 1280)
        page.evaluate(choose("model", "Llama-65B"))
        page.evaluate(choose("gpus", "32"))
        self.assertEqual(page.evaluate(STATES)["best-layouts"], "empty")
        text = page.evaluate("document.querySelector('figure[data-chart=best-layouts] .chart').textContent")
        self.assertIn("No runs match", text)
        self.assertEqual(page.complaints(), [])

    def test_printing_draws_what_was_never_scrolled_to(self):
        page = self.browser.page(1280)
        page.open(self.pages["paper"])
        self.assertIn(None, page.evaluate(STATES).values())
        page.call("Page.printToPDF")
        self.expect_drawn(page)

    def test_controls_can_be_reached_and_named_without_a_mouse(self):
        page = self.opened(self.pages["paper"], 1280)
        self.assertEqual(page.evaluate("[...document.querySelectorAll('select')].filter((s) => !s.labels.length).length"), 0)
        self.assertEqual(page.evaluate("document.querySelectorAll('[role=img]:not([aria-label])').length"), 0)
        self.assertEqual(page.evaluate("[...document.querySelectorAll('figure')].filter((f) => !f.querySelector('details table')).length"), 0)
        levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3')].map((h) => Number(h.tagName[1]))")
        self.assertEqual(levels[0], 1)
        self.assertTrue(all(b - a <= 1 for a, b in zip(levels, levels[1:])), levels)
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
        self.assertEqual(len(ids), len(set(ids)))

    def test_names_with_html_in_them_stay_text(self):
        data = os.path.join(ARGUMENTS.source, "data", "published", "hagemann2024_a100.csv")
        with open(data, newline="", encoding="utf-8") as file:
            table = list(csv.DictReader(file))[:60]
        name = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'>"
        for row in table:
            row["model"] = name
        with open(self.file("names.csv"), "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, table[0].keys())
            writer.writeheader()
            writer.writerows(table)
        make_report([self.file("names.csv")], self.file("names.html"))
        page = self.opened(self.file("names.html"), 1280)
        self.expect_drawn(page)
        self.assertIsNone(page.evaluate("window.broken ?? null"))
        self.assertIn(name, page.evaluate("document.querySelector('h1').textContent"))

    def test_charts_come_as_svg_and_png_files(self):
        data = os.path.join(ARGUMENTS.source, "data", "published", "bigscience_a100.csv")
        environment = dict(os.environ, PATH=os.path.dirname(ARGUMENTS.chromium) + ":" + os.environ["PATH"])
        subprocess.run([ARGUMENTS.layline, "report", data, "--charts", self.file("charts")], check=True,
                       stdout=subprocess.DEVNULL, env=environment)
        names = sorted(os.listdir(self.file("charts")))
        self.assertIn("best-layouts.svg", names)
        self.assertIn("best-layouts.png", names)
        self.assertEqual(len(names) % 2, 0)
        for name in names:
            with open(os.path.join(self.file("charts"), name), "rb") as file:
                content = file.read()
            self.assertTrue(content.startswith(b"\x89PNG" if name.endswith(".png") else b"<svg"), name)
            self.assertGreater(len(content), 1000, name)


def save_pictures(folder):
    """The pictures of the docs."""
    data = os.path.join(ARGUMENTS.source, "data", "published")
    with tempfile.TemporaryDirectory() as temporary, Browser(ARGUMENTS.chromium) as browser:
        path = os.path.join(temporary, "paper.html")
        make_report(["paper", "--data", data], path)
        for name, width, dark, first, last in (("report", 1100, False, "best-layouts", "systems"),
                                               ("report-dark", 1100, True, "memory", "pipeline"),
                                               ("report-phone", 390, False, "kernels", "kernels")):
            page = browser.page(width, 900, dark)
            page.open(path)
            page.evaluate(DRAW_ALL)
            page.evaluate("scrollTo(0, 0)")
            top = page.evaluate(f"document.querySelector('figure[data-chart={first}]').getBoundingClientRect().top")
            end = page.evaluate(f"document.querySelector('figure[data-chart={last}]').getBoundingClientRect().bottom")
            clip = {"x": 0, "y": top - 12, "width": width, "height": end - top + 24}
            page.picture(os.path.join(folder, name + ".png"), clip)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("layline")
    parser.add_argument("chromium")
    parser.add_argument("source")
    parser.add_argument("--pictures")
    ARGUMENTS = parser.parse_args()
    if ARGUMENTS.pictures:
        save_pictures(ARGUMENTS.pictures)
    else:
        unittest.main(argv=["report_pages_test"], verbosity=2)
