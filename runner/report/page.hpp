// One self-contained page: style, script and content in one file that asks no network for anything.
#pragma once

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

}  // namespace headroom
