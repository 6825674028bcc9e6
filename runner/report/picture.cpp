#include "report/picture.hpp"

#include <string_view>

#include "report/html.hpp"

namespace headroom {

std::string picture_html(const std::string& source, const std::string& caption) {
  constexpr std::string_view prefix = "data:image/png;base64,";
  const bool is_plain = source.starts_with(prefix) &&
                        source.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=",
                                                 prefix.size()) == std::string::npos;
  if (!is_plain) return "";
  const std::string words = escape_html(caption);
  return "<figure class=\"picture\"><img alt=\"" + words + "\" src=\"" + source + "\"><figcaption>" + words +
         "</figcaption></figure>\n";
}

}  // namespace headroom
