// One self-contained page: style, script and content in one file that asks no network for anything.
#pragma once

#include <string>

namespace headroom {

// `title` is plain text, `body` HTML.
std::string page_html(const std::string& title, const std::string& body);

// <section> with a heading; "" when `html` is empty, so that what a run does not have leaves no trace.
std::string section(const std::string& heading, const std::string& html);

// A figure at the top of the page: its name, its value, and what is to be said about it in small print. Plain text.
std::string tile(const std::string& name, const std::string& value, const std::string& remark = "");

}  // namespace headroom
