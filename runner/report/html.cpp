#include "report/html.hpp"

#include <array>

#include "memory/readable.hpp"

namespace headroom {

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
    case '\'':
      html += "&#39;";
      break;
    default:
      html += c;
  }
}

void append_line(std::string& html, std::string_view line) {
  for (const char c : printable(line, line.size())) append_escaped(html, c);
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string html;
  html.reserve(text.size());
  while (!text.empty()) {
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

}  // namespace headroom
