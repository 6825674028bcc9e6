#include "record/terminal.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>

namespace headroom {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The first of the three that is set decides, as for setlocale().
bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value = variable(name);
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::tolower(c); });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

int Terminal::columns() const {
  struct winsize size {};
  if (::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

Terminal terminal_of(int file) {
  Terminal terminal{.file = file};
  const std::string term = variable("TERM");
  terminal.control = ::isatty(file) == 1 && !term.empty() && term != "dumb";
  terminal.utf8 = locale_is_utf8();
  // NO_COLOR counts when it is set and not empty (no-color.org).
  terminal.color = terminal.control && variable("NO_COLOR").empty();
  return terminal;
}

}  // namespace headroom
