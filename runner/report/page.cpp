#include "report/page.hpp"

#include <array>
#include <string_view>

#include "memory/readable.hpp"

namespace headroom {

namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  // Goes on behind what it put in, so that `to` may hold `from`.
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace

std::string for_each_colour(const std::string& form, bool dark, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    std::string one = form;
    replace_all(one, "$N", palette[i].name);
    replace_all(one, "$C", dark ? palette[i].dark : palette[i].light);
    text += one;
  }
  return text;
}

std::string with_colours(std::string text, bool dark) {
  // No colour's name begins with another's, so the order does not matter.
  for (const PaletteColour& colour : palette)
    replace_all(text, std::string("$") + colour.name, dark ? colour.dark : colour.light);
  return text;
}

namespace {

void append_escaped(std::string& html, char c) {
  switch (c) {
    case '&':
      html += "&amp;";
      break;
    case '<':
      html += "&lt;";
      break;
    case '>':
      html += "&gt;";
      break;
    case '"':
      html += "&quot;";
      break;
    // A number, because HTML 4 does not have &apos;.
    case '\'':
      html += "&#39;";
      break;
    default:
      html += c;
  }
}

void append_line(std::string& html, std::string_view line) {
  // Cuts nothing: printable() never makes a text longer.
  for (const char c : printable(line, line.size())) append_escaped(html, c);
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string html;
  html.reserve(text.size());
  while (!text.empty()) {
    // printable() turns line breaks and tabs into spaces, so it gets what lies between them.
    const size_t end = std::min(text.find_first_of("\n\t"), text.size());
    append_line(html, text.substr(0, end));
    if (end < text.size()) html += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return html;
}

std::string element(std::string_view name, std::string_view attributes, std::string_view content) {
  std::string html = "<" + std::string(name);
  if (!attributes.empty()) html.append(" ").append(attributes);
  return html.append(">").append(content).append("</").append(name).append(">");
}

std::string words_of_key(std::string_view key) {
  constexpr std::array<std::string_view, 5> units = {"_bytes", "_seconds", "_ms", "_us", "_percent"};
  for (const std::string_view unit : units) {
    if (key.size() > unit.size() && key.ends_with(unit)) {
      key.remove_suffix(unit.size());
      break;
    }
  }
  std::string words(key);
  for (char& c : words) {
    if (c == '_') c = ' ';
  }
  return words;
}

namespace {

// Colours are variables of :root, so that dark pages change them in one place. Plots are stretched to the width there
// is, so strokes must not scale with them (vector-effect).
constexpr const char* style = R"(
* { box-sizing: border-box }
body { margin: 0 auto; padding: 16px; max-width: 1160px; background: var(--page); color: var(--text);
  font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; overflow-wrap: anywhere }
h1 { font-size: 22px; margin: 4px 0 } h2 { font-size: 17px; margin: 28px 0 10px } small, .soft { color: var(--soft); font-size: 13px }
.state { font-weight: 600 } .state.bad { color: var(--bad) } .state.good { color: var(--good) }
.notice { border-left: 4px solid var(--bad); background: var(--card); padding: 8px 12px; margin: 12px 0 } .notice p { margin: 4px 0 }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(148px, 1fr)); gap: 10px; margin: 14px 0 }
.tile { background: var(--card); border-radius: 8px; padding: 10px 12px } .tile b { display: block; font-size: 18px }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 330px), 1fr)); gap: 16px }
figure { margin: 0 0 12px; background: var(--card); border-radius: 8px; padding: 12px; min-width: 0 }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 14px; margin: 4px 0; padding: 0; font-size: 13px }
.swatch { display: inline-block; width: 16px; height: 0; border-top: 3px solid; margin-right: 5px; vertical-align: 3px }
.swatch.box { height: 11px; border: 0; vertical-align: -1px; border-radius: 2px; background: currentColor }
.swatch.limit, .swatch.predicted { border-top-style: dashed } .swatch.measured, .swatch.mark { border-top-style: dotted }
.plot { position: relative; height: 190px; margin: 10px 10px 26px 64px } .plot.tall { height: 300px } .plot.square { height: 320px }
.plot svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible }
.plot span { position: absolute; font-size: 12px; color: var(--soft); white-space: nowrap; font-variant-numeric: tabular-nums }
.plot .y { right: calc(100% + 8px); transform: translateY(50%) } .plot .x { top: calc(100% + 6px); transform: translateX(-50%) }
.plot .tip { background: var(--page); color: var(--text); border: 1px solid var(--edge); border-radius: 6px; padding: 4px 8px;
  white-space: pre; pointer-events: none; z-index: 2; top: 0 }
