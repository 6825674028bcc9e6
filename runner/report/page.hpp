// A self-contained page: style, script and content in one file that needs no network.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace headroom {

// Escapes `text` for the content of an element or of a quoted attribute: &, <, >, " and ' become references, bytes that
// are not UTF-8 become '?', control characters become spaces; line breaks and tabs stay. Every name of a run, metric or
// plugin on a page passes through here, because it may come from anybody.
std::string escape_html(std::string_view text);

// <name attributes>content</name>; `content` is HTML already.
std::string element(std::string_view name, std::string_view attributes, std::string_view content);

// A key as words: "queue wait" for "queue_wait_seconds", "val/loss" unchanged. A unit at the end is removed, because
// amount_text() shows it.
std::string words_of_key(std::string_view key);

// `title` is plain text, `body` HTML.
std::string page_html(const std::string& title, const std::string& body);

// <section> with a heading; "" when `html` is empty, so that a page shows only what a run has.
std::string section(const std::string& heading, const std::string& html);

// Lays elements out side by side, as many as fit; `kind` is "tiles", "charts" or "pictures". "" when `html` is empty.
std::string side_by_side(std::string_view kind, const std::string& html);

// A tile at the top of a page: name, value, and a remark in small print. Plain text.
std::string tile(const std::string& name, const std::string& value, const std::string& remark = "");

// A figure of `source`, a data URI of a PNG, with its caption in plain text. "" where `source` is anything else, as in
// a damaged or malicious file.
std::string picture_html(const std::string& source, const std::string& caption);

// The colours of all pictures and pages, on light and on dark ground. First the series (after Okabe and Ito,
// distinguishable with colour blindness), then colours with a fixed meaning.
struct PaletteColour {
  const char *name, *light, *dark;
};

inline constexpr size_t series_colours = 8;  // "c0" to "c7"
inline constexpr std::array palette = {
    PaletteColour{"c0", "#0072b2", "#4ba6e0"},    PaletteColour{"c1", "#d55e00", "#ff8f45"},
    PaletteColour{"c2", "#009e73", "#2bbf92"},    PaletteColour{"c3", "#cc79a7", "#e29cc6"},
    PaletteColour{"c4", "#56b4e9", "#9bd8fa"},    PaletteColour{"c5", "#b98300", "#f0b032"},
    PaletteColour{"c6", "#7a5fb0", "#a78fe0"},    PaletteColour{"c7", "#5f6b2d", "#b5c46a"},
    PaletteColour{"slack", "#c9ced4", "#565e66"}, PaletteColour{"other", "#9aa1a9", "#7b848d"},
    PaletteColour{"page", "#ffffff", "#16191d"},  PaletteColour{"card", "#f6f7f9", "#1e2227"},
    PaletteColour{"text", "#1c1f23", "#e6e9ec"},  PaletteColour{"soft", "#59626c", "#a3adb7"},
    PaletteColour{"edge", "#d9dde2", "#3a4148"},  PaletteColour{"bad", "#b3261e", "#ff8a80"},
    PaletteColour{"good", "#00724f", "#4cd3a5"},
};

// Repeats `form` for each of the first `count` colours, with $N for its name and $C for its value.
std::string for_each_colour(const std::string& form, bool dark, size_t count = palette.size());

// `text` with every $name replaced by that colour's value.
std::string with_colours(std::string text, bool dark);

}  // namespace headroom
