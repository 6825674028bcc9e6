// Pictures on a page.
#pragma once

#include <string>

namespace headroom {

// A figure of `source`, a data URI of a PNG, with its caption in plain text. "" where it is anything else: files may be
// damaged, or a stranger's.
std::string picture_html(const std::string& source, const std::string& caption);

}  // namespace headroom
