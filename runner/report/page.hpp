// One self-contained page: style, script and content in one file that asks no network for anything.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace headroom {

// Names of runs, metrics and plugins are the words of strangers: whatever a page shows of them goes through here.
// `text` as the content of an element or of a quoted attribute: &, <, >, " and ' are written as references, bytes that
// are no UTF-8 as '?', control characters as spaces; line breaks and tabs stay.
std::string escape_html(std::string_view text);

// <name attributes>content</name>; `content` is HTML already.
std::string element(std::string_view name, std::string_view attributes, std::string_view content);

// "val/loss" and "queue_wait_seconds" as words: "val/loss", "queue wait".  A unit at the end goes, amount_text() says
// it.
std::string words_of_key(std::string_view key);

// `title` is plain text, `body` HTML.
std::string page_html(const std::string& title, const std::string& body);

// <section> with a heading; "" when `html` is empty, so that what a run does not have leaves no trace.
std::string section(const std::string& heading, const std::string& html);

// A figure at the top of the page: its name, its value, and what is to be said about it in small print. Plain text.
std::string tile(const std::string& name, const std::string& value, const std::string& remark = "");

// A figure of `source`, a data URI of a PNG, with its caption in plain text. "" where it is anything else: files may be
// damaged, or a stranger's.
std::string picture_html(const std::string& source, const std::string& caption);

// The colours of every picture and page, on light and on dark ground: series after Okabe and Ito, which stay apart for
// colour-blind eyes, then what has a colour of its own.
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

// `form` once for each of the first `count` colours, with $N for its name and $C for its value.
std::string for_each_colour(const std::string& form, bool dark, size_t count = palette.size());

// `text` with every $name replaced by that colour's value.
std::string with_colours(std::string text, bool dark);

}  // namespace headroom