.plot .cross { top: 0; bottom: 0; width: 1px; background: var(--soft); pointer-events: none } .plot .hit { position: absolute; inset: 0 }
path { vector-effect: non-scaling-stroke; fill: none; stroke-linejoin: round }
.grid { stroke: var(--edge); stroke-width: 1px } .line { stroke: currentColor; stroke-width: 2px }
.dots.big { stroke-width: 11px } .dots { stroke: currentColor; stroke-width: 6px; stroke-linecap: round } .line.faint { stroke-width: 1.2px } .faint { opacity: .55 }
.area { fill: currentColor }
.limit { color: var(--text); stroke: var(--text); stroke-width: 1.6px; stroke-dasharray: 7 4 }
.predicted { color: var(--soft); stroke: var(--soft); stroke-width: 1.4px; stroke-dasharray: 3 4 }
.measured, .mark { color: var(--soft); stroke: var(--soft); stroke-width: 1.4px; stroke-dasharray: 1 3 }
.c0 { color: var(--c0) } .c1 { color: var(--c1) } .c2 { color: var(--c2) } .c3 { color: var(--c3) } .c4 { color: var(--c4) }
.c5 { color: var(--c5) } .c6 { color: var(--c6) } .c7 { color: var(--c7) } .slack { color: var(--slack) } .other { color: var(--other) }
.lane { margin: 0 10px 4px 64px } .lane small { display: block; line-height: 1.2 } .lane svg { display: block; width: 100%; height: 10px; overflow: visible }
.tick { stroke: var(--c0); stroke-width: 2px } .tick.out_of_memory, .tick.nonfinite { stroke: var(--bad) } .tick.pressure { stroke: var(--c1) }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; overflow-wrap: break-word }
th, td { white-space: nowrap } .long { white-space: normal; overflow-wrap: anywhere; min-width: 11em; max-width: 32em }
th, td { text-align: right; padding: 3px 10px 3px 0; border-bottom: 1px solid var(--edge); vertical-align: top; font-weight: 400 }
th:first-child, td:first-child { text-align: left } thead th { color: var(--soft) } .words td { text-align: left }
.heat td { text-align: center; padding: 8px 6px; min-width: 62px; border: 2px solid var(--page); border-radius: 4px }
.heat th { padding: 4px 8px; text-align: center; vertical-align: middle; border: 0 }
.heat caption { text-align: left; font-weight: 600; padding: 6px 0 } .heat td { white-space: normal } .heat caption small { display: block; font-weight: 400 }
.heat .none { color: var(--soft); background: repeating-linear-gradient(135deg, var(--card) 0 5px, var(--edge) 5px 7px); font-size: 12px }
.heat .none span { background: var(--card); padding: 0 3px } .heat .top { outline: 2px solid var(--text); outline-offset: -2px }
a { color: var(--c0) } .sortable thead th { cursor: pointer; text-decoration: underline dotted } .best td, .best th { font-weight: 600 }
details { margin: 4px 0; font-size: 14px } summary { cursor: pointer; color: var(--soft); font-size: 13px }
pre { white-space: pre-wrap; background: var(--card); border-radius: 8px; padding: 12px; font-size: 12.5px; overflow-wrap: anywhere }
.pictures { display: flex; flex-wrap: wrap; gap: 12px; margin: 8px 0 } .picture { padding: 8px } .picture img { display: block; max-width: 100%; image-rendering: pixelated; min-width: 96px }
@media (max-width: 560px) { body { padding: 10px } figure { padding: 10px 8px } .plot, .lane { margin-left: 56px; margin-right: 14px }
  .plot .x:nth-of-type(even) { visibility: visible } th, td { padding-right: 8px } }
@media print { .tip, .cross { display: none } figure { break-inside: avoid } }
)";

// Values under the pointer, read back from the very paths that are seen; tables sorted by a click on their heading.
constexpr const char* script = R"(
const units = [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]];
const show = (value, quantity) => {
  if (quantity === 'bytes') { const u = units.find(u => Math.abs(value) >= u[1]); return u ? (value / u[1]).toFixed(1) + ' ' + u[0] : value.toFixed(0) + ' B' }
  if (quantity === 'seconds') return value >= 3600 ? (value / 3600).toFixed(2) + ' h' : value >= 60 ? (value / 60).toFixed(1) + ' min' : value.toFixed(1) + ' s';
  return quantity === 'count' ? Math.round(value).toLocaleString('en') : String(+value.toPrecision(4));
};
const axis = text => { const [lowest, highest, quantity, log] = text.split(' '), a = +lowest, b = +highest;
  return { quantity, value: p => log ? a * Math.exp(p * Math.log(b / a)) : a + p * (b - a) } };
