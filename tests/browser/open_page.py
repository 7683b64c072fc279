#!/usr/bin/env python3
"""A browser opens what --html writes: it must draw, answer the pointer and keys, and complain of nothing.

  open_page.py PROGRAM [--browser chromium] [--screenshots FOLDER]

Needs Chromium (Debian: apt-get install chromium); without it the status is 77. A script is put into a copy of each
page, which presses keys, points and clicks as a user does and writes what it saw into the document. Not part of the
default tests: browsers are large.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

PAGES = {
    "one": "simulate zb-v --pp 4 -m 8 --f 10 --i 11 --w 9 --p2p 0.4",
    "several": "compare gpipe,1f1b,zb-h1 --pp 4 -m 8 --f 10 --i 10 --w 9 --p2p 0.4",
    "measured": "compare 1f1b --pp 4 -m 8 --f 2 --b 4 --backend cpu --steps 1",
    "posted": "simulate interleaved --pp 4 --vpp 2 -m 8 --p2p-mode rendezvous",
    "analyzed": "analyze @/slow.json",
    "large": "simulate 1f1b --pp 64 -m 1024",
    "million": "simulate 1f1b --pp 64 -m 4096",
}
# Files that pages are made of; '@' is their folder.
FILES = {"analyzed": "simulate 1f1b --pp 4 -m 8 --inject rank=1,slow=1.5 --save @/slow.json"}
CATCH = """<script>
window.seenErrors = [];
addEventListener('error', (event) => seenErrors.push(String(event.message)));
addEventListener('securitypolicyviolation', (event) => seenErrors.push('refused: ' + event.blockedURI));
</script>"""
# Events as a user causes them; every answer is a fact to be checked below.
ASK = """<script>
addEventListener('load', () => {
  const seen = {};
  try {
    const page = window.bubblescopePage;
    const { canvas, data, view } = page;
    const box = canvas.getBoundingClientRect();
    const send = (name, x, y, more = {}) => canvas.dispatchEvent(new PointerEvent(name, { bubbles: true, cancelable: true,
      pointerId: 1, pointerType: 'mouse', clientX: box.left + x, clientY: box.top + y, ...more }));
    const key = (text) => { canvas.dispatchEvent(new KeyboardEvent('keydown', { key: text, bubbles: true })); page.drawNow(); };
    const place = (step, id) => {
      const lane = page.placeOf(step, id).lane;
      const middle = (step.op.start[id] + step.op.end[id]) / 2 - step.origin;
      return [view.x(middle), lane.y + lane.height / 2 + kAxisHeight - page.scroller.scrollTop];
    };
    seen.opened_ms = Number(document.documentElement.dataset.opened);
    seen.steps = data.steps.length;
    seen.instructions = data.steps.reduce((sum, step) => sum + step.op.count, 0);
    seen.drawn = page.drawn;
    const begin = performance.now();
    page.drawNow();
    seen.draw_ms = Math.round(performance.now() - begin);
    seen.painted = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((each, at) => at % 4 < 3 && each !== 255);
    const last = data.steps[data.steps.length - 1];
    page.find(['1B3', '1I3'].find((name) => findOps(data, name).length > 0));
    seen.found = page.selected && opText(data, page.selected.step, page.selected.id);
    seen.before = page.links && page.links.before.map((id) => opText(data, page.selected.step, id));
    seen.after = page.links && page.links.after.map((id) => opText(data, page.selected.step, id));
    page.select(null);
    page.fit();
    const first = last.byThread[last.lanesOfRank[1][0]][3];
    page.view.show(last.op.start[first] - last.origin, last.op.end[first] - last.origin);
    page.reveal({ step: last, id: first });
    page.drawNow();
    const [x, y] = place(last, first);
    send('pointermove', x, y);
    seen.tip = page.tip.hidden ? null : page.tip.textContent;
    send('pointerdown', x, y);
    send('pointerup', x, y);
    seen.selected = page.selected && page.selected.id === first && page.selected.step === last;
    seen.panel = document.getElementById('panel').textContent.length;
    key('ArrowRight');
    seen.moved = page.selected.id === last.byThread[last.lanesOfRank[1][0]][4];
    key('Escape');
    seen.let_go = page.selected === null;
    key('0');
    const shown = view.to - view.from;
    canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: -200, clientX: box.left + 300, clientY: box.top + 60, cancelable: true }));
    seen.zoomed = view.to - view.from < shown * 0.8;
    const from = view.from;
    send('pointerdown', 300, 60);
    send('pointermove', 200, 60);
    send('pointerup', 200, 60);
    seen.panned = view.from > from;
    page.fit();
    const touch = (name, finger, x) => send(name, x, 60, { pointerId: finger, pointerType: 'touch' });
    touch('pointerdown', 1, 300);
    touch('pointerdown', 2, 400);
    touch('pointermove', 2, 600);
    seen.pinched = view.to - view.from < shown * 0.6;
    touch('pointerup', 1, 300);
    touch('pointerup', 2, 600);
    for (const choice of ['microbatch', 'chunk', 'kind']) { page.colourBy(choice); page.drawNow(); }
    for (const toggle of ['critical', 'links', 'memory']) { page.toggle(toggle); page.toggle(toggle); }
    page.fit();
    page.drawNow();
    seen.tables = document.querySelectorAll('table').length;
    seen.causes = [...document.querySelectorAll('table.causes tbody tr')].map((row) => row.textContent);
    seen.sums = [...document.querySelectorAll('table.ranks tbody tr')].map((row) => row.querySelectorAll('.sum')[2].textContent);
    seen.unnamed = [...document.querySelectorAll('button, input, select')].filter((each) =>
      !(each.textContent.trim() || each.getAttribute('aria-label') || each.labels?.length)).length;
  } catch (error) { seenErrors.push(error.stack); }
  seen.errors = seenErrors;
  const answer = document.createElement('pre');
  answer.id = 'seen';
  answer.textContent = JSON.stringify(seen);
  document.body.append(answer);
});
</script>"""


def browse(browser, folder, page, *flags):
    command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/profile",
               "--enable-logging=stderr", "--window-size=1280,800", *flags, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def ask(browser, folder, page):
    asking = folder / f"asking-{page.name}"
    text = page.read_text()
    asking.write_text(text.replace("<body>", "<body>" + CATCH, 1).replace("</body>", ASK + "</body>"))
    told = browse(browser, folder, asking, "--virtual-time-budget=20000", "--dump-dom")
    complaints = re.findall(r"CONSOLE[^\n]*", told.stderr)
    answer = re.search(r'<pre id="seen">(.*?)</pre>', told.stdout, re.DOTALL)
    assert answer, f"{page.name}: the page did not answer\n{told.stderr[-2000:]}"
    text = answer[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return json.loads(text), complaints


def check(name, seen, complaints):
    assert not seen["errors"] and not complaints, f"{name}: {seen['errors']} {complaints}"
    for fact in ("painted", "selected", "moved", "let_go", "zoomed", "panned", "pinched"):
        assert seen.get(fact), f"{name}: not {fact}: {seen}"
    assert seen["drawn"] > 0 and seen["panel"] > 50 and seen["unnamed"] == 0, f"{name}: {seen}"
    assert seen["tip"] and "duration" in seen["tip"], f"{name}: no tooltip: {seen['tip']}"
    assert seen["tables"] >= seen["steps"] and len(set(seen["sums"])) <= seen["steps"], f"{name}: {seen}"
    assert seen["found"] in ("1B3", "1I3"), f"{name}: the search found {seen['found']}"
    if name == "analyzed":
        assert seen["causes"] and "unequal stages: stage 1 (rank 1)" in seen["causes"][0] and "4.875 ms" in seen["causes"][0], f"{name}: {seen}"
    else:
        assert not seen["causes"], f"{name}: {seen}"
    assert seen["before"] and seen["after"] is not None, f"{name}: nothing is linked to {seen['found']}"


def take_screenshots(browser, folder, page, into):
    for scheme, number in (("dark", 0), ("light", 1)):
        for size in ("1280,800", "600,800"):
            picture = into / f"{page.stem}-{scheme}-{size.split(',')[0]}.png"
            browse(browser, folder, page, f"--blink-settings=preferredColorScheme={number}", f"--window-size={size}", f"--screenshot={picture}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--browser", default=shutil.which("chromium") or shutil.which("google-chrome"))
    parser.add_argument("--screenshots", type=pathlib.Path)
    parser.add_argument("--only", help="one of " + ", ".join(PAGES))
    arguments = parser.parse_args()
    if not arguments.browser:
        print("no chromium; skipped")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for page_name, command in PAGES.items():
            if arguments.only not in (None, page_name):
                continue
            page = folder / f"{page_name}.html"
            if page_name in FILES:
                subprocess.run([arguments.program, *FILES[page_name].replace("@", name).split()], check=True, capture_output=True)
            begin = time.monotonic()
            subprocess.run([arguments.program, *command.replace("@", name).split(), "--html", str(page)], check=True, capture_output=True)
            wrote = time.monotonic() - begin
            seen, complaints = ask(arguments.browser, folder, page)
            check(page_name, seen, complaints)
            print(f"{page_name}: {seen['instructions']} instructions, {page.stat().st_size / 1e6:.2f} MB, made in {wrote:.2f} s, "
                  f"opened in {seen['opened_ms']} ms, {seen['drawn']} ops drawn in {seen['draw_ms']} ms, no complaint")
            if arguments.screenshots:
                arguments.screenshots.mkdir(exist_ok=True)
                take_screenshots(arguments.browser, folder, page, arguments.screenshots.resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
