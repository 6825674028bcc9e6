#include "config/literals.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <sstream>

namespace headroom {

namespace {

// As TOML's basic strings want control characters, quotes and backslashes.
std::string escaped(unsigned char c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    default:
      break;
  }
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "\\u%04X", static_cast<unsigned>(c));
  return text.data();
}

std::string list_literal(const toml::array& list) {
  std::string text = "[";
  for (const toml::node& element : list) {
    if (text.size() > 1) text += ", ";
    text += literal(element);
  }
  return text + "]";
}

// TOML 1.0 allows no comma behind the last key of an inline table.
std::string table_literal(const toml::table& table) {
  std::string text = "{";
  for (const auto& [key, value] : table) {
    text += text.size() > 1 ? ", " : " ";
    text += key_literal(key.str()) + " = " + literal(value);
  }
  return table.empty() ? "{}" : text + " }";
}

}  // namespace

std::string quote(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || c == '"' || c == '\\') {
      result += escaped(byte);
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string number_text(double value) {
  // TOML's words for them.
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer{};
  std::string text(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr);
  const size_t exponent = text.find('e');
  if (exponent != std::string::npos && text[exponent + 2] == '0') text.erase(exponent + 2, 1);  // 5e-04
  return text;
}

std::string number_literal(double value) {
  std::string text = number_text(value);
  // A float has a point or an exponent in TOML; nan and inf have neither, but letters.
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

std::string key_literal(std::string_view name) {
  // What TOML calls a bare key.
  const bool bare =
      !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
                           std::string_view::npos;
  return bare ? std::string(name) : quote(name);
}

std::string literal(const toml::node& node) {
  if (const auto* value = node.as_string()) return quote(value->get());
  if (const auto* value = node.as_integer()) return std::to_string(value->get());
  if (const auto* value = node.as_floating_point()) return number_literal(value->get());
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  if (const auto* value = node.as_array()) return list_literal(*value);
  if (const auto* value = node.as_table()) return table_literal(*value);
  // What is left are dates and times, which toml++ writes as TOML has them.
  std::ostringstream text;
  if (const auto* value = node.as_date()) text << value->get();
  if (const auto* value = node.as_time()) text << value->get();
  if (const auto* value = node.as_date_time()) text << value->get();
  return text.str();
}

toml::table parse_literal(std::string_view text, std::string_view origin) {
  // A literal alone is no TOML document.
  return toml::parse("value = " + std::string(text), std::string(origin));
}

}  // namespace headroom