const points = path => path.getAttribute('d').slice(1, -1).concat(path.getAttribute('d').slice(-1)).replace('Z', '').split('L').map(p => p.split(' ').map(Number));
for (const plot of document.querySelectorAll('.plot[data-x]')) {
  const x = axis(plot.dataset.x), y = axis(plot.dataset.y), hit = document.createElement('div');
  const tip = Object.assign(document.createElement('span'), { className: 'tip', hidden: true });
  const cross = Object.assign(document.createElement('span'), { className: 'cross', hidden: true });
  let curves;
  hit.className = 'hit';
  plot.append(hit, cross, tip);
  const leave = () => { tip.hidden = cross.hidden = true };
  hit.addEventListener('pointerleave', leave);
  hit.addEventListener('pointermove', event => {
    curves ??= [...plot.querySelectorAll('path[data-name]')].map(path => ({ name: path.dataset.name, area: path.classList.contains('area'), at: points(path) }));
    const box = hit.getBoundingClientRect(), place = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    const lines = curves.map(({ name, area, at }) => {
      const n = area ? at.length / 2 : at.length;
      let best = 0;
      for (let i = 1; i < n; ++i) if (Math.abs(at[i][0] - place * 10000) < Math.abs(at[best][0] - place * 10000)) best = i;
      const up = i => y.value(1 - at[i][1] / 10000);
      return name + ': ' + show(area ? up(best) - up(at.length - 1 - best) : up(best), y.quantity);
    });
    tip.textContent = [show(x.value(place), x.quantity), ...lines].join('\n');
    tip.hidden = cross.hidden = false;
    cross.style.left = 100 * place + '%';
    tip.style.left = place < .5 ? `calc(${100 * place}% + 10px)` : 'auto';
    tip.style.right = place < .5 ? 'auto' : `calc(${100 - 100 * place}% + 10px)`;
  });
}
for (const heading of document.querySelectorAll('.sortable thead th')) {
  heading.tabIndex = 0;
  const sort = () => {
    const body = heading.closest('table').tBodies[0], column = heading.cellIndex, down = heading.ariaSort === 'ascending';
    const key = row => { const cell = row.cells[column]; return cell.dataset.value ?? cell.textContent };
    const order = (a, b) => { const [p, q] = [key(a), key(b)], d = p - q; return p === '' || q === '' ? (p === '') - (q === '') : (isNaN(d) ? p.localeCompare(q) : d) * (down ? -1 : 1) };
    [...body.rows].sort(order).forEach(row => body.append(row));
    for (const other of heading.parentElement.cells) other.ariaSort = null;
    heading.ariaSort = down ? 'descending' : 'ascending';
  };
  heading.addEventListener('click', sort);
  heading.addEventListener('keydown', event => event.key === 'Enter' && sort());
}
)";

std::string colours() {
  const std::string variable = "--$N: $C; ";
  // The later rule wins where the reader prefers dark pages.
  return "\n:root { color-scheme: light dark; " + for_each_colour(variable, false) +
         "}\n@media (prefers-color-scheme: dark) { :root { " + for_each_colour(variable, true) + "} }";
}

}  // namespace

std::string page_html(const std::string& title, const std::string& body) {
  // The policy lets the page load nothing but data URIs, whatever a stranger's file made it hold.
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
         "script-src 'unsafe-inline'; img-src data:\">\n<title>" +
         escape_html(title) + "</title>\n<style>" + colours() + style + "</style>\n</head>\n<body>\n" + body +
         "<script>" + script + "</script>\n</body>\n</html>\n";
}

std::string section(const std::string& heading, const std::string& html) {
  if (html.empty()) return "";
  return "<section>\n" + element("h2", "", escape_html(heading)) + "\n" + html + "</section>\n";
}

std::string tile(const std::string& name, const std::string& value, const std::string& remark) {
  if (value.empty()) return "";
  std::string content = "<small>" + escape_html(name) + "</small><b>" + escape_html(value) + "</b>";
  if (!remark.empty()) content += "<small>" + escape_html(remark) + "</small>";
  return element("div", "class=\"tile\"", content) + "\n";
}

std::string picture_html(const std::string& source, const std::string& caption) {
  constexpr std::string_view prefix = "data:image/png;base64,";
  // base64 has no quote and no bracket that could end the attribute.
  const bool is_plain = source.starts_with(prefix) &&
                        source.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=",
                                                 prefix.size()) == std::string::npos;
  if (!is_plain) return "";
  const std::string words = escape_html(caption);
  return "<figure class=\"picture\"><img alt=\"" + words + "\" src=\"" + source + "\"><figcaption>" + words +
         "</figcaption></figure>\n";
}

}  // namespace headroom
