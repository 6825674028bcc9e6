// Text as a page takes it. Names of runs, metrics and plugins are the words of strangers: whatever a page shows of them
// goes through here.
#pragma once

#include <string>
#include <string_view>

namespace headroom {

// `text` as the content of an element or of a quoted attribute: &, <, >, " and ' are written as references, bytes that
// are no UTF-8 as '?', control characters as spaces; line breaks and tabs stay.
std::string escape_html(std::string_view text);

// <name attributes>content</name>; `content` is HTML already.
std::string element(std::string_view name, std::string_view attributes, std::string_view content);

// "val/loss" and "queue_wait_seconds" as words: "val/loss", "queue wait".  A unit at the end goes, amount_text() says
// it.
std::string words_of_key(std::string_view key);

}  // namespace headroom
